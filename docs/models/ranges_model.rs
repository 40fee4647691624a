//! The command of the model of cold key ranges: see `README.md` beside it.

use std::process::ExitCode;

#[path = "ranges/mod.rs"]
mod ranges;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match ranges::command(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
