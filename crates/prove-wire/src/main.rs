//! `prove-wire`: rounds of the whole server on a disk that loses power, until enough is done or something is wrong.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use onrush_prove_wire::cuts::Budget;
use onrush_prove_wire::kinds::Kinds;
use onrush_prove_wire::prove;
use onrush_prove_wire::round::Plan;
use onrush_prove_wire::summary::Summary;

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
    /// What clients may do: `all`, `kept` (what the server keeps its promises for today), words with commas, or words
    /// with `-` in front to leave these out.
    #[arg(long, default_value = "all", allow_hyphen_values = true)]
    kinds: String,
    /// Stops at the first violation.
    #[arg(long)]
    stop: bool,
    /// Prints the counts as JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let kinds = match Kinds::read(&arguments.kinds) {
        Ok(kinds) => kinds,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
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
        let plan = Plan { seed, kinds, fault: None };
        if let Err(violation) = prove(plan, budget, &mut summary) {
            println!("seed {seed}: {}", violation.0);
            println!("again: cargo xtask prove-wire --seed {seed} --kinds {kinds}\n");
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
