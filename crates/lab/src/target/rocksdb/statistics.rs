//! What RocksDB says it waited for: its perf context, which each thread has for itself, and the
//! tickers of its statistics.
//!
//! A perf context reads the clock a dozen times a write, which would be seen in the rate. So one
//! commit in [`TIMED_EVERY`] is timed, and stands for all of them: these waits are marked as sampled.

use std::sync::atomic::{AtomicU64, Ordering};

use ::rocksdb::Options;
use ::rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};
use ::rocksdb::statistics::{StatsLevel, Ticker};

use crate::target::record::{self, CounterRecord, PhaseRecord, Snapshot, WaitRecord};

/// One commit in so many is timed.
const TIMED_EVERY: u64 = 64;

/// What a write waits for, in its perf context.
const WAITS: [(PerfMetric, &str); 5] = [
    // Queueing for the leader that writes the log for all is in here.
    (PerfMetric::WritePreAndPostProcessTime, "write_pre_and_post_process_time"),
    (PerfMetric::WriteWalTime, "write_wal_time"),
    (PerfMetric::WriteDelayTime, "write_delay_time"),
    (PerfMetric::DbMutexLockNanos, "db_mutex_lock_nanos"),
    (PerfMetric::DbConditionWaitNanos, "db_condition_wait_nanos"),
];

/// What a write works on, in its perf context.
const PHASES: [(PerfMetric, &str); 1] = [(PerfMetric::WriteMemtableTime, "write_memtable_time")];

const METRICS: usize = WAITS.len() + PHASES.len();

/// Tickers that are shown as counters.
const TICKERS: [(Ticker, &str, &str); 7] = [
    (Ticker::WalFileSynced, record::LOG_SYNCS, "1"),
    (Ticker::WalFileBytes, record::LOG_BYTES, "bytes"),
    (Ticker::WriteDoneBySelf, "rocksdb.write.self", "1"),
    (Ticker::WriteDoneByOther, "rocksdb.write.other", "1"),
    (Ticker::FlushWriteBytes, "rocksdb.flush.write.bytes", "bytes"),
    (Ticker::CompactWriteBytes, "rocksdb.compact.write.bytes", "bytes"),
    (Ticker::StallMicros, "rocksdb.stall.micros", "us"),
];

/// Counts and no times: the times are the perf contexts'.
pub(super) fn switch_on(options: &mut Options) {
    options.enable_statistics();
    options.set_statistics_level(StatsLevel::ExceptTimers);
}

/// The perf contexts of all sessions that have ended, added up.
#[derive(Default)]
pub(super) struct Waited {
    timed: AtomicU64,
    nanoseconds: [AtomicU64; METRICS],
}

impl Waited {
    pub(super) fn snapshot(&self, options: &Options) -> Snapshot {
        let count = self.timed.load(Ordering::Relaxed) * TIMED_EVERY;
        let seconds = |index: usize| {
            let timed = self.nanoseconds[index].load(Ordering::Relaxed);
            timed as f64 * TIMED_EVERY as f64 * 1e-9
        };
        let waits = WAITS.iter().enumerate().map(|(index, (_, name))| WaitRecord {
            group: "perf".to_owned(),
            name: (*name).to_owned(),
            count,
            seconds: seconds(index),
            is_sampled: true,
            ..WaitRecord::default()
        });
        let phases = PHASES.iter().enumerate().map(|(index, (_, name))| PhaseRecord {
            name: (*name).to_owned(),
            count,
            seconds: seconds(WAITS.len() + index),
            is_idle: false,
        });
        let counters = TICKERS.iter().map(|(ticker, name, unit)| {
            CounterRecord::counted(name, unit, options.get_ticker_count(*ticker))
        });
        Snapshot { waits: waits.collect(), phases: phases.collect(), counters: counters.collect() }
    }
}

/// The perf context of one session's thread.
pub(super) struct Timer<'s> {
    context: PerfContext,
    commits: u64,
    timed: u64,
    waited: &'s Waited,
}

impl<'s> Timer<'s> {
    pub(super) fn new(waited: &'s Waited) -> Timer<'s> {
        let mut context = PerfContext::default();
        context.reset();
        Timer { context, commits: 0, timed: 0, waited }
    }

    /// Does one commit, and times it when its turn has come.
    pub(super) fn time<T>(&mut self, commit: impl FnOnce() -> T) -> T {
        self.commits += 1;
        if !self.commits.is_multiple_of(TIMED_EVERY) {
            return commit();
        }
        self.timed += 1;
        set_perf_stats(PerfStatsLevel::EnableTime);
        let done = commit();
        set_perf_stats(PerfStatsLevel::Disable);
        done
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        self.waited.timed.fetch_add(self.timed, Ordering::Relaxed);
        let metrics = WAITS.iter().chain(&PHASES);
        for ((metric, _), sum) in metrics.zip(&self.waited.nanoseconds) {
            sum.fetch_add(self.context.metric(*metric), Ordering::Relaxed);
        }
    }
}
