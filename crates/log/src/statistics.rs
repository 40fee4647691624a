//! What the log has done since it was opened.
//!
//! Counted by leaders, one at a time, once a round; read by anyone.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Buckets of the histogram of sync times.
const BUCKETS: usize = 32;

/// What the log has done since it was opened.
#[derive(Clone, Debug, Default)]
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
    /// The longest time between the ends of two rounds of which the first left something to write,
    /// in microseconds.
    pub longest_gap_micros: u64,
    /// Rounds by their time in microseconds: bucket n counts those of less than 2^n and not less
    /// than half of it.
    pub round_micros_histogram: [u64; BUCKETS],
}

/// The running numbers.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    blocks: AtomicU64,
    bytes: AtomicU64,
    padding_bytes: AtomicU64,
    record_bytes: AtomicU64,
    pub(crate) syncs: AtomicU64,
    rounds: AtomicU64,
    pub(crate) waiters_served: AtomicU64,
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

    pub(crate) fn round(&self, record_bytes: u64, time: Duration, gap: Option<Duration>) {
        self.rounds.fetch_add(1, Relaxed);
        self.record_bytes.fetch_add(record_bytes, Relaxed);
        let bits = u64::BITS - micros(time).leading_zeros();
        let bucket = usize::try_from(bits).unwrap_or(0).min(BUCKETS - 1);
        self.round_micros_histogram[bucket].fetch_add(1, Relaxed);
        self.longest_gap_micros.fetch_max(gap.map_or(0, micros), Relaxed);
    }

    pub(crate) fn read(&self) -> LogStatistics {
        LogStatistics {
            blocks: self.blocks.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            padding_bytes: self.padding_bytes.load(Relaxed),
            record_bytes: self.record_bytes.load(Relaxed),
            syncs: self.syncs.load(Relaxed),
            rounds: self.rounds.load(Relaxed),
            waiters_served: self.waiters_served.load(Relaxed),
            longest_gap_micros: self.longest_gap_micros.load(Relaxed),
            round_micros_histogram: std::array::from_fn(|bucket| {
                self.round_micros_histogram[bucket].load(Relaxed)
            }),
        }
    }
}
