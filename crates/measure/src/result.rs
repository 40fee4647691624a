//! What a measurement found, under plain names with their units: the object that `--json` prints.

use std::path::Path;
use std::time::Duration;

use hdrhistogram::Histogram;
use onrush::{Durability, LogStatistics};
use onrush_waits::{Totals, report::WaitRow};
use serde::{Deserialize, Serialize};

use crate::disk::{SyncTime, commits_per_s_bound};
use crate::doubt;
use crate::machine::{FileSystem, Machine};
use crate::settings::{CaseSettings, Driver, Leave, durability_name};
use crate::stand::Reopened;
use crate::verify::Verification;

/// The numbers as they were taken.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) elapsed: Duration,
    pub(crate) cpu: Duration,
    pub(crate) rows: u64,
    pub(crate) commits: u64,
    pub(crate) commit_times: Histogram<u64>, // nanoseconds
    pub(crate) durable_after: Duration,
    pub(crate) log: LogStatistics,
    pub(crate) waits: Totals,
    pub(crate) large_page_bytes: u64,
    pub(crate) sync: SyncTime,
    pub(crate) sync_before: SyncTime,
    pub(crate) sync_after: SyncTime,
    pub(crate) close: Duration,
    pub(crate) reopened: Reopened,
}

/// Percentiles of a time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// The middle.
    pub p50: f64,
    /// 99 of 100 were faster.
    pub p99: f64,
    /// 999 of 1000 were faster.
    pub p999: f64,
    /// The longest.
    pub max: f64,
    /// How many were timed.
    pub samples: u64,
}

/// The settings, as words.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)] // each is a flag of the command line, and explained there
pub struct SettingsUsed {
    pub sessions: usize,
    pub key: String,
    pub durability: &'static str,
    pub rows_per_commit: u64,
    pub driver: Driver,
    pub preload_rows: u64,
    pub data_files: usize,
    pub log_beside_data: bool,
    pub log_block_bytes_max: usize,
    pub leaf_memory_bytes: usize,
    pub checkpoint_log_bytes: u64,
    pub checkpoint_seconds: u64,
    pub large_pages: String,
    pub elide_defaults: bool,
    pub sequential_keys: String,
    pub delayed_window_ms: u64,
    pub delayed_window_bytes: u64,
    pub left_by: Leave,
}

/// One measured load.
#[derive(Clone, Debug, Serialize)]
pub struct CaseResult {
    /// Rows acknowledged.
    pub rows: u64,
    /// Transactions acknowledged.
    pub commits: u64,
    /// From the first session's start to the last acknowledgement.
    pub elapsed_s: f64,
    /// Rows acknowledged a second.
    pub rows_per_s: f64,
    /// Transactions acknowledged a second.
    pub commits_per_s: f64,
    /// Processor time of the process, load included; 100 is all processors all the time.
    pub cpu_percent: f64,
    /// The same in seconds.
    pub cpu_s: f64,
    /// Millions of bytes written to the log a second, headers and padding included.
    pub log_mb_per_s: f64,
    /// Bytes of log records for each row.
    pub log_bytes_per_row: f64,
    /// Bytes written to the log for each row, headers and padding included.
    pub log_written_bytes_per_row: f64,
    /// Rows inserted by each transaction.
    pub rows_per_commit: f64,
    /// Memory of the process in large pages at the end of the load: what was obtained of those that
    /// `large_pages` asked for.
    pub large_page_bytes: u64,
    /// Blocks written to the log.
    pub log_blocks: u64,
    /// Rows in each of them.
    pub rows_per_log_block: f64,
    /// Durable writes of the log.
    pub log_syncs: u64,
    /// Longest time between two log writes while there was something to write, in milliseconds.
    pub longest_log_gap_ms: f64,
    /// Transactions made durable by each sync.
    pub commits_per_sync: f64,
    /// Durable 4 KiB write beside the log: the better of before and after the load.
    pub sync_time_us: SyncTime,
    /// Its middle before the load, in microseconds.
    pub sync_time_before_us: f64,
    /// Its middle after the load, in microseconds.
    pub sync_time_after_us: f64,
    /// N/F: sessions over sync time. None when commits do not wait.
    pub bound_commits_per_s: Option<f64>,
    /// Commits a second over that bound: 1 is as fast as physics allow.
    pub share_of_bound: Option<f64>,
    /// Time of a commit until it was acknowledged.
    pub commit_latency_us: Percentiles,
    /// From the last acknowledgement until everything was durable.
    pub durable_after_ms: f64,
    /// Time of closing the database, its last checkpoint included.
    pub close_s: f64,
    /// Time of opening it again, memory for leaves included.
    pub reopen_s: f64,
    /// Rows that opening it redid from the log, and the time that took.
    pub redone_rows: u64,
    /// See `redone_rows`.
    pub redo_s: f64,
    /// Whether the acknowledged rows were there. None when not asked for.
    pub verification: Option<Verification>,
    /// What sessions and background threads waited for: the top 95 %.
    pub waits: Vec<WaitRow>,
    /// What makes the figures doubtful.
    pub warnings: Vec<String>,
    /// How it was measured.
    pub settings: SettingsUsed,
    /// The file system under the log.
    pub file_system: FileSystem,
    /// The machine.
    pub machine: Machine,
    /// Where the database was left, if it was.
    pub kept_folder: Option<String>,
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl CaseResult {
    pub(crate) fn new(
        settings: &CaseSettings,
        file_system: &FileSystem,
        measured: &Measured,
        verification: Option<Verification>,
        kept_folder: Option<&Path>,
    ) -> CaseResult {
        let machine = Machine::this();
        let elapsed_s = measured.elapsed.as_secs_f64();
        let (rows, commits) = (measured.rows as f64, measured.commits as f64);
        let log = &measured.log;
        let is_durable = settings.durability == Durability::Durable;
        let bound = commits_per_s_bound(settings.sessions as u64, measured.sync.p50_us);
        let commits_per_s = ratio(commits, elapsed_s);
        let mut result = CaseResult {
            rows: measured.rows,
            commits: measured.commits,
            elapsed_s,
            rows_per_s: ratio(rows, elapsed_s),
            commits_per_s,
            cpu_percent: 100.0 * ratio(measured.cpu.as_secs_f64(), elapsed_s * machine.cpus as f64),
            cpu_s: measured.cpu.as_secs_f64(),
            log_mb_per_s: ratio(log.bytes as f64 / 1e6, elapsed_s),
            log_bytes_per_row: ratio(log.record_bytes as f64, rows),
            log_written_bytes_per_row: ratio(log.bytes as f64, rows),
            rows_per_commit: ratio(rows, commits),
            large_page_bytes: measured.large_page_bytes,
            log_blocks: log.blocks,
            rows_per_log_block: ratio(rows, log.blocks as f64),
            log_syncs: log.syncs,
            longest_log_gap_ms: log.longest_gap_micros as f64 / 1e3,
            commits_per_sync: ratio(commits, log.syncs as f64),
            sync_time_us: measured.sync,
            sync_time_before_us: measured.sync_before.p50_us,
            sync_time_after_us: measured.sync_after.p50_us,
            bound_commits_per_s: is_durable.then_some(bound),
            share_of_bound: is_durable.then(|| ratio(commits_per_s, bound)),
            commit_latency_us: percentiles(&measured.commit_times),
            durable_after_ms: measured.durable_after.as_secs_f64() * 1e3,
            close_s: measured.close.as_secs_f64(),
            reopen_s: measured.reopened.elapsed.as_secs_f64(),
            redone_rows: measured.reopened.recovery.rows,
            redo_s: measured.reopened.recovery.redo_duration.as_secs_f64(),
            verification,
            waits: measured.waits.top_waits(),
            warnings: Vec::new(),
            settings: SettingsUsed::of(settings),
            file_system: file_system.clone(),
            machine,
            kept_folder: kept_folder.map(|folder| folder.display().to_string()),
        };
        result.warnings = result.doubts(is_durable);
        result
    }

    /// Whether the database held what was acknowledged, as far as that was asked.
    pub fn passed(&self) -> bool {
        self.verification.as_ref().is_none_or(|verification| verification.passed)
    }

    /// Reasons not to believe the figures.
    fn doubts(&self, is_durable: bool) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.file_system.is_memory() {
            doubts.push(format!(
                "the log is on {}, a file system in memory: syncs cost nothing here, and nothing \
                 survives a power cut; give --dir on a real disk",
                self.file_system.kind
            ));
        }
        if is_durable {
            doubts.extend(doubt::of_durable(&doubt::Durable {
                sessions: self.settings.sessions as u64,
                commits_per_sync: Some(self.commits_per_sync),
                share_of_bound: self.share_of_bound,
                sync_us: (self.sync_time_before_us, self.sync_time_after_us),
            }));
        }
        doubts
    }
}

impl SettingsUsed {
    fn of(settings: &CaseSettings) -> SettingsUsed {
        let (placement, engine) = (&settings.placement, &settings.engine);
        SettingsUsed {
            sessions: settings.sessions,
            key: settings.key.to_string(),
            durability: durability_name(settings.durability),
            rows_per_commit: settings.rows_per_commit,
            driver: settings.driver,
            preload_rows: settings.preload_rows,
            data_files: placement.data_folders.len().max(placement.data_files),
            log_beside_data: placement.log_folder.is_none(),
            log_block_bytes_max: engine.log_block_bytes_max,
            leaf_memory_bytes: engine.leaf_memory_bytes,
            checkpoint_log_bytes: engine.checkpoint_log_bytes,
            checkpoint_seconds: engine.checkpoint_seconds,
            large_pages: format!("{:?}", engine.large_pages).to_lowercase(),
            elide_defaults: engine.elide_defaults,
            sequential_keys: match engine.sequential_keys {
                onrush::SequentialKeys::Blocks => "blocks".to_owned(),
                onrush::SequentialKeys::SharedEdge => "shared-edge".to_owned(),
            },
            delayed_window_ms: engine.delayed_window_ms,
            delayed_window_bytes: engine.delayed_window_bytes,
            left_by: settings.leave,
        }
    }
}

/// Of times in nanoseconds.
pub fn percentiles(nanos: &Histogram<u64>) -> Percentiles {
    let at = |quantile: f64| nanos.value_at_quantile(quantile) as f64 / 1e3;
    Percentiles {
        p50: at(0.5),
        p99: at(0.99),
        p999: at(0.999),
        max: nanos.max() as f64 / 1e3,
        samples: nanos.len(),
    }
}
