//! The classic challenge: 160 million rows by 24 sessions, from the first insert until the database is
//! closed and found sound.
//!
//! The clock runs over inserting, making everything durable, closing (with its last checkpoint) and the
//! check, in that order and with nothing between. Two keys take their turns, one ascending sequence and
//! the best of the strategies; the figures of the device and the memory of the process stand beside them.

use std::sync::Arc;
use std::time::Instant;

use crate::error::LabError;
use onrush::{Durability, KeyStrategy, Options};
use onrush_check::{CheckOptions, CheckReport, Progress, check};
use onrush_files::OsDisk;
use onrush_measure::case::log_bytes_max;
use onrush_measure::classic_table::{CLASSIC_TABLE, classic_table};
use onrush_measure::machine;
use onrush_measure::place::Place;
use onrush_measure::progress::{Observer, Step};
use onrush_measure::settings::{Driver, Leave, Placement};
use onrush_measure::stand::{Stand, StandLoad};
use serde::Serialize;

/// Rows of the classic load.
pub const ROWS: u64 = 160_000_000;
/// What it took on 48 processors, in seconds, with the best key there: inserts alone.
pub const CLASSIC_S: f64 = 150.0;
/// What Onrush is to take on two processors, closed and checked.
pub const GOAL_S: f64 = 60.0;

/// What is run.
#[derive(Clone, Debug)]
pub struct ChallengeSettings {
    /// Rows of all sessions together.
    pub rows: u64,
    /// Concurrent sessions.
    pub sessions: usize,
    /// A run for each.
    pub keys: Vec<KeyStrategy>,
    /// Where the files go.
    pub placement: Placement,
    /// Settings of the engine.
    pub engine: Options,
}

impl Default for ChallengeSettings {
    fn default() -> Self {
        ChallengeSettings {
            rows: ROWS,
            sessions: 24,
            keys: vec![
                KeyStrategy::Identity { start: 1, strict: false },
                KeyStrategy::SessionOffset,
            ],
            placement: Placement { data_files: 1, ..Placement::default() },
            engine: Options { prefault_leaf_memory: true, ..Options::default() },
        }
    }
}

/// All runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChallengeResult {
    /// Processors of the machine.
    pub cpus: usize,
    /// One for each key.
    pub runs: Vec<ChallengeRun>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChallengeRun {
    /// How keys were made.
    pub key: String,
    /// Rows acknowledged.
    pub rows: u64,
    /// Concurrent sessions.
    pub sessions: usize,
    /// From the first insert to the last acknowledgement.
    pub insert_s: f64,
    /// Rows acknowledged in a second of that.
    pub rows_per_s: f64,
    /// The longest commit, in microseconds.
    pub commit_us_max: f64,
    /// From there until everything was durable and the database closed.
    pub close_s: f64,
    /// Written to the device in that time, in millions of bytes a second.
    pub close_mb_per_s: f64,
    /// The check of everything stored.
    pub check_s: f64,
    /// From the first insert until closed and checked.
    pub total_s: f64,
    /// The most memory that the process had during the run; 0 where the system does not tell.
    pub memory_bytes_peak: u64,
    /// The memory that was divided among the parts of the engine, if there was a bound.
    pub memory_bytes: Option<u64>,
    /// Whether the check found everything, and every row.
    pub sound: bool,
    /// What it found otherwise.
    pub findings: Option<String>,
}

/// Runs the challenge with each key, one after the other.
///
/// # Errors
/// Settings out of range, too little space, and whatever the engine, the disk or the check reports.
pub fn run_challenge(
    settings: &ChallengeSettings,
    observer: &dyn Observer,
) -> Result<ChallengeResult, LabError> {
    if settings.rows == 0 || settings.sessions == 0 || settings.keys.is_empty() {
        let what = "rows, sessions and keys of a challenge are at least one each";
        return Err(LabError::Setting(what.into()));
    }
    let one = |key: &KeyStrategy| run_key(settings, *key, observer);
    let runs = settings.keys.iter().map(one).collect::<Result<_, _>>()?;
    Ok(ChallengeResult { cpus: machine::cpus(), runs })
}

fn run_key(
    settings: &ChallengeSettings,
    key: KeyStrategy,
    observer: &dyn Observer,
) -> Result<ChallengeRun, LabError> {
    let definition = classic_table(CLASSIC_TABLE, key).map_err(onrush::Error::from)?;
    let mut place = Place::prepare(&settings.placement)?;
    place.check_space(settings.rows, key, log_bytes_max(settings.rows, 1, &settings.engine))?;
    let mut options = settings.engine.clone();
    options.durability = Durability::Delayed;
    place.apply(&mut options);
    machine::forget_memory_peak();
    let mut stand = Stand::create(place.folder(), options, vec![definition], false)?;
    let loaded = stand.load(load_of(settings), observer)?;
    let insert_s = loaded.elapsed.as_secs_f64();

    let close_started = Instant::now();
    let written_before = machine::written_bytes();
    stand.barrier()?;
    stand.leave(Leave::Close, observer)?;
    let close_s = close_started.elapsed().as_secs_f64();
    let close_bytes = machine::written_bytes().saturating_sub(written_before);

    let check_started = Instant::now();
    observer.begin(Step::Check, None);
    let disk = Arc::new(OsDisk::new());
    let report = check(disk, place.folder(), &CheckOptions::default(), &Progress::default());
    observer.end();
    let told = |error: onrush_check::CheckError| LabError::Target {
        target: "onrush".into(),
        what: error.to_string(),
    };
    let findings = fault_of(&report.map_err(told)?, loaded.ledger.rows);
    let check_s = check_started.elapsed().as_secs_f64();
    if findings.is_some() {
        place.keep();
    }
    Ok(ChallengeRun {
        key: key.name().to_owned(),
        rows: loaded.ledger.rows,
        sessions: settings.sessions,
        insert_s,
        rows_per_s: loaded.ledger.rows as f64 / insert_s.max(1e-9),
        commit_us_max: loaded.ledger.commit_times.max() as f64 / 1e3,
        close_s,
        close_mb_per_s: close_bytes as f64 / 1e6 / close_s.max(1e-9),
        check_s,
        total_s: insert_s + close_s + check_s,
        memory_bytes_peak: machine::memory_bytes_peak(),
        memory_bytes: settings.engine.memory_bytes,
        sound: findings.is_none(),
        findings,
    })
}

fn load_of(settings: &ChallengeSettings) -> StandLoad {
    StandLoad {
        rows: settings.rows,
        sessions: settings.sessions,
        rows_per_commit: 1,
        rows_per_statement: 1,
        durability: Durability::Delayed,
        driver: Driver::Threads,
        step: Step::Load,
        is_pinned: false,
        time_max: None,
        rows_per_s_max: None,
        client: None,
    }
}

/// Why the database is not as it should be.
fn fault_of(report: &CheckReport, rows: u64) -> Option<String> {
    if !report.is_sound() {
        return Some(report.to_string());
    }
    let seen: u64 = report.tables.iter().map(|table| table.rows).sum();
    (seen != rows).then(|| format!("the check saw {seen} rows, and {rows} were acknowledged"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_measure::progress::Quiet;

    fn settings(folder: &std::path::Path) -> ChallengeSettings {
        ChallengeSettings {
            rows: 20_000,
            sessions: 4,
            placement: Placement {
                folder: Some(folder.join("db")),
                data_files: 1,
                ..Placement::default()
            },
            engine: Options::small(),
            ..ChallengeSettings::default()
        }
    }

    #[test]
    fn a_small_challenge_ends_sound_with_every_row_for_each_key() {
        let folder = tempfile::tempdir().unwrap();
        let result = run_challenge(&settings(folder.path()), &Quiet).unwrap();
        let keys: Vec<&str> = result.runs.iter().map(|run| run.key.as_str()).collect();
        assert!(keys[0].starts_with("identity") && keys[1] == "session-offset", "{keys:?}");
        for run in &result.runs {
            assert!(run.sound, "{:?}", run.findings);
            assert_eq!(run.rows, 20_000);
        }
        assert!(!folder.path().join("db").join("superblock.onrush").exists(), "it was left there");
    }

    #[test]
    fn a_challenge_of_no_rows_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let nothing = ChallengeSettings { rows: 0, ..settings(folder.path()) };
        let message = run_challenge(&nothing, &Quiet).unwrap_err().to_string();
        assert!(message.contains("at least one"), "{message}");
    }
}
