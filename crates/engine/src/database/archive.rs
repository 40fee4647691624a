//! For whoever archives the log: whole blocks below its durable end, and how far they are elsewhere.

use onrush_log::{LogPosition, LogTail};

use super::Database;
use crate::error::Result;
use crate::recovery::archived;

impl Database {
    /// Reads the log from `position` on, block by block. It stays until the reader lets it go, also where no
    /// checkpoint needs it any more.
    ///
    /// # Errors
    /// A stopped or closed engine.
    pub fn log_tail(&self, position: &LogPosition) -> Result<LogTail> {
        self.check_running()?;
        Ok(self.engine().log.tail_from(position))
    }

    /// Bytes of log files that opening has kept for an archive, and that nobody reads yet.
    #[must_use]
    pub fn kept_log_bytes(&self) -> u64 {
        self.engine().log.kept_at_opening_bytes()
    }

    /// Lets go of what opening has kept for an archive: nobody will read it.
    pub fn let_kept_log_go(&self) {
        self.engine().log.keep_from_opening(None);
    }

    /// Keeps the log from `position` on for an archive that goes on later, also at the next opening.
    pub fn keep_log(&self, position: &LogPosition) {
        self.engine().log.keep_from_opening(Some(position.segment));
    }

    /// Where the log ends: everything below is durable.
    #[must_use]
    pub fn log_position(&self) -> LogPosition {
        self.engine().log.position()
    }

    /// Where the log was archived up to when [`note_archived`](Self::note_archived) was last called for this history;
    /// none: never.
    ///
    /// # Errors
    /// A note that cannot be read.
    pub fn archived_to(&self) -> Result<Option<LogPosition>> {
        archived::read(&**self.disk(), self.folder(), self.id())
    }

    /// Notes how far the log is archived. Durable when this returns: the next opening with
    /// [`archive_log_bytes`](crate::Options::archive_log_bytes) keeps the log from there on.
    ///
    /// # Errors
    /// It cannot be written. The database goes on.
    pub fn note_archived(&self, position: &LogPosition) -> Result<()> {
        archived::write(&**self.disk(), self.folder(), self.id(), position)
    }
}
