//! What happened a second, over some time.

use onrush_waits::{Counter, Wait, WaitClass};
use serde::{Deserialize, Serialize};

use super::Statistics;
use crate::checkpoint::CheckpointProgress;

/// Leaves split a second, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SplitRates {
    /// At the right edge, leaving the old leaf full.
    pub right_edge: f64,
    /// After the new row of an ascending run.
    pub local_run: f64,
    /// In the middle.
    pub middle: f64,
    /// Opened for a block of generated keys.
    pub block_grant: f64,
}

/// How much was waited for one thing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitRate {
    /// What.
    pub wait: Wait,
    /// Seconds waited in a second: how many sessions waited for it at a time.
    pub sessions: f64,
    /// Waits a second.
    pub count: f64,
}

/// What happened a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// End of the time, in milliseconds since 1970.
    pub unix_millis: u64,
    /// The time, in seconds.
    pub seconds: f64,
    /// Rows inserted.
    pub rows: f64,
    /// Rows read.
    pub rows_read: f64,
    /// Transactions committed.
    pub commits: f64,
    /// Transactions committed whose rows are logged, for each sync of the log: an average, not a rate. None without a
    /// sync.
    pub commits_per_sync: Option<f64>,
    /// Bytes written to the log.
    pub log_bytes: f64,
    /// Log segments made or made ready again.
    pub log_growths: f64,
    /// Mean time of a durable write of the log, in microseconds; none if there was none.
    pub log_write_us: Option<f64>,
    /// A time that 99 of 100 of them did not exceed, in microseconds.
    pub log_write_p99_us: Option<f64>,
    /// Sessions that waited for the log, at the end of the time.
    pub log_queue: u64,
    /// Leaves added to trees.
    pub pages_allocated: f64,
    /// Leaves written by checkpoints.
    pub checkpoint_pages: f64,
    /// Leaves dropped from memory.
    pub evictions: f64,
    /// Leaves read from disk.
    pub leaf_loads: f64,
    /// Splits by kind.
    pub splits: SplitRates,
    /// Checkpoints installed, in all of the time.
    pub checkpoints: u64,
    /// The checkpoint running at its end.
    pub checkpoint: CheckpointProgress,
    /// What was waited for, idle waits left out, the most first.
    pub waits: Vec<WaitRate>,
}

impl Rates {
    pub(super) fn of(statistics: &Statistics) -> Rates {
        let seconds = statistics.elapsed_nanos as f64 / 1e9;
        let each = |value: u64| value as f64 / seconds.max(1e-9);
        let totals = &statistics.totals;
        let counter = |counter| each(totals.counter(counter));
        let log = &statistics.log;
        let micros = |nanos: u64| nanos as f64 / 1e3;
        let busy = totals
            .waits
            .iter()
            .filter(|total| total.wait.class() != WaitClass::Idle && total.count > 0);
        let mut waits: Vec<WaitRate> = busy
            .map(|total| WaitRate {
                wait: total.wait,
                sessions: each(total.nanos) / 1e9,
                count: each(total.count),
            })
            .collect();
        waits.sort_by(|one, other| other.sessions.total_cmp(&one.sessions));
        let commits = totals.counter(Counter::Commits);
        let logged_commits = commits.saturating_sub(totals.counter(Counter::UnloggedCommits));
        Rates {
            unix_millis: statistics.unix_millis,
            seconds,
            rows: counter(Counter::RowsInserted),
            rows_read: counter(Counter::RowsRead),
            commits: each(commits),
            commits_per_sync: (log.syncs > 0).then(|| logged_commits as f64 / log.syncs as f64),
            log_bytes: each(log.bytes),
            log_growths: counter(Counter::LogGrowths),
            log_write_us: log.write_nanos_mean().map(micros),
            log_write_p99_us: log.write_nanos_percentile(99.0).map(micros),
            log_queue: statistics.log_queue,
            pages_allocated: counter(Counter::PagesAllocated),
            checkpoint_pages: counter(Counter::ImagesCheckpoint),
            evictions: counter(Counter::Evictions),
            leaf_loads: counter(Counter::LeafLoads),
            splits: SplitRates {
                right_edge: counter(Counter::SplitsRightEdge),
                local_run: counter(Counter::SplitsLocalRun),
                middle: counter(Counter::SplitsMiddle),
                block_grant: counter(Counter::SplitsBlockGrant),
            },
            checkpoints: totals.counter(Counter::Checkpoints),
            checkpoint: statistics.checkpoint,
            waits,
        }
    }
}
