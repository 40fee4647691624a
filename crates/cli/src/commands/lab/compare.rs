//! `onrush lab compare`: two results of a study against each other.

use std::path::PathBuf;

use clap::Args;
use onrush_lab::compare;

use crate::failure::{AlreadyTold, Outcome, usage_error};
use crate::output;

/// Tell two results of a study apart: exit code 1 if the second is slower
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArguments {
    /// The result to compare with: a result file, or the JSON of a report
    first: PathBuf,
    /// The result that must not be slower
    second: PathBuf,
    /// How many percent slower a cell may be, if that is certain
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    threshold: f64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  onrush lab compare before.sqlite after.sqlite
  onrush lab compare before.json lab-keys-quick.sqlite --threshold 10";

/// Compares.
pub fn run(arguments: &CompareArguments) -> Outcome {
    if !(0.0..100.0).contains(&arguments.threshold) {
        let given = arguments.threshold;
        return Err(usage_error(format!("--threshold is {given}; give percents from 0 to 99")));
    }
    let (first, second) = (compare::read(&arguments.first)?, compare::read(&arguments.second)?);
    let comparison = compare::compare(&first, &second, arguments.threshold / 100.0)?;
    match arguments.json {
        true => output::json(&comparison)?,
        false => output::text(&compare::text(&comparison))?,
    }
    if comparison.has_regressed() {
        eprintln!("onrush: slower by more than {} %", arguments.threshold);
        return Err(AlreadyTold::NotDone.into());
    }
    Ok(())
}
