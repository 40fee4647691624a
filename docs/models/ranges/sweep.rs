//! Sweeps: intents of large transactions in leaves become rows, or go, so that outcomes can be forgotten.
//!
//! A sweep leaves the stocks alone: they hold the outcomes of what they have, and merges resolve it.

use super::types::{KEYS, Number};
use super::world::Shared;

/// Sweeps for every large transaction that was committed.
pub(super) async fn sweep_due(shared: &Shared) {
    let due = shared.world().large.to_sweep();
    for number in due {
        sweep(shared, number).await;
    }
}

/// Behind a commit: no leaf has an intent of this transaction afterwards.
pub(super) async fn sweep(shared: &Shared, number: Number) {
    sweep_leaves(shared).await;
    let mut world = shared.world();
    world.large.set_swept(number);
    world.counts.sweeps += 1;
}

/// Every leaf is loaded, and becomes dirty if it changes.
pub(super) async fn sweep_leaves(shared: &Shared) {
    let mut cursor = 0;
    while cursor < KEYS {
        let low = shared.latch(cursor).await;
        {
            let mut world = shared.world();
            world.load(low);
            world.resolve_leaf(low);
            cursor = world.leaf(low).high;
            world.unlatch(low);
        }
        shared.step().await;
    }
}
