//! The database that a command works on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;
use onrush::{Database, OpenPhase, OpenProgress, Options, SequentialKeys, Table};
use onrush_measure::units::grouped;
use onrush_terminal::progress;

/// A table of a database.
#[derive(Args, Clone, Debug)]
pub struct TableArguments {
    /// The database's folder
    pub folder: PathBuf,
    /// The table
    pub table: String,
}

impl TableArguments {
    /// Opens the database and finds the table.
    pub fn open(&self) -> anyhow::Result<(Database, Table)> {
        self.open_with(Options::default())
    }

    /// The same for a few rows: generated numbers are taken one by one, so that hardly any is left
    /// out between this command and the next.
    pub fn open_for_few_rows(&self) -> anyhow::Result<(Database, Table)> {
        self.open_with(Options {
            key_reserve: 1,
            sequential_keys: SequentialKeys::SharedEdge,
            ..Options::default()
        })
    }

    fn open_with(&self, options: Options) -> anyhow::Result<(Database, Table)> {
        let database = open_with(&self.folder, options)?;
        let table = database.table(&self.table).map_err(|error| with_tables(error, &database))?;
        Ok((database, table))
    }
}

/// Opens a database that exists.
pub fn open(folder: &Path) -> anyhow::Result<Database> {
    open_with(folder, Options::default())
}

/// The same with settings. After a crash a bar shows how far the redo of the log is.
pub fn open_with(folder: &Path, options: Options) -> anyhow::Result<Database> {
    let progress = OpenProgress::default();
    let show = |bar: &ProgressBar| {
        let state = progress.state();
        bar.set_message(match state.phase {
            OpenPhase::Redo => "redoing the log",
            _ => "opening",
        });
        bar.set_length(state.redo_bytes);
        bar.set_position(state.redone_bytes);
    };
    let opened = progress::beside_bytes_bar(false, "opening", show, || {
        Database::open_observed(folder, options, &progress)
    });
    let opened = opened?;
    let recovery = opened.recovery();
    if let Some(rate) = recovery.rows_per_s()
        && recovery.redo_duration >= WORTH_A_LINE
    {
        let (rows, seconds) = (grouped(recovery.rows), recovery.redo_duration.as_secs_f64());
        onrush_terminal::tell!(
            "redid {rows} rows of the log in {seconds:.1} s, {} a second",
            grouped(rate as u64)
        );
    }
    Ok(opened)
}

/// What was redone in less time is not worth telling.
const WORTH_A_LINE: Duration = Duration::from_secs(1);

/// Adds the names of the tables to a message that says that one is unknown.
pub fn with_tables(error: onrush::Error, database: &Database) -> anyhow::Error {
    let tables = database.tables();
    let names: Vec<_> = tables.iter().map(|table| table.name()).collect();
    if !matches!(error, onrush::Error::UnknownTable { .. }) {
        return error.into();
    }
    match names.is_empty() {
        true => anyhow::anyhow!("{error}. The database has no tables"),
        false => anyhow::anyhow!("{error}. The tables are: {}", names.join(", ")),
    }
}
