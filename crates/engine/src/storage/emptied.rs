//! Leaves that removals have left empty, of tables whose rows are not logged: those are on no list
//! of a checkpoint, so the background thread takes them out of their trees.

use parking_lot::Mutex;

use super::Storage;
use super::leaf::LeafState;
use crate::units::LeafId;

/// See the module.
#[derive(Default)]
pub(crate) struct EmptiedLeaves(Mutex<Vec<LeafId>>);

impl EmptiedLeaves {
    pub(crate) fn push(&self, id: LeafId) {
        self.0.lock().push(id);
    }

    /// Those remembered until now.
    pub(crate) fn take(&self) -> Vec<LeafId> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Storage {
    /// After a removal: remembers the leaf if it is empty and no checkpoint looks at it. The caller
    /// holds its latch exclusive.
    #[inline]
    pub(crate) fn note_emptied(&self, id: LeafId, leaf: &LeafState) {
        if !leaf.logged && leaf.is_known_empty() {
            self.emptied.push(id);
        }
    }
}
