//! Runs the readers on inputs made from the kept ones, or writes the first ones.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use onrush_fuzz::{TARGETS, Target, corpus, kept, mutate, target};
use onrush_sim::Random;

/// Reads inputs made from the kept ones, and stops where one is not read as it should.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Reads made inputs for a while. The last one is left in the folder for temporary
    /// files: one that panics, or is never done.
    Run {
        /// The reader; all of them unless given.
        name: Option<String>,
        /// For how long, each reader.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// For the inputs.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Reads one file.
    Read {
        /// The reader.
        name: String,
        /// The input.
        file: std::path::PathBuf,
    },
    /// Writes the inputs to begin with into fuzz/corpus, where they are missing.
    Seeds,
}

fn main() -> Result<()> {
    let known = |name: &str| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        target(name).with_context(|| format!("there is no reader {name}; there are {names:?}"))
    };
    match Arguments::parse().what {
        What::Run { name: Some(name), seconds, seed } => run(&known(&name)?, seconds, seed),
        What::Run { name: None, seconds, seed } => {
            TARGETS.iter().try_for_each(|target| run(target, seconds, seed))
        }
        What::Read { name, file } => {
            (known(&name)?.read)(&std::fs::read(file)?);
            Ok(())
        }
        What::Seeds => TARGETS.iter().try_for_each(write_seeds),
    }
}

fn run(target: &Target, seconds: u64, seed: u64) -> Result<()> {
    let inputs: Vec<Vec<u8>> = kept(target)?.into_iter().map(|(_, input)| input).collect();
    let mut random = Random::new(seed);
    let (began, mut count) = (Instant::now(), 0u64);
    let last = std::env::temp_dir().join(format!("onrush-fuzz-{}", target.name));
    while began.elapsed() < Duration::from_secs(seconds) {
        let input = mutate::mutated(&inputs, &mut random);
        // Before it is read, for one that is never done.
        std::fs::write(&last, &input)?;
        if std::panic::catch_unwind(|| (target.read)(&input)).is_err() {
            anyhow::bail!("{}: input {count} of seed {seed} is in {}", target.name, last.display());
        }
        count += 1;
    }
    println!("{:18} {count:>8} inputs in {seconds} s", target.name);
    Ok(())
}

fn write_seeds(target: &Target) -> Result<()> {
    let folder = corpus(target);
    std::fs::create_dir_all(&folder)?;
    for (name, input) in (target.seeds)() {
        let path = folder.join(name);
        if !path.exists() {
            std::fs::write(path, input)?;
        }
    }
    Ok(())
}
