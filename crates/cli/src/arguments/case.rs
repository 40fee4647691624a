//! The flags of one measured load, shared by `lab insert` and `lab run singleton`.

use std::path::PathBuf;

use clap::Args;
use onrush::KeyStrategy;
use onrush_measure::units::parse_count;
use onrush_measure::{CaseSettings, Placement};
use onrush_terminal::arguments::answer::AnswerArguments;
use onrush_terminal::arguments::engine::EngineArguments;
use onrush_terminal::arguments::metrics::MetricsArguments;
use onrush_terminal::arguments::words::{Driver, Durability, Leave, key_strategy};

/// One measured load.
#[derive(Args, Clone, Debug)]
pub struct CaseArguments {
    /// Rows of all sessions together, such as 4000000 or 48m [default: about a minute's worth]
    #[arg(long, value_name = "ROWS", value_parser = parse_count)]
    pub rows: Option<u64>,
    /// Concurrent sessions
    #[arg(long, value_name = "COUNT", default_value_t = 24)]
    pub sessions: usize,
    /// How keys are made: identity, uuid-v4, uuid-v7, sequential-guid, session-offset, node-offset,
    /// bit-reversed or hash-prefix
    #[arg(long, value_name = "STRATEGY", default_value = "session-offset",
          value_parser = key_strategy)]
    pub key: KeyStrategy,
    /// When a commit is acknowledged
    #[arg(long, value_name = "LEVEL", default_value = "durable")]
    pub durability: Durability,
    /// Rows that each transaction inserts
    #[arg(long, value_name = "ROWS", default_value = "1", value_parser = parse_count)]
    pub rows_per_commit: u64,
    /// Who runs the sessions
    #[arg(long, value_name = "KIND", default_value = "threads")]
    pub driver: Driver,
    /// Rows to insert before the measurement begins
    #[arg(long, value_name = "ROWS", default_value = "0", value_parser = parse_count)]
    pub preload: u64,
    /// Run so often and print the median [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub repeats: Option<usize>,
    /// The database's folder, empty or new [default: a new one in the current folder]
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// Leave the database there afterwards
    #[arg(long)]
    pub keep: bool,
    /// Folder for a data file; give it several times for several files
    #[arg(long = "data-folder", value_name = "FOLDER")]
    pub data_folders: Vec<PathBuf>,
    /// Data files inside the database's folder, 1 to 16
    #[arg(long, value_name = "COUNT", default_value_t = 1, conflicts_with = "data_folders")]
    pub data_files: usize,
    /// Folder for the log [default: inside the database's folder]
    #[arg(long, value_name = "FOLDER")]
    pub log_folder: Option<PathBuf>,
    /// Do not compare the database with what was acknowledged
    #[arg(long)]
    pub no_verify: bool,
    /// How to leave the database before it is opened again and compared
    #[arg(long, value_name = "HOW", default_value = "close")]
    pub leave: Leave,
    #[command(flatten)]
    pub answer: AnswerArguments,
    #[command(flatten)]
    pub engine: EngineArguments,
    #[command(flatten)]
    pub metrics: MetricsArguments,
}

impl CaseArguments {
    /// The settings that the flags stand for.
    pub fn settings(&self) -> anyhow::Result<CaseSettings> {
        Ok(CaseSettings {
            rows: self.rows,
            sessions: self.sessions,
            key: self.key,
            durability: self.durability.into(),
            rows_per_commit: self.rows_per_commit,
            driver: self.driver.into(),
            preload_rows: self.preload,
            placement: Placement {
                folder: self.dir.clone(),
                keep: self.keep,
                data_folders: self.data_folders.clone(),
                data_files: self.data_files,
                log_folder: self.log_folder.clone(),
            },
            engine: self.engine.options(CaseSettings::default().engine),
            verify: !self.no_verify,
            leave: self.leave.into(),
            metrics: self.metrics.address()?,
        })
    }
}
