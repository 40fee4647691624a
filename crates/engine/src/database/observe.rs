//! What an open database did and does, and whose its sessions are: nothing here changes anything else.

use onrush_waits::{LiveSummary, LiveTotals, SessionClient};

use super::Database;
use crate::checkpoint::CheckpointRecord;
use crate::statistics::{MemoryPart, Rates, Statistics};

impl Database {
    /// The checkpoints that were taken since the database was opened, the oldest first and no
    /// more than the last hundred, and the one that is being taken.
    #[must_use]
    pub fn checkpoints(&self) -> Vec<CheckpointRecord> {
        self.engine().checkpoints.read(&self.engine().progress)
    }

    /// What was done since the database was opened or [`reset_statistics`](Self::reset_statistics)
    /// was called, and how things are now. Two of them can be subtracted:
    /// [`Statistics::since`].
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.shared.observer.statistics()
    }

    /// Adds a part to the memory that [`statistics`](Self::statistics) tell: what the program around the
    /// engine holds, counted whenever somebody asks.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// db.count_memory(|| MemoryPart::new("cache of pages", 4096, Some(1 << 20)));
    /// assert!(db.statistics().memory.iter().any(|part| part.name == "cache of pages"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn count_memory(&self, count: impl Fn() -> MemoryPart + Send + Sync + 'static) {
        self.shared.observer.count_memory(Box::new(count));
    }

    /// Statistics begin at nothing again. Nothing but the statistics changes.
    pub fn reset_statistics(&self) {
        self.shared.observer.reset();
    }

    /// Every session and background thread that there is now, with what it waits for.
    #[must_use]
    pub fn sessions(&self) -> Vec<LiveSummary> {
        self.engine().registry.summaries()
    }

    /// Says whose the session with this number ([`Session::id`](crate::Session::id)) is, for
    /// [`sessions`](Self::sessions). May be said again.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// let session = db.session()?;
    /// let of_till = |application: &str| SessionClient {
    ///     application: application.into(),
    ///     user: "cashier".into(),
    ///     address: "10.0.0.7:5000".into(),
    /// };
    /// db.set_session_client(session.id(), of_till("till 3"));
    /// let mut sessions = db.sessions().into_iter();
    /// let own = sessions.find(|one| one.id == session.id()).expect("it is there");
    /// assert_eq!(own.title(), "till 3 cashier@10.0.0.7:5000");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_session_client(&self, session: u64, client: SessionClient) {
        self.engine().registry.set_client(session, client);
    }

    /// Every session and background thread that there is now, with everything it did.
    #[must_use]
    pub fn session_statistics(&self) -> Vec<LiveTotals> {
        self.engine().registry.live()
    }

    /// The last ten minutes, a second at a time, oldest first. Without background threads seconds
    /// are only as fine as this is called.
    #[must_use]
    pub fn history(&self) -> Vec<Rates> {
        self.shared.observer.sample_if_due();
        self.shared.observer.rates()
    }
}
