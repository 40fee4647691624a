//! Leaves that removals have left empty, of tables whose rows are not logged: those are on no list
//! of a checkpoint, so the background thread takes them out of their trees.

use onrush_waits::{LatchClass, Recorder};
use parking_lot::Mutex;

use super::leaf::LeafState;
use crate::btree::{EmptyLeaf, Joined};
use crate::engine::Engine;
use crate::units::{LeafId, ObjectId};

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
        let mut ids = std::mem::take(&mut *self.emptied.0.lock());
        ids.sort_unstable();
        ids.dedup();
        let mut leaves: Vec<EmptyLeaf> =
            ids.into_iter().filter_map(|id| self.still_empty(id, recorder)).collect();
        // From left to right, so that a row of empty leaves goes to one neighbour.
        leaves.sort_unstable_by(|a, b| (a.object, &a.low).cmp(&(b.object, &b.low)));
        for leaf in leaves {
            let Some(tree) = self.tree_of(leaf.object) else { continue };
            let (place, epoch) = (self.background_place(), self.dirty.epoch());
            if tree.join_empty(self, recorder, place, &leaf, epoch) == Joined::NotNow {
                self.emptied.0.lock().push(leaf.id);
            }
        }
    }

    /// The leaf, if it is an empty one of an unlogged table and has a left neighbour.
    fn still_empty(&self, id: LeafId, recorder: &Recorder) -> Option<EmptyLeaf> {
        let leaf = self.leaves.get(id.0).latch.shared(recorder, LatchClass::Leaf);
        let is_first = leaf.low.bytes().is_empty();
        if leaf.object == ObjectId(0) || leaf.logged || is_first || !leaf.is_known_empty() {
            return None;
        }
        Some(EmptyLeaf { id, object: leaf.object, low: leaf.low.bytes().into() })
    }
}
