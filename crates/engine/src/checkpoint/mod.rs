#![doc = include_str!("README.md")]

mod background;
mod directory;
mod report;
mod superblock;
mod walk;

use std::sync::Arc;
use std::time::Instant;

use onrush_log::{LogPosition, Lsn};
use onrush_waits::{Counter, LatchClass, Recorder, Wait};
use parking_lot::Mutex;

pub(crate) use background::start as start_background;
pub(crate) use directory::{Directory, Root};
pub use report::CheckpointReport;
pub(crate) use superblock::{Folders, Superblock, SuperblockFile, superblock_path};

use crate::buffer::Imager;
use crate::engine::Engine;
use crate::error::Result;
use crate::fault::{Fault, planted};
use crate::node::fence::head;
use crate::units::{Epoch, LeafId, ObjectId};

/// What the checkpoints of a database carry from one to the next. One checkpoint at a time.
pub(crate) struct Checkpointer {
    file: SuperblockFile,
    /// The last superblock that is durable.
    installed: Superblock,
    /// The directory that it names, and so the slots that must stay as they are.
    directory: Arc<Directory>,
    imager: Imager,
    /// Low fences of leaves that are no longer as the installed directory says; kept until a
    /// checkpoint has succeeded.
    changed: Vec<(ObjectId, Box<[u8]>)>,
}

impl Checkpointer {
    pub(crate) fn new(
        file: SuperblockFile,
        installed: Superblock,
        directory: Directory,
    ) -> Checkpointer {
        let (directory, imager) = (Arc::new(directory), Imager::new());
        Checkpointer { file, installed, directory, imager, changed: Vec::new() }
    }

    /// Where the log must reach back to.
    pub(crate) fn installed(&self) -> &Superblock {
        &self.installed
    }
}

/// The checkpointer's place in the engine, empty until recovery has read what is installed.
pub(crate) type CheckpointerCell = Mutex<Option<Checkpointer>>;

/// Takes one checkpoint; waits for one that is being taken.
pub(crate) fn run(engine: &Arc<Engine>, recorder: &Recorder) -> Result<CheckpointReport> {
    let mut cell = engine.checkpointer.lock();
    let Some(checkpointer) = cell.as_mut() else {
        return Ok(CheckpointReport::default());
    };
    checkpointer.take(engine, recorder)
}

impl Checkpointer {
    /// The steps of `README.md`, in order.
    fn take(&mut self, engine: &Arc<Engine>, recorder: &Recorder) -> Result<CheckpointReport> {
        let started = Instant::now();
        let (start, epoch) = begin(engine);
        let early_end = planted(Fault::EBeforeWalk).then(|| engine.log.tail());
        let images = self.drain(engine, recorder, epoch)?;
        let late_start = planted(Fault::CAfterEpoch).then(|| engine.log.position());
        let start = late_start.unwrap_or(start);
        let collected = {
            let _definitions = engine.catalog.definitions.lock();
            walk::collect(engine, recorder, &self.directory, &self.changed)?
        };
        let end = early_end.unwrap_or_else(|| engine.log.tail());
        if !planted(Fault::LogNotToE) {
            engine.log.wait_durable(end, recorder)?;
        }
        let segments = collected.changed_segments();
        self.install(engine, recorder, collected, start, end)?;
        recorder.count(Counter::Checkpoints, 1);
        Ok(CheckpointReport {
            number: self.installed.checkpoint,
            images,
            segments,
            redo_from_lsn: start.lsn.0,
            duration: started.elapsed(),
        })
    }

    /// Step 3: an image for every leaf that is dirty for an older epoch.
    fn drain(&mut self, engine: &Engine, recorder: &Recorder, epoch: Epoch) -> Result<u64> {
        let mut leaves = in_key_order(engine, recorder, engine.dirty.take_before(epoch));
        let mut images = 0;
        let place = engine.background_place();
        let mut number = 0;
        while number < leaves.len() {
            let id = leaves[number];
            let mut leaf = engine.leaves.get(id.0).latch.exclusive(recorder, LatchClass::Leaf);
            if leaf.object != ObjectId(0) {
                self.changed.push((leaf.object, leaf.low.bytes().into()));
            }
            let due = leaf.object != ObjectId(0) && leaf.is_dirty() && leaf.dirty_epoch < epoch;
            if due && !self.imager.capture(engine, place, id, &mut leaf) {
                // No slot for the second image that an unresolved intent will need: make room
                // outside of the latch, then come back.
                drop(leaf);
                if let Err(error) = engine.space.grow() {
                    put_back(engine, recorder, place, &leaves.split_off(number));
                    self.imager.write(engine, recorder)?;
                    return Err(error.into());
                }
                continue;
            }
            drop(leaf);
            number += 1;
            images += u64::from(due);
            if self.imager.is_full() {
                self.imager.write(engine, recorder)?;
            }
        }
        self.imager.write(engine, recorder)?;
        recorder.count(Counter::ImagesCheckpoint, images);
        Ok(images)
    }

    /// Steps 5 to 7: directory and data durable, then one superblock, then old slots and log are
    /// free.
    fn install(
        &mut self,
        engine: &Engine,
        recorder: &Recorder,
        collected: walk::Collected,
        start: LogPosition,
        end: Lsn,
    ) -> Result<()> {
        let mut directory = collected.write(engine)?;
        let checkpoint = self.installed.checkpoint + 1;
        let root = directory.write_root(engine)?;
        if !planted(Fault::NoDataSync) {
            let _wait = recorder.wait(Wait::DataSync);
            engine.space.files().sync().map_err(|error| engine.stop(error))?;
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
            ..self.installed.clone()
        };
        {
            let _wait = recorder.wait(Wait::DataSync);
            self.file.write(&superblock).map_err(|error| engine.stop(error))?;
        }
        let recycle_to = if planted(Fault::RecycleToE) { engine.log.position() } else { start };
        self.installed = superblock;
        self.directory = Arc::new(directory);
        self.changed.clear();
        engine.log.recycle_below(&recycle_to)?;
        Ok(())
    }
}

/// Steps 1 and 2: C first, then the epoch. A change below C has pushed its leaf on a list before
/// the switch; one that is not below C is redone from the log.
fn begin(engine: &Engine) -> (LogPosition, Epoch) {
    let epoch = Epoch(engine.dirty.epoch().0 + 1);
    let start = engine.log.position();
    engine.dirty.start_epoch(epoch);
    (start, epoch)
}

/// Neighbours in key order become neighbours on disk.
fn in_key_order(engine: &Engine, recorder: &Recorder, leaves: Vec<LeafId>) -> Vec<LeafId> {
    let mut keyed: Vec<(ObjectId, u64, LeafId)> = leaves
        .into_iter()
        .map(|id| {
            let leaf = engine.leaves.get(id.0).latch.shared(recorder, LatchClass::Leaf);
            (leaf.object, head(leaf.low.bytes()), id)
        })
        .collect();
    keyed.sort_unstable();
    keyed.dedup();
    keyed.into_iter().map(|(_, _, id)| id).collect()
}

/// A checkpoint that fails gives the leaves that it has not imaged to the next one.
fn put_back(engine: &Engine, recorder: &Recorder, place: usize, leaves: &[LeafId]) {
    for id in leaves {
        let leaf = engine.leaves.get(id.0).latch.exclusive(recorder, LatchClass::Leaf);
        if leaf.is_dirty() {
            engine.dirty.push(place, leaf.dirty_epoch, *id);
        }
    }
}
