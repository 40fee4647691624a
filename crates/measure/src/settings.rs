//! What one measured load does: every flag of `onrush lab insert`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use onrush::{Durability, KeyStrategy, LargePages, Options};
use serde::Serialize;

use crate::disk::{SyncTime, commits_per_s_bound};
use crate::machine::{self, Machine};
use crate::units;

/// Who runs the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    /// One thread of the operating system for each session; it sleeps until its commit is durable.
    #[default]
    Threads,
    /// All sessions share one thread a processor, each with one commit on its way.
    Tasks,
}

/// How the database is left before it is opened again for verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Leave {
    /// Closed: a checkpoint holds everything.
    #[default]
    Close,
    /// Dropped as it is once everything is durable: opening must replay the log.
    Drop,
}

/// Where the files go.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Placement {
    /// The database's folder: missing or empty. None: a new folder in the current one.
    pub folder: Option<PathBuf>,
    /// Leave the database there afterwards.
    pub keep: bool,
    /// Folders to make a data file in, one each; together with `data_files` at most 16.
    pub data_folders: Vec<PathBuf>,
    /// Data files inside the database's folder, when `data_folders` is empty.
    pub data_files: usize,
    /// Folder to make the log in. None: inside the database's folder.
    pub log_folder: Option<PathBuf>,
}

/// One measured load.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseSettings {
    /// Rows of all sessions together. None: about a minute's worth.
    pub rows: Option<u64>,
    /// Concurrent sessions.
    pub sessions: usize,
    /// The key of the classic table.
    pub key: KeyStrategy,
    /// When a commit is acknowledged.
    pub durability: Durability,
    /// Rows that each transaction inserts.
    pub rows_per_commit: u64,
    /// Who runs the sessions.
    pub driver: Driver,
    /// Rows inserted before, not measured.
    pub preload_rows: u64,
    /// Where the files go.
    pub placement: Placement,
    /// Settings of the engine; folders and durability are set from the fields above.
    pub engine: Options,
    /// Compare what is there afterwards with what was acknowledged.
    pub verify: bool,
    /// How the database is left before that.
    pub leave: Leave,
    /// Where the page for Prometheus is served while the database is open; None: nowhere.
    pub metrics: Option<SocketAddr>,
}

impl Default for CaseSettings {
    fn default() -> Self {
        CaseSettings {
            rows: None,
            sessions: 24,
            key: KeyStrategy::SessionOffset,
            durability: Durability::Durable,
            rows_per_commit: 1,
            driver: Driver::Threads,
            preload_rows: 0,
            placement: Placement { data_files: 1, ..Placement::default() },
            // What the system takes to hand out memory is not what is measured.
            engine: Options { prefault_leaf_memory: true, ..Options::default() },
            verify: true,
            leave: Leave::Close,
            metrics: None,
        }
    }
}

/// The measured part of a load of default size takes about so long.
const DEFAULT_LOAD: Duration = Duration::from_secs(40);
/// Share of the bound N/F that is expected.
const EXPECTED_SHARE: f64 = 0.6;
/// Rows of a load of default size when no commit waits: most of a minute at 0.5 million a second.
const DELAYED_ROWS: u64 = 20_000_000;
/// Rows of a load of default size, at most: the classic number.
const ROWS_MAX: u64 = 48_000_000;
/// Data files of a database.
pub const DATA_FILES_MAX: usize = 16;
/// A row in the record of a transaction takes more than this: its key and its clock.
const ROW_RECORD_BYTES_MIN: u64 = 16;

/// The engine's settings that have a flag of another name.
const FLAGS: &[(&str, &str)] = &[
    ("leaf_memory_bytes", "--leaf-memory"),
    ("log_block_bytes_max", "--log-block"),
    ("log_capacity_bytes", "--log-capacity"),
    ("log_segment_bytes", "--log-segment"),
    ("log_ring_bytes", "--log-ring"),
    ("checkpoint_log_bytes", "--checkpoint-log"),
    ("delayed_window_ms", "--window-ms"),
    ("delayed_window_bytes", "--window-bytes"),
    ("cpu_mask", "--cpu-mask"),
    ("log_writer_cpu", "--log-writer-cpu"),
];

impl CaseSettings {
    /// How many rows to insert: as asked for, else about a minute's worth on a device with this
    /// sync time.
    pub fn rows_on(&self, sync: &SyncTime) -> u64 {
        if let Some(rows) = self.rows {
            return rows;
        }
        if self.durability == Durability::Delayed {
            return DELAYED_ROWS;
        }
        let bound = commits_per_s_bound(self.sessions as u64, sync.mean_us);
        let commits = bound * EXPECTED_SHARE * DEFAULT_LOAD.as_secs_f64();
        // One thread a session tops out far below N/F when the device is fast.
        let commits = match self.driver {
            Driver::Threads => commits.min(200_000.0 * DEFAULT_LOAD.as_secs_f64()),
            Driver::Tasks => commits,
        };
        let rows = (commits * self.rows_per_commit as f64) as u64;
        round_down(rows.clamp(10_000, ROWS_MAX))
    }

    /// Checks every setting, before anything is measured or written: those of the lab, those of the
    /// engine, and whether this machine has what they ask for.
    ///
    /// # Errors
    /// A sentence with the setting, its value and its range.
    pub fn validate(&self) -> Result<(), String> {
        let at_least_one = [
            ("--sessions", self.sessions as u64),
            ("--rows", self.rows.unwrap_or(1)),
            ("--rows-per-commit", self.rows_per_commit),
            ("--data-files", self.placement.data_files as u64),
        ];
        for (name, value) in at_least_one {
            if value == 0 {
                return Err(format!("{name} is 0; give at least 1"));
            }
        }
        if self.sessions > 65_536 {
            return Err(format!("--sessions is {}; give at most 65536", self.sessions));
        }
        if self.driver == Driver::Threads && self.sessions > 4096 {
            return Err(format!(
                "--sessions is {}: too many for one thread each; add --driver tasks",
                self.sessions
            ));
        }
        let files = self.placement.data_files;
        if files > DATA_FILES_MAX {
            return Err(format!("--data-files is {files}; give 1 to {DATA_FILES_MAX}"));
        }
        let folders = self.placement.data_folders.len();
        if folders > DATA_FILES_MAX {
            return Err(format!(
                "--data-folder is given {folders} times; a database has at most {DATA_FILES_MAX} \
                 data files"
            ));
        }
        self.engine.validate().map_err(by_flag)?;
        let rows = self.rows.map_or(u64::MAX, |rows| rows.div_ceil(self.sessions as u64));
        if let Some(reason) = commit_too_large(self.rows_per_commit.min(rows), &self.engine) {
            return Err(format!("--rows-per-commit is {}: {reason}", self.rows_per_commit));
        }
        self.memory_missing().map_or(Ok(()), Err)
    }

    /// What the memory for leaves needs that this machine does not have.
    fn memory_missing(&self) -> Option<String> {
        let wanted = self.engine.leaf_memory_bytes as u64;
        if self.engine.large_pages == LargePages::Require {
            let missing = machine::large_pages_missing(wanted);
            return missing.map(|what| format!("--large-pages require {what} --large-pages try"));
        }
        let memory = Machine::this().memory_bytes;
        let is_touched = self.engine.prefault_leaf_memory && memory > 0;
        (is_touched && wanted > memory).then(|| {
            format!(
                "--leaf-memory is {}, all of it touched before the first insert, and this machine \
                 has {}; give less, or --prefault-leaf-memory off",
                units::bytes(wanted),
                units::bytes(memory)
            )
        })
    }
}

/// What the engine says about a setting of its own, under the name of the flag that sets it.
fn by_flag(error: onrush::Error) -> String {
    let onrush::Error::BadOption { setting, given, reason } = &error else {
        return error.to_string();
    };
    let flag = FLAGS.iter().find(|(name, _)| name == setting);
    flag.map_or_else(|| error.to_string(), |(_, flag)| format!("{flag} is {given}: {reason}"))
}

/// Why transactions of so many rows cannot be: even the shortest record of them has no space. What the
/// engine refuses beyond that it tells when the first one comes.
pub fn commit_too_large(rows_per_commit: u64, engine: &Options) -> Option<String> {
    let rows_max = engine.log_ring_bytes as u64 / 8 / ROW_RECORD_BYTES_MIN;
    (rows_per_commit > rows_max).then(|| {
        format!(
            "a transaction takes at most an eighth of the log ring, {}, which is space for fewer than \
             {} rows",
            units::bytes(engine.log_ring_bytes as u64 / 8),
            units::grouped(rows_max)
        )
    })
}

/// Two leading digits, then zeros: sizes that can be read.
fn round_down(rows: u64) -> u64 {
    let mut unit = 1;
    while rows / unit >= 100 {
        unit *= 10;
    }
    rows / unit * unit
}

/// The words of the command line for a durability.
pub fn durability_name(durability: Durability) -> &'static str {
    match durability {
        Durability::Durable => "durable",
        Durability::Delayed => "delayed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sync(mean_us: f64) -> SyncTime {
        SyncTime { p50_us: mean_us, p99_us: mean_us, mean_us, samples: 100 }
    }

    #[test]
    fn the_default_size_follows_the_device() {
        let settings = CaseSettings::default();
        assert_eq!(settings.rows_on(&sync(134.0)), 4_200_000);
        assert_eq!(settings.rows_on(&sync(10_000.0)), 57_000);
        assert_eq!(settings.rows_on(&sync(1.0)), 8_000_000);
        let asked = CaseSettings { rows: Some(123), ..CaseSettings::default() };
        assert_eq!(asked.rows_on(&sync(134.0)), 123);
    }

    #[test]
    fn impossible_settings_name_their_flag() {
        let none = CaseSettings { sessions: 0, ..CaseSettings::default() };
        assert!(none.validate().unwrap_err().contains("--sessions"));
        let many = CaseSettings { sessions: 5000, ..CaseSettings::default() };
        assert!(many.validate().unwrap_err().contains("--driver tasks"));
        let tasks = CaseSettings { driver: Driver::Tasks, ..many };
        assert_eq!(tasks.validate(), Ok(()));
        let huge = CaseSettings { rows_per_commit: 1_000_000, ..CaseSettings::default() };
        assert!(huge.validate().unwrap_err().contains("--rows-per-commit"));
        let few_rows = CaseSettings { rows: Some(1_000), ..huge };
        assert_eq!(few_rows.validate(), Ok(()));
    }

    #[test]
    fn settings_of_the_engine_are_checked_too_under_the_name_of_their_flag() {
        let of = |engine: Options| CaseSettings { engine, ..CaseSettings::default() };
        let default = CaseSettings::default().engine;
        for (settings, words) in [
            (of(Options { log_block_bytes_max: 100, ..default.clone() }), "--log-block is 100"),
            (of(Options { log_capacity_bytes: 1, ..default.clone() }), "--log-capacity is 1"),
            (of(Options { leaf_memory_bytes: 1 << 50, ..default.clone() }), "--leaf-memory is"),
            (
                of(Options {
                    leaf_memory_bytes: 1 << 50,
                    large_pages: LargePages::Require,
                    ..default.clone()
                }),
                "--large-pages require needs",
            ),
        ] {
            let refused = settings.validate().unwrap_err();
            assert!(refused.starts_with(words), "{refused}");
        }
    }
}
