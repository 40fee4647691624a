//! Resolves what large transactions have left in leaves, so that their outcomes can be forgotten.
//!
//! A sweep looks at every leaf of every object that the transaction has written. It takes no LSN: what it
//! changes in a leaf says the same as before. It runs behind the commit, and where a snapshot stood in the way, or
//! after a crash, before a checkpoint.
//!
//! Invariant: a number is marked as swept only when no leaf, in memory or on disk, holds an intent of it. A
//! leaf that the sweep changes becomes dirty, so the image that the next checkpoint names has none either.

use onrush_waits::{Recorder, Wait};

use super::Store;
use crate::fault::{Fault, planted};
use crate::tree::Swept;
use crate::units::ObjectId;

/// Sweeps for every committed large transaction that no snapshot stands in the way of. What fails is left
/// for the next time.
pub(crate) fn sweep_due(store: &Store, recorder: &Recorder) {
    for (id, objects) in store.resolver.large.to_sweep(store.horizon()) {
        let grow = || store.space.grow().is_ok();
        if planted(Fault::StatusForgottenEarly) || sweep_all(store, recorder, &objects, &grow) {
            store.resolver.large.set_swept(id);
        }
    }
}

/// Takes what an aborted transaction has placed out of the leaves of these objects. On a full disk checkpoints make
/// the space for that, since what is taken out gives space back; the caller holds nothing that they need.
pub(crate) fn sweep_aborted(store: &Store, recorder: &Recorder, objects: &[ObjectId]) {
    sweep_all(store, recorder, objects, &|| store.make_slots(recorder).is_ok());
}

/// Resolves what can be resolved in all leaves of these objects. False if a leaf could not be looked at.
fn sweep_all(
    store: &Store,
    recorder: &Recorder,
    objects: &[ObjectId],
    make_slots: &dyn Fn() -> bool,
) -> bool {
    objects.iter().all(|object| sweep_object(store, recorder, *object, make_slots))
}

fn sweep_object(
    store: &Store,
    recorder: &Recorder,
    object: ObjectId,
    make_slots: &dyn Fn() -> bool,
) -> bool {
    let Some(tree) = store.tree_of(object) else { return true };
    let mut at = Vec::new();
    while store.check_open().is_ok() || store.is_closing() {
        match tree.sweep_leaf(store, recorder, object, &at) {
            Swept::Next(Some(next)) => at = next,
            Swept::Next(None) | Swept::Gone => return true,
            Swept::OnDisk(leaf) => {
                if store.load_leaf(leaf, Wait::PageIoLatchEx, recorder).is_err() {
                    return false;
                }
            }
            Swept::NoSlot => {
                if !make_slots() {
                    return false;
                }
            }
        }
        if store.has_failed() {
            return false;
        }
    }
    false
}
