//! `onrush lab run singleton` and `onrush lab insert`: the classic load, one row per commit.

use clap::Args;
use onrush_measure::{Repeated, report, run_repeated};
use onrush_terminal::failure::{AlreadyTold, Outcome, usage_error};
use onrush_terminal::output;
use onrush_terminal::progress::LabProgress;

use crate::arguments::case::CaseArguments;

/// Many sessions insert one row per commit into the classic table; then all of it is verified
#[derive(Args)]
#[command(after_help = SINGLETON_EXAMPLES)]
pub struct SingletonArguments {
    #[command(flatten)]
    study: OfStudy,
    #[command(flatten)]
    case: CaseArguments,
}

/// Flags that make it a study elsewhere; here only so that the answer can say so.
#[derive(Args)]
struct OfStudy {
    #[arg(long, hide = true)]
    quick: bool,
    #[arg(long, hide = true)]
    target: Vec<String>,
    #[arg(long, hide = true)]
    set: Vec<String>,
    #[arg(long, hide = true)]
    out: Option<String>,
    #[arg(long, hide = true)]
    resume: bool,
}

impl OfStudy {
    fn is_given(&self) -> bool {
        let OfStudy { quick, target, set, out, resume } = self;
        *quick || *resume || out.is_some() || !target.is_empty() || !set.is_empty()
    }
}

const SINGLETON_EXAMPLES: &str = "\
Examples:
  onrush lab run singleton
  onrush lab run singleton --sessions 128 --driver tasks
  onrush lab run singleton --durability delayed --rows 48m --key uuid-v4
  onrush lab run singleton --dir /mnt/nvme/test --keep --json";

/// One measured load: the same flags and figures as `lab run singleton`, without the explanation
#[derive(Args)]
#[command(after_help = INSERT_EXAMPLES)]
pub struct InsertArguments {
    #[command(flatten)]
    case: CaseArguments,
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
    let case = &arguments.case;
    if arguments.study.is_given() {
        return Err(usage_error(
            "--quick, --target, --set, --out and --resume are flags of the study of this name, \
             Onrush beside baselines: cargo run --release -p onrush-lab -- run singleton --quick",
        ));
    }
    if !case.answer.json && !case.answer.quiet {
        println!(
            "The singleton experiment: every session inserts one row of defaults after another\n\
             into the classic table and commits it; then the database is opened again, and every\n\
             acknowledged row is looked for.\n"
        );
    }
    run(case, true)
}

/// Runs the load.
pub fn run_plain(arguments: &InsertArguments) -> Outcome {
    run(&arguments.case, false)
}

fn run(case: &CaseArguments, explained: bool) -> Outcome {
    let observer = LabProgress::new(case.answer.quiet);
    let repeated = run_repeated(&case.settings()?, case.repeats.unwrap_or(1), &observer)?;
    let result = &repeated.median;
    if case.answer.json {
        output::json(&repeated)?;
    } else {
        print(&repeated, explained)?;
    }
    for warning in &result.warnings {
        onrush_terminal::tell!("onrush: WARNING: {warning}");
    }
    match report::failure(result) {
        None => Ok(()),
        Some(failure) => {
            onrush_terminal::tell!("{failure}");
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
