//! `onrush repair`: what can be proven good, into a new database.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use indicatif::ProgressBar;
use onrush_check::CheckError;
use onrush_files::OsDisk;
use onrush_measure::units::rounded;
use onrush_repair::{Outcome as Repaired, RepairError, RepairOptions, RepairProgress, repair};
use onrush_terminal::arguments::answer::AnswerArguments;
use onrush_terminal::failure::{AlreadyTold, Outcome, usage_error};

use onrush_terminal::{output, progress};

/// Save what can be proven good of a damaged database into a new one, and list what is lost
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Repair {
    /// The damaged database's folder; nobody may have it open, and nothing in it is changed
    folder: PathBuf,
    /// Where to make the new database; must not exist
    #[arg(long, value_name = "NEW_FOLDER")]
    into: PathBuf,
    /// Only this table; may be given several times
    #[arg(long = "table", value_name = "TABLE")]
    tables: Vec<String>,
    #[command(flatten)]
    answer: AnswerArguments,
}

const EXAMPLES: &str = "\
Examples:
  onrush repair shop --into shop2
  onrush repair shop --into shop2 --table orders --table customers
  onrush repair shop --into shop2 --json | jq '.losses[] | {table, keys, invariant}'

Exit codes:
  0  nothing is lost: the new database has all rows
  1  the repair could not be done; remove the new folder, if there is one
  2  the command line makes no sense
  3  something is lost: the new database has the rest
  4  nothing could be salvaged: there is no new database

The numbers of losses are those of docs/check.md. The new database has been checked and counted.";

/// Repairs and prints.
pub fn run(arguments: &Repair) -> Outcome {
    let folder = std::path::absolute(&arguments.folder)?;
    let into = std::path::absolute(&arguments.into)?;
    let options = RepairOptions { tables: arguments.tables.clone(), ..RepairOptions::default() };
    let progress = RepairProgress::default();
    let quiet = arguments.answer.quiet || arguments.answer.json;
    let started = Instant::now();
    let show = |bar: &ProgressBar| {
        let rows = progress.rows();
        let rows_per_s = rows as f64 / started.elapsed().as_secs_f64().max(1e-9);
        bar.set_message(format!("repairing: {rows} rows, {} rows/s", rounded(rows_per_s)));
        bar.set_length(progress.read.total_bytes());
        bar.set_position(progress.read.done_bytes());
    };
    let repaired = progress::beside_bytes_bar(quiet, "repairing", show, || {
        repair(Arc::new(OsDisk::new()), &folder, &into, &options, &progress)
    });
    let report = repaired.map_err(|error| match error {
        RepairError::TargetExists { .. }
        | RepairError::TargetInside { .. }
        | RepairError::Check(CheckError::UnknownTable { .. }) => usage_error(error.to_string()),
        other => other.into(),
    })?;
    if arguments.answer.json {
        output::json(&report)?;
    } else {
        output::text(&format!("{report}\n"))?;
    }
    match report.outcome {
        Repaired::NothingLost => Ok(()),
        Repaired::SomethingLost => Err(AlreadyTold::Damage.into()),
        Repaired::NothingSalvaged => Err(AlreadyTold::NothingSaved.into()),
    }
}
