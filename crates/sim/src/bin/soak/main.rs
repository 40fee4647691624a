//! A soak: hours of mixed work on one database, with kills, and a verdict in the end.
//!
//! - `rounds.rs`: a process for each round, looked at from outside, closed or killed.
//! - `worker.rs`, `session.rs`: what the process does; `model.rs`: what each operation is and does to
//!   what a session has; `tables.rs`: tables and rows.
//! - `account.rs`: what was promised, outside the engine; `verify.rs`: whether it is there.
//! - `samples.rs`: what the process takes; `judge.rs`: whether that is flat; `report.rs`.
//!
//! Beside `prove`, which ends many short processes, this one looks at what adds up over time.

mod account;
mod judge;
mod model;
mod report;
mod rounds;
mod samples;
mod session;
mod settings;
mod tables;
mod verify;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Hours of mixed inserts, reads, updates, deletes, truncates, checkpoints, checks, backups, kills and
/// restarts on one database; judges whether memory, descriptors and disk stay bounded and nothing is
/// lost.
///
/// The exit status is 0 if all that could be judged holds, and 1 if not; the folder is kept then.
#[derive(Parser)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
        soak --quick                                     about a minute, 128 MiB\n  \
        soak --hours 2 --report docs/results/soak.md     the one whose report is published\n  \
        soak --minutes 30 --seed 7 --folder /big/disk/soak --max-bytes 8G --json soak.json"
)]
struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,
    /// How long, in hours; may be a fraction.
    #[arg(long, conflicts_with_all = ["minutes", "quick"])]
    hours: Option<f64>,
    /// How long, in minutes; may be a fraction.
    #[arg(long, conflicts_with = "quick")]
    minutes: Option<f64>,
    /// A minute, with 128 MiB unless --max-bytes is given.
    #[arg(long)]
    quick: bool,
    /// What the sessions do, how long the rounds are and how each ends follows from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A new or empty folder for the database; a temporary one unless given.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// The most that the database may take of the disk: bytes, or with K, M, G. A sixteenth of it will
    /// be rows. 1G unless given; at least 64M.
    #[arg(long, value_parser = bytes)]
    max_bytes: Option<u64>,
    /// Writes a report as Markdown, again after each round.
    #[arg(long)]
    report: Option<PathBuf>,
    /// Writes the numbers as JSON, a line for each minute, again after each round.
    #[arg(long)]
    json: Option<PathBuf>,
    /// A paragraph for the report: what else the machine did.
    #[arg(long)]
    note: Option<String>,
}

#[derive(Subcommand)]
enum Part {
    /// The process of a round.
    #[command(hide = true)]
    Work(worker::Work),
}

const MAX_BYTES_MIN: u64 = 64 << 20;

fn bytes(text: &str) -> std::result::Result<u64, String> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let number: Option<u64> =
        digits.parse().ok().and_then(|number: u64| number.checked_mul(factor));
    let number = number.ok_or("a number of bytes, such as 512M")?;
    if number < MAX_BYTES_MIN {
        return Err("at least 64M".to_owned());
    }
    Ok(number)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match &arguments.part {
        Some(Part::Work(work)) => worker::run(work).map(|()| true),
        None => soak(&arguments),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs it; whether everything holds.
fn soak(arguments: &Arguments) -> Result<bool> {
    let minutes = match (arguments.hours, arguments.minutes) {
        (Some(hours), _) => hours * 60.0,
        (None, Some(minutes)) => minutes,
        (None, None) if arguments.quick => 1.0,
        (None, None) => 120.0,
    };
    let most = if arguments.quick { 128 << 20 } else { 1 << 30 };
    let is_temporary = arguments.folder.is_none();
    let folder = arguments.folder.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("onrush-soak-{}", std::process::id()))
    });
    let request = rounds::Request {
        length: Duration::try_from_secs_f64(minutes * 60.0)?,
        seed: arguments.seed,
        folder,
        max_bytes: arguments.max_bytes.unwrap_or(most),
    };
    rounds::make_folder(&request.folder)?;
    let settings = settings::Settings::of(request.max_bytes);
    let write = |run: &rounds::Run| -> Result<bool> {
        let judgements = judge::judge(run, &settings);
        if let Some(path) = &arguments.report {
            let note = arguments.note.as_deref();
            report::write(path, &report::markdown(&request, run, &judgements, note))?;
        }
        if let Some(path) = &arguments.json {
            report::write(path, &report::json(&request, run, &judgements)?)?;
        }
        Ok(report::holds(&judgements))
    };
    let run = rounds::run(&request, |run| write(run).map(|_| ()))?;
    let holds = write(&run)?;
    println!(
        "{}",
        report::markdown(&request, &run, &judge::judge(&run, &settings), arguments.note.as_deref())
    );
    if holds && is_temporary {
        std::fs::remove_dir_all(&request.folder)?;
    } else {
        println!("The database is in {}.", request.folder.display());
    }
    Ok(holds)
}
