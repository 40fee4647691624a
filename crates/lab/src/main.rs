//! The `onrush-lab` command: Onrush beside its baselines.

#![deny(
    clippy::print_stderr,
    reason = "it panics where standard error is closed; see onrush_terminal::tell"
)]

mod commands;

use std::process::ExitCode;

use clap::Parser;
use onrush_lab::LabError;
use onrush_terminal::failure::{self, usage_error};

fn main() -> ExitCode {
    onrush_terminal::heap::give_large_pieces_back();
    let outcome = commands::run(commands::OnrushLab::parse());
    failure::report(outcome.map_err(|error| match error.downcast_ref() {
        Some(LabError::Setting(told)) => usage_error(told.clone()),
        _ => error,
    }))
}
