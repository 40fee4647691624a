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
    match arguments.command {
        LabCommand::Run(RunArguments { experiment: Experiment::Singleton(arguments) }) => {
            singleton::run_explained(&arguments)
        }
        LabCommand::Insert(arguments) => singleton::run_plain(&arguments),
        LabCommand::Disk(arguments) => disk::run(&arguments),
    }
}
