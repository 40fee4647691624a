//! How far the opening of a database is, for whoever watches from another thread.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use onrush_log::ReadProgress;

/// What opening does at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum OpenPhase {
    /// It has not begun.
    #[default]
    Waiting,
    /// Superblock, directory, memory for leaves, inner nodes.
    Directory,
    /// The log is redone from the last checkpoint on.
    Redo,
    /// The database is open.
    Open,
}

/// Shared between [`Database::open_observed`](crate::Database::open_observed) and whoever shows it.
#[derive(Debug, Default)]
pub struct OpenProgress {
    phase: AtomicU8,
    pub(super) log: Arc<ReadProgress>,
    redo_started: OnceLock<Instant>,
}

/// Where opening stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenState {
    /// What it does.
    pub phase: OpenPhase,
    /// Bytes of log files redone.
    pub redone_bytes: u64,
    /// Bytes to redo in all, 0 until that is known: at most so many, exact when it is done.
    pub redo_bytes: u64,
    /// Time left of the redo at the speed so far; None where nothing can be said yet.
    pub left: Option<Duration>,
}

impl OpenProgress {
    /// Where it stands now.
    #[must_use]
    pub fn state(&self) -> OpenState {
        let phase = match self.phase.load(Ordering::Acquire) {
            0 => OpenPhase::Waiting,
            1 => OpenPhase::Directory,
            2 => OpenPhase::Redo,
            _ => OpenPhase::Open,
        };
        let (redone_bytes, redo_bytes) = (self.log.read_bytes(), self.log.total_bytes());
        let elapsed = self.redo_started.get().map(Instant::elapsed);
        let left = match (phase, elapsed) {
            (OpenPhase::Open, _) => Some(Duration::ZERO),
            (OpenPhase::Redo, Some(elapsed)) if redone_bytes > 0 => {
                Some(elapsed.mul_f64((redo_bytes - redone_bytes) as f64 / redone_bytes as f64))
            }
            _ => None,
        };
        OpenState { phase, redone_bytes, redo_bytes, left }
    }

    pub(super) fn enter(&self, phase: OpenPhase) {
        if phase == OpenPhase::Redo {
            self.redo_started.get_or_init(Instant::now);
        }
        self.phase.store(phase as u8, Ordering::Release);
    }
}
