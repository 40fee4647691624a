//! An archiver with a thread of its own, and those who wait for it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onrush::{Database, Lsn};
use onrush_log::LatestLsn;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot, watch};

use crate::archiver::{Archiver, Step, Totals};
use crate::backup::end_of;
use crate::error::ArchiveError;
use crate::manifest::Manifest;
use crate::options::ArchiveOptions;
use crate::store::Place;

/// The archive of an open database. Dropped, it archives what is durable, within its time, and ends.
pub struct Archive {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// How an archive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The end of the archive is looked for.
    Opening,
    /// Log goes to the archive as it is due.
    Running,
    /// What is archived cannot be restored alone yet: a backup is being made.
    Behind,
    /// The store does not answer. Inserts go on, and it is asked again.
    Away,
    /// Nothing is archived until somebody has looked. Inserts go on.
    Fenced,
}

impl Phase {
    /// As it is shown.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Phase::Opening => "opening",
            Phase::Running => "running",
            Phase::Behind => "behind",
            Phase::Away => "away",
            Phase::Fenced => "fenced",
        }
    }
}

/// What is to be seen of an archive.
#[derive(Clone, Debug)]
pub struct ArchiveState {
    /// How it is.
    pub phase: Phase,
    /// Why it is not running.
    pub cause: Option<String>,
    /// Up to where the log is archived.
    pub archived_lsn: Lsn,
    /// Every commit below would survive the loss of this machine.
    pub safe_lsn: Lsn,
    /// Durable log that is not archived, in bytes of records.
    pub behind_bytes: u64,
    /// How long there has been some.
    pub behind: Duration,
    /// Log files that are kept for the archive alone.
    pub held_bytes: u64,
    /// The end of the newest complete backup.
    pub newest_backup: Option<Lsn>,
    /// What was done since the start.
    pub totals: Totals,
}

struct Shared {
    database: Database,
    /// Every commit below would survive the loss of this machine, or why none more will.
    safe: watch::Sender<Safe>,
    /// The highest that somebody waits for.
    wanted: LatestLsn,
    /// Backups that were asked for.
    backups_wanted: Mutex<Vec<BackupAnswer>>,
    bell: Notify,
    is_stopped: AtomicBool,
    state: Mutex<Shown>,
}

type BackupAnswer = oneshot::Sender<Result<Lsn, ArchiveError>>;

#[derive(Clone, Debug)]
struct Safe {
    lsn: Lsn,
    failure: Option<ArchiveError>,
}

/// What the thread shows of itself.
struct Shown {
    phase: Phase,
    cause: Option<String>,
    archived_lsn: Lsn,
    held_bytes: u64,
    newest_backup: Option<Lsn>,
    totals: Totals,
    /// When everything durable was archived.
    current_at: Instant,
}

impl Archive {
    /// Starts to archive `database` to `place`, where it goes on from what is there.
    ///
    /// # Errors
    /// A database without [`archive_log_bytes`](onrush::Options::archive_log_bytes); no thread.
    pub fn start(
        database: &Database,
        place: &Place,
        options: ArchiveOptions,
    ) -> Result<Archive, ArchiveError> {
        let started = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("onrush-archive")
            .enable_all()
            .build();
        let no_thread = |error: std::io::Error| {
            let cause = format!("cannot start the archiver: {error}");
            ArchiveError::Database(onrush::Error::BadOption {
                setting: "archive",
                given: place.to_string(),
                reason: cause,
            })
        };
        let runtime = started.map_err(no_thread)?;
        let shared = Arc::new(Shared {
            database: database.clone(),
            safe: watch::Sender::new(Safe { lsn: Lsn::ZERO, failure: None }),
            wanted: LatestLsn::default(),
            backups_wanted: Mutex::default(),
            bell: Notify::new(),
            is_stopped: AtomicBool::new(false),
            state: Mutex::new(Shown {
                phase: Phase::Opening,
                cause: None,
                archived_lsn: Lsn::ZERO,
                held_bytes: 0,
                newest_backup: None,
                totals: Totals::default(),
                current_at: Instant::now(),
            }),
        });
        let archiver = Archiver::new(database, place.clone(), options.clone());
        let run = Run {
            shared: Arc::clone(&shared),
            archiver,
            options,
            backup: None,
            failures: 0,
            backup_again_at: Instant::now(),
        };
        let thread = std::thread::Builder::new()
            .name("onrush-archiver".into())
            .spawn(move || runtime.block_on(run.run()))
            .map_err(no_thread)?;
        Ok(Archive { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Returns when every commit below `lsn`, which is durable, would survive the loss of this machine. All who wait
    /// share the next object.
    ///
    /// # Errors
    /// [`Fenced`](ArchiveError::Fenced) and whatever else ends the archive. While the store is away it waits.
    pub fn wait(&self, lsn: Lsn) -> impl Future<Output = Result<(), ArchiveError>> + Send + use<> {
        let shared = Arc::clone(&self.shared);
        let mut safe = shared.safe.subscribe();
        async move {
            if safe.borrow().lsn >= lsn {
                return Ok(());
            }
            shared.wanted.advance(lsn);
            shared.bell.notify_one();
            let is_over = |safe: &Safe| safe.lsn >= lsn || safe.failure.is_some();
            match safe.wait_for(is_over).await {
                Ok(safe) if safe.lsn >= lsn => Ok(()),
                Ok(safe) => Err(safe.failure.clone().unwrap_or(ArchiveError::Stopped)),
                Err(_) => Err(ArchiveError::Stopped),
            }
        }
    }

    /// Whether every commit below `lsn` would survive the loss of this machine.
    #[must_use]
    pub fn is_safe(&self, lsn: Lsn) -> bool {
        self.shared.safe.borrow().lsn >= lsn
    }

    /// Makes a backup now, and returns up to where it reaches.
    ///
    /// # Errors
    /// Whatever ends the backup, or the archive.
    pub async fn back_up(&self) -> Result<Lsn, ArchiveError> {
        let (answer, answered) = oneshot::channel();
        self.shared.backups_wanted.lock().push(answer);
        self.shared.bell.notify_one();
        answered.await.unwrap_or(Err(ArchiveError::Stopped))
    }

    /// What is to be seen now.
    #[must_use]
    pub fn state(&self) -> ArchiveState {
        let durable = self.shared.database.durable_lsn();
        let safe_lsn = self.shared.safe.borrow().lsn;
        let shown = self.shared.state.lock();
        let behind_bytes = durable.bytes_since(shown.archived_lsn);
        ArchiveState {
            phase: shown.phase,
            cause: shown.cause.clone(),
            archived_lsn: shown.archived_lsn,
            safe_lsn,
            behind_bytes,
            behind: if behind_bytes == 0 { Duration::ZERO } else { shown.current_at.elapsed() },
            held_bytes: shown.held_bytes,
            newest_backup: shown.newest_backup,
            totals: shown.totals,
        }
    }

    /// Archives what is durable, if that does not take too long, and ends.
    pub fn stop(&self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        self.shared.bell.notify_one();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // A panic has been told by its own thread.
            let _ = thread.join();
        }
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The thread's own.
struct Run {
    shared: Arc<Shared>,
    archiver: Archiver,
    options: ArchiveOptions,
    backup: Option<Backup>,
    /// In a row.
    failures: u32,
    /// Not before then: the last one failed.
    backup_again_at: Instant,
}

/// A backup that is being made, and who waits for it.
struct Backup {
    pages: Option<tokio::task::JoinHandle<Result<Manifest, ArchiveError>>>,
    /// The pages are stored, or will not be.
    is_done: Arc<AtomicBool>,
    manifest: Option<Manifest>,
    answers: Vec<BackupAnswer>,
}

impl Run {
    async fn run(mut self) {
        while !self.is_ending() {
            let began = Instant::now();
            match self.round().await {
                Ok(()) => {
                    self.failures = 0;
                    self.show(None);
                    self.rest(began).await;
                }
                Err(error) => {
                    let pause = self.pause();
                    self.failures += 1;
                    self.show(Some(&error));
                    if !error.is_temporary() {
                        break;
                    }
                    let _ = tokio::time::timeout(pause, self.stop_is_asked()).await;
                }
            }
        }
        self.end().await;
    }

    fn is_ending(&self) -> bool {
        self.shared.is_stopped.load(Ordering::Acquire)
            || self.shared.database.check_running().is_err()
    }

    /// Everything that is due.
    async fn round(&mut self) -> Result<(), ArchiveError> {
        let result = loop {
            match self.archiver.step().await {
                Ok(Step::Archived) => self.publish(),
                Ok(Step::UpToDate) => break Ok(()),
                Err(error) => break Err(error),
            }
            self.follow_backup().await?;
            if self.is_ending() {
                return Ok(());
            }
        };
        if let Err(error) = result {
            if error.is_temporary() {
                self.archiver.while_away()?;
            }
            return Err(error);
        }
        self.shared.state.lock().current_at = Instant::now();
        self.follow_backup().await?;
        self.publish();
        Ok(())
    }

    /// Begins a backup that is due, or goes on with one that is being made.
    async fn follow_backup(&mut self) -> Result<(), ArchiveError> {
        let Some(backup) = &mut self.backup else {
            let asked = !self.shared.backups_wanted.lock().is_empty();
            let is_due = self.archiver.is_backup_due() && Instant::now() >= self.backup_again_at;
            if asked || is_due {
                let answers = std::mem::take(&mut *self.shared.backups_wanted.lock());
                let job = self.archiver.begin_backup().await?;
                let runtime = tokio::runtime::Handle::current();
                let (shared, is_done) = (Arc::clone(&self.shared), Arc::<AtomicBool>::default());
                let told = Arc::clone(&is_done);
                let pages = tokio::task::spawn_blocking(move || {
                    let done = job.run(&runtime);
                    told.store(true, Ordering::Release);
                    shared.bell.notify_one();
                    done
                });
                self.backup = Some(Backup { pages: Some(pages), is_done, manifest: None, answers });
            }
            return Ok(());
        };
        if backup.is_done.load(Ordering::Acquire)
            && let Some(pages) = backup.pages.take()
        {
            match pages.await.unwrap_or(Err(ArchiveError::Stopped)) {
                Ok(manifest) => backup.manifest = Some(manifest),
                Err(error) => {
                    tracing::warn!("a backup for the archive failed: {error}");
                    self.backup_again_at = Instant::now() + self.options.pause_max;
                    self.shared.state.lock().cause = Some(error.to_string());
                    self.answer_backup(&Err(error));
                    return Ok(());
                }
            }
        }
        if let Some(manifest) = &backup.manifest
            && self.archiver.reaches(manifest)
        {
            let manifest = manifest.clone();
            match self.archiver.complete_backup(&manifest).await? {
                true => self.answer_backup(&Ok(end_of(&manifest))),
                // Another one, for those who wait for it, too.
                false => {
                    let answers = self.backup.take().map(|backup| backup.answers);
                    self.shared.backups_wanted.lock().extend(answers.unwrap_or_default());
                }
            }
        }
        Ok(())
    }

    fn answer_backup(&mut self, result: &Result<Lsn, ArchiveError>) {
        let Some(backup) = self.backup.take() else { return };
        for answer in backup.answers {
            // Who asked may have gone.
            let _ = answer.send(result.clone());
        }
    }

    /// Tells those who wait how far it is.
    fn publish(&self) {
        let lsn = self.archiver.safe_lsn();
        self.shared.safe.send_if_modified(|safe| {
            let is_more = lsn > safe.lsn;
            safe.lsn = safe.lsn.max(lsn);
            is_more
        });
        let mut shown = self.shared.state.lock();
        shown.archived_lsn = self.archiver.archived_lsn();
        shown.held_bytes = self.archiver.held_bytes();
        shown.newest_backup = self.archiver.newest_backup();
        shown.totals = self.archiver.totals();
    }

    fn show(&self, failure: Option<&ArchiveError>) {
        self.publish();
        let mut shown = self.shared.state.lock();
        let before = shown.phase;
        (shown.phase, shown.cause) = match failure {
            Some(error) if error.is_temporary() => (Phase::Away, Some(error.to_string())),
            Some(error) => (Phase::Fenced, Some(error.to_string())),
            None if self.archiver.is_restorable() => (Phase::Running, None),
            None => (Phase::Behind, shown.cause.take()),
        };
        let after = shown.phase;
        drop(shown);
        if let Some(error) = failure
            && before != after
        {
            tracing::warn!("the archive is {}: {error}", after.word());
        }
    }

    fn pause(&self) -> Duration {
        let doubled = self.options.pause.saturating_mul(1 << self.failures.min(16));
        doubled.min(self.options.pause_max)
    }

    async fn stop_is_asked(&self) {
        while !self.is_ending() {
            self.shared.bell.notified().await;
        }
    }

    /// Until the next round is due: by time if there is anything to archive, at once if somebody waits for it.
    async fn rest(&self, since: Instant) {
        let due = since + self.options.interval;
        loop {
            let wanted = self.shared.wanted.get();
            let is_wanted = wanted.is_some_and(|wanted| wanted > self.archiver.safe_lsn())
                && self.shared.database.durable_lsn() > self.archiver.archived_lsn();
            let has_backup = match &self.backup {
                Some(backup) => backup.pages.is_some() && backup.is_done.load(Ordering::Acquire),
                None => !self.shared.backups_wanted.lock().is_empty(),
            };
            let rest = due.saturating_duration_since(Instant::now());
            if is_wanted || has_backup || self.is_ending() || rest.is_zero() {
                return;
            }
            let _ = tokio::time::timeout(rest, self.shared.bell.notified()).await;
        }
    }

    /// The last round, within its time.
    async fn end(&mut self) {
        self.archiver.stop_backups();
        let _ = tokio::time::timeout(self.options.last_wait, async {
            while matches!(self.archiver.step().await, Ok(Step::Archived)) {}
        })
        .await;
        self.publish();
        if let Err(error) = self.archiver.leave() {
            tracing::warn!("cannot note how far the log is archived: {error}");
        }
        let failure = self.archiver.failure().cloned().unwrap_or(ArchiveError::Stopped);
        self.shared.safe.send_modify(|safe| safe.failure = Some(failure.clone()));
        self.answer_backup(&Err(failure.clone()));
        for answer in self.shared.backups_wanted.lock().drain(..) {
            let _ = answer.send(Err(failure.clone()));
        }
    }
}
