//! What a study found, as plain data: kept in the result file, printed as JSON, drawn by reports.

use onrush_measure::disk::SyncTime;
use onrush_measure::machine::{FileSystem, Machine};
use onrush_measure::result::Percentiles;
use onrush_measure::verify::Verification;
use serde::{Deserialize, Serialize};

use crate::program;
use crate::study::file::{Chart, Reference, Size, Study};
use crate::study::settings::Settings;
use crate::study::summary::Summary;
use crate::target::record::{
    CounterRecord, CounterSeries, LOG_BLOCKS, LOG_BYTES, Mark, PhaseRecord, WaitRecord,
};

/// A study and everything that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyResult {
    /// The study's short name.
    pub study: String,
    /// Its heading.
    pub title: String,
    /// The classic experiment it repeats.
    pub experiment: String,
    /// What it asks.
    pub description: String,
    /// In which size it ran.
    pub size: Size,
    /// How it is drawn.
    pub chart: Chart,
    /// The classic results.
    pub references: Vec<Reference>,
    /// How often each case was to run.
    pub repeats: usize,
    /// Where the shuffle of the cases began.
    pub seed: u64,
    /// The version of the lab, and its build.
    pub version: String,
    /// A hash of study, settings and size: results with the same hash measured the same.
    pub settings_hash: String,
    /// When it began, in seconds since 1970-01-01 00:00:00 UTC.
    pub started_unix_s: u64,
    /// The command that runs it again.
    pub command: String,
    /// The machine, its kernel in `system`.
    pub machine: Machine,
    /// The device under the databases.
    pub device: FileSystem,
    /// A durable write of 4 KiB there, before the first case.
    pub sync_time_us: SyncTime,
    /// Millions of bytes that the device writes a second; None where it was not measured.
    #[serde(default)]
    pub device_write_mb_per_s: Option<f64>,
    /// Millions of bytes that it reads a second, one after the other; None likewise.
    #[serde(default)]
    pub device_read_mb_per_s: Option<f64>,
    /// Every case, in the study's order.
    pub cases: Vec<CaseOutcome>,
}

impl StudyResult {
    /// A study of which nothing was measured yet.
    pub(crate) fn begun(study: &Study, device: FileSystem, cases: Vec<CaseOutcome>) -> StudyResult {
        StudyResult {
            study: study.name.clone(),
            title: study.title.clone(),
            experiment: study.experiment.clone(),
            description: study.description.clone(),
            size: study.size,
            chart: study.chart.clone(),
            references: study.references.clone(),
            repeats: study.repeats,
            seed: study.seed,
            version: program::version().to_owned(),
            settings_hash: String::new(),
            started_unix_s: 0,
            command: String::new(),
            machine: Machine::this(),
            device,
            sync_time_us: SyncTime::default(),
            device_write_mb_per_s: None,
            device_read_mb_per_s: None,
            cases,
        }
    }
}

/// A target as it was configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetShown {
    /// Its version.
    pub version: String,
    /// Its own settings: name and value.
    pub settings: Vec<(String, String)>,
}

impl TargetShown {
    /// A version, and its settings by names that stand in the code.
    pub fn of<'n>(
        version: impl Into<String>,
        settings: impl IntoIterator<Item = (&'n str, String)>,
    ) -> TargetShown {
        let settings = settings.into_iter().map(|(name, value)| (name.to_owned(), value));
        TargetShown { version: version.into(), settings: settings.collect() }
    }
}

/// One case: what was asked for, and what was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseOutcome {
    /// Its place in the study.
    pub number: usize,
    /// Who was measured.
    pub target: String,
    /// How it was configured; None when it never ran.
    pub target_shown: Option<TargetShown>,
    /// The part of the study.
    pub part: Option<String>,
    /// What the part shows.
    pub note: String,
    /// Counters and waits that prove it.
    pub proof: Vec<String>,
    /// All settings.
    pub settings: Settings,
    /// Why it was not run: it cannot be on this target or this machine.
    pub skipped: Option<String>,
    /// What it ran without, though the study asked for it, and how to permit it.
    #[serde(default)]
    pub given_up: Vec<String>,
    /// Why it did not end, if it began: the first error.
    pub failed: Option<String>,
    /// Its runs, in the order in which they were made.
    pub repeats: Vec<Repeat>,
    /// What the runs say together; None without any.
    pub summary: Option<Summary>,
    /// More commits for each sync than there are sessions: commits did not wait for the disk.
    pub not_synchronous: bool,
    /// What held it back, with the evidence, and the change to try.
    pub verdict: Option<String>,
    /// Of a check: that it is slower than the same with fewer threads, and by how much.
    #[serde(default)]
    pub negative_scaling: Option<String>,
}

/// One run of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// Which repeat, from 0.
    pub number: usize,
    /// When it began, in seconds since 1970-01-01 00:00:00 UTC.
    pub started_unix_s: u64,
    /// Rows acknowledged; of a check, rows that were there to be checked.
    pub rows: u64,
    /// Transactions acknowledged.
    pub commits: u64,
    /// From the first session's start to the last acknowledgement; of a check, its time.
    pub elapsed_s: f64,
    /// Rows acknowledged, or checked, a second.
    pub rows_per_s: f64,
    /// Billions of bytes checked a second; None for inserts.
    pub gb_per_s: Option<f64>,
    /// Transactions acknowledged a second.
    pub commits_per_s: f64,
    /// Processor time of target and load; 100 is all processors all the time.
    pub cpu_percent: f64,
    /// The same in seconds.
    pub cpu_s: f64,
    /// Transactions made durable by each sync: by the target's own count, else by the device's.
    pub commits_per_sync: Option<f64>,
    /// Bytes written to the log for each row, where the target tells.
    pub log_bytes_per_row: Option<f64>,
    /// N/F, sessions over sync time. None when commits do not wait.
    pub bound_commits_per_s: Option<f64>,
    /// Commits a second over that bound.
    pub share_of_bound: Option<f64>,
    /// Time of a commit until it was acknowledged.
    pub commit_latency_us: Percentiles,
    /// What the device did meanwhile, by the kernel's count; None where that is not to be had.
    pub device: Option<DeviceUse>,
    /// What sessions and background threads waited for, all of it.
    pub waits: Vec<WaitRecord>,
    /// Processor time by phase.
    pub phases: Vec<PhaseRecord>,
    /// Counters: their increase during the load.
    pub counters: Vec<CounterRecord>,
    /// Counters over time.
    pub series: Vec<CounterSeries>,
    /// Timestamps worth a line in charts: checkpoints.
    pub marks: Vec<Mark>,
    /// Durable write of 4 KiB, before and after: the better of both.
    pub sync_time_us: SyncTime,
    /// Whether the acknowledged rows were there afterwards.
    pub verification: Option<Verification>,
    /// What makes the figures doubtful.
    pub warnings: Vec<String>,
    /// The file of its flame graph, beside the result file; None: stacks were not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacks: Option<String>,
}

impl Repeat {
    fn counted(&self, name: &str) -> Option<f64> {
        let counter = self.counters.iter().find(|counter| counter.name == name)?;
        Some(counter.value).filter(|value| *value > 0.0)
    }

    /// Millions of bytes written to the log a second, where the target tells; of a result without its
    /// counters those of the records alone.
    pub fn log_mb_per_s(&self) -> Option<f64> {
        let of_records = || self.log_bytes_per_row.map(|bytes| bytes * self.rows as f64);
        let bytes = self.counted(LOG_BYTES).or_else(of_records)?;
        (self.elapsed_s > 0.0).then(|| bytes / 1e6 / self.elapsed_s)
    }

    /// Blocks written to the log, where the target tells.
    pub fn log_blocks(&self) -> Option<f64> {
        self.counted(LOG_BLOCKS)
    }

    /// Rows for each of them.
    pub fn rows_per_log_block(&self) -> Option<f64> {
        self.log_blocks().map(|blocks| self.rows as f64 / blocks)
    }
}

/// What the device under a target did, whoever asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// Millions of bytes written a second.
    pub write_mb_per_s: f64,
    /// Millions of bytes read a second.
    pub read_mb_per_s: f64,
    /// Writes ended.
    pub writes: u64,
    /// Requests to make everything durable.
    pub syncs: u64,
}

impl CaseOutcome {
    /// The value of a chart's axis: a setting's name, `target` or `part`.
    pub fn axis(&self, name: &str) -> String {
        match name {
            "target" => self.target.clone(),
            "part" => self.part.clone().unwrap_or_default(),
            _ => match crate::study::Setting::named(name) {
                Ok(setting) => self.settings.shown(setting),
                Err(_) => String::new(),
            },
        }
    }

    /// Whether every run held what was acknowledged.
    pub fn passed(&self) -> bool {
        self.failed.is_none()
            && self.repeats.iter().all(|repeat| {
                repeat.verification.as_ref().is_none_or(|verification| verification.passed)
            })
    }

    /// Recomputes what follows from the runs.
    pub fn conclude(&mut self) {
        self.summary = Summary::of(&self.repeats);
        let sessions = self.settings.number(crate::study::Setting::Sessions) as f64;
        let exceeds = |repeat: &Repeat| repeat.commits_per_sync.is_some_and(|all| all > sessions);
        self.not_synchronous = self.settings.is_durable() && self.repeats.iter().any(exceeds);
    }
}
