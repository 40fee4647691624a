//! `prove-wire`: rounds of the whole server on a disk that loses power, until enough is done or something is wrong.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use onrush::{Database, Options};
use onrush_prove_wire::cuts::Budget;
use onrush_prove_wire::kill::Killing;
use onrush_prove_wire::kinds::Kinds;
use onrush_prove_wire::round::{Plan, failing_call, last_change};
use onrush_prove_wire::summary::Summary;
use onrush_prove_wire::{lists, prove};
use onrush_server::{Server, ServerOptions};

/// Runs the whole server on a disk in memory, with clients that keep a record of their own, cuts the power at its
/// boundaries, starts the server on what is left and compares.
#[derive(Parser)]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Rounds; with `--seed` alone it is one.
    #[arg(long)]
    rounds: Option<u64>,
    /// No round begins after so long.
    #[arg(long)]
    seconds: Option<u64>,
    /// Cuts in all, after which no round begins.
    #[arg(long)]
    cuts: Option<u64>,
    /// Cuts of each round.
    #[arg(long, default_value_t = 400)]
    round_cuts: u64,
    /// What clients may do: `all`, words with commas, or words with `-` in front to leave these out.
    #[arg(long, default_value = "all", allow_hyphen_values = true)]
    kinds: String,
    /// In each round a call of the disk fails: the disk is full or broken, once or for ever.
    #[arg(long)]
    failing_disk: bool,
    /// In each round the disk takes no changes any more from some call on.
    #[arg(long, conflicts_with = "failing_disk")]
    read_only_disk: bool,
    /// The disk confirms syncs and does not do them: what was acknowledged may be lost, but what is there is one of the
    /// states that were, or is refused as damaged.
    #[arg(long, conflicts_with_all = ["failing_disk", "read_only_disk"])]
    lying_disk: bool,
    /// Plants a fault in engine, log or server (needs the feature planted-faults).
    #[arg(long)]
    fault: Option<String>,
    /// Runs crowds of transactions on lists instead, and looks for cycles among them.
    #[arg(long)]
    lists: bool,
    /// Kills so many servers in processes of their own instead, on a real disk.
    #[arg(long)]
    kill: Option<u64>,
    /// The `onrush` that is killed; none: a process of this program with the same server in it.
    #[arg(long)]
    server: Option<PathBuf>,
    /// Serves the database in a folder at a socket until it is killed.
    #[arg(long, num_args = 2, hide = true)]
    serve: Option<Vec<PathBuf>>,
    /// Stops at the first violation.
    #[arg(long)]
    stop: bool,
    /// Prints the counts as JSON.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Which disk a round has, as it is written on the command line.
    fn disk(&self) -> &'static str {
        match (self.failing_disk, self.read_only_disk, self.lying_disk) {
            (true, _, _) => " --failing-disk",
            (_, true, _) => " --read-only-disk",
            (_, _, true) => " --lying-disk",
            _ => "",
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some([folder, socket]) = arguments.serve.as_deref() {
        return serve(folder, socket);
    }
    let kinds = match Kinds::read(&arguments.kinds) {
        Ok(kinds) => kinds,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(fault) = &arguments.fault
        && !onrush_sim::plant(fault)
    {
        eprintln!("there is no fault {fault}, or this build cannot plant any");
        return ExitCode::FAILURE;
    }
    if let Some(kills) = arguments.kill {
        return kill(&arguments, kinds, kills);
    }
    let is_alone = arguments.seconds.is_none() && arguments.cuts.is_none();
    let rounds = arguments.rounds.unwrap_or(if is_alone { 1 } else { u64::MAX });
    let begun = Instant::now();
    let mut told = begun;
    let mut summary = Summary::default();
    std::panic::set_hook(Box::new(|_| {}));
    for seed in (arguments.seed..).take(usize::try_from(rounds).unwrap_or(usize::MAX)) {
        let is_late = arguments.seconds.is_some_and(|most| begun.elapsed().as_secs() >= most);
        let is_enough = arguments.cuts.is_some_and(|most| summary.cuts + summary.nested >= most);
        if is_late || is_enough || (arguments.stop && summary.failed > 0) {
            break;
        }
        let budget = Budget { cuts: arguments.round_cuts, ..Budget::default() };
        let fault = match (arguments.failing_disk, arguments.read_only_disk) {
            (true, _) => Some(failing_call(seed)),
            (_, true) => Some(last_change(seed)),
            _ => None,
        };
        let plan = Plan { fault, is_lying: arguments.lying_disk, ..Plan::new(seed, kinds) };
        let outcome = match arguments.lists {
            true => {
                let outcome = lists::prove(seed, arguments.round_cuts, &mut summary);
                summary.failed += u64::from(outcome.is_err());
                outcome
            }
            false => prove(plan, budget, &mut summary),
        };
        if let Err(violation) = outcome {
            println!("seed {seed}: {}", violation.0);
            let disk = arguments.disk();
            println!("again: cargo xtask prove-wire --seed {seed} --kinds {kinds}{disk}\n");
        }
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            eprintln!("{:.0} s, seed {seed}: {summary}", begun.elapsed().as_secs_f64());
        }
    }
    match arguments.json {
        true => println!("{}", summary.json()),
        false => println!("{summary}, {:.1} s", begun.elapsed().as_secs_f64()),
    }
    if summary.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What `onrush serve` does, with a small database.
fn serve(folder: &Path, socket: &Path) -> ExitCode {
    let options = ServerOptions {
        listen: None,
        unix_socket: Some(socket.to_owned()),
        threads: 2,
        ..ServerOptions::default()
    };
    let database = match Database::open_or_create(folder, Options::small()) {
        Ok(database) => database,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match Server::start(database, options) {
        Ok(_server) => loop {
            std::thread::park();
        },
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn kill(arguments: &Arguments, kinds: Kinds, kills: u64) -> ExitCode {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let own = std::env::current_exe().unwrap_or_else(|_| "onrush-prove-wire".into());
    let (program, first, between) = match &arguments.server {
        Some(server) => (
            server.clone(),
            words(&["serve"]),
            words(&["--listen", "127.0.0.1:0", "--unix-socket"]),
        ),
        None => (own, words(&["--serve"]), Vec::new()),
    };
    let killing = Killing { program, arguments: first, between, kinds, seed: arguments.seed };
    let begun = Instant::now();
    let until = arguments.seconds.map(|seconds| begun + Duration::from_secs(seconds));
    let mut summary = Summary::default();
    let tell = |summary: &Summary| eprintln!("{:.0} s: {summary}", begun.elapsed().as_secs_f64());
    let outcome = killing.run(kills, until, &mut summary, tell);
    summary.failed = u64::from(outcome.is_err());
    match arguments.json {
        true => println!("{}", summary.json()),
        false => println!("{summary}, {:.1} s", begun.elapsed().as_secs_f64()),
    }
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(violation) => {
            println!("{}", violation.0);
            ExitCode::FAILURE
        }
    }
}
