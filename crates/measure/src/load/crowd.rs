//! Threads that start together, report their progress, stop when one of them fails, and are timed
//! from the first start to the last acknowledgement. What each does is up to the caller.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::Loaded;
use super::ledger::{Ledger, LedgerKind};
use crate::error::MeasureError;
use crate::machine::{cpu_time, keep_to_processor};
use crate::progress::{Observer, Step};

/// How often the observer is told.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// So many threads for so many rows.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// How many.
    pub threads: usize,
    /// Rows.
    pub rows: u64,
    /// What was acknowledged.
    pub ledger: LedgerKind,
    /// What it is called while it goes on.
    pub step: Step,
    /// Each thread keeps to a processor of its own, in turn.
    pub is_pinned: bool,
    /// All stop after so long, though rows are left.
    pub time_max: Option<Duration>,
}

/// Rows done by one thread. Written by it alone; on a cache line pair of its own.
#[derive(Default)]
#[repr(align(128))]
struct RowsDone(AtomicU64);

/// What the threads of a crowd share.
pub struct Shared {
    start: Barrier,
    stop: AtomicBool, // set by whoever fails, and when time is up; all look before a commit
    running: AtomicUsize, // threads not finished; each takes itself off, then wakes the reporter
    rows_done: Vec<RowsDone>, // one a thread
    reporter: Thread,
}

/// What one thread brings back.
struct Finished {
    started: (Instant, Duration),
    ended: (Instant, Duration),
    ledger: Ledger,
}

impl Shared {
    /// Whether all are to stop; asked before each commit.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// How far a thread is.
    #[inline]
    pub fn report(&self, thread: usize, rows_done: u64) {
        self.rows_done[thread].0.store(rows_done, Ordering::Relaxed);
    }
}

/// Runs `each` on every thread, with its number, and waits until all have ended. The first error stops all.
pub fn run<E: From<MeasureError> + Send>(
    crowd: Crowd,
    observer: &dyn Observer,
    each: &(impl Fn(&Shared, usize, &mut Ledger) -> Result<(), E> + Sync),
) -> Result<Loaded, E> {
    let failure = Mutex::new(None); // the first one
    let shared = Shared {
        start: Barrier::new(crowd.threads),
        stop: AtomicBool::new(false),
        running: AtomicUsize::new(crowd.threads),
        rows_done: (0..crowd.threads).map(|_| RowsDone::default()).collect(),
        reporter: std::thread::current(),
    };
    observer.begin(crowd.step, Some(crowd.rows));
    let finished = std::thread::scope(|scope| {
        let (shared, failure) = (&shared, &failure);
        let handles: Vec<_> = (0..crowd.threads)
            .map(|thread| scope.spawn(move || run_thread(crowd, shared, thread, (each, failure))))
            .collect();
        let started = Instant::now();
        while shared.running.load(Ordering::Acquire) > 0 {
            std::thread::park_timeout(REPORT_INTERVAL);
            if crowd.time_max.is_some_and(|time| started.elapsed() >= time) {
                shared.stop.store(true, Ordering::Relaxed);
            }
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
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let all = all.ok_or_else(|| MeasureError::Setting("a load needs at least one session".into()));
    let all = all.map_err(E::from)?;
    Ok(Loaded {
        elapsed: all.ended.0 - all.started.0,
        cpu: all.ended.1.saturating_sub(all.started.1),
        ledger: all.ledger,
    })
}

fn run_thread<E: From<MeasureError>>(
    crowd: Crowd,
    shared: &Shared,
    thread: usize,
    (each, failure): (&impl Fn(&Shared, usize, &mut Ledger) -> Result<(), E>, &Mutex<Option<E>>),
) -> Finished {
    /// Also when the thread panics: the reporter must not wait for it for ever.
    struct TakeOff<'s>(&'s Shared);
    impl Drop for TakeOff<'_> {
        fn drop(&mut self) {
            self.0.running.fetch_sub(1, Ordering::Release);
            self.0.reporter.unpark();
        }
    }
    let _take_off = TakeOff(shared);
    let mut ledger = Ledger::new(crowd.ledger);
    let pinned = if crowd.is_pinned { keep_to_processor(thread) } else { Ok(()) };
    shared.start.wait();
    let started = (Instant::now(), cpu_time());
    let outcome = pinned.map_err(E::from).and_then(|()| each(shared, thread, &mut ledger));
    if let Err(error) = outcome {
        failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        shared.stop.store(true, Ordering::Relaxed);
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
