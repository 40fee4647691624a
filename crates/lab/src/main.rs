//! The `onrush-lab` command: Onrush beside its baselines.

mod commands;

use std::process::ExitCode;

use clap::Parser;
use onrush_terminal::failure;

fn main() -> ExitCode {
    failure::report(commands::run(commands::OnrushLab::parse()))
}
