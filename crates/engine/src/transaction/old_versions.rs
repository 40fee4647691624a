//! What old versions of all tables take, and who is given up when it is too much.
//!
//! Old versions stay in memory as long as an open snapshot may read them. When those of all tables take more than
//! `old_versions_bytes`, the oldest snapshot is *given up*: it does not hold versions any more, and those that nobody
//! else needs go. It stays open, and whatever it finds in leaves or among what is left is right; where something
//! has gone that it may have seen it is told `SnapshotTooOld`. Why so: `docs/decisions/0016-snapshots-are-given-up.md`.
//!
//! Invariants
//! 1. What is not durable yet never goes: *no such row* rests on who removed it, and a durable snapshot may open
//!    there. Where that alone is too much, whoever makes more waits until it is durable.
//! 2. A snapshot is given up before a version goes that it may need, and a store says what has gone before it
//!    goes; a reader asks after its look. So a reader finds the version or is told.
//! 3. A transaction looks for conflicts by old versions, too: where it does not find a row, and something has gone
//!    that would tell who removed it, it is refused as if somebody had.

use std::sync::Arc;

use onrush_waits::{Counter, Recorder};

use crate::tree::{Tree, Trees};

/// Drops old versions until those that are left take no more than they may. The caller is not inside the engine and
/// holds no latch: it may wait for the log. `every` tells the trees of all tables.
#[cold]
pub(crate) fn make_space(trees: &Trees, recorder: &Recorder, every: &dyn Fn() -> Vec<Arc<Tree>>) {
    let all = &trees.old_versions;
    let _one = all.lock(recorder);
    let mut has_waited = false;
    collect_all(trees, &every());
    while all.is_over() {
        let given_up = trees.resolver.snapshots.give_up_oldest(&trees.log, recorder);
        if given_up > 0 {
            recorder.count(Counter::SnapshotsGivenUp, given_up);
        } else if std::mem::replace(&mut has_waited, true)
            || trees.log.wait_durable(trees.log.prefix(), recorder).is_err()
        {
            // What came meanwhile has its own writer to make space for it.
            return;
        }
        collect_all(trees, &every());
    }
}

fn collect_all(trees: &Trees, every: &[Arc<Tree>]) {
    let horizon = trees.horizon();
    for tree in every {
        tree.versions.collect(&trees.old_versions, horizon);
    }
}
