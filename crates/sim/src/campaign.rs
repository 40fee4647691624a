//! Seed after seed, on several threads, until enough was done or something is wrong.
//!
//! Invariant: what a seed does follows from the seed alone, so the threads share only the number
//! of the next one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::summary::Summary;
use onrush_oracle::{Checked, Violation};

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The first seed.
    pub seed: u64,
    /// Seeds to run, whatever the number of cuts.
    pub seeds: Option<u64>,
    /// Cuts after which no further seed is begun.
    pub cuts: u64,
    /// Threads.
    pub threads: usize,
    /// Goes on after a violation.
    pub keep_going: bool,
}

/// What became of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// All that was done.
    pub summary: Summary,
    /// Violations, with their seeds, in the order in which they were found.
    pub failed: Vec<(u64, Violation)>,
}

impl Campaign {
    /// Runs the seeds; `tell` gets a line of progress now and then.
    pub fn run(
        &self,
        simulate: impl Fn(u64, &mut Summary) -> Checked<()> + Sync,
        tell: impl Fn(String) + Sync,
    ) -> Outcome {
        let next = AtomicU64::new(self.seed);
        let outcome = Mutex::new(Outcome::default());
        let started = Instant::now();
        let told = Mutex::new(started);
        let work = || {
            while !self.is_over(&locked(&outcome)) {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if self.seeds.is_some_and(|seeds| seed - self.seed >= seeds) {
                    return;
                }
                let mut summary = Summary::default();
                let result = simulate(seed, &mut summary);
                let mut outcome = locked(&outcome);
                outcome.summary.add(&summary);
                outcome.failed.extend(result.err().map(|violation| (seed, violation)));
                let mut told = locked(&told);
                if told.elapsed() > TELL_EVERY {
                    *told = Instant::now();
                    let cuts = outcome.summary.cuts();
                    let rate = cuts as f64 / started.elapsed().as_secs_f64();
                    let failed = outcome.failed.len();
                    tell(format!("{cuts} cuts, {rate:.0} a second, seed {seed}, {failed} failed"));
                }
            }
        };
        std::thread::scope(|scope| {
            (1..self.threads).for_each(|_| drop(scope.spawn(work)));
            work();
        });
        outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self, outcome: &Outcome) -> bool {
        let enough = self.seeds.is_none() && outcome.summary.cuts() >= self.cuts;
        enough || (!self.keep_going && !outcome.failed.is_empty())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
