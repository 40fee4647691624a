//! The last minutes, a second at a time, and what a reset has to remember.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use onrush_log::LogStatistics;
use parking_lot::Mutex;

use super::{Rates, Statistics};

/// Rates are kept for so many seconds.
const SECONDS_KEPT: usize = 600;
/// Two samples are at least so far apart.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// See the module. The lock is held for one sample, by whoever takes it.
pub(crate) struct History {
    state: Mutex<State>,
}

struct State {
    /// When the database was opened, or the last reset.
    since: Instant,
    /// The log's numbers at the last reset.
    log_before: LogStatistics,
    sampled: Instant,
    last: Option<Box<Statistics>>,
    rates: VecDeque<Rates>,
}

impl Default for History {
    fn default() -> Self {
        let now = Instant::now();
        History {
            state: Mutex::new(State {
                since: now,
                log_before: LogStatistics::default(),
                sampled: now,
                last: None,
                rates: VecDeque::new(),
            }),
        }
    }
}

impl History {
    pub(super) fn elapsed_nanos(&self) -> u64 {
        let elapsed = self.state.lock().since.elapsed();
        u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn log_since_reset(&self, now: &LogStatistics) -> LogStatistics {
        let state = self.state.lock();
        // Without a reset the histograms before are empty lists, which would take all away.
        if state.log_before.write_nanos_histogram.is_empty() {
            return now.clone();
        }
        now.since(&state.log_before)
    }

    /// The seconds that are kept, oldest first.
    pub(super) fn rates(&self) -> Vec<Rates> {
        self.state.lock().rates.iter().cloned().collect()
    }

    /// Takes a sample if a second is over since the last one.
    pub(super) fn sample_if_due(&self, take: impl FnOnce() -> Statistics) {
        {
            let mut state = self.state.lock();
            if state.sampled.elapsed() < SAMPLE_EVERY && state.last.is_some() {
                return;
            }
            state.sampled = Instant::now();
        }
        let now = Box::new(take());
        let mut state = self.state.lock();
        if let Some(last) = &state.last {
            let rates = now.since(last).rates();
            state.rates.push_back(rates);
            if state.rates.len() > SECONDS_KEPT {
                state.rates.pop_front();
            }
        }
        state.last = Some(now);
    }

    /// From now on snapshots begin at nothing. The seconds that are kept stay.
    pub(super) fn reset(&self, log: LogStatistics) {
        let mut state = self.state.lock();
        state.log_before = log;
        state.since = Instant::now();
        state.last = None;
    }
}
