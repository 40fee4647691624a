//! What the log has done since it was opened.
//!
//! Counted by leaders, one at a time, once a round; read by anyone.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Buckets of the histograms.
const BUCKETS: usize = 32;

/// What the log has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogStatistics {
    /// Log blocks written.
    pub blocks: u64,
    /// Bytes written, headers and padding included.
    pub bytes: u64,
    /// Of these, padding.
    pub padding_bytes: u64,
    /// Record bytes written.
    pub record_bytes: u64,
    /// Durable writes.
    pub syncs: u64,
    /// Write rounds that found something to write.
    pub rounds: u64,
    /// Threads and futures whose wait ended with a round: divided by `syncs`, the commits per sync.
    pub waiters_served: u64,
    /// Time of all durable writes, in nanoseconds.
    pub write_nanos: u64,
    /// The longest durable write, in nanoseconds.
    pub write_nanos_max: u64,
    /// Durable writes by time: entry n counts those of 2^n up to 2^(n+1) - 1 ns; the last one has
    /// no upper end.
    pub write_nanos_histogram: Vec<u64>,
    /// The longest time between the ends of two rounds of which the first left something to write,
    /// in microseconds.
    pub longest_gap_micros: u64,
    /// Rounds by their time in microseconds: bucket n counts those of less than 2^n and not less
    /// than half of it.
    pub round_micros_histogram: Vec<u64>,
}

impl LogStatistics {
    /// What the log did since an earlier moment. The longest times are those of all time.
    #[must_use]
    pub fn since(&self, earlier: &LogStatistics) -> LogStatistics {
        let difference = |now: u64, before: u64| now.saturating_sub(before);
        let each = |(now, before): (&u64, &u64)| now.saturating_sub(*before);
        let writes = self.write_nanos_histogram.iter().zip(&earlier.write_nanos_histogram);
        let rounds = self.round_micros_histogram.iter().zip(&earlier.round_micros_histogram);
        LogStatistics {
            blocks: difference(self.blocks, earlier.blocks),
            bytes: difference(self.bytes, earlier.bytes),
            padding_bytes: difference(self.padding_bytes, earlier.padding_bytes),
            record_bytes: difference(self.record_bytes, earlier.record_bytes),
            syncs: difference(self.syncs, earlier.syncs),
            rounds: difference(self.rounds, earlier.rounds),
            waiters_served: difference(self.waiters_served, earlier.waiters_served),
            write_nanos: difference(self.write_nanos, earlier.write_nanos),
            write_nanos_max: self.write_nanos_max,
            write_nanos_histogram: writes.map(each).collect(),
            longest_gap_micros: self.longest_gap_micros,
            round_micros_histogram: rounds.map(each).collect(),
        }
    }

    /// Mean time of a durable write, in nanoseconds; none if there was none.
    #[must_use]
    pub fn write_nanos_mean(&self) -> Option<u64> {
        self.write_nanos.checked_div(self.syncs)
    }

    /// A time that `percent` of the durable writes did not exceed, in nanoseconds, rounded up to
    /// the end of its bucket; none if there was none.
    #[must_use]
    pub fn write_nanos_percentile(&self, percent: f64) -> Option<u64> {
        let rank = (percent.clamp(0.0, 100.0) / 100.0 * self.syncs as f64).ceil().max(1.0);
        let mut seen = 0;
        for (bucket, count) in self.write_nanos_histogram.iter().enumerate() {
            seen += count;
            if *count > 0 && seen as f64 >= rank {
                return Some(((2 << bucket) - 1).min(self.write_nanos_max));
            }
        }
        None
    }
}

/// The running numbers.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    blocks: AtomicU64,
    bytes: AtomicU64,
    padding_bytes: AtomicU64,
    record_bytes: AtomicU64,
    syncs: AtomicU64,
    rounds: AtomicU64,
    pub(crate) waiters_served: AtomicU64,
    write_nanos: AtomicU64,
    write_nanos_max: AtomicU64,
    write_nanos_histogram: [AtomicU64; BUCKETS],
    longest_gap_micros: AtomicU64,
    round_micros_histogram: [AtomicU64; BUCKETS],
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Numbers {
    pub(crate) fn block(&self, bytes: usize, padding_bytes: usize) {
        self.blocks.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
        self.padding_bytes.fetch_add(padding_bytes as u64, Relaxed);
    }

    /// One durable write.
    pub(crate) fn write(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.syncs.fetch_add(1, Relaxed);
        self.write_nanos.fetch_add(nanos, Relaxed);
        self.write_nanos_max.fetch_max(nanos, Relaxed);
        let log2 = usize::try_from(nanos.checked_ilog2().unwrap_or(0)).unwrap_or(0);
        self.write_nanos_histogram[log2.min(BUCKETS - 1)].fetch_add(1, Relaxed);
    }

    pub(crate) fn round(&self, record_bytes: u64, time: Duration, gap: Option<Duration>) {
        self.rounds.fetch_add(1, Relaxed);
        self.record_bytes.fetch_add(record_bytes, Relaxed);
        let bits = u64::BITS - micros(time).leading_zeros();
        let bucket = usize::try_from(bits).unwrap_or(0).min(BUCKETS - 1);
        self.round_micros_histogram[bucket].fetch_add(1, Relaxed);
        self.longest_gap_micros.fetch_max(gap.map_or(0, micros), Relaxed);
    }

    pub(crate) fn read(&self) -> LogStatistics {
        let values = |all: &[AtomicU64]| all.iter().map(|one| one.load(Relaxed)).collect();
        LogStatistics {
            blocks: self.blocks.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            padding_bytes: self.padding_bytes.load(Relaxed),
            record_bytes: self.record_bytes.load(Relaxed),
            syncs: self.syncs.load(Relaxed),
            rounds: self.rounds.load(Relaxed),
            waiters_served: self.waiters_served.load(Relaxed),
            write_nanos: self.write_nanos.load(Relaxed),
            write_nanos_max: self.write_nanos_max.load(Relaxed),
            write_nanos_histogram: values(&self.write_nanos_histogram),
            longest_gap_micros: self.longest_gap_micros.load(Relaxed),
            round_micros_histogram: values(&self.round_micros_histogram),
        }
    }
}
