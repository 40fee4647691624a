//! Leaves that removals have left empty, of tables whose rows are not logged: those are on no list
//! of a checkpoint, so the background thread takes them out of their trees.

use std::collections::BTreeSet;

use onrush_waits::{LatchClass, Recorder};
use parking_lot::Mutex;

use super::leaf::LeafState;
use crate::btree::{EmptyLeaf, Joined};
use crate::engine::Engine;
use crate::units::LeafId;

/// See the module.
#[derive(Default)]
pub(crate) struct EmptiedLeaves(Mutex<Vec<LeafId>>);

impl Engine {
    /// After a removal: remembers the leaf if it is empty and no checkpoint looks at it. The caller
    /// holds its latch exclusive.
    #[inline]
    pub(crate) fn note_emptied(&self, id: LeafId, leaf: &LeafState) {
        if !leaf.logged && leaf.is_known_empty() {
            self.emptied.0.lock().push(id);
        }
    }

    /// Takes the leaves remembered until now out of their trees. Called without latches.
    pub(crate) fn join_emptied(&self, recorder: &Recorder) {
        let ids = std::mem::take(&mut *self.emptied.0.lock());
        let leaves: BTreeSet<EmptyLeaf> =
            ids.into_iter().filter_map(|id| self.still_empty(id, recorder)).collect();
        for leaf in leaves {
            let Some(tree) = self.tree_of(leaf.object) else { continue };
            let (place, epoch) = (self.background_place(), self.dirty.epoch());
            if tree.join_empty(self, recorder, place, &leaf, epoch) == Joined::NotNow {
                self.emptied.0.lock().push(leaf.id);
            }
        }
    }

    fn still_empty(&self, id: LeafId, recorder: &Recorder) -> Option<EmptyLeaf> {
        let leaf = self.leaves.get(id.0).latch.shared(recorder, LatchClass::Leaf);
        // The place may be another leaf's by now, which a checkpoint looks at.
        EmptyLeaf::of(id, &leaf).filter(|_| !leaf.logged)
    }
}
