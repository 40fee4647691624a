//! Check and backup of a database while it is open: one checkpoint is kept as it is meanwhile
//! (`checkpoint/pin.rs`), and those who insert keep their pace.

mod compare;
mod copy;
mod guest;
mod indexes;
mod long_values;

use std::path::Path;
use std::sync::Arc;

use onrush_backup::BackupReport;
use onrush_check::{CheckOptions, CheckReport, LogLimit, Progress, Source, check_source};
use onrush_log::Lsn;

use crate::checkpoint::Pin;
use crate::database::{Database, absolute};
use crate::error::Result;
use compare::Comparison;
pub use copy::PageCopy;
use guest::Guest;

/// How a check or a backup of an open database goes about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlineOptions {
    /// What to check and how; a backup has all tables.
    pub check: CheckOptions,
    /// How much of its time a checking thread works, in percent, 1 to 100; it rests in between, so
    /// that sessions have the processors. 100: no rest. The log, which cannot be recycled before it
    /// has been read, is read three times as busily.
    pub busy_percent: u8,
    /// The nice value of checking threads on Linux, 0 to 19: with a higher one they give way to
    /// sessions sooner, and get less done while there is no idle processor.
    pub nice: u8,
    /// Whether a check also compares the rows that sessions see with those of the images and the log.
    /// It reads every row of every logged table for that, leaf by leaf, through the memory for leaves.
    /// Not with `physical_only`, and a backup never does.
    pub compare_rows: bool,
}

impl Default for OnlineOptions {
    /// One thread that works a twenty-fifth of its time and gives way to sessions.
    fn default() -> Self {
        let check = CheckOptions { dop: 1, ..CheckOptions::default() };
        OnlineOptions { check, busy_percent: 4, nice: 10, compare_rows: true }
    }
}

impl Database {
    /// Checks the last checkpoint and the log behind it, up to what is committed now, by decoders of
    /// their own, while sessions go on: everything that `onrush check` sees of a closed database, that
    /// the rows in memory are those, and that indexes have the entries of their rows. The checkpoint's
    /// slots are not used again meanwhile, so the data files may grow.
    ///
    /// ```
    /// use onrush::{CheckProgress, Database, OnlineOptions, Options};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let db = Database::create(folder.path().join("shop"), Options::small())?;
    /// let report = db.check(&OnlineOptions::default(), &CheckProgress::default())?;
    /// assert!(report.is_sound(), "{report}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A stopped or closed engine, an option out of range, no such table. What is wrong with the data
    /// is in the report.
    pub fn check(&self, options: &OnlineOptions, progress: &Progress) -> Result<CheckReport> {
        let mut guest = Guest::new(self, options, "check")?;
        if !options.compare_rows || options.check.physical_only {
            let source = self.pinned(guest.pin(), guest.pin().durable);
            return Ok(guest.beside(|| check_source(&source, &options.check, progress, &guest))?);
        }
        let mut snapshot = self.session()?.snapshot()?;
        let end = snapshot.lsn();
        guest.wait_durable(self, end)?;
        let ranges = guest.pin().directory.ranges();
        guest.compare(Comparison::new(self, &ranges, options.check.table.as_deref()));
        let source = self.pinned(guest.pin(), end);
        let mut report =
            guest.beside(|| check_source(&source, &options.check, progress, &guest))?;
        if report.complete
            && let Some(comparison) = guest.comparison()
        {
            comparison.finish(self, &snapshot, &guest, &mut report)?;
            let only = options.check.table.as_deref();
            // Rows that are not whole have no entries that could be told.
            if long_values::compare(self, &mut snapshot, &guest, only, &mut report)? {
                indexes::compare(self, &mut snapshot, &guest, only, &mut report)?;
            }
        }
        Ok(report)
    }

    /// Copies the database into the new folder `into`, and checks what it copies, while sessions go
    /// on. The copy is a database of its own: everything committed before this call is in it. It
    /// appears whole or not at all.
    ///
    /// ```
    /// use onrush::{CheckProgress, Database, OnlineOptions, Options};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let db = Database::create(folder.path().join("shop"), Options::small())?;
    /// let copy = folder.path().join("shop-backup");
    /// db.backup(&copy, &OnlineOptions::default(), &CheckProgress::default())?;
    /// let restored = Database::open(&copy, Options::small())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`check`](Self::check); damage; a folder that is not new, or cannot be written. The database
    /// itself goes on in every case.
    pub fn backup(
        &self,
        into: impl AsRef<Path>,
        options: &OnlineOptions,
        progress: &Progress,
    ) -> Result<BackupReport> {
        let into = absolute(into.as_ref())?;
        let guest = Guest::new(self, options, "backup")?;
        let source = self.pinned(guest.pin(), guest.pin().durable);
        let copy = || onrush_backup::copy(&source, &into, &options.check, progress, &guest);
        Ok(guest.beside(copy)?)
    }

    /// The pinned checkpoint and the log up to `end`, which is durable.
    fn pinned(&self, pin: &Pin, end: Lsn) -> Source {
        Source {
            disk: Arc::clone(self.disk()),
            folder: self.folder().to_owned(),
            superblock: Arc::clone(&pin.superblock),
            log_folders: Vec::new(),
            log_limit: LogLimit::Lsn(end),
            durable_lsn: Some(end),
        }
    }
}
