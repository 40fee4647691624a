//! `onrush lab`: experiments with Onrush alone on this machine. Whatever has baselines in it is another command,
//! `onrush-lab`, so that none of them is linked into this one.

mod disk;
mod singleton;

use std::ffi::OsString;

use clap::{Args, Subcommand};
use onrush_terminal::failure::{Outcome, usage_error};
use onrush_terminal::interruption::clean_up_when_interrupted;

/// Measure Onrush and this machine
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct LabArguments {
    #[command(subcommand)]
    command: LabCommand,
}

const EXAMPLES: &str = "\
Examples:
  onrush lab disk                               what does this disk allow?
  onrush lab run singleton                      the classic load, and what held it back
  onrush lab insert --rows 1m --json            the same load, its figures only

Studies beside baselines are a command of their own: cargo run --release -p onrush-lab -- --help";

#[derive(Subcommand)]
enum LabCommand {
    Run(RunArguments),
    Insert(Box<singleton::InsertArguments>),
    Disk(disk::DiskArguments),
    #[command(external_subcommand)]
    Elsewhere(Vec<OsString>),
}

/// Run an experiment and explain the result
#[derive(Args)]
#[command(after_help = RUN_EXAMPLES)]
struct RunArguments {
    #[command(subcommand)]
    experiment: Experiment,
}

const RUN_EXAMPLES: &str = "\
Examples:
  onrush lab run singleton
  onrush lab run singleton --sessions 128 --driver tasks";

#[derive(Subcommand)]
enum Experiment {
    Singleton(Box<singleton::SingletonArguments>),
    #[command(external_subcommand)]
    Elsewhere(Vec<OsString>),
}

/// Runs `onrush lab ...`.
pub fn run(arguments: LabArguments) -> Outcome {
    clean_up_when_interrupted(|| {
        onrush_measure::remove_temporary_folders();
        onrush_terminal::tell("\nonrush: interrupted");
    });
    match arguments.command {
        LabCommand::Run(run) => match run.experiment {
            Experiment::Singleton(arguments) => singleton::run_explained(&arguments),
            Experiment::Elsewhere(words) => elsewhere(&["run"], &words),
        },
        LabCommand::Insert(arguments) => singleton::run_plain(&arguments),
        LabCommand::Disk(arguments) => disk::run(&arguments),
        LabCommand::Elsewhere(words) => elsewhere(&[], &words),
    }
}

/// What was asked for is no experiment of this command: names the one that has studies, and how to run it.
fn elsewhere(before: &[&str], words: &[OsString]) -> Outcome {
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    let given: Vec<String> = before.iter().map(|word| (*word).to_owned()).chain(words).collect();
    let given = given.join(" ");
    Err(usage_error(format!(
        "`lab {given}` is not in this command, which has `lab run singleton`, `lab insert` and `lab disk`; studies \
         beside baselines, their reports and advice are in onrush-lab: \
         cargo run --release -p onrush-lab -- {given}"
    )))
}
