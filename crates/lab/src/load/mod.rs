//! The load: many sessions, each inserting rows of defaults and committing them.
//!
//! - [`threads`]: a thread for each session, which sleeps until its commit is durable.
//! - [`tasks`]: many sessions on one thread a processor, each with one commit on its way.
//! - [`ledger`]: what a thread remembers of the rows that were acknowledged to it.
//!
//! Invariants
//! 1. Either way a session has at most one commit that is not acknowledged, so that results compare
//!    with the bound N/F.
//! 2. The clock runs from the first session's start until the last acknowledgement.
//! 3. A load in which any session failed has no result: the first error is returned.

pub(crate) mod ledger;
mod tasks;
mod threads;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use onrush::{Database, Durability, Table, Value};

use crate::error::LabError;
use crate::machine::{cpu_time, cpus};
use crate::progress::{Observer, Step};
use crate::settings::Driver;
use ledger::{Ledger, LedgerKind};

/// How often the observer is told.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// What to load.
#[derive(Clone)]
pub(crate) struct LoadPlan<'d> {
    pub(crate) database: &'d Database,
    pub(crate) table: &'d Table,
    pub(crate) rows: u64,
    pub(crate) sessions: usize,
    pub(crate) rows_per_commit: u64,
    pub(crate) durability: Durability,
    pub(crate) driver: Driver,
    pub(crate) ledger: LedgerKind,
    pub(crate) step: Step,
}

/// What was loaded.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) elapsed: Duration,
    pub(crate) cpu: Duration,
    pub(crate) ledger: Ledger,
}

/// Rows done by one thread. Written by it alone; on a cache line pair of its own.
#[derive(Default)]
#[repr(align(128))]
struct RowsDone(AtomicU64);

/// What the threads of a load share.
struct Shared<'p, 'd> {
    plan: &'p LoadPlan<'d>,
    start: Barrier,
    stop: AtomicBool,     // set by whoever fails; everyone looks before each commit
    running: AtomicUsize, // threads not finished; each takes itself off, then wakes the reporter
    rows_done: Vec<RowsDone>, // one a thread
    failure: Mutex<Option<LabError>>, // the first one
    reporter: Thread,
}

/// What one thread brings back.
struct Finished {
    started: (Instant, Duration),
    ended: (Instant, Duration),
    ledger: Ledger,
}

impl LoadPlan<'_> {
    /// Rows of one session: the first ones take what does not divide.
    fn rows_of(&self, session: usize) -> u64 {
        let (sessions, session) = (self.sessions as u64, session as u64);
        self.rows / sessions + u64::from(session < self.rows % sessions)
    }

    fn threads(&self) -> usize {
        match self.driver {
            Driver::Threads => self.sessions,
            Driver::Tasks => self.sessions.min(cpus()),
        }
    }
}

impl Shared<'_, '_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn fail(&self, error: LabError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    #[inline]
    fn report(&self, thread: usize, rows_done: u64) {
        self.rows_done[thread].0.store(rows_done, Ordering::Relaxed);
    }
}

/// Runs the load and waits until every row is acknowledged.
pub(crate) fn run(plan: &LoadPlan<'_>, observer: &dyn Observer) -> Result<Loaded, LabError> {
    let threads = plan.threads();
    let shared = Shared {
        plan,
        start: Barrier::new(threads),
        stop: AtomicBool::new(false),
        running: AtomicUsize::new(threads),
        rows_done: (0..threads).map(|_| RowsDone::default()).collect(),
        failure: Mutex::new(None),
        reporter: std::thread::current(),
    };
    observer.begin(plan.step, Some(plan.rows));
    let finished = std::thread::scope(|scope| {
        let shared = &shared;
        let handles: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || run_thread(shared, thread))).collect();
        while shared.running.load(Ordering::Acquire) > 0 {
            std::thread::park_timeout(REPORT_INTERVAL);
            let done = shared.rows_done.iter().map(|rows| rows.0.load(Ordering::Relaxed));
            observer.advance(done.sum());
        }
        handles.into_iter().map(|handle| handle.join()).collect::<Vec<_>>()
    });
    observer.end();
    let mut all: Option<Finished> = None;
    for thread in finished {
        let one = thread.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        all = Some(match all {
            None => one,
            Some(others) => others.join(one),
        });
    }
    if let Some(error) = shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let all = all.ok_or_else(|| LabError::Setting("a load needs at least one session".into()))?;
    Ok(Loaded {
        elapsed: all.ended.0 - all.started.0,
        cpu: all.ended.1.saturating_sub(all.started.1),
        ledger: all.ledger,
    })
}

/// So many rows in which every column is its default.
fn rows_of_defaults(count: u64) -> impl Iterator<Item = &'static [Value<'static>]> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    std::iter::repeat_n([].as_slice(), count)
}

fn run_thread(shared: &Shared<'_, '_>, thread: usize) -> Finished {
    /// Also when the thread panics: the reporter must not wait for it for ever.
    struct TakeOff<'s, 'p, 'd>(&'s Shared<'p, 'd>);
    impl Drop for TakeOff<'_, '_, '_> {
        fn drop(&mut self) {
            self.0.running.fetch_sub(1, Ordering::Release);
            self.0.reporter.unpark();
        }
    }
    let _take_off = TakeOff(shared);
    let mut ledger = Ledger::new(shared.plan.ledger);
    shared.start.wait();
    let started = (Instant::now(), cpu_time());
    let outcome = match shared.plan.driver {
        Driver::Threads => threads::run_session(shared, thread, &mut ledger),
        Driver::Tasks => tasks::run_sessions(shared, thread, &mut ledger),
    };
    if let Err(error) = outcome {
        shared.fail(error);
    }
    Finished { started, ended: (Instant::now(), cpu_time()), ledger }
}

impl Finished {
    fn join(mut self, other: Finished) -> Finished {
        self.ledger.merge(other.ledger);
        Finished {
            started: (self.started.0.min(other.started.0), self.started.1.min(other.started.1)),
            ended: (self.ended.0.max(other.ended.0), self.ended.1.max(other.ended.1)),
            ledger: self.ledger,
        }
    }
}
