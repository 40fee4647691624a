//! What a checkpoint did.

use std::time::Duration;

use onrush_log::Lsn;

/// What a checkpoint did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointReport {
    /// Number of the checkpoint, from 1.
    pub number: u64,
    /// Leaves imaged, 16 KiB each.
    pub images: u64,
    /// Directory segments written.
    pub segments: u64,
    /// Position in the log, in bytes, from which recovery would redo.
    pub redo_from_lsn: Lsn,
    /// How long it took.
    pub duration: Duration,
}
