//! `onrush lab run singleton` and `onrush lab insert`: the classic load, one row per commit.

use std::path::PathBuf;

use clap::Args;
use onrush_lab::{Repeated, report, run_repeated};

use super::study::{self, StudyArguments};
use crate::arguments::cell::CellArguments;
use crate::failure::{AlreadyTold, Outcome, usage_error};
use crate::output;
use crate::progress::LabProgress;

/// Many sessions insert one row per commit into the classic table; then all of it is verified
#[derive(Args)]
#[command(after_help = SINGLETON_EXAMPLES)]
pub struct SingletonArguments {
    #[command(flatten)]
    study: OfStudy,
    #[command(flatten)]
    cell: CellArguments,
}

/// What makes it the study of the same name, Onrush beside the embedded rivals. The flags of the load
/// on Onrush alone do not go with it: a study's settings are given by `--set`.
#[derive(Args)]
#[command(next_help_heading = "The study of this name instead: Onrush beside the embedded rivals")]
struct OfStudy {
    /// Run the study in its small size
    #[arg(long, conflicts_with_all = OF_THE_LOAD)]
    quick: bool,
    /// Run the study, on this target only; give it several times for several
    #[arg(long = "target", value_name = "NAME", conflicts_with_all = OF_THE_LOAD)]
    targets: Vec<String>,
    /// Run the study, with a setting for all its cells, such as rows=1m; give it several times
    #[arg(long, value_name = "NAME=VALUE", conflicts_with_all = OF_THE_LOAD)]
    set: Vec<String>,
    /// Run the study, into this result file or folder
    #[arg(long, value_name = "PATH", conflicts_with_all = OF_THE_LOAD)]
    out: Option<PathBuf>,
    /// Continue the result file of the study where it was interrupted
    #[arg(long, conflicts_with_all = OF_THE_LOAD)]
    resume: bool,
}

/// The flags that say what the load on Onrush alone does.
const OF_THE_LOAD: &[&str] = &[
    "rows",
    "sessions",
    "key",
    "durability",
    "rows_per_commit",
    "driver",
    "preload",
    "keep",
    "data_folders",
    "data_files",
    "log_folder",
    "no_verify",
    "leave",
    "EngineArguments",
];

impl SingletonArguments {
    /// The study, if that is what is asked for.
    fn study(&self) -> anyhow::Result<Option<StudyArguments>> {
        let OfStudy { quick, targets, set, out, resume } = &self.study;
        let is_load = targets.is_empty() && set.is_empty() && out.is_none();
        if is_load && !quick && !resume {
            return Ok(None);
        }
        let cell = &self.cell;
        let repeats = cell.repeats.map(|given| match u8::try_from(given) {
            Ok(repeats @ 1..=100) => Ok(repeats),
            _ => Err(usage_error(format!("--repeats is {given}; a study takes 1 to 100"))),
        });
        Ok(Some(StudyArguments {
            study: Some("singleton".to_owned()),
            quick: *quick,
            set: set.clone(),
            repeats: repeats.transpose()?,
            targets: targets.clone(),
            dir: cell.dir.clone().unwrap_or_else(|| PathBuf::from(".")),
            out: out.clone(),
            resume: *resume,
            json: cell.json,
            quiet: cell.quiet,
            metrics: cell.metrics.clone(),
        }))
    }
}

const SINGLETON_EXAMPLES: &str = "\
Examples:
  onrush lab run singleton
  onrush lab run singleton --sessions 128 --driver tasks
  onrush lab run singleton --durability delayed --rows 48m --key uuid-v4
  onrush lab run singleton --dir /mnt/nvme/test --keep --json
  onrush lab run singleton --quick --target onrush --target sqlite --set sessions=8";

/// One measured load: the same flags and figures as `lab run singleton`, without the explanation
#[derive(Args)]
#[command(after_help = INSERT_EXAMPLES)]
pub struct InsertArguments {
    #[command(flatten)]
    cell: CellArguments,
}

const INSERT_EXAMPLES: &str = "\
Examples:
  onrush lab insert --rows 1m --key identity --sequential-keys shared-edge
  onrush lab insert --rows 1m --key identity --json
  onrush lab insert --rows 10m --durability delayed --rows-per-commit 10 --repeats 5
  onrush lab insert --rows 48m --durability delayed --metrics 127.0.0.1:9187
  onrush lab insert --rows 4m --data-folder /mnt/a --data-folder /mnt/b --log-folder /mnt/c";

/// Runs the load and explains it.
pub fn run_explained(arguments: &SingletonArguments) -> Outcome {
    let cell = &arguments.cell;
    if let Some(study) = arguments.study()? {
        return study::run(&study);
    }
    if !cell.json && !cell.quiet {
        println!(
            "The singleton experiment: every session inserts one row of defaults after another\n\
             into the classic table and commits it; then the database is opened again, and every\n\
             acknowledged row is looked for.\n"
        );
    }
    run(cell, true)
}

/// Runs the load.
pub fn run_plain(arguments: &InsertArguments) -> Outcome {
    run(&arguments.cell, false)
}

fn run(cell: &CellArguments, explained: bool) -> Outcome {
    let observer = LabProgress::new(cell.quiet);
    let repeated = run_repeated(&cell.settings()?, cell.repeats.unwrap_or(1), &observer)?;
    let result = &repeated.median;
    if cell.json {
        output::json(&repeated)?;
    } else {
        print(&repeated, explained)?;
    }
    for warning in &result.warnings {
        eprintln!("onrush: WARNING: {warning}");
    }
    match report::failure(result) {
        None => Ok(()),
        Some(failure) => {
            eprintln!("{failure}");
            Err(AlreadyTold::NotDone.into())
        }
    }
}

fn print(repeated: &Repeated, explained: bool) -> Outcome {
    let result = &repeated.median;
    let mut text = report::table(result);
    if repeated.repeats > 1 {
        text += "\n";
        text += &report::repeats(repeated);
    }
    if explained {
        text += "\nWhat was waited for\n\n";
        text += &report::waits(result);
        text += "\n";
        text += &report::explanation(result);
    }
    output::text(&text)
}
