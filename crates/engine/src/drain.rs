//! A thread that moves the rows of one table to another, a short while behind their inserts.
//!
//! It goes over the table from the lowest key to the highest, a transaction for each handful of
//! rows, pauses, and begins again. A row that is there when a pass begins is in the target when
//! the pass ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};

use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::session::{Session, check_alike};

/// How a [`Drain`] works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainOptions {
    /// From the beginning of one pass to the beginning of the next; a pass that takes longer is
    /// followed by the next at once.
    pub interval: Duration,
    /// Rows that one transaction moves; a row waits for no more than these to be durable.
    pub rows_max: u64,
}

impl Default for DrainOptions {
    fn default() -> Self {
        DrainOptions { interval: Duration::from_millis(100), rows_max: 1000 }
    }
}

/// What a [`Drain`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainProgress {
    /// Rows moved.
    pub rows: u64,
    /// Transactions that moved them.
    pub transactions: u64,
    /// Passes over the table that have ended.
    pub passes: u64,
    /// Transactions begun again because somebody had changed one of the rows, or the disk was full.
    pub retries: u64,
    /// The longest that a row can have waited: from the beginning of one pass to the end of the
    /// next, or until now.
    pub behind_max: Duration,
}

/// Moves the rows of one table to another until it is stopped; see
/// [`Database::start_drain`](crate::Database::start_drain). Dropping it stops it where it is.
pub struct Drain {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    /// Set once, by whoever stops the drain.
    stopping: AtomicBool,
    /// Whether to end with a pass over all that is there.
    to_the_end: AtomicBool,
    state: Mutex<State>,
    /// A pass, or the drain, has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    progress: DrainProgress,
    /// Passes begun, the one that is under way included.
    begun: u64,
    /// When the last pass that has ended began, or the drain: what was there then was moved.
    moved_until: Option<Instant>,
    /// How the drain ended, once it has.
    outcome: Option<Result<()>>,
}

impl Drain {
    pub(crate) fn start(
        session: Session,
        front: &Table,
        target: &Table,
        options: DrainOptions,
    ) -> Result<Drain> {
        check_alike(front, target)?;
        let shared = Arc::new(Shared {
            stopping: AtomicBool::new(false),
            to_the_end: AtomicBool::new(false),
            state: Mutex::default(),
            ended: Condvar::new(),
        });
        let worker = Worker {
            session,
            front: front.clone(),
            target: target.clone(),
            options: DrainOptions { rows_max: options.rows_max.max(1), ..options },
            shared: Arc::clone(&shared),
        };
        let builder = std::thread::Builder::new().name("onrush-drain".into());
        let thread = builder
            .spawn(move || worker.run())
            .map_err(|error| Error::Internal(format!("a drain cannot start a thread: {error}")))?;
        Ok(Drain { shared, thread: Some(thread) })
    }

    /// What it has done until now.
    #[must_use]
    pub fn progress(&self) -> DrainProgress {
        let state = self.shared.state.lock();
        let behind = state.moved_until.map_or(Duration::ZERO, |timestamp| timestamp.elapsed());
        DrainProgress { behind_max: state.progress.behind_max.max(behind), ..state.progress }
    }

    /// Whether it works still: it ends by itself when it meets an error that a retry does not help,
    /// which [`stop`](Self::stop) returns.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.shared.state.lock().outcome.is_none()
    }

    /// Returns when all rows that are in the table now were moved, which the drain then goes on
    /// with.
    ///
    /// # Errors
    /// As [`stop`](Self::stop): the drain has ended.
    pub fn catch_up(&self) -> Result<DrainProgress> {
        let mut state = self.shared.state.lock();
        // The pass that is under way may have gone by already where a row is.
        let wanted = state.begun + 1;
        while state.progress.passes < wanted {
            if let Some(outcome) = &state.outcome {
                return outcome.clone().and(Err(Error::Closed));
            }
            self.shared.ended.wait(&mut state);
        }
        Ok(state.progress)
    }

    /// Moves all rows that are in the table now, then ends. Rows inserted after this call stay
    /// where they are, or are moved as well.
    ///
    /// # Errors
    /// What ended the drain: a key that the target had already
    /// ([`DuplicateKey`](Error::DuplicateKey)), a table dropped or truncated, a stopped or closed
    /// engine. Rows not moved are in the front.
    pub fn stop(mut self) -> Result<DrainProgress> {
        self.shared.to_the_end.store(true, Ordering::Release);
        self.end()?;
        Ok(self.progress())
    }

    fn end(&mut self) -> Result<()> {
        self.shared.stopping.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.thread().unpark();
        let panicked = thread.join().is_err();
        match self.shared.state.lock().outcome.clone() {
            Some(outcome) if !panicked => outcome,
            _ => Err(Error::Internal("a drain panicked".into())),
        }
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        // `stop` is for those who want to know.
        let _ = self.end();
    }
}

/// The thread's side.
struct Worker {
    session: Session,
    front: Table,
    target: Table,
    options: DrainOptions,
    shared: Arc<Shared>,
}

impl Worker {
    fn run(mut self) {
        let outcome = self.work();
        self.shared.state.lock().outcome = Some(outcome);
        self.shared.ended.notify_all();
    }

    fn work(&mut self) -> Result<()> {
        let mut moved_until = Instant::now();
        while !self.stopping() {
            let begin = Instant::now();
            {
                let mut state = self.shared.state.lock();
                state.begun += 1;
                state.moved_until = Some(moved_until);
            }
            self.pass(Worker::stopping)?;
            let mut state = self.shared.state.lock();
            state.progress.passes += 1;
            state.progress.behind_max = state.progress.behind_max.max(moved_until.elapsed());
            drop(state);
            self.shared.ended.notify_all();
            moved_until = begin;
            self.pause_until(begin + self.options.interval);
        }
        // Nothing is behind any more, or nothing will be moved.
        self.shared.state.lock().moved_until = None;
        if self.shared.to_the_end.load(Ordering::Acquire) { self.pass(|_| false) } else { Ok(()) }
    }

    fn stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Acquire)
    }

    fn pause_until(&self, timestamp: Instant) {
        while !self.stopping()
            && let Some(left) = timestamp.checked_duration_since(Instant::now())
            && !left.is_zero()
        {
            std::thread::park_timeout(left);
        }
    }

    /// Moves what is in the front, lowest keys first, until nothing is left above.
    fn pass(&mut self, give_up: fn(&Worker) -> bool) -> Result<()> {
        let mut from = Vec::new();
        while !give_up(self) {
            let rows_max = self.options.rows_max;
            match self.session.move_from(&self.front, &self.target, &mut from, rows_max) {
                Ok(0) => return Ok(()),
                Ok(rows) => {
                    let progress = &mut self.shared.state.lock().progress;
                    progress.rows += rows;
                    progress.transactions += 1;
                }
                Err(error @ (Error::Conflict { .. } | Error::SnapshotTooOld { .. })) => {
                    self.note_retry(error)?;
                }
                Err(error @ Error::DiskFull { .. }) => {
                    self.note_retry(error)?;
                    self.pause_until(Instant::now() + self.options.interval);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A drain that is to end does not wait for space on the disk.
    fn note_retry(&self, error: Error) -> Result<()> {
        self.shared.state.lock().progress.retries += 1;
        if self.stopping() && matches!(error, Error::DiskFull { .. }) { Err(error) } else { Ok(()) }
    }
}
