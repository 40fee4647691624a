//! `onrush lab`: experiments on this machine.

mod disk;
mod singleton;

use clap::{Args, Subcommand};

use crate::failure::Outcome;

/// Measure Onrush and this machine
#[derive(Args)]
pub struct LabArguments {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand)]
enum LabCommand {
    Run(RunArguments),
    Insert(singleton::InsertArguments),
    Disk(disk::DiskArguments),
}

/// Run an experiment and explain the result
#[derive(Args)]
struct RunArguments {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    Singleton(singleton::SingletonArguments),
}

/// Runs `onrush lab ...`.
pub fn run(arguments: LabArguments) -> Outcome {
    clean_up_when_interrupted();
    match arguments.command {
        LabCommand::Run(RunArguments { experiment: Experiment::Singleton(arguments) }) => {
            singleton::run_explained(&arguments)
        }
        LabCommand::Insert(arguments) => singleton::run_plain(&arguments),
        LabCommand::Disk(arguments) => disk::run(&arguments),
    }
}

/// An interrupted measurement leaves no database behind. The process ends here, engine and all: what
/// it had acknowledged goes with its files.
fn clean_up_when_interrupted() {
    const INTERRUPTED: i32 = 130;
    let handler = || {
        onrush_lab::remove_temporary_folders();
        std::process::exit(INTERRUPTED);
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        eprintln!("onrush: warning: an interruption will leave files behind: {error}");
    }
}
