//! `onrush check`: is everything that is stored sound?

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use indicatif::ProgressBar;
use onrush_check::{CheckError, CheckOptions, CheckReport, Progress, check};
use onrush_files::OsDisk;
use onrush_terminal::arguments::answer::AnswerArguments;
use onrush_terminal::failure::{AlreadyTold, Outcome, usage_error};

use super::import_mark::unfinished;
use onrush_terminal::{output, progress};

/// Check everything that is stored, with decoders of its own
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Check {
    /// The database's folder; nobody may have it open
    folder: PathBuf,
    /// Threads that check [default: one a processor]
    #[arg(long, value_name = "COUNT")]
    dop: Option<usize>,
    /// Checksums and structure only: do not look at the rows
    #[arg(long)]
    physical_only: bool,
    /// Read each data file from front to back, one read at a time (as trace flag 2549 elsewhere)
    #[arg(long)]
    read_stream_per_file: bool,
    /// All tables at once, in the order of the disk, with more memory (as trace flag 2562 elsewhere)
    #[arg(long)]
    one_batch: bool,
    /// Only the rows of this table; superblock, catalogue and log all the same
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,
    /// Give up after so many findings
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    max_errors: usize,
    /// Read the device, past the system's cache
    #[arg(long)]
    direct: bool,
    #[command(flatten)]
    answer: AnswerArguments,
}

const EXAMPLES: &str = "\
Examples:
  onrush check shop
  onrush check shop --physical-only --direct        as a scrub: every checksum, from the device
  onrush check shop --table orders --json | jq .findings
  onrush check shop --dop 8 --read-stream-per-file --one-batch

Exit codes:
  0  everything was checked, and it is sound; there may be warnings
  1  the check could not be done, or not wholly
  2  the command line makes no sense
  3  there is damage

Each finding has a number; docs/check.md lists what they mean and what to do. Nothing is written.";

/// Checks and prints.
pub fn run(arguments: &Check) -> Outcome {
    let defaults = CheckOptions::default();
    let options = CheckOptions {
        dop: arguments.dop.unwrap_or(defaults.dop),
        physical_only: arguments.physical_only,
        read_stream_per_file: arguments.read_stream_per_file,
        one_batch: arguments.one_batch,
        table: arguments.table.clone(),
        max_errors: arguments.max_errors,
    };
    let report = checked(arguments, &options)?;
    if let Some(import) = unfinished(&arguments.folder) {
        onrush_terminal::tell!("onrush: {import}");
    }
    if arguments.answer.json {
        output::json(&report)?;
    } else {
        output::text(&format!("{report}\n"))?;
    }
    match (report.damage(), report.complete) {
        (0, true) => Ok(()),
        (0, false) => Err(AlreadyTold::NotDone.into()),
        _ => Err(AlreadyTold::Damage.into()),
    }
}

fn checked(arguments: &Check, options: &CheckOptions) -> anyhow::Result<CheckReport> {
    let disk = if arguments.direct { OsDisk::new() } else { OsDisk::buffered() };
    let folder = std::path::absolute(&arguments.folder)?;
    let progress = Progress::default();
    let quiet = arguments.answer.quiet || arguments.answer.json;
    let show = |bar: &ProgressBar| {
        bar.set_length(progress.total_bytes());
        bar.set_position(progress.done_bytes());
    };
    let checked = progress::beside_bytes_bar(quiet, "checking", show, || {
        check(Arc::new(disk), &folder, options, &progress)
    });
    checked.map_err(|error| match error {
        CheckError::UnknownTable { .. } | CheckError::BadOption(_) => {
            usage_error(error.to_string())
        }
        other => other.into(),
    })
}
