//! Folds what large transactions have left in leaves, so that their verdicts can be forgotten.
//!
//! A sweep looks at every leaf of every object that the transaction has written. It takes no LSN: what it
//! changes in a leaf says the same as before. It runs behind the commit, and where a snapshot stood in the way, or
//! after a crash, before a checkpoint.
//!
//! Invariant: a number is marked as swept only when no leaf, in memory or on disk, holds an intent of it. A
//! leaf that the sweep changes becomes dirty, so the image that the next checkpoint names has none either.

use std::sync::Arc;

use onrush_waits::{Recorder, Wait};

use crate::btree::Swept;
use crate::engine::Engine;
use crate::fault::{Fault, planted};
use crate::units::ObjectId;

/// Sweeps for every committed large transaction that no snapshot stands in the way of. What fails is left
/// for the next time.
pub(crate) fn sweep_due(engine: &Engine, recorder: &Recorder) {
    for (id, objects) in engine.large.to_sweep(engine.horizon()) {
        let grow = || engine.space.grow().is_ok();
        if planted(Fault::VerdictForgottenEarly) || sweep_all(engine, recorder, &objects, &grow) {
            engine.large.set_swept(id);
        }
    }
}

/// Takes what an aborted transaction has placed out of the leaves of these objects. On a full disk checkpoints make
/// the room for that, since what is taken out gives room back; the caller holds nothing that they need.
pub(crate) fn sweep_aborted(engine: &Arc<Engine>, recorder: &Recorder, objects: &[ObjectId]) {
    sweep_all(engine, recorder, objects, &|| engine.make_slots(recorder).is_ok());
}

/// Folds what can be folded in all leaves of these objects. False if a leaf could not be looked at.
fn sweep_all(
    engine: &Engine,
    recorder: &Recorder,
    objects: &[ObjectId],
    make_slots: &dyn Fn() -> bool,
) -> bool {
    objects.iter().all(|object| sweep_object(engine, recorder, *object, make_slots))
}

fn sweep_object(
    engine: &Engine,
    recorder: &Recorder,
    object: ObjectId,
    make_slots: &dyn Fn() -> bool,
) -> bool {
    let Some(tree) = engine.tree_of(object) else { return true };
    let mut at = Vec::new();
    while engine.check_open().is_ok() || engine.is_closing() {
        match tree.sweep_leaf(engine, recorder, object, &at) {
            Swept::Next(Some(next)) => at = next,
            Swept::Next(None) | Swept::Gone => return true,
            Swept::OnDisk(leaf) => {
                if engine.load_leaf(leaf, Wait::PageIoLatchEx, recorder).is_err() {
                    return false;
                }
            }
            Swept::NoSlot => {
                if !make_slots() {
                    return false;
                }
            }
        }
        if engine.has_failed() {
            return false;
        }
    }
    false
}
