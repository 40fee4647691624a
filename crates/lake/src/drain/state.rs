//! What is told of the drain of each table.

use std::time::{Duration, SystemTime};

use onrush::Lsn;

use super::attachment::Attachment;

/// How the drain of a table goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Its Iceberg table is to be opened and claimed.
    Opening,
    /// Rounds are made as they are due.
    Running,
    /// The last round did not end, and is gone on with at the next turn.
    Away {
        /// Why.
        cause: String,
    },
    /// Nothing more is drained until somebody has looked.
    Stopped {
        /// Why, and what to do.
        cause: String,
    },
}

impl Phase {
    /// One word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Phase::Opening => "opening",
            Phase::Running => "running",
            Phase::Away { .. } => "away",
            Phase::Stopped { .. } => "stopped",
        }
    }

    /// Why it does not run.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        match self {
            Phase::Opening | Phase::Running => None,
            Phase::Away { cause } | Phase::Stopped { cause } => Some(cause),
        }
    }
}

/// The drain of one table.
#[derive(Debug, Clone)]
pub struct TableState {
    /// The table and where its rows go.
    pub attachment: Attachment,
    /// How it goes.
    pub phase: Phase,
    /// Rows written below are in the lake; none before the first claim.
    pub mark: Option<Lsn>,
    /// Below it there are no rows that are not in the lake.
    pub read_to: Lsn,
    /// Rows that this process has brought.
    pub rows: u64,
    /// Files that it has brought.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Commits that were applied.
    pub commits: u64,
    /// Commits that the catalogue refused, so that they were made again.
    pub refusals: u64,
    /// When the last round ended well.
    pub drained_at: Option<SystemTime>,
}

impl TableState {
    pub(super) fn new(attachment: Attachment) -> TableState {
        TableState {
            attachment,
            phase: Phase::Opening,
            mark: None,
            read_to: Lsn::FIRST,
            rows: 0,
            files: 0,
            bytes: 0,
            commits: 0,
            refusals: 0,
            drained_at: None,
        }
    }

    /// For how long rows may have waited; none before the first round of this process.
    #[must_use]
    pub fn lag(&self) -> Option<Duration> {
        self.drained_at.map(|at| at.elapsed().unwrap_or_default())
    }
}
