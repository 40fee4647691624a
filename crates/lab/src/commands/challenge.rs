//! `onrush-lab run challenge`: the classic load at its full size, closed and found sound.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use onrush::{KeyStrategy, Options};
use onrush_lab::challenge::{
    CLASSIC_S, ChallengeResult, ChallengeRun, ChallengeSettings, GOAL_S, ROWS, run_challenge,
};
use onrush_measure::units::{bytes, grouped, micros, parse_count, rounded};
use onrush_measure::{CaseSettings, Placement};
use onrush_terminal::arguments::answer::AnswerArguments;
use onrush_terminal::arguments::engine::EngineArguments;
use onrush_terminal::arguments::words::key_strategy;
use onrush_terminal::failure::{AlreadyTold, Outcome};
use onrush_terminal::output;
use onrush_terminal::progress::LabProgress;

/// 160 million rows by 24 sessions, delayed: from the first insert until closed and found sound
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ChallengeArguments {
    /// Rows of all sessions together, such as 16m
    #[arg(long, value_name = "ROWS", default_value = "160m", value_parser = parse_count)]
    rows: u64,
    /// Concurrent sessions
    #[arg(long, value_name = "COUNT", default_value_t = 24)]
    sessions: usize,
    /// A run for this key; give it several times for several [default: identity, session-offset]
    #[arg(long = "key", value_name = "STRATEGY", value_parser = key_strategy)]
    keys: Vec<KeyStrategy>,
    /// The database's folder, empty or new [default: a new one in the current folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Folder for the log [default: inside the database's folder]
    #[arg(long, value_name = "FOLDER")]
    log_folder: Option<PathBuf>,
    #[command(flatten)]
    answer: AnswerArguments,
    #[command(flatten)]
    engine: EngineArguments,
}

const EXAMPLES: &str = "\
Examples:
  onrush-lab run challenge --memory 8GiB
  onrush-lab run challenge --rows 8m --memory 256MiB --quiet      a twentieth of it
  onrush-lab run challenge --key uuid-v4 --dir /mnt/nvme/challenge --json

The exit code is 1 if a database was not sound. It needs about 30 GB of disk at its full size.";

/// Runs it and tells the result.
pub fn run(arguments: &ChallengeArguments) -> Outcome {
    let defaults = ChallengeSettings::default();
    let engine: Options = arguments.engine.options(CaseSettings::default().engine);
    let settings = ChallengeSettings {
        rows: arguments.rows,
        sessions: arguments.sessions,
        keys: if arguments.keys.is_empty() { defaults.keys } else { arguments.keys.clone() },
        placement: Placement {
            folder: arguments.dir.clone(),
            log_folder: arguments.log_folder.clone(),
            ..defaults.placement
        },
        engine,
    };
    let result = run_challenge(&settings, &LabProgress::new(arguments.answer.quiet))?;
    if arguments.answer.json {
        output::json(&result)?;
    } else {
        output::text(&text(&result))?;
    }
    let unsound = result.runs.iter().find_map(|run| run.findings.as_ref());
    match unsound {
        None => Ok(()),
        Some(findings) => {
            onrush_terminal::tell!("{findings}");
            Err(AlreadyTold::NotDone.into())
        }
    }
}

fn text(result: &ChallengeResult) -> String {
    let mut text = String::new();
    for run in &result.runs {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{}", of_run(run));
    }
    let first = result.runs.first().map_or(0, |run| run.rows);
    let _ = if first == ROWS {
        writeln!(text, "Classic: {CLASSIC_S} s on 48 CPUs, inserts alone. Goal: {GOAL_S} s in all.")
    } else {
        let rows = grouped(ROWS);
        writeln!(text, "The challenge itself has {rows} rows: this is {} % of it.", share(first))
    };
    text
}

fn share(rows: u64) -> String {
    rounded(100.0 * rows as f64 / ROWS as f64)
}

fn of_run(run: &ChallengeRun) -> String {
    let memory = run.memory_bytes.map_or_else(String::new, |memory| {
        let peak = 100.0 * run.memory_bytes_peak as f64 / memory as f64;
        format!(", {} % of the memory that was set", rounded(peak))
    });
    format!(
        "{key}: {rows} rows, {sessions} sessions, delayed, 1 row per commit\n\n  \
         inserting         {insert:.1} s, {rate} rows/s, longest commit {commit}\n  \
         closing           {close:.1} s, {close_rate} MB/s written\n  \
         checking          {check:.1} s, {sound}\n  \
         in all            {total:.1} s\n  \
         most memory       {peak}{memory}\n",
        key = run.key,
        rows = grouped(run.rows),
        sessions = run.sessions,
        insert = run.insert_s,
        rate = grouped(run.rows_per_s as u64),
        commit = micros(run.commit_us_max),
        close = run.close_s,
        close_rate = grouped(run.close_mb_per_s as u64),
        check = run.check_s,
        sound = if run.sound { "sound, with every row" } else { "NOT SOUND" },
        total = run.total_s,
        peak = bytes(run.memory_bytes_peak),
    )
}
