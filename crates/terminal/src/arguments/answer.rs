//! How a command that takes a while answers.

use std::path::PathBuf;

use clap::Args;

/// The answer, and the progress before it.
#[derive(Args, Clone, Debug, Default)]
pub struct AnswerArguments {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Where a command measures.
#[derive(Args, Clone, Debug)]
pub struct PlaceArguments {
    /// Folder to measure in, on the device in question; what is made there is removed
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub dir: PathBuf,
}
