//! One checkpoint of an open database, handed over page by page to whoever stores it elsewhere.

use std::time::Duration;

use onrush_check::{Anchor, CheckReport, Companion, Progress, check_source};
use onrush_log::{LogPosition, Lsn};

use super::OnlineOptions;
use super::guest::Guest;
use crate::database::Database;
use crate::error::Result;

/// A checkpoint that is kept as it is until this goes.
pub struct PageCopy {
    database: Database,
    options: OnlineOptions,
    guest: Guest,
}

impl Database {
    /// Keeps the newest checkpoint as it is, for [`PageCopy::run`]. With the log from
    /// [`redo_from`](PageCopy::redo_from) up to [`end`](PageCopy::end) it is everything that was committed before
    /// this call.
    ///
    /// # Errors
    /// A stopped or closed engine, an option out of range.
    pub fn begin_page_copy(&self, options: &OnlineOptions) -> Result<PageCopy> {
        let guest = Guest::new(self, options, "backup")?;
        Ok(PageCopy { database: self.clone(), options: options.clone(), guest })
    }
}

impl PageCopy {
    /// C: where the log begins that is needed with the pages.
    #[must_use]
    pub fn redo_from(&self) -> LogPosition {
        self.guest.pin().start
    }

    /// Up to where that log is needed.
    #[must_use]
    pub fn end(&self) -> Lsn {
        self.guest.pin().durable
    }

    /// Checks the checkpoint, and hands its pages to `companion`, while sessions go on.
    ///
    /// # Errors
    /// As [`Database::check`]. What is wrong with the data is in the report.
    pub fn run(&self, companion: &dyn Companion, progress: &Progress) -> Result<CheckReport> {
        let source = self.database.pinned(self.guest.pin(), self.end());
        let both = Both { guest: &self.guest, companion };
        let check = || check_source(&source, &self.options.check, progress, &both);
        Ok(self.guest.beside(check)?)
    }
}

/// The companion gets the pages, the guest paces.
struct Both<'a> {
    guest: &'a Guest,
    companion: &'a dyn Companion,
}

impl Companion for Both<'_> {
    fn superblock(&self, anchor: &Anchor<'_>) {
        self.companion.superblock(anchor);
    }

    fn data_file(&self, number: usize, bytes: u64, header: &[u8]) {
        self.companion.data_file(number, bytes, header);
    }

    fn pages(&self, file: usize, offset: u64, pages: &[u8]) {
        self.companion.pages(file, offset, pages);
    }

    fn segment(&self, number: u64, bytes: u64, header: &[u8]) {
        self.companion.segment(number, bytes, header);
    }

    fn log_is_read(&self) {
        self.guest.log_is_read();
    }

    fn rest(&self, worked: Duration) {
        self.guest.rest(worked);
    }

    fn rest_in_log(&self, worked: Duration) {
        self.guest.rest_in_log(worked);
    }

    fn gives_up(&self) -> bool {
        self.companion.gives_up()
    }
}
