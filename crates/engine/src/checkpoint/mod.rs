#![doc = include_str!("README.md")]

mod directory;
mod maintain;
mod merge_emptied;
mod pin;
mod progress;
mod record;
mod report;
mod space_install;
mod store;
mod superblock;
mod sweep;
mod throttle;
mod unblock;
mod walk;
mod write_back;

use std::sync::Arc;
use std::time::Instant;

use onrush_latch::lock_counted;
use onrush_log::{LogPosition, Lsn};
use onrush_waits::{Counter, LatchClass, Phase, Recorder, Wait};
use parking_lot::Mutex;

pub(crate) use directory::{Directory, Root};
pub(crate) use maintain::{compact_ranges, flush_fullest, flush_ranges};
pub(crate) use pin::Pin;
pub(crate) use progress::Progress;
pub use progress::{CheckpointProgress, CheckpointStage};
pub use record::CheckpointRecord;
pub(crate) use record::{Records, unix_micros};
pub use report::CheckpointReport;
pub(crate) use space_install::{install_space, is_space_install_due};
pub(crate) use store::Store;
pub use superblock::RestoredFrom;
pub(crate) use superblock::{
    COUNTER_LIMIT, Folders, Restored, Superblock, SuperblockFile, superblock_path,
};
pub(crate) use sweep::{sweep_aborted, sweep_due};
pub(crate) use throttle::{LogUse, Throttle};

use crate::error::Result;
use crate::fault::{Fault, planted};
use crate::storage::Imager;
use crate::units::{Epoch, ObjectId};

/// Threads that write the images of a checkpoint, at most.
pub(crate) const WRITERS_MAX: usize = 2;

/// What the checkpoints of a database carry from one to the next. One checkpoint at a time.
pub(crate) struct Checkpointer {
    file: SuperblockFile,
    /// The last superblock that is durable.
    installed: Superblock,
    /// The directory that it names, and so the slots that must stay as they are.
    directory: Arc<Directory>,
    /// One for each thread that writes images.
    imagers: Vec<Imager>,
    /// Low fences of leaves that are no longer as the installed directory says; kept until a
    /// checkpoint has succeeded.
    changed: Vec<(ObjectId, Box<[u8]>)>,
}

impl Checkpointer {
    pub(crate) fn new(
        file: SuperblockFile,
        installed: Superblock,
        directory: Directory,
        writers: usize,
    ) -> Checkpointer {
        let directory = Arc::new(directory);
        let imagers = (0..writers.max(1)).map(|_| Imager::new()).collect();
        Checkpointer { file, installed, directory, imagers, changed: Vec::new() }
    }
}

/// What a directory is of.
struct Bounds {
    /// The number of the checkpoint that it is of.
    checkpoint: u64,
    /// C.
    start: LogPosition,
    /// E.
    end: Lsn,
}

/// The checkpointer's place in the engine, empty until recovery has read what is installed.
pub(crate) type CheckpointerCell = Mutex<Option<Checkpointer>>;

/// Takes one checkpoint; waits for one that is being taken.
pub(crate) fn run(store: &Store, recorder: &Recorder) -> Result<CheckpointReport> {
    let mut cell = match store.checkpointer.try_lock() {
        Some(cell) => cell,
        None => {
            let _wait = recorder.wait(Wait::CheckpointTurn);
            store.checkpointer.lock()
        }
    };
    let Some(checkpointer) = cell.as_mut() else {
        return Ok(CheckpointReport::default());
    };
    let _work = recorder.work(Phase::Checkpoint);
    let _stop = store.stop_on_panic();
    checkpointer.take(store, recorder)
}

impl Checkpointer {
    /// The steps of `README.md`, in order.
    fn take(&mut self, store: &Store, recorder: &Recorder) -> Result<CheckpointReport> {
        let started = Instant::now();
        store.throttle.checkpoint_begins(store.log.space().in_use_bytes, store.log.tail());
        let began_unix_micros = record::unix_micros();
        let _running = store.progress.begin(self.installed.checkpoint + 1, began_unix_micros);
        store.maintain_all(recorder)?;
        store.merge_emptied(recorder);
        sweep::sweep_due(store, recorder);
        let swept = store.resolver.large.swept();
        let (start, epoch) = begin(store);
        let early_end = planted(Fault::EBeforeWalk).then(|| store.log.tail());
        let written = write_back::write_back(store, recorder, &mut self.imagers, epoch, start.lsn);
        self.changed.extend(written.changed);
        let replaced = store.ranges.replaced_slots();
        self.changed.extend(store.ranges.take_changed());
        let images = written.images?;
        let late_start = planted(Fault::CAfterEpoch).then(|| store.log.position());
        let start = late_start.unwrap_or(start);
        store.progress.set_stage(CheckpointStage::Walk);
        let (collected, end) = {
            let definitions = &store.catalog.definitions;
            let _definitions = lock_counted(definitions, recorder, LatchClass::Catalog);
            let collected = walk::collect(store, recorder, &self.directory, &self.changed, &swept)?;
            // Under the lock: the directory holds exactly the definitions below E, and redo skips them.
            (collected, early_end.unwrap_or_else(|| store.log.tail()))
        };
        if !planted(Fault::LogNotToE) {
            store.log.wait_durable(end, recorder)?;
        }
        store.progress.set_stage(CheckpointStage::Install);
        let segments = collected.changed_segments();
        let checkpoint = self.installed.checkpoint + 1;
        self.install(store, recorder, collected, Bounds { checkpoint, start, end })?;
        self.changed.clear();
        store.ranges.forget_replaced(replaced);
        store.resolver.large.forget(&swept);
        recorder.count(Counter::Checkpoints, 1);
        let report = CheckpointReport {
            number: self.installed.checkpoint,
            images,
            segments,
            redo_from_lsn: start.lsn,
            duration: started.elapsed(),
        };
        store.checkpoints.put(began_unix_micros, &report);
        Ok(report)
    }

    /// Steps 5 to 7 of a checkpoint: directory and data durable, then one superblock, then old slots and log are
    /// free.
    fn install(
        &mut self,
        store: &Store,
        recorder: &Recorder,
        collected: walk::Collected,
        Bounds { checkpoint, start, end }: Bounds,
    ) -> Result<()> {
        let mut directory = collected.write(store)?;
        let root = directory.write_root(store)?;
        let end = if planted(Fault::EAfterList) { late_end(store, recorder)? } else { end };
        {
            let _wait = recorder.wait(Wait::DataSync);
            store.space.files().sync().map_err(|error| store.stop(error))?;
        }
        if planted(Fault::FreeBeforeSuperblock) {
            self.directory = Arc::new(Directory::default());
        }
        let superblock = Superblock {
            generation: self.installed.generation + 1,
            checkpoint,
            start,
            end,
            root: Some(root),
            end_us: store.log.newest_block_us().unwrap_or(0).max(self.installed.end_us),
            ..self.installed.clone()
        };
        {
            let _wait = recorder.wait(Wait::DataSync);
            self.file.write(&superblock).map_err(|error| store.stop(error))?;
        }
        let recycle_to = if planted(Fault::RecycleToE) { store.log.position() } else { start };
        store.throttle.set_redo_from(superblock.start.lsn);
        self.installed = superblock;
        self.directory = Arc::new(directory);
        store.log.recycle_below(&recycle_to)?;
        Ok(())
    }
}

/// Steps 1 and 2 of a checkpoint: C first, then the epoch. A change below C has pushed its leaf on a list before
/// the switch; one that is not below C is redone from the log.
fn begin(store: &Store) -> (LogPosition, Epoch) {
    let epoch = Epoch::after(store.dirty.epoch().number());
    let start = store.log.position();
    store.dirty.start_epoch(epoch);
    (start, epoch)
}

/// An E that is as durable as E must be, but taken when the list of tables has been read long ago.
fn late_end(store: &Store, recorder: &Recorder) -> Result<Lsn> {
    let end = store.log.tail();
    store.log.wait_durable(end, recorder)?;
    Ok(end)
}
