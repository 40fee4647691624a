//! Cuts the power again and again, until so many cuts are done or something is wrong.

use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use onrush_sim::campaign::{Campaign, Outcome};
use onrush_sim::cuts::{self, Budget};
use onrush_sim::{errors, lists, plant, rot, torn, window};

/// Runs the engine on a disk in memory from a seed, cuts the power at its I/O boundaries, opens
/// what is left and compares it with what was acknowledged.
#[derive(Parser)]
struct Arguments {
    /// What is done to each run.
    #[arg(value_enum, default_value_t = What::Cuts)]
    what: What,
    /// Power cuts to make.
    #[arg(long, default_value_t = 100_000)]
    cuts: u64,
    /// First seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seeds to run, whatever the number of cuts.
    #[arg(long)]
    seeds: Option<u64>,
    /// Images of each run, or calls that fail in it, or (window) images of each boundary.
    #[arg(long)]
    images: Option<u64>,
    /// Cuts the power at each boundary of each run, at least once.
    #[arg(long)]
    every_boundary: bool,
    /// Plants a fault in the engine (needs the feature planted-faults).
    #[arg(long)]
    fault: Option<String>,
    /// Threads; the seeds are the same with any number of them.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Goes on after a violation.
    #[arg(long)]
    keep_going: bool,
    /// Series of seeds for each fault.
    #[arg(long, default_value_t = 3)]
    series: u64,
    /// Prints each kind of boundary and in how many modes it was cut.
    #[arg(long)]
    kinds: bool,
}

/// What is done to each run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum What {
    /// The power is cut.
    Cuts,
    /// The power is cut in recoveries, and in recoveries from that.
    Recovery,
    /// Every list of three actions of twelve, cut at every boundary in every mode.
    Lists,
    /// Calls of the disk fail.
    Errors,
    /// The power is cut in rounds of the log, and again in those that write the same place anew.
    Torn,
    /// Bits of the log flip.
    Rot,
    /// Faults are planted, one after the other; prints what found each, and after how many seeds
    /// (needs the feature planted-faults).
    Faults,
    /// The power is cut under delayed commits: nothing older than the window is lost.
    Window,
}

impl Arguments {
    fn run(&self) -> Outcome {
        let images = |default: u64| self.images.unwrap_or(default);
        let campaign = Campaign {
            seed: self.seed,
            seeds: self.seeds.or((self.what == What::Lists).then_some(lists::LISTS)),
            cuts: self.cuts,
            threads: self.threads,
            keep_going: self.keep_going,
        };
        let tell = |line: String| eprintln!("{line}");
        let mut budget = match self.what {
            What::Recovery => Budget::of_recovery(),
            _ => Budget::default(),
        };
        budget.images = images(budget.images);
        budget.every_boundary |= self.every_boundary;
        match self.what {
            What::Cuts | What::Recovery => {
                campaign.run(|seed, summary| cuts::simulate(seed, budget, summary), tell)
            }
            What::Errors => {
                campaign.run(|seed, summary| errors::fail_calls(seed, images(20), summary), tell)
            }
            What::Lists => {
                campaign.run(|seed, summary| lists::cut_list(seed % lists::LISTS, summary), tell)
            }
            What::Torn => campaign.run(torn::tear_rounds, tell),
            What::Rot => {
                campaign.run(|seed, summary| rot::flip_log_bits(seed, images(50), summary), tell)
            }
            What::Faults => Outcome::default(), // has no seeds in common
            What::Window => {
                campaign.run(|seed, summary| window::simulate(seed, images(2), summary), tell)
            }
        }
    }

    /// How to do the same again for one seed.
    fn again(&self, seed: u64) -> String {
        let what = self.what.to_possible_value().map_or_else(String::new, |v| v.get_name().into());
        let images = self.images.map_or_else(String::new, |images| format!(" --images {images}"));
        let every = if self.every_boundary { " --every-boundary" } else { "" };
        let fault = self.fault.as_ref().map_or_else(String::new, |name| format!(" --fault {name}"));
        format!(
            "cargo run -p onrush-sim --release --bin simulate -- {what} --seed {seed} \
             --seeds 1{images}{every}{fault}"
        )
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(fault) = &arguments.fault
        && arguments.what != What::Faults
        && !plant(fault)
    {
        eprintln!("there is no fault {fault}, or this build cannot plant any");
        return ExitCode::FAILURE;
    }
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}\n{}", std::backtrace::Backtrace::capture());
    }));
    if arguments.what == What::Faults {
        return score_faults(&arguments);
    }
    let started = Instant::now();
    let Outcome { summary, failed } = arguments.run();
    for (seed, violation) in &failed {
        println!("{}\nagain: {}\n", violation.0, arguments.again(*seed));
    }
    print!("{summary}");
    if arguments.kinds {
        for (kind, modes) in &summary.kinds {
            println!("{:>2} modes  {kind}", modes.len());
        }
    }
    let rate = summary.cuts() as f64 / started.elapsed().as_secs_f64();
    println!("{rate:.0} cuts/s, {:.1} s", started.elapsed().as_secs_f64());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints the table of all faults, or of the one that was named.
#[cfg(feature = "planted-faults")]
fn score_faults(arguments: &Arguments) -> ExitCode {
    use onrush_sim::faults::{finder, score};
    std::panic::set_hook(Box::new(|_| {}));
    let began = Instant::now();
    let mut missed = 0;
    println!("| fault | found by | seeds, median | in each series | such a seed | s |");
    println!("|---|---|---|---|---|---|");
    for fault in onrush::Fault::ALL {
        let is_wanted = arguments.fault.as_ref().is_none_or(|name| format!("{fault:?}") == *name);
        if !is_wanted {
            continue;
        }
        if let Some(finder) = finder(*fault).without_seeds() {
            println!("| {fault:?} | {finder} | - | - | - | - |");
            continue;
        }
        let began = Instant::now();
        let score = score(*fault, arguments.series);
        let median = score.median().map_or_else(|| "MISSED".to_owned(), |n| n.to_string());
        missed += u32::from(score.median().is_none());
        let each: Vec<String> = score
            .seeds
            .iter()
            .map(|seeds| seeds.map_or_else(|| "-".to_owned(), |seeds| seeds.to_string()))
            .collect();
        let seed = score.seed.map_or_else(|| "-".to_owned(), |seed| seed.to_string());
        println!(
            "| {fault:?} | {:?} | {median} | {} | {seed} | {:.1} |",
            finder(*fault),
            each.join(", "),
            began.elapsed().as_secs_f64()
        );
    }
    println!("\n{missed} missed, {:.0} s", began.elapsed().as_secs_f64());
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(not(feature = "planted-faults"))]
fn score_faults(_: &Arguments) -> ExitCode {
    eprintln!("this build cannot plant faults: add --features planted-faults");
    ExitCode::FAILURE
}
