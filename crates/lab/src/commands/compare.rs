//! `onrush-lab compare`: two results of a study against each other.

use std::path::{Path, PathBuf};

use clap::{Args, Parser};
use onrush_lab::compare;
use onrush_lab::study::StudyResult;
use onrush_lab::study::run::words_of_lab;
use onrush_terminal::arguments::answer::{AnswerArguments, PlaceArguments};
use onrush_terminal::failure::{AlreadyTold, Outcome, usage_error};
use onrush_terminal::output;

use super::study::{self, StudyArguments};

/// Tell two results of a study apart, or a kept one and a run of your own: exit code 1 if the second is
/// slower
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArguments {
    /// The result to compare with: a result file, or the JSON of a report
    first: PathBuf,
    /// The result that must not be slower
    #[arg(required_unless_present = "run")]
    second: Option<PathBuf>,
    /// Run the study of the first now, as its own command did, and compare with that
    #[arg(long, conflicts_with = "second")]
    run: bool,
    /// Run it on this target only; give it several times for several
    #[arg(long = "target", value_name = "NAME", requires = "run")]
    targets: Vec<String>,
    /// Folder for the databases of that run
    #[arg(long, value_name = "FOLDER", requires = "run", default_value = ".")]
    dir: PathBuf,
    /// Keep the result of that run in this file [default: numbered, as `lab run` does]
    #[arg(long, value_name = "PATH", requires = "run")]
    out: Option<PathBuf>,
    /// Show no progress of that run
    #[arg(long, short, requires = "run")]
    quiet: bool,
    /// How many percent slower a case may be, if that is certain
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    threshold: f64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  onrush-lab compare before.sqlite after.sqlite
  onrush-lab compare before.json lab-keys-quick.sqlite --threshold 10
  onrush-lab compare --run docs/results/keys-kept.json --target onrush --dir /mnt/nvme";

/// Compares.
pub fn run(arguments: &CompareArguments) -> Outcome {
    if !(0.0..100.0).contains(&arguments.threshold) {
        let given = arguments.threshold;
        return Err(usage_error(format!("--threshold is {given}; give percents from 0 to 99")));
    }
    let first = compare::read(&arguments.first)?;
    let second = match &arguments.second {
        Some(second) => compare::read(second)?,
        None => run_again(arguments, &first)?,
    };
    let comparison = compare::compare(&first, &second, arguments.threshold / 100.0)?;
    match arguments.json {
        true => output::json(&comparison)?,
        false => output::text(&compare::text(&comparison))?,
    }
    if comparison.has_regressed() {
        onrush_terminal::tell!("onrush-lab: slower by more than {} %", arguments.threshold);
        return Err(AlreadyTold::NotDone.into());
    }
    study::tell_failed(&second)
}

/// The flags of `lab run`, as a result tells them.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Told {
    #[command(flatten)]
    study: StudyArguments,
}

/// Makes a result's study again, in the same size, with the same settings, repeats and targets.
fn run_again(arguments: &CompareArguments, first: &StudyResult) -> anyhow::Result<StudyResult> {
    let told = told(&first.command).map_err(|reason| {
        usage_error(format!(
            "{}: its command, `{}`, does not say how to run it again: {reason}; run its study \
             yourself and give the result instead of --run",
            arguments.first.display(),
            first.command
        ))
    })?;
    let targets = match arguments.targets.is_empty() {
        true => told.targets,
        false => arguments.targets.clone(),
    };
    let again = StudyArguments {
        targets,
        place: PlaceArguments { dir: arguments.dir.clone() },
        out: arguments.out.clone(),
        resume: false,
        answer: AnswerArguments { quiet: arguments.quiet, ..told.answer },
        ..told
    };
    let (second, results) = study::made(&again)?;
    if !arguments.quiet {
        onrush_terminal::tell!("results: {}", results.display());
    }
    Ok(second)
}

/// The flags of a command such as `onrush-lab run keys --quick`.
fn told(command: &str) -> Result<StudyArguments, String> {
    let words = words_of_lab(command).unwrap_or_default();
    let run = words.split_first().filter(|(first, _)| *first == "run");
    let (_, flags) = run.ok_or("it is not `onrush-lab run`")?;
    let told = Told::try_parse_from(flags).map_err(|error| error.kind().to_string())?.study;
    let study = told.study.as_deref().unwrap_or_default();
    let is_lost = study.ends_with(".toml") && !Path::new(study).is_file();
    if is_lost { Err(format!("there is no file {study} here")) } else { Ok(told) }
}
