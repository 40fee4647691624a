//! One archiver, step by step: what [`Archive`](crate::Archive) does with a thread of its own, and tests by hand.
//!
//! Invariants
//! 1. The next object's name is where the one before ended, and an object is created or not made at all: of two who
//!    archive the same history one is refused, from the first object on that is not the same.
//! 2. What was sent under a name is sent again as it was until the store says what is there.
//! 3. The log is held from the end of the archive on, but for more than `log_bytes_max` of it.
//! 4. `safe_lsn` is raised when the log up to there and a backup below it can be restored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use onrush::{Database, LogPosition, LogTail, Lsn, PageCopy};
use onrush_log::LogError;

use crate::backup::{BackupJob, end_of};
use crate::error::{ArchiveError, FencedBecause};
use crate::manifest::{Manifest, complete_backups, manifest_name};
use crate::object::{BEGINNING, Kind, LogObject, MARKER_BYTES_MAX};
use crate::options::ArchiveOptions;
use crate::store::{CONTRADICTION, Created, Listed, Place, StoreError};

/// What a step has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is one more object, and perhaps more to archive.
    Archived,
    /// Everything durable is archived.
    UpToDate,
}

/// What was done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Objects of the log.
    pub objects: u64,
    /// Bytes of log blocks in them.
    pub bytes: u64,
    /// Backups completed.
    pub backups: u64,
    /// How often log was let go that was not archived.
    pub gaps: u64,
}

/// See the module.
pub struct Archiver {
    database: Database,
    place: Place,
    options: ArchiveOptions,
    history: u128,
    log: Option<Log>,
    /// What was sent and not yet seen to be there.
    pending: Option<Pending>,
    /// The end of the newest complete backup.
    newest_backup: Option<Lsn>,
    /// Backups from before this LSN end before a gap in the log.
    backup_above: Lsn,
    safe_lsn: Lsn,
    totals: Totals,
    /// Set for good.
    fenced: Option<ArchiveError>,
    is_stopped: Arc<AtomicBool>,
}

/// The log of the database, and how far the archive has it.
struct Log {
    tail: LogTail,
    /// Where the archive ends.
    at: LogPosition,
    /// The segment that the database has noted.
    noted_segment: Option<u64>,
}

struct Pending {
    object: LogObject,
    bytes: Bytes,
}

impl Archiver {
    /// Nothing happens before the first [`step`](Self::step).
    #[must_use]
    pub fn new(database: &Database, place: Place, options: ArchiveOptions) -> Archiver {
        Archiver {
            database: database.clone(),
            history: database.id(),
            place,
            options,
            log: None,
            pending: None,
            newest_backup: None,
            backup_above: Lsn::ZERO,
            safe_lsn: Lsn::ZERO,
            totals: Totals::default(),
            fenced: None,
            is_stopped: Arc::default(),
        }
    }

    /// What was done since the start.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Every commit below would survive the loss of this machine.
    #[must_use]
    pub fn safe_lsn(&self) -> Lsn {
        self.safe_lsn
    }

    /// The end of the newest complete backup.
    #[must_use]
    pub fn newest_backup(&self) -> Option<Lsn> {
        self.newest_backup
    }

    /// Log files that are kept for the archive alone.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.tail.held_bytes())
    }

    /// Ends a backup that is being made.
    pub(crate) fn stop_backups(&self) {
        self.is_stopped.store(true, Ordering::Release);
    }

    /// Archives one object more, if there is anything to archive. The first step finds the end of the archive, or
    /// begins one.
    ///
    /// # Errors
    /// [`Away`](ArchiveError::Away): the next step asks again. [`Fenced`](ArchiveError::Fenced) and
    /// [`Damaged`](ArchiveError::Damaged) are for good.
    pub async fn step(&mut self) -> Result<Step, ArchiveError> {
        if let Some(fenced) = &self.fenced {
            return Err(fenced.clone());
        }
        let stepped = self.try_step().await;
        if let Err(error) = &stepped
            && !error.is_temporary()
        {
            self.fenced = Some(error.clone());
        }
        stepped
    }

    async fn try_step(&mut self) -> Result<Step, ArchiveError> {
        if self.log.is_none() && self.pending.is_none() {
            self.open().await?;
        }
        if self.pending.is_some() {
            self.send().await?;
            return Ok(Step::Archived);
        }
        self.let_go_of_too_much()?;
        let Some(log) = &self.log else { return Ok(Step::UpToDate) };
        match log.tail.read(&log.at, self.options.object_bytes) {
            Ok(None) => Ok(Step::UpToDate),
            Ok(Some(part)) => {
                self.set_pending(LogObject::of_part(self.database_id(), part));
                self.send().await?;
                Ok(Step::Archived)
            }
            // Nobody but this archiver lets it go.
            Err(LogError::NotKept { .. }) => {
                let from = log.at;
                self.begin_anew(from).await?;
                self.send().await?;
                Ok(Step::Archived)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn database_id(&self) -> u128 {
        self.database.file_id()
    }

    fn name(&self, object: &str) -> String {
        format!("{:032x}/{object}", self.history)
    }

    fn set_pending(&mut self, object: LogObject) {
        let bytes = object.seal(self.history);
        self.pending = Some(Pending { object, bytes });
    }

    /// Finds where the archive ends, and that it is this database's.
    async fn open(&mut self) -> Result<(), ArchiveError> {
        if self.database.options().archive_log_bytes == 0 {
            return Err(onrush::Error::BadOption {
                setting: "archive_log_bytes",
                given: "0".into(),
                reason: "an archive needs the log that is not archived yet, after a restart, too: give it some GiB"
                    .into(),
            }
            .into());
        }
        let backups =
            complete_backups(&*self.place.store, &format!("{:032x}", self.history)).await?;
        self.newest_backup = backups.last().copied();
        let listed = self.place.store.list(&self.name("log")).await?;
        let noted = self.database.archived_to()?;
        // Nothing is there that could be somebody else's: a new place, or one that was emptied.
        let Some(last) = listed.last() else { return self.begin_anew(BEGINNING).await };
        let last = self.read_log_object(&last.name.clone()).await?;
        let is_marker = |listed: &&Listed| listed.bytes < MARKER_BYTES_MAX;
        if let Some(marker) = listed.iter().rev().find(is_marker) {
            self.backup_above = self.read_log_object(&marker.name.clone()).await?.to.lsn;
        }
        if last.kind == Kind::Closed {
            return Err(FencedBecause::Closed { lsn: last.from.lsn }.into());
        }
        // Where that log is gone: this database has archived up to there, or further before the store went back; or
        // nothing was archived yet that anybody could rely on.
        let is_marker = last.kind == Kind::GoesOn;
        let is_own = (is_marker && last.from == BEGINNING)
            || noted.is_some_and(|noted| {
                noted.is_same_place(&last.to)
                    || place_of(&noted) > place_of(&last.to)
                    || (is_marker && noted.is_same_place(&last.from))
            });
        self.go_on_from(last.to, &last.name(), is_own).await
    }

    /// The archive ends at `at`, which the object `last` says. Proves that the database's log goes on from there; where
    /// it is gone, `is_own` is the proof.
    async fn go_on_from(
        &mut self,
        at: LogPosition,
        last: &str,
        is_own: bool,
    ) -> Result<(), ArchiveError> {
        let own = self.database.log_position();
        let object = || last.to_owned();
        let is_at_end = at.is_same_place(&own);
        if !is_at_end && place_of(&at) > place_of(&own) {
            return Err(FencedBecause::Ahead { object: object() }.into());
        }
        let tail = self.database.log_tail(&at)?;
        let follows = match place_of(&at) == place_of(&own) {
            true => Ok(is_at_end),
            false => tail.read(&at, 0).map(|_| true),
        };
        match follows {
            Ok(true) => {
                self.log = Some(Log { tail, at, noted_segment: None });
                self.note_progress()
            }
            Err(LogError::NotKept { .. }) if is_own => self.begin_anew(at).await,
            Err(LogError::NotKept { .. }) => {
                Err(FencedBecause::Unproven { object: object() }.into())
            }
            Ok(false) | Err(LogError::Damaged { .. }) => {
                Err(FencedBecause::OtherLog { object: object() }.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn read_log_object(&self, name: &str) -> Result<LogObject, ArchiveError> {
        let bytes = self.place.store.read(name).await?;
        let short = name.split_once('/').map_or(name, |(_, short)| short);
        let bytes =
            bytes.ok_or_else(|| crate::object::damaged(short, "it was listed, and is gone"))?;
        LogObject::open(short, self.history, &bytes)
    }

    /// The archive ended at `from`, or has not begun; it goes on with a new backup, and the log from there on.
    async fn begin_anew(&mut self, from: LogPosition) -> Result<(), ArchiveError> {
        let copy = self.begin_copy().await?;
        let to = copy.redo_from();
        // Before the copy goes: it holds the log from there on.
        let tail = self.database.log_tail(&to)?;
        drop(copy);
        if from != BEGINNING {
            self.totals.gaps += 1;
            tracing::warn!(
                "log from {from} to {to} was let go before it was archived; the archive goes on with a new backup"
            );
        }
        let noted_segment = self.log.take().and_then(|log| log.noted_segment);
        self.log = Some(Log { tail, at: from, noted_segment });
        self.set_pending(LogObject::marker(Kind::GoesOn, self.database_id(), from, to));
        Ok(())
    }

    async fn begin_copy(&self) -> Result<PageCopy, ArchiveError> {
        let (database, online) = (self.database.clone(), self.options.online.clone());
        blocking(move || Ok(database.begin_page_copy(&online)?)).await
    }

    /// Sends what is pending until the store says what is there.
    async fn send(&mut self) -> Result<(), ArchiveError> {
        let Some(pending) = &self.pending else { return Ok(()) };
        let name = self.name(&pending.object.name());
        match self.place.store.create(&name, pending.bytes.clone()).await? {
            Created::Created => self.advance(),
            Created::Exists => self.meet(&name).await,
        }
    }

    /// There is an object of that name: it is what was sent, or sent by a predecessor, or somebody else's.
    async fn meet(&mut self, name: &str) -> Result<(), ArchiveError> {
        let Some(pending) = &self.pending else { return Ok(()) };
        let Some(found) = self.place.store.read(name).await? else {
            return Err(StoreError::new("write", name, &CONTRADICTION).into());
        };
        if found == pending.bytes {
            return self.advance();
        }
        let found = LogObject::open(&pending.object.name(), self.history, &found)?;
        if found.kind == Kind::Closed {
            return Err(FencedBecause::Closed { lsn: found.from.lsn }.into());
        }
        if found.kind == Kind::GoesOn && pending.object.kind == Kind::GoesOn {
            // A predecessor has begun at another checkpoint of the same log.
            self.pending = None;
            self.backup_above = found.to.lsn;
            return self.go_on_from(found.to, &found.name(), true).await;
        }
        // A predecessor has cut the same log elsewhere.
        if found.kind != Kind::Log || !self.is_own(&found)? {
            return Err(FencedBecause::OtherLog { object: found.name() }.into());
        }
        let bytes = found.seal(self.history);
        self.pending = Some(Pending { object: found, bytes });
        self.advance()
    }

    /// Whether the database's log has these very blocks.
    fn is_own(&self, found: &LogObject) -> Result<bool, ArchiveError> {
        let Some(log) = &self.log else { return Ok(false) };
        match log.tail.read(&found.from, found.blocks.len()) {
            Ok(Some(own)) => Ok(own.segment == found.segment
                && own.bytes.len() >= found.blocks.len()
                && own.bytes[..found.blocks.len()] == found.blocks[..]),
            Ok(None) | Err(LogError::NotKept { .. } | LogError::Damaged { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// What is pending is there.
    fn advance(&mut self) -> Result<(), ArchiveError> {
        let (Some(pending), Some(log)) = (self.pending.take(), &mut self.log) else {
            return Ok(());
        };
        let object = pending.object;
        log.at = object.to;
        match object.kind {
            Kind::GoesOn => self.backup_above = object.to.lsn,
            _ => {
                self.totals.objects += 1;
                self.totals.bytes += object.blocks.len() as u64;
            }
        }
        self.note_progress()
    }

    /// The archive ends at `at`: what is below may go, and may be relied on.
    fn note_progress(&mut self) -> Result<(), ArchiveError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        if log.noted_segment != Some(log.at.segment) {
            self.database.note_archived(&log.at)?;
            log.noted_segment = Some(log.at.segment);
        }
        log.tail.let_go_below(&log.at)?;
        let archived = log.tail.lsn_of(&log.at);
        if self.has_backup() {
            self.safe_lsn = self.safe_lsn.max(archived);
        }
        Ok(())
    }

    /// Notes where the archive ends, for the next opening.
    ///
    /// # Errors
    /// The note cannot be written.
    pub fn note(&mut self) -> Result<(), ArchiveError> {
        match &self.log {
            Some(log) if log.at != BEGINNING => Ok(self.database.note_archived(&log.at)?),
            _ => Ok(()),
        }
    }

    fn let_go_of_too_much(&mut self) -> Result<(), ArchiveError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        if log.tail.held_bytes() <= self.options.log_bytes_max {
            return Ok(());
        }
        if log.at != BEGINNING {
            self.database.note_archived(&log.at)?;
        }
        log.tail = self.database.log_tail(&self.database.log_position())?;
        Ok(())
    }

    /// Lets log go that takes too much space, while the store is away.
    ///
    /// # Errors
    /// A closed engine; a note that cannot be written.
    pub fn while_away(&mut self) -> Result<(), ArchiveError> {
        if self.log.is_none() && self.database.kept_log_bytes() > self.options.log_bytes_max {
            self.database.let_kept_log_go();
        }
        self.let_go_of_too_much()
    }

    /// Notes where the archive ends, and keeps the log from there on for whoever goes on with it.
    ///
    /// # Errors
    /// The note cannot be written.
    pub fn leave(&mut self) -> Result<(), ArchiveError> {
        self.note()?;
        match &self.log {
            _ if self.fenced.is_some() => self.database.let_kept_log_go(),
            Some(log) if log.at != BEGINNING => self.database.keep_log(&log.at),
            _ => {}
        }
        self.log = None;
        Ok(())
    }

    /// Why nothing is archived any more.
    #[must_use]
    pub fn failure(&self) -> Option<&ArchiveError> {
        self.fenced.as_ref()
    }

    /// Whether what is archived can be restored up to its end.
    #[must_use]
    pub fn is_restorable(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.at != BEGINNING) && self.has_backup()
    }

    fn has_backup(&self) -> bool {
        self.newest_backup.is_some_and(|end| end >= self.backup_above)
    }

    /// Whether a backup is due: there is none yet that the archived log goes on from, or that log has grown long.
    #[must_use]
    pub fn is_backup_due(&self) -> bool {
        let Some(log) = self.log.as_ref().filter(|log| log.at != BEGINNING) else { return false };
        match self.newest_backup.filter(|_| self.has_backup()) {
            Some(end) => log.at.lsn.bytes_since(end) >= self.options.backup_log_bytes,
            None => true,
        }
    }

    /// Begins a backup. Its pages are stored by [`BackupJob::run`].
    pub(crate) async fn begin_backup(&self) -> Result<BackupJob, ArchiveError> {
        Ok(BackupJob {
            copy: self.begin_copy().await?,
            store: Arc::clone(&self.place.store),
            history: self.history,
            part_bytes: self.options.part_bytes,
            is_stopped: Arc::clone(&self.is_stopped),
        })
    }

    /// Whether the log that a backup needs is archived.
    pub(crate) fn reaches(&self, manifest: &Manifest) -> bool {
        self.log.as_ref().is_some_and(|log| log.tail.lsn_of(&log.at) >= end_of(manifest))
    }

    /// Makes a backup of pages that are stored, once their log is. False: log that it needs was let go meanwhile.
    pub(crate) async fn complete_backup(
        &mut self,
        manifest: &Manifest,
    ) -> Result<bool, ArchiveError> {
        let end = end_of(manifest);
        if Lsn(manifest.redo_from_lsn) < self.backup_above {
            return Ok(false);
        }
        let name = self.name(&manifest_name(end));
        // One that is there is of the same moment.
        if self.place.store.create(&name, manifest.seal(self.history)).await? == Created::Exists
            && self.place.store.read(&name).await?.is_none()
        {
            return Err(StoreError::new("write", &name, &CONTRADICTION).into());
        }
        self.newest_backup = self.newest_backup.max(Some(end));
        self.totals.backups += 1;
        self.note_progress()?;
        Ok(true)
    }

    /// Makes a backup now, and archives the log that it needs.
    ///
    /// # Errors
    /// As [`step`](Self::step); a damaged database.
    pub async fn back_up(&mut self) -> Result<Lsn, ArchiveError> {
        loop {
            while self.step().await? == Step::Archived {}
            let job = self.begin_backup().await?;
            let runtime = tokio::runtime::Handle::current();
            let manifest = blocking(move || job.run(&runtime)).await?;
            while !self.reaches(&manifest) {
                self.step().await?;
            }
            if self.complete_backup(&manifest).await? {
                return Ok(end_of(&manifest));
            }
        }
    }

    /// How much durable log is not archived, in bytes of records.
    #[must_use]
    pub fn behind_bytes(&self) -> u64 {
        let archived = self.log.as_ref().map_or(Lsn::ZERO, |log| log.tail.lsn_of(&log.at));
        self.database.durable_lsn().bytes_since(archived)
    }

    /// Up to which LSN the log is archived, whether or not there is a backup for it.
    #[must_use]
    pub fn archived_lsn(&self) -> Lsn {
        self.log.as_ref().map_or(Lsn::ZERO, |log| log.tail.lsn_of(&log.at))
    }
}

/// Positions are compared by their place.
fn place_of(position: &LogPosition) -> (u64, u64) {
    (position.segment, position.offset)
}

/// Runs what waits for disks on a thread for that.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ArchiveError> + Send + 'static,
) -> Result<T, ArchiveError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ArchiveError::Stopped),
        },
    }
}
