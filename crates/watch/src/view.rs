//! What is told about a running database.

use onrush::{Database, LiveSummary, Rates, Statistics};
use serde::{Deserialize, Serialize};

/// A running database at one moment: one line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Version of the program that has it open.
    pub version: String,
    /// Number of its process.
    pub process: u32,
    /// Everything done since it was opened, or since the last reset.
    pub statistics: Statistics,
    /// Each session and background thread, with what it waits for now.
    pub sessions: Vec<LiveSummary>,
    /// The last minutes, a second at a time.
    pub history: Vec<Rates>,
}

impl View {
    /// The database now.
    #[must_use]
    pub fn of(database: &Database) -> View {
        View {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            process: std::process::id(),
            statistics: database.statistics(),
            sessions: database.sessions(),
            history: database.history(),
        }
    }
}
