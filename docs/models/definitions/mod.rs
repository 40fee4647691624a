//! A bounded model of definitions: see `docs/models/README.md`.

#[macro_use]
#[path = "../common/plants.rs"]
mod plants;
#[path = "../common/random.rs"]
mod random;
#[path = "../common/schedule.rs"]
mod schedule;
#[path = "../common/shared.rs"]
mod shared;

mod client;
mod commit;
mod explore;
mod locks;
mod oracle;
mod plant;
mod recovery;
mod script;
mod statement;
mod storage;
mod transaction;
mod types;
mod world;

use std::ops::Range;
use std::time::Instant;

use explore::{Counts, directed_find, directed_runs, random_run};
use plant::{PLANTS, Plant};

/// The histories, by number, in which a fault of redo must be found, and the most schedules to it.
const BY_HISTORY: &[(Plant, &[usize])] =
    &[(Plant::RedoByName, &[0, 1]), (Plant::RedoBelowE, &[0, 1, 4, 7])];
const DIRECTED_WITHIN: u64 = 20_000;

const HELP: &str = "\
A bounded model of definitions, rows, checkpoints, crashes and recovery.

  definitions_model --runs 1000000            random runs, as many directed ones at most, every planted fault
  definitions_model --sound 10000             the same without the faults
  definitions_model --planted                 every planted fault, until it is found
  definitions_model --plant NAME              one of them, with the steps of the run that finds it
  definitions_model --seed 17                 one random run without a fault, with its steps

  --directed N      directed runs at most
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
    if let Some(name) = value("--plant") {
        return one_plant(name, first);
    }
    if let Some(seed) = number("--seed")? {
        return traced(Plant::None, seed);
    }
    let runs = number("--runs")?;
    if let Some(sound_runs) = number("--sound")?.or(runs) {
        sound(first..first + sound_runs, number("--directed")?.unwrap_or(sound_runs))?;
        return if runs.is_some() { planted(first) } else { Ok(()) };
    }
    if arguments.contains(&"--planted") {
        return planted(first);
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

fn planted(first: u64) -> Result<(), String> {
    let mut missed = Vec::new();
    for (plant, group, within, says) in PLANTS {
        match found(*plant, first..first + within) {
            Some((seed, what)) => {
                let runs = seed - first + 1;
                let what: String = what.chars().take(90).collect();
                println!("{group}: {plant:?} ({says}): run {runs} of {within}: {what}");
            }
            None => missed.push(format!("{plant:?} was not found in {within} runs")),
        }
    }
    // In each of these a name passes from one table to another while a checkpoint is taken.
    for (plant, histories) in BY_HISTORY {
        for history in *histories {
            match directed_find(*plant, *history, DIRECTED_WITHIN) {
                Err(_) => println!("redo: {plant:?}, by the written-down history {history}"),
                Ok(()) => missed.push(format!("{plant:?} was not found by history {history}")),
            }
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n")) }
}

fn one_plant(name: &str, first: u64) -> Result<(), String> {
    let known = PLANTS.iter().find(|(plant, ..)| format!("{plant:?}") == name);
    let (plant, _, within, _) = known.ok_or_else(|| format!("no fault is called {name}"))?;
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
