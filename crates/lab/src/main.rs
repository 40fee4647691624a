//! The `onrush-lab` command: Onrush beside its baselines.

#![deny(
    clippy::print_stderr,
    reason = "it panics where standard error is closed; see onrush_terminal::tell"
)]

mod commands;

use std::process::ExitCode;

use clap::Parser;
use onrush_terminal::failure;

fn main() -> ExitCode {
    failure::report(commands::run(commands::OnrushLab::parse()))
}
