//! A space install: a directory with the stocks of now and the C of the checkpoint before. The slots of runs that were
//! replaced since are free then, and need not wait for the next checkpoint. It costs the writes of some segments and
//! two syncs: no leaf is written back, and no range is flushed.
//!
//! Invariants
//! 1. C stays. What is below C is in the images and stocks of the installed directory, and whatever takes their place
//!    has it, too; what is above is redone, as it is behind a checkpoint.
//! 2. Logged tables are defined as in the installed directory, and every outcome of a large transaction is named.
//! 3. A segment is written anew only if all its leaves without a range are clean. One with a dirty leaf, and what is
//!    about to be divided or merged across its bounds, is left to the next checkpoint.

use onrush_latch::lock_counted;
use onrush_waits::{Counter, LatchClass, Phase, Recorder};

use super::{Bounds, Checkpointer, Store, walk};
use crate::error::Result;
use crate::fault::{Fault, planted};

/// Of all slots so large a part must be of replaced runs, ...
const REPLACED_PART: u64 = 32;
/// ... but at least so many, 32 MiB.
const REPLACED_MIN: u64 = 2048;

/// Whether so many slots wait for a directory that one is worth it.
pub(crate) fn is_space_install_due(store: &Store) -> bool {
    let replaced = store.ranges.replaced_slots();
    replaced >= REPLACED_MIN && replaced >= store.space.slots() / REPLACED_PART
}

/// Takes a space install, unless a checkpoint is being taken or a range made. Whether a directory was installed.
///
/// # Errors
/// A full disk: the old directory stands. A failed write stops the engine.
pub(crate) fn install_space(store: &Store, recorder: &Recorder) -> Result<bool> {
    let Some(mut cell) = store.checkpointer.try_lock() else { return Ok(false) };
    let Some(checkpointer) = cell.as_mut() else { return Ok(false) };
    let _work = recorder.work(Phase::Checkpoint);
    let _stop = store.stop_on_panic();
    checkpointer.install_space(store, recorder)
}

impl Checkpointer {
    fn install_space(&mut self, store: &Store, recorder: &Recorder) -> Result<bool> {
        let replaced = store.ranges.replaced_slots();
        self.changed.extend(store.ranges.take_changed());
        let (collected, end) = {
            let definitions = &store.catalog.definitions;
            let _definitions = lock_counted(definitions, recorder, LatchClass::Catalog);
            let collected = walk::collect_clean(store, recorder, &self.directory, &self.changed)?;
            (collected, store.log.tail())
        };
        let Some((collected, left)) = collected else {
            store.ranges.forget_replaced(replaced);
            return Ok(false);
        };
        if !planted(Fault::SpaceInstallNotToE) {
            store.log.wait_durable(end, recorder)?;
        }
        let start = match planted(Fault::SpaceInstallTakesNewC) {
            true => store.log.position(),
            false => self.installed.start,
        };
        let checkpoint = self.installed.checkpoint;
        self.install(store, recorder, collected, Bounds { checkpoint, start, end })?;
        self.changed = left;
        store.ranges.forget_replaced(replaced);
        recorder.count(Counter::SpaceInstalls, 1);
        Ok(true)
    }
}
