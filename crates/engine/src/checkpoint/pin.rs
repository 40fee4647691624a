//! One installed checkpoint kept as it is, for whoever reads it while the database goes on.
//!
//! Slots are free when no directory owns them, and log segments when no checkpoint needs them and
//! nobody holds them: so a share of the directory and a hold of the log are all it takes, and the
//! steps of a checkpoint are as they were. Meanwhile later checkpoints need fresh slots, and the log
//! more of its capacity.

use std::path::Path;
use std::sync::Arc;

use onrush_files::{Disk, DiskFile, MemoryDisk, OpenMode};
use onrush_log::{LogHold, LogPosition, Lsn};
use onrush_waits::{Recorder, Wait};
use parking_lot::Mutex;

use super::Store;
use super::{Directory, SuperblockFile};
use crate::error::{Error, Result};

/// See the module.
pub(crate) struct Pin {
    /// Keeps the slots.
    pub(crate) directory: Arc<Directory>,
    /// Keeps the log from C on, until it has been read.
    log: Mutex<Option<LogHold>>,
    /// C: where the log begins that is needed with it.
    pub(crate) start: LogPosition,
    /// What the superblock file held then.
    pub(crate) superblock: Arc<dyn DiskFile>,
    /// The log was durable up to here.
    pub(crate) durable: Lsn,
}

impl Pin {
    /// Keeps the checkpoint that is installed now, and the log from there on to its end of now,
    /// which is made durable first.
    pub(crate) fn take(store: &Store, recorder: &Recorder) -> Result<Pin> {
        store.check_readable()?;
        store.log.wait_durable(store.log.tail(), recorder)?;
        let cell = {
            let _wait = recorder.wait(Wait::CheckpointTurn);
            store.checkpointer.lock()
        };
        let checkpointer = cell.as_ref().ok_or(Error::Closed)?;
        Ok(Pin {
            directory: Arc::clone(&checkpointer.directory),
            start: checkpointer.installed.start,
            log: Mutex::new(Some(store.log.hold(&checkpointer.installed.start))),
            superblock: copy_of(&checkpointer.file)?,
            durable: store.log.durable(),
        })
    }

    /// The log has been read: it may be recycled.
    pub(crate) fn release_log(&self) {
        drop(self.log.lock().take());
    }
}

fn copy_of(file: &SuperblockFile) -> Result<Arc<dyn DiskFile>> {
    let memory = MemoryDisk::new();
    let folder = Path::new("/");
    memory.create_folder(folder)?;
    let copy = memory.open(&folder.join("superblock.onrush"), OpenMode::CreateNew)?;
    copy.write_at(&file.read_all()?, 0)?;
    Ok(copy)
}
