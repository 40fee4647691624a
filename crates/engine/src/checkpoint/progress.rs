//! How far the running checkpoint is, for whoever looks on.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// What a checkpoint is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u64)]
pub enum CheckpointStage {
    /// None is being taken.
    #[default]
    None,
    /// Leaves that changed are copied and written.
    WriteBack,
    /// The directory is brought up to date.
    Walk,
    /// Everything is made durable and named by a superblock.
    Install,
}

/// How far the running checkpoint is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointProgress {
    /// What it is doing.
    pub stage: CheckpointStage,
    /// Leaves that it has found to write so far.
    pub leaves: u64,
    /// Of these, how many are written, or need not be any more.
    pub written: u64,
}

impl CheckpointProgress {
    /// The part of its work that is done, from 0 to 1; `None` while none is being taken. Nearly all of it
    /// is writing leaves.
    pub(super) fn done(&self) -> Option<f64> {
        match self.stage {
            CheckpointStage::None => None,
            CheckpointStage::WriteBack => {
                Some(0.9 * self.written.min(self.leaves) as f64 / self.leaves.max(1) as f64)
            }
            CheckpointStage::Walk => Some(0.9),
            CheckpointStage::Install => Some(0.95),
        }
    }
}

/// Written by the one checkpoint that is being taken, read by anyone.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    number: AtomicU64,
    began_unix_micros: AtomicU64,
    stage: AtomicU64,
    leaves: AtomicU64,
    written: AtomicU64,
}

/// A checkpoint is being taken, until dropped.
pub(super) struct Running<'p>(&'p Progress);

impl Progress {
    pub(super) fn begin(&self, number: u64, unix_micros: u64) -> Running<'_> {
        self.number.store(number, Ordering::Relaxed);
        self.began_unix_micros.store(unix_micros, Ordering::Relaxed);
        self.leaves.store(0, Ordering::Relaxed);
        self.written.store(0, Ordering::Relaxed);
        self.set_stage(CheckpointStage::WriteBack);
        Running(self)
    }

    pub(super) fn set_stage(&self, stage: CheckpointStage) {
        self.stage.store(stage as u64, Ordering::Relaxed);
    }

    /// So many more leaves are to be written.
    pub(super) fn add_leaves(&self, leaves: u64) {
        self.leaves.fetch_add(leaves, Ordering::Relaxed);
    }

    /// So many more are, or need not be.
    pub(super) fn add_written(&self, leaves: u64) {
        self.written.fetch_add(leaves, Ordering::Relaxed);
    }

    /// The number of the running checkpoint, and when it began.
    pub(super) fn beginning(&self) -> (u64, u64) {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        (read(&self.number), read(&self.began_unix_micros))
    }

    pub(crate) fn read(&self) -> CheckpointProgress {
        let stages = [
            CheckpointStage::None,
            CheckpointStage::WriteBack,
            CheckpointStage::Walk,
            CheckpointStage::Install,
        ];
        let stage = self.stage.load(Ordering::Relaxed);
        CheckpointProgress {
            stage: stages.into_iter().find(|one| *one as u64 == stage).unwrap_or_default(),
            leaves: self.leaves.load(Ordering::Relaxed),
            written: self.written.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.set_stage(CheckpointStage::None);
    }
}
