//! Takes leaves that removals have emptied out of their trees, where no checkpoint looks at them: those of tables whose
//! rows are not logged.

use std::collections::BTreeSet;

use onrush_waits::{LatchClass, Recorder};

use super::Store;
use crate::tree::{EmptyLeaf, Merged};
use crate::units::LeafId;

impl Store {
    /// Takes the leaves remembered until now out of their trees. Called without latches.
    pub(crate) fn merge_emptied(&self, recorder: &Recorder) {
        let ids = self.emptied.take();
        let leaves: BTreeSet<EmptyLeaf> =
            ids.into_iter().filter_map(|id| self.still_empty(id, recorder)).collect();
        for leaf in leaves {
            let Some(tree) = self.tree_of(leaf.object) else { continue };
            let (permit, epoch) = (self.background_permit(), self.dirty.epoch());
            if tree.merge_empty(self, recorder, permit, &leaf, epoch) == Merged::NotNow {
                self.emptied.push(leaf.id);
            }
        }
    }

    fn still_empty(&self, id: LeafId, recorder: &Recorder) -> Option<EmptyLeaf> {
        let leaf = self.leaves.get(id.0).latch.shared(recorder, LatchClass::Leaf);
        // The place may be another leaf's by now, which a checkpoint looks at.
        EmptyLeaf::of(id, &leaf).filter(|_| !leaf.logged)
    }
}
