//! What every layer of an open database stands on: settings, the log, the permits of admission, and whether the engine
//! goes on.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use onrush_files::{Disk, DiskError};
use onrush_latch::{Admission, Ticket, lock_counted};
use onrush_log::{Log, LogError, Lsn, Reservation};
use onrush_waits::{LatchClass, Recorder, Registry};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::options::Options;

/// See the module.
pub(crate) struct Runtime {
    pub(crate) options: Options,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) database_id: u128,
    pub(crate) registry: Arc<Registry>,
    /// Counts what no session is behind: opening, definitions of tables.
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) admission: Admission,
    pub(crate) log: LogCell,
    /// Permit of those who write to the log for no session, one at a time.
    internal: Mutex<Ticket>,
    /// The first failure; set once, and nothing is acknowledged after it.
    failure: OnceLock<String>,
    closed: AtomicBool,
    /// Where threads of the layers above wait for each other.
    waiting: Vec<Arc<dyn StopsWaiting>>,
}

/// Where threads wait for what never comes once the engine has stopped.
pub(crate) trait StopsWaiting: Send + Sync {
    /// Nobody waits here any more.
    fn stop(&self);
}

/// Who makes log space before a record of no session is appended. The caller holds nothing that a checkpoint
/// needs.
pub(crate) trait Appends {
    fn runtime(&self) -> &Runtime;
    fn append(&self, record: &[u8], recorder: &Recorder) -> Result<Reservation>;
}

/// The log, which is there once recovery has read it to its end. Replay itself never touches it.
#[derive(Default)]
pub(crate) struct LogCell(OnceLock<Log>);

impl LogCell {
    /// Opens the log for appending. Called once.
    pub(crate) fn set(&self, log: Log) {
        assert!(self.0.set(log).is_ok(), "the log is opened once");
    }

    /// All that was changed so far was changed below. The highest LSN, which says nothing, before recovery has ended.
    pub(crate) fn changed_below(&self) -> Lsn {
        self.0.get().map_or(Lsn::MAX, Log::tail)
    }

    /// None before recovery has read it to its end.
    pub(crate) fn get(&self) -> Option<&Log> {
        self.0.get()
    }

    /// Makes the log fail, if there is one yet: recovery can fail, too.
    fn fail(&self, cause: Arc<dyn std::error::Error + Send + Sync>) {
        if let Some(log) = self.0.get() {
            log.fail(cause);
        }
    }
}

impl Deref for LogCell {
    type Target = Log;

    #[inline]
    fn deref(&self) -> &Log {
        self.0.get().expect("the log is open once recovery has ended")
    }
}

/// The error of a call that came after the failure of the log.
pub(crate) fn stopped(failure: LogError) -> Error {
    match failure {
        LogError::OutcomeUnknown { cause } => Error::Stopped { cause: cause.to_string() },
        other => Error::from(other),
    }
}

/// Stops the engine if its thread panics while this lives: a latch may have been held over a half-made
/// change, a reserved piece of the log never filled, or a checkpoint half taken.
pub(crate) struct StopOnPanic<'a>(&'a Runtime);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop_for("a thread panicked inside the engine");
        }
    }
}

impl Runtime {
    pub(crate) fn new(
        options: Options,
        disk: Arc<dyn Disk>,
        database_id: u128,
        (registry, recorder): (Arc<Registry>, Arc<Recorder>),
        admission: Admission,
        waiting: Vec<Arc<dyn StopsWaiting>>,
    ) -> Runtime {
        let internal = Mutex::new(admission.ticket());
        Runtime {
            options,
            disk,
            database_id,
            registry,
            recorder,
            admission,
            log: LogCell::default(),
            internal,
            failure: OnceLock::new(),
            closed: AtomicBool::new(false),
            waiting,
        }
    }

    /// The permit of background threads: only for lists, never for the log.
    pub(crate) fn background_permit(&self) -> usize {
        self.admission.background_permit(0)
    }

    /// Whether the engine takes work.
    pub(crate) fn check_open(&self) -> Result<()> {
        if let Some(cause) = self.failure.get() {
            return Err(Error::Stopped { cause: cause.clone() });
        }
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        Ok(())
    }

    /// Whether the engine goes on, if only to close.
    pub(crate) fn check_running(&self) -> Result<()> {
        let failure = self.failure.get();
        failure.map_or(Ok(()), |cause| Err(Error::Stopped { cause: cause.clone() }))
    }

    /// Whether reads are answered: not after a failure of the log, because what they would show
    /// may be gone when the database is opened again.
    pub(crate) fn check_readable(&self) -> Result<()> {
        self.check_open()?;
        match self.log.failure() {
            None | Some(LogError::Closed) => Ok(()),
            Some(failure) => Err(stopped(failure)),
        }
    }

    /// Closes the engine for sessions, and returns once all that were inside have left; false if
    /// it was closed before.
    pub(crate) fn start_close(&self) -> bool {
        if self.closed.swap(true, Ordering::SeqCst) {
            return false;
        }
        while !self.admission.is_empty() {
            std::thread::yield_now();
        }
        true
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Lets the calling thread, one of the engine's own, run only on the processors that the settings
    /// say. Where the system refuses, it runs where it may.
    pub(crate) fn run_on_own_processors(&self) {
        #[cfg(target_os = "linux")]
        if let Some(mask) = self.options.cpu_mask {
            let mut set = rustix::thread::CpuSet::new();
            (0..64).filter(|cpu| mask >> cpu & 1 == 1).for_each(|cpu| set.set(cpu));
            let _ = rustix::thread::sched_setaffinity(None, &set);
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    /// The first failed write or sync stops the engine: whoever waits learns that the outcome is
    /// unknown, and nothing is retried. Returns the error for the caller, which never looks like
    /// one after which a retry helps.
    pub(crate) fn stop(&self, error: DiskError) -> Error {
        let cause = error.to_string();
        self.fail(&cause, Arc::new(error));
        Error::Stopped { cause }
    }

    /// A full disk leaves everything as it was; any other failed write stops the engine.
    pub(crate) fn stop_unless_full(&self, error: Error) -> Error {
        match error {
            Error::Disk(cause) => self.stop(cause),
            other => other,
        }
    }

    /// Stops the engine for another reason than the disk.
    pub(crate) fn stop_for(&self, cause: &str) {
        self.fail(cause, Arc::new(std::io::Error::other(cause.to_owned())));
    }

    fn fail(&self, words: &str, cause: Arc<dyn std::error::Error + Send + Sync>) {
        let _ = self.failure.set(words.to_owned());
        self.log.fail(cause);
        self.waiting.iter().for_each(|waiting| waiting.stop());
    }

    /// Stops the engine if the calling thread panics before it drops what this returns.
    pub(crate) fn stop_on_panic(&self) -> StopOnPanic<'_> {
        StopOnPanic(self)
    }

    /// Appends a record that changes no row, if there is log space.
    pub(crate) fn try_append(&self, record: &[u8], recorder: &Recorder) -> Option<Reservation> {
        let mut ticket = lock_counted(&self.internal, recorder, LatchClass::LogWriter);
        let entered = self.admission.enter(&mut ticket, recorder);
        let permit = entered.permit();
        if !self.log.has_space(permit, Log::framed_bytes(record.len())) {
            return None;
        }
        let reservation = self.log.reserve(permit, record.len());
        self.log.fill(&reservation, &[record]);
        self.log.complete(permit);
        Some(reservation)
    }
}
