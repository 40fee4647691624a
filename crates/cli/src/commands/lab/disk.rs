//! `onrush lab disk`: what the device can do, and what that allows.

use clap::Args;
use onrush_measure::{disk, report};
use onrush_terminal::arguments::answer::{AnswerArguments, PlaceArguments};
use onrush_terminal::failure::{Outcome, usage_error};
use onrush_terminal::output;
use onrush_terminal::progress::LabProgress;

/// Measure the disk under a folder, and say what it allows
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct DiskArguments {
    #[command(flatten)]
    place: PlaceArguments,
    #[command(flatten)]
    answer: AnswerArguments,
}

const EXAMPLES: &str = "\
Examples:
  onrush lab disk
  onrush lab disk --dir /mnt/nvme --json

Writes up to 2 GiB, or a quarter of the free space if that is less, and removes it again.";

/// Measures and prints.
pub fn run(arguments: &DiskArguments) -> Outcome {
    if !arguments.place.dir.is_dir() {
        let given = arguments.place.dir.display();
        return Err(usage_error(format!(
            "--dir {given}: there is no such folder; give one that exists, on the device to measure"
        )));
    }
    let report = disk::measure(&arguments.place.dir, &LabProgress::new(arguments.answer.quiet))?;
    if arguments.answer.json { output::json(&report) } else { output::text(&report::disk(&report)) }
}
