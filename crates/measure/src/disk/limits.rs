//! What a device allows, whatever the engine: the bounds that results are held against.
//!
//! N sessions that each wait for their commit, with a sync time of F: at most N/F commits a second,
//! about N/2F when only one sync is on its way and every commit comes just after it has begun.

use serde::Serialize;

use super::{Bandwidth, SyncTime};

/// Bytes of a row of the classic table in a full leaf image.
const ROW_IMAGE_BYTES: f64 = 172.0;
/// Bytes of its log record when columns at their default are left out, and when not.
const ELIDED_RECORD_BYTES: f64 = 28.0;
const FULL_RECORD_BYTES: f64 = 170.0;
/// Leaves under random keys are about so full.
const RANDOM_FILL: f64 = 0.69;

/// The bound N/F: commits a second of `sessions` that each wait for their commit.
pub fn commits_per_s_bound(sessions: u64, sync_time_us: f64) -> f64 {
    sessions as f64 * 1e6 / sync_time_us.max(f64::MIN_POSITIVE)
}

/// Durable commits that a number of sessions can reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DurableLimit {
    /// Sessions that wait for each of their commits.
    pub sessions: u64,
    /// N/F: no engine with synchronous clients is faster.
    pub commits_per_s_max: f64,
    /// N/2F: one sync at a time, everyone just too late for it.
    pub commits_per_s_late: f64,
}

/// Rows that the device takes in the long run when no commit waits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SustainedLimit {
    /// Ascending keys: each leaf is written once.
    pub ascending_rows_per_s: f64,
    /// Ascending keys, log records with all columns.
    pub ascending_full_log_rows_per_s: f64,
    /// Random keys, each leaf written twice in all.
    pub random_twice_rows_per_s: f64,
    /// Random keys, each leaf written five times in all.
    pub random_five_times_rows_per_s: f64,
}

/// What the device allows for the classic table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Allowance {
    /// One row a commit, every commit waits.
    pub durable: Vec<DurableLimit>,
    /// No commit waits.
    pub sustained: SustainedLimit,
    /// Rows a second that can be read from tables much larger than memory, one leaf each.
    pub cold_reads_per_s: f64,
}

impl Allowance {
    /// From what was measured.
    pub fn new(sync: &SyncTime, bandwidth: &Bandwidth) -> Allowance {
        let durable = [1, 24, 128, 1024].map(|sessions| DurableLimit {
            sessions,
            commits_per_s_max: commits_per_s_bound(sessions, sync.p50_us),
            commits_per_s_late: commits_per_s_bound(sessions, sync.p50_us) / 2.0,
        });
        let rows_per_s = |log_bytes: f64, image_bytes: f64| {
            bandwidth.write_mb_per_s * 1e6 / (log_bytes + image_bytes)
        };
        let random_image_bytes = ROW_IMAGE_BYTES / RANDOM_FILL;
        Allowance {
            durable: durable.to_vec(),
            sustained: SustainedLimit {
                ascending_rows_per_s: rows_per_s(ELIDED_RECORD_BYTES, ROW_IMAGE_BYTES),
                ascending_full_log_rows_per_s: rows_per_s(FULL_RECORD_BYTES, ROW_IMAGE_BYTES),
                random_twice_rows_per_s: rows_per_s(ELIDED_RECORD_BYTES, 2.0 * random_image_bytes),
                random_five_times_rows_per_s: rows_per_s(
                    ELIDED_RECORD_BYTES,
                    5.0 * random_image_bytes,
                ),
            },
            cold_reads_per_s: bandwidth.random_reads_per_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_over_sync_time_is_the_bound() {
        assert!((commits_per_s_bound(24, 250.0) - 96_000.0).abs() < 1e-6);
        let sync = SyncTime { p50_us: 250.0, p99_us: 400.0, mean_us: 260.0, samples: 10 };
        let bandwidth = Bandwidth {
            write_mb_per_s: 500.0,
            read_mb_per_s: 900.0,
            random_reads_per_s: 1e5,
            written_bytes: 1 << 30,
        };
        let allows = Allowance::new(&sync, &bandwidth);
        assert_eq!(allows.durable[1].sessions, 24);
        assert!((allows.durable[1].commits_per_s_late - 48_000.0).abs() < 1e-6);
        assert!((2.4e6..2.6e6).contains(&allows.sustained.ascending_rows_per_s));
    }
}
