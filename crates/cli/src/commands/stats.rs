//! `onrush stats`: what a database did, once, as text, JSON or a page for Prometheus.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use onrush::{Rates, Statistics};
use onrush_measure::units::{bytes, elapsed, grouped, rounded, rounded_if_any};
use onrush_terminal::failure::Outcome;
use onrush_terminal::output;
use onrush_watch::{View, WatchError, look};

use crate::arguments::database::open;

/// Show what a database did and what its sessions waited for
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Stats {
    /// The database's folder
    folder: PathBuf,
    /// Ask the process that has it open; without one, fail instead of opening it here
    #[arg(long)]
    attach: bool,
    /// Look for so many seconds and show what happened meanwhile, not since it was opened
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Print the page that Prometheus reads
    #[arg(long)]
    prometheus: bool,
}

const EXAMPLES: &str = "\
Examples:
  onrush lab run singleton --dir /mnt/nvme/test --keep &
  onrush stats /mnt/nvme/test --attach
  onrush stats /mnt/nvme/test --attach --seconds 10 --json
  onrush top /mnt/nvme/test";

/// Asks the process that has the database open, or opens it.
pub fn run(arguments: &Stats) -> Outcome {
    let view = match look(&arguments.folder) {
        Err(WatchError::NotServed { .. }) if !arguments.attach => return run_here(arguments),
        view => view?,
    };
    let Some(seconds) = arguments.seconds else { return print(arguments, &view) };
    std::thread::sleep(Duration::from_secs(seconds));
    let later = look(&arguments.folder)?;
    let statistics = later.statistics.since(&view.statistics);
    print(arguments, &View { statistics, ..later })
}

/// Nobody has it open: what opening it took, and how large it is.
fn run_here(arguments: &Stats) -> Outcome {
    let database = open(&arguments.folder)?;
    print(arguments, &View::of(&database))?;
    Ok(database.close()?)
}

fn print(arguments: &Stats, view: &View) -> Outcome {
    if arguments.json {
        return output::json(view);
    }
    if arguments.prometheus {
        return output::text(&view.statistics.to_prometheus());
    }
    output::text(&text(view))
}

/// The reports below each other.
pub fn text(view: &View) -> String {
    let statistics = &view.statistics;
    let rates = statistics.rates();
    let time = elapsed(Duration::from_nanos(statistics.elapsed_nanos));
    let mut text = format!("Process {}, {time}\n\n", view.process);
    for (name, value) in figures(&rates, statistics) {
        push(&mut text, format_args!("  {name:22} {value}\n"));
    }
    let totals = &statistics.totals;
    for (title, report) in [
        ("Waits: the top 95 %", totals.wait_report()),
        ("Latches", totals.latch_report()),
        ("Spins", totals.spin_report()),
        ("Phases", totals.phase_report()),
    ] {
        push(&mut text, format_args!("\n{title}\n\n{report}"));
    }
    text
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("writing to a String cannot fail");
}

fn figures(rates: &Rates, statistics: &Statistics) -> Vec<(&'static str, String)> {
    let splits = &rates.splits;
    let checkpoint = &rates.checkpoint;
    let recovery = &statistics.recovery;
    let (log_in_use, log_capacity) = statistics.log_space_bytes;
    vec![
        ("rows inserted/s", rounded(rates.rows)),
        ("rows read/s", rounded(rates.rows_read)),
        ("commits/s", rounded(rates.commits)),
        ("commits per sync", rounded_if_any(rates.commits_per_sync)),
        ("log MB/s", rounded(rates.log_bytes / 1e6)),
        ("log growths/s", rounded(rates.log_growths)),
        (
            "log write",
            format!(
                "{} us mean, {} us p99, {} sessions in the queue now",
                rounded_if_any(rates.log_write_us),
                rounded_if_any(rates.log_write_p99_us),
                rates.log_queue
            ),
        ),
        ("log in use", format!("{} of {}", bytes(log_in_use), bytes(log_capacity))),
        ("pages allocated/s", rounded(rates.pages_allocated)),
        ("pages read/s", rounded(rates.leaf_loads)),
        ("evictions/s", rounded(rates.evictions)),
        (
            "splits/s",
            format!(
                "{} right edge, {} run, {} middle, {} block",
                rounded(splits.right_edge),
                rounded(splits.local_run),
                rounded(splits.middle),
                rounded(splits.block_grant)
            ),
        ),
        ("checkpoint pages/s", rounded(rates.checkpoint_pages)),
        (
            "checkpoints",
            format!(
                "{} ended; now {:?}, {} of {} pages",
                rates.checkpoints, checkpoint.stage, checkpoint.written, checkpoint.leaves
            ),
        ),
        (
            "recovery",
            format!(
                "{} records, {}, {}",
                grouped(recovery.records),
                bytes(recovery.log_bytes),
                elapsed(recovery.duration)
            ),
        ),
        ("leaves", grouped(statistics.leaves)),
        (
            "frames in use",
            format!("{} of {}", grouped(statistics.frames.0), grouped(statistics.frames.1)),
        ),
        ("memory", memory(statistics)),
        (
            "large transactions",
            format!(
                "{} open, {} of log",
                grouped(statistics.large_transactions.0),
                bytes(statistics.large_transactions.1)
            ),
        ),
    ]
}

/// What the parts of the process take, and the bound of all where there is one.
fn memory(statistics: &Statistics) -> String {
    let parts = statistics.memory.iter();
    let parts = parts.map(|part| format!("{} {}", part.name, bytes(part.used_bytes)));
    let all = bytes(statistics.memory_bytes());
    let limit = statistics.memory_limit_bytes;
    let of = limit.map_or_else(String::new, |limit| format!(" of {}", bytes(limit)));
    format!("{all}{of}: {}", parts.collect::<Vec<_>>().join(", "))
}
