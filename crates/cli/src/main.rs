//! The `onrush` command: databases by hand, import and export, and the laboratory.
//!
//! One file a subcommand, in `commands/`; `arguments/` holds the flags that several share. A
//! command gets its parsed flags and returns nothing or an error; [`failure`] turns the error into
//! a message with cause and cure, and into the exit code: 0 done, 1 not done, 2 wrong usage, 3 damage
//! or loss, 4 nothing left to save.

#![deny(
    clippy::print_stderr,
    reason = "it panics where standard error is closed; see onrush_terminal::tell"
)]

mod arguments;
mod column_spec;
mod commands;
mod row_output;
mod values;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use onrush_terminal::failure;

/// A storage engine for concurrent singleton inserts.
#[derive(Parser)]
#[command(name = "onrush", version, about, after_help = EXAMPLES, max_term_width = 100)]
struct Onrush {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  onrush lab run singleton                  how fast is Onrush on this machine?
  onrush lab disk                           what does this disk allow?
  onrush top shop                           what do sessions wait for right now?
  onrush create shop --table orders --column 'id bigint default identity' \\
         --column 'at timestamp default now' --column 'note varchar(40)' --key id
  onrush serve shop                         for psql and every other PostgreSQL client
  onrush insert shop orders note='first order'
  onrush get shop orders 1
  onrush import shop orders orders.csv
  onrush check shop                         is everything that is stored sound?
  onrush backup shop --into monday          a checked copy; `onrush restore` makes it a database
  onrush repair shop --into shop2           save what is sound into a new database
  onrush export shop orders --format parquet --output orders.parquet

Every command has its own --help.";

#[derive(Subcommand)]
enum Command {
    Lab(Box<commands::lab::LabArguments>),
    #[cfg(feature = "serve")]
    Serve(Box<commands::serve::Serve>),
    /// Serve a database to PostgreSQL clients; not in this build
    #[cfg(not(feature = "serve"))]
    Serve {
        #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
        _given: Vec<OsString>,
    },
    Create(commands::create::Create),
    Insert(commands::insert::Insert),
    Get(commands::get::Get),
    Scan(commands::scan::Scan),
    Count(commands::count::Count),
    Import(commands::import::Import),
    Export(commands::export::Export),
    Tables(commands::tables::Tables),
    Describe(commands::describe::Describe),
    Truncate(commands::tables::Truncate),
    Drop(commands::tables::DropTable),
    Checkpoint(commands::tables::Checkpoint),
    Check(commands::check::Check),
    Backup(commands::backup::Backup),
    Restore(commands::backup::Restore),
    Repair(commands::repair::Repair),
    Stats(commands::stats::Stats),
    Top(commands::top::Top),
}

fn main() -> ExitCode {
    onrush_terminal::heap::give_large_pieces_back();
    match command() {
        Ok(command) => failure::report(run(command)),
        Err(error) => failure::report(Err(error)),
    }
}

/// The command that was typed, with what stands in its file of settings.
fn command() -> anyhow::Result<Command> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let command = Onrush::parse_from(&words).command;
    #[cfg(feature = "serve")]
    if let Command::Serve(serve) = &command
        && let Some(file) = &serve.config
    {
        let flags =
            <commands::serve::Serve as clap::Args>::augment_args(clap::Command::new("serve"));
        return Ok(Onrush::parse_from(arguments::config::with_file(&words, &flags, file)?).command);
    }
    Ok(command)
}

fn run(command: Command) -> failure::Outcome {
    match command {
        Command::Lab(arguments) => commands::lab::run(*arguments),
        #[cfg(feature = "serve")]
        Command::Serve(arguments) => commands::serve::run(&arguments),
        #[cfg(not(feature = "serve"))]
        Command::Serve { .. } => Err(failure::usage_error(
            "this build has no server: build it without --no-default-features",
        )),
        Command::Create(arguments) => commands::create::run(&arguments),
        Command::Insert(arguments) => commands::insert::run(&arguments),
        Command::Get(arguments) => commands::get::run(&arguments),
        Command::Scan(arguments) => commands::scan::run(&arguments),
        Command::Count(arguments) => commands::count::run(&arguments),
        Command::Import(arguments) => commands::import::run(&arguments),
        Command::Export(arguments) => commands::export::run(&arguments),
        Command::Tables(arguments) => commands::tables::run(&arguments),
        Command::Describe(arguments) => commands::describe::run(&arguments),
        Command::Truncate(arguments) => commands::tables::truncate(&arguments),
        Command::Drop(arguments) => commands::tables::drop_table(&arguments),
        Command::Checkpoint(arguments) => commands::tables::checkpoint(&arguments),
        Command::Check(arguments) => commands::check::run(&arguments),
        Command::Backup(arguments) => commands::backup::backup(&arguments),
        Command::Restore(arguments) => commands::backup::restored(&arguments),
        Command::Repair(arguments) => commands::repair::run(&arguments),
        Command::Stats(arguments) => commands::stats::run(&arguments),
        Command::Top(arguments) => commands::top::run(&arguments),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_consistent() {
        super::Onrush::command().debug_assert();
    }
}
