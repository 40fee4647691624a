//! Check and backup of a database while it is open: one checkpoint is kept as it is meanwhile
//! (`checkpoint/pin.rs`), and those who insert keep their pace.

mod compare;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onrush_backup::BackupReport;
use onrush_check::{CheckOptions, CheckReport, Companion, LogChange, LogLimit, Progress, Source};
use onrush_log::Lsn;
use onrush_waits::{Recorder, Wait};

use crate::checkpoint::Pin;
use crate::database::Database;
use crate::error::{Error, Result};
use compare::Comparison;

/// How a check or a backup of an open database goes about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlineOptions {
    /// What to check and how; a backup has all tables.
    pub check: CheckOptions,
    /// How much of its time a checking thread works, in percent, 1 to 100; it rests in between, so
    /// that sessions have the processors. 100: no rest.
    pub busy_percent: u8,
    /// Whether a check also compares the rows that sessions see with those of the images and the log.
    /// It reads every row of every logged table for that, leaf by leaf, through the memory for leaves.
    /// Not with `physical_only`, and a backup never does.
    pub compare_rows: bool,
}

impl Default for OnlineOptions {
    /// One thread that works a tenth of its time.
    fn default() -> Self {
        let check = CheckOptions { dop: 1, ..CheckOptions::default() };
        OnlineOptions { check, busy_percent: 10, compare_rows: true }
    }
}

impl Database {
    /// Checks the last checkpoint and the log behind it, up to what is committed now, by decoders of
    /// their own, while sessions go on: everything that `onrush check` sees of a closed database, and
    /// that the rows in memory are those. The checkpoint's slots are not used again meanwhile, so the
    /// data files may grow.
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
            let source = self.pinned(&guest.pin, guest.pin.durable);
            return Ok(onrush_check::check_source(&source, &options.check, progress, &guest)?);
        }
        let snapshot = self.session()?.snapshot()?;
        let end = Lsn(snapshot.lsn());
        self.engine().log.wait_durable(end, &guest.recorder)?;
        let ranges = guest.pin.directory.ranges();
        guest.comparison = Some(Comparison::new(self, &ranges, options.check.table.as_deref()));
        let source = self.pinned(&guest.pin, end);
        let mut report = onrush_check::check_source(&source, &options.check, progress, &guest)?;
        if report.complete
            && let Some(comparison) = &guest.comparison
        {
            comparison.finish(self, &snapshot, &guest, &mut report)?;
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
        let into = crate::database::absolute(into.as_ref())?;
        let guest = Guest::new(self, options, "backup")?;
        let source = self.pinned(&guest.pin, guest.pin.durable);
        Ok(onrush_backup::copy(&source, &into, &options.check, progress, &guest)?)
    }

    /// The pinned checkpoint and the log up to `end`, which is durable.
    fn pinned(&self, pin: &Pin, end: Lsn) -> Source {
        Source {
            disk: Arc::clone(self.disk()),
            folder: self.folder().to_owned(),
            superblock: Arc::clone(&pin.superblock),
            log_folders: Vec::new(),
            log_limit: LogLimit::Lsn(end.0),
            durable_lsn: end.0,
        }
    }
}

/// A check beside sessions.
struct Guest {
    pin: Pin,
    recorder: Arc<Recorder>,
    busy_percent: u8,
    comparison: Option<Comparison>,
}

impl Guest {
    fn new(database: &Database, options: &OnlineOptions, name: &str) -> Result<Guest> {
        let busy_percent = options.busy_percent;
        if !(1..=100).contains(&busy_percent) {
            return Err(Error::BadOption {
                setting: "busy_percent",
                given: busy_percent.to_string(),
                reason: "1 to 100".into(),
            });
        }
        let engine = database.engine();
        let recorder = Recorder::new(&engine.registry, name);
        let pin = Pin::take(engine, &recorder)?;
        Ok(Guest { pin, recorder, busy_percent, comparison: None })
    }

    fn pace(&self) -> Pace<'_> {
        Pace { guest: self, since: Instant::now() }
    }
}

/// When somebody who works without a companion last rested.
struct Pace<'a> {
    guest: &'a Guest,
    since: Instant,
}

impl Pace<'_> {
    fn rest(&mut self) {
        self.guest.rest(self.since.elapsed());
        self.since = Instant::now();
    }
}

impl Companion for Guest {
    fn wants_rows(&self) -> bool {
        self.comparison.is_some()
    }

    fn log_change(&self, object: u32, key: &[u8], change: LogChange<'_>) {
        if let Some(comparison) = &self.comparison {
            comparison.change(object, key, change);
        }
    }

    fn leaf(&self, object: u32, low: &[u8], rows: &mut dyn Iterator<Item = (&[u8], &[u8])>) {
        if let Some(comparison) = &self.comparison {
            comparison.leaf(object, low, rows);
        }
    }

    fn log_is_read(&self) {
        if let Some(comparison) = &self.comparison {
            comparison.log_is_read();
        }
        self.pin.release_log();
    }

    fn rest(&self, worked: Duration) {
        let busy = u32::from(self.busy_percent);
        let rest = worked * (100 - busy) / busy;
        if !rest.is_zero() {
            let _wait = self.recorder.wait(Wait::OnlineRest);
            std::thread::sleep(rest);
        }
    }
}
