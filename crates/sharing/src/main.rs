//! `onrush-sharing`: see the library.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Args, Parser, Subcommand};
use onrush::Durability;
use onrush_sharing::{Bounds, MACHINES, SESSIONS_MAX, Sharing, Turns, count, insert};
use onrush_types::KeyStrategy;

/// Counts the cache lines that sessions take from each other, for each row that they insert.
#[derive(Parser)]
#[command(
    name = "onrush-sharing",
    version,
    after_help = "Examples:
  onrush-sharing count --key uuid-v4
  onrush-sharing count --key session-offset --sessions 128 --json
  onrush-sharing count --key identity --durable"
)]
struct Arguments {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Trace inserts under Valgrind and print what moved between processors.
    Count {
        #[command(flatten)]
        load: Load,
        /// Print everything as JSON.
        #[arg(long)]
        json: bool,
        /// How many lines of code to print.
        #[arg(long, value_name = "N", default_value_t = 25)]
        places: usize,
        /// Nanoseconds of a processor that a row takes with one session, as measured: prints what larger machines
        /// can reach at most.
        #[arg(long, value_name = "N")]
        row_ns: Option<f64>,
    },
    /// What `count` traces.
    #[command(hide = true)]
    Insert {
        #[command(flatten)]
        load: Load,
        /// Where the database is made.
        #[arg(long)]
        folder: PathBuf,
    },
}

#[derive(Args)]
struct Load {
    /// How keys are made.
    #[arg(long, default_value = "session-offset")]
    key: KeyStrategy,
    /// Commits wait for their sync, which sessions share.
    #[arg(long)]
    durable: bool,
    /// Sessions, each on a processor of its own.
    #[arg(long, value_name = "N", default_value_t = 24)]
    sessions: usize,
    /// Rows of each session before it is counted.
    #[arg(long, value_name = "N", default_value_t = 50)]
    warm_rows: usize,
    /// Rows of each session that are counted.
    #[arg(long, value_name = "N", default_value_t = 50)]
    rows: usize,
}

impl Load {
    fn turns(&self) -> Result<Turns> {
        ensure!(
            (1..=SESSIONS_MAX).contains(&self.sessions) && self.rows > 0,
            "--sessions is 1 to {SESSIONS_MAX}, --rows at least 1"
        );
        Ok(Turns {
            key: self.key,
            durability: if self.durable { Durability::Durable } else { Durability::Delayed },
            sessions: self.sessions,
            warm_rows: self.warm_rows,
            rows: self.rows,
        })
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("onrush-sharing: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(action: &Action) -> Result<()> {
    match action {
        Action::Insert { load, folder } => insert(&load.turns()?, folder),
        Action::Count { load, json, places, row_ns } => {
            let folder = tempfile::tempdir()?;
            let program = std::env::current_exe()?;
            let sharing = count(&program, &load.turns()?, &folder.path().join("database"))?;
            if *json {
                println!("{}", serde_json::to_string_pretty(&sharing)?);
            } else {
                print(&sharing, *places);
                row_ns.iter().for_each(|row_ns| print_bounds(&sharing, *row_ns));
            }
            Ok(())
        }
    }
}

fn print(sharing: &Sharing, places: usize) {
    println!(
        "{} sessions, {} rows; of each row:\n{:9.1} instructions\n{:9.2} lines that change their owner\n{:9.2} \
         lines that another session has written are read\n{:9.2} read-modify-writes of lines that several sessions \
         write\n{:9.2} moves of the line that moves most\n\n    moves writers  line",
        sharing.sessions,
        sharing.rows,
        sharing.instructions_per_row,
        sharing.owner_changes_per_row,
        sharing.fetches_per_row,
        sharing.shared_modifies_per_row,
        sharing.busiest_line_per_row
    );
    for line in sharing.lines.iter().take(places) {
        println!("{:9.2}{:8}  {}", line.moves_per_row, line.writers, line.code.join(", "));
    }
    println!("\n  changes   reads  code");
    for place in sharing.places.iter().take(places) {
        println!(
            "{:9.2}{:8.2}  {}",
            place.owner_changes_per_row, place.fetches_per_row, place.name
        );
    }
}

fn print_bounds(sharing: &Sharing, row_ns: f64) {
    println!("\nat most, in M rows/s: by all processors, by the busiest line");
    for machine in &MACHINES {
        let bounds = Bounds::of(sharing, row_ns, machine);
        println!(
            "{:9.1}{:8.1}  {}, {} cores, {} ns a move",
            bounds.processors / 1e6,
            bounds.busiest_line / 1e6,
            machine.name,
            machine.processors,
            machine.move_ns
        );
    }
}
