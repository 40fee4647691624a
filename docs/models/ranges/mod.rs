//! A bounded model of cold key ranges: see `docs/models/README.md`.

#[macro_use]
#[path = "../common/plants.rs"]
mod plants;
#[path = "../common/random.rs"]
mod random;
#[path = "../common/schedule.rs"]
mod schedule;
#[path = "../common/shared.rs"]
mod shared;

mod build;
mod convert;
mod counts;
mod disk;
mod entries;
mod explore;
mod flush;
mod fresh;
mod install;
mod large;
mod leaf;
mod locate;
mod merge;
mod oracle;
mod plant;
mod proof;
mod reader;
mod recovery;
mod script;
mod session;
mod status;
mod stock;
mod sweep;
mod types;
mod world;

use std::num::NonZero;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{available_parallelism, scope};
use std::time::Instant;

use counts::Counts;
use explore::{directed_runs, random_run};
use plant::{PLANTS, Plant};

/// Runs in which a fault that is harmless must find nothing.
const HARMLESS_RUNS: u64 = 5_000;

const HELP: &str = "\
A bounded model of cold key ranges: flushes, merges, splits, checkpoints, crashes and blind redo.

  ranges_model --runs 1000000            random runs, as many directed ones at most, every planted fault
  ranges_model --sound 10000             the same without the faults
  ranges_model --planted                 every planted fault, until it is found
  ranges_model --plant NAME              one of them, with the steps of the run that finds it
  ranges_model --seed 17                 one random run without a fault, with its steps

  --directed N      directed runs at most
  --within N        runs in which each planted fault may be found, instead of its own number
  --first-seed N    the seed of the first random run, 1 unless it is said";

/// Does what the command line says; an error is what was found, or what was not.
pub(crate) fn command(arguments: &[&str]) -> Result<(), String> {
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| *argument == name)?;
        arguments.get(at + 1).copied()
    };
    let number = |name: &str| {
        let number = value(name).map(str::parse::<u64>).transpose();
        number.map_err(|_| format!("{name} takes a number\n\n{HELP}"))
    };
    let first = number("--first-seed")?.unwrap_or(1);
    let within = number("--within")?;
    if let Some(name) = value("--plant") {
        return one_plant(name, first, within);
    }
    if let Some(seed) = number("--seed")? {
        return traced(Plant::None, seed);
    }
    let runs = number("--runs")?;
    if let Some(sound_runs) = number("--sound")?.or(runs) {
        sound(first..first + sound_runs, number("--directed")?.unwrap_or(sound_runs))?;
        return if runs.is_some() { planted(first, within) } else { Ok(()) };
    }
    if arguments.contains(&"--planted") {
        return planted(first, within);
    }
    Err(HELP.to_owned())
}

fn sound(seeds: Range<u64>, directed: u64) -> Result<(), String> {
    let (began, mut counts) = (Instant::now(), Counts::default());
    for seed in seeds {
        random_run(Plant::None, seed, false, &mut counts)
            .map_err(|found| format!("random run {seed}: {}", found.what))?;
    }
    println!("random: {counts}, {:.1} s: sound", began.elapsed().as_secs_f64());
    let (began, mut counts) = (Instant::now(), Counts::default());
    directed_runs(Plant::None, directed, &mut counts)
        .map_err(|found| format!("directed run: {}", found.what))?;
    println!("directed: {counts}, {:.1} s: sound", began.elapsed().as_secs_f64());
    Ok(())
}

/// The run that finds a fault, of so many, and what it found.
fn found(plant: Plant, seeds: Range<u64>) -> Option<(u64, String)> {
    let mut counts = Counts::default();
    seeds.clone().find_map(|seed| {
        let found = random_run(plant, seed, false, &mut counts).err()?;
        Some((seed, found.what))
    })
}

/// The run that finds each fault, in the order of the list; several are looked for at once.
fn found_of_all(first: u64, limit: Option<u64>) -> Vec<Option<(u64, String)>> {
    let results: Vec<OnceLock<Option<(u64, String)>>> =
        PLANTS.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let look = || {
        while let Some(at) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < PLANTS.len())
        {
            let (plant, _, within, _) = PLANTS[at];
            let runs = limit.unwrap_or(own_limit(within));
            results[at].get_or_init(|| found(plant, first..first + runs));
        }
    };
    let threads = available_parallelism().map_or(1, NonZero::get);
    scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(look))));
    results.into_iter().map(|result| result.into_inner().flatten()).collect()
}

fn own_limit(within: u64) -> u64 {
    if within == 0 { HARMLESS_RUNS } else { within }
}

fn planted(first: u64, limit: Option<u64>) -> Result<(), String> {
    let mut missed = Vec::new();
    let all = found_of_all(first, limit);
    for ((plant, group, within, says), found) in PLANTS.iter().zip(all) {
        let is_harmless = *within == 0;
        let within = limit.unwrap_or(own_limit(*within));
        match found {
            Some((seed, what)) => {
                let runs = seed - first + 1;
                let what: String = what.chars().take(90).collect();
                println!("{group}: {plant:?} ({says}): run {runs} of {within}: {what}");
                if is_harmless {
                    missed.push(format!("{plant:?} was thought to be harmless: {what}"));
                }
            }
            None if is_harmless => {
                println!("{group}: {plant:?} ({says}): nothing in {within} runs")
            }
            None => missed.push(format!("{plant:?} was not found in {within} runs")),
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n")) }
}

fn one_plant(name: &str, first: u64, limit: Option<u64>) -> Result<(), String> {
    let known = PLANTS.iter().find(|(plant, ..)| format!("{plant:?}") == name);
    let (plant, _, within, _) = known.ok_or_else(|| format!("no fault is called {name}"))?;
    let within = limit.unwrap_or(*within);
    let missed = || format!("{plant:?} was not found in {within} runs");
    let (seed, _) = found(*plant, first..first + within).ok_or_else(missed)?;
    traced(*plant, seed)
}

fn traced(plant: Plant, seed: u64) -> Result<(), String> {
    let Err(found) = random_run(plant, seed, true, &mut Counts::default()) else {
        println!("run {seed}: sound");
        return Ok(());
    };
    found.trace.iter().for_each(|line| println!("{line}"));
    Err(format!("run {seed}: {}", found.what))
}
