//! Resolves what large transactions have left in leaves and in stocks, so that their outcomes can be forgotten.
//!
//! A sweep looks at every leaf of every object that the transaction has written. It takes no LSN: what it
//! changes in a leaf says the same as before. It runs behind the commit, and where a snapshot stood in the way, or
//! after a crash, before a checkpoint.
//!
//! What it has left in stocks is resolved when they are compacted, by the threads that do that, if there are any. Only
//! when no stock has an intent of it any more is the outcome forgotten. Of an aborted one nothing need be known, so
//! nobody waits until its intents are out of stocks.
//!
//! Invariants
//! 1. A number is marked as swept only when no leaf, in memory or on disk, and no stock holds an intent of it. A
//!    leaf that the sweep changes becomes dirty, so the image that the next checkpoint names has none either.
//! 2. Leaves first: whoever takes an intent with an outcome out of a stock into a leaf resolves it.

use onrush_waits::{Recorder, Wait};

use super::Store;
use crate::fault::{Fault, planted};
use crate::options::Background;
use crate::tree::Swept;
use crate::units::ObjectId;

/// Sweeps for every committed large transaction that no snapshot stands in the way of. What fails is left
/// for the next time.
pub(crate) fn sweep_due(store: &Store, recorder: &Recorder) {
    for (id, committed) in store.resolver.large.to_sweep(store.horizon()) {
        let (objects, grow) = (&committed.objects, || store.space.grow().is_ok());
        if planted(Fault::StatusForgottenEarly) {
            store.resolver.large.set_swept(id);
            continue;
        }
        if !committed.are_leaves_swept && !sweep_all(store, recorder, objects, &grow) {
            continue;
        }
        store.resolver.large.set_leaves_swept(id);
        if planted(Fault::StocksNotSwept) || sweep_stocks(store, recorder, id, objects) {
            store.resolver.large.set_swept(id);
        }
    }
}

/// Whether no stock of these objects has an intent of the transaction. Where no threads compact, the caller does. A
/// flush that is under way may have copied some while the transaction was open. They mean nothing: its front leaves
/// have the rows that came of them, or what hides them, and the next checkpoint waits for that flush and flushes the
/// range again.
fn sweep_stocks(store: &Store, recorder: &Recorder, id: u64, objects: &[ObjectId]) -> bool {
    let next = || {
        let mut ranges = store.ranges.all().into_iter();
        ranges.find(|it| objects.contains(&it.object) && it.stock().owners().any(|own| own == id))
    };
    if store.options.background == Background::Threads {
        store.ranges.wake_threads();
        return next().is_none();
    }
    while let Some(range) = next() {
        let Some(tree) = store.tree_of(range.object) else {
            store.ranges.retire(&range);
            continue;
        };
        let is_compacted = tree.flush(store, recorder, &range, None).is_ok()
            && tree.compact(store, recorder, &range, false).is_ok_and(|done| done);
        if !is_compacted || range.stock().owners().any(|own| own == id) {
            return false;
        }
    }
    true
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
