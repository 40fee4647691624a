//! Cuts the power again and again, until so many cuts are done or something is wrong.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use onrush_sim::cuts::{self, Budget};
use onrush_sim::errors;
use onrush_sim::summary::Summary;

/// Runs the engine on a disk in memory from a seed, cuts the power at its I/O boundaries, opens
/// what is left and compares it with what was acknowledged.
#[derive(Parser)]
struct Arguments {
    /// Power cuts to make.
    #[arg(long, default_value_t = 100_000)]
    cuts: u64,
    /// First seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seeds to run, whatever the number of cuts.
    #[arg(long)]
    seeds: Option<u64>,
    /// Images of each run.
    #[arg(long, default_value_t = 600)]
    images: u64,
    /// Instead of cutting the power, lets so many calls of each run fail.
    #[arg(long)]
    errors: Option<u64>,
    /// Plants a fault in the engine (needs the feature planted-faults).
    #[arg(long)]
    fault: Option<String>,
    /// Goes on after a violation.
    #[arg(long)]
    keep_going: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(fault) = &arguments.fault
        && !plant(fault)
    {
        eprintln!("there is no fault {fault}, or this build cannot plant any");
        return ExitCode::FAILURE;
    }
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}\n{}", std::backtrace::Backtrace::capture());
    }));
    let budget = Budget { images: arguments.images, ..Budget::default() };
    let mut summary = Summary::default();
    let started = Instant::now();
    let mut told = started;
    let mut failed = 0u32;
    let mut seed = arguments.seed;
    loop {
        let done = match arguments.seeds {
            Some(seeds) => seed - arguments.seed >= seeds,
            None => summary.cuts() >= arguments.cuts,
        };
        if done {
            break;
        }
        let outcome = match arguments.errors {
            Some(cases) => errors::fail_calls(seed, cases, &mut summary),
            None => cuts::simulate(seed, budget, &mut summary),
        };
        if let Err(violation) = outcome {
            failed += 1;
            println!("{}", violation.0);
            println!(
                "again: cargo run -p onrush-sim --release --bin simulate -- --seed {seed} \
                 --seeds 1 --images {}{}\n",
                arguments.images,
                arguments.fault.as_ref().map_or(String::new(), |fault| format!(" --fault {fault}"))
            );
            if !arguments.keep_going {
                break;
            }
        }
        seed += 1;
        if told.elapsed() > Duration::from_secs(5) {
            told = Instant::now();
            let cuts = summary.cuts();
            let rate = cuts as f64 / started.elapsed().as_secs_f64();
            eprintln!("{cuts} cuts, seed {seed}, {rate:.0} cuts/s, {failed} seeds failed");
        }
    }
    print!("{summary}");
    let rate = summary.cuts() as f64 / started.elapsed().as_secs_f64();
    println!("{rate:.0} cuts/s, {:.1} s", started.elapsed().as_secs_f64());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(feature = "planted-faults")]
fn plant(name: &str) -> bool {
    let found = onrush_sim::faults::ALL.into_iter().find(|fault| format!("{fault:?}") == name);
    found.map(onrush::plant).is_some()
}

#[cfg(not(feature = "planted-faults"))]
fn plant(_: &str) -> bool {
    false
}
