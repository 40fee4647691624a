//! Takes an empty leaf out of the tree; its left neighbour takes the range.

use super::leaf::{Exclusive, LeafState};
use super::{BACKGROUND_PLACE, CLEAN, Engine, Epoch, Fault, Key, LeafId};

/// How often the left neighbour is loaded in vain.
const LOADS_MAX: usize = 4;

/// An empty leaf that is about to go.
#[derive(Clone, Copy)]
pub struct EmptyLeaf {
    pub low: Key,
    pub id: LeafId,
}

impl Engine {
    /// Returns the low fence of the neighbour, which is dirty for `epoch`; none if the leaf stays.
    pub fn join_empty(&self, empty: EmptyLeaf, epoch: Epoch) -> Option<Key> {
        if !self.unlink(empty) && !self.planted(Fault::JoinUnknownLeaf) {
            return None;
        }
        let joined = self.join_unlinked(empty, epoch);
        if joined.is_none() {
            self.link(empty.low, empty.id);
        }
        joined
    }

    /// False if the inner nodes do not know the leaf.
    fn unlink(&self, empty: EmptyLeaf) -> bool {
        let mut inner = self.tree.inner.write().expect("held for a moment");
        let knows = inner.get(&empty.low) == Some(&empty.id);
        if knows {
            inner.remove(&empty.low);
        }
        knows
    }

    fn join_unlinked(&self, empty: EmptyLeaf, epoch: Epoch) -> Option<Key> {
        for _ in 0..LOADS_MAX {
            let (left_id, mut left) = self.latch_left_of(empty);
            if left.rows.is_none() && left.image.is_some() {
                drop(left);
                self.load_leaf(left_id);
                continue;
            }
            let mut right = self.leaves.exclusive(empty.id);
            if !right.is_known_empty() {
                return None;
            }
            self.prepare(left_id, &mut left, epoch);
            left.high = right.high.take();
            left.next = right.next;
            *right = LeafState::default();
            return Some(left.low);
        }
        None
    }

    fn latch_left_of(&self, empty: EmptyLeaf) -> (LeafId, Exclusive<'_>) {
        let mut id = self.tree.descend(empty.low - 1);
        loop {
            let state = self.leaves.exclusive(id);
            if state.is_used && state.next == Some(empty.id) {
                return (id, state);
            }
            id = match state.next {
                Some(next) if state.is_used && state.high.is_some_and(|high| high < empty.low) => {
                    next
                }
                _ => self.tree.descend(empty.low - 1),
            };
        }
    }

    /// Sees to it that the left leaf's image is never read for the range that it takes.
    fn prepare(&self, left_id: LeafId, left: &mut LeafState, epoch: Epoch) {
        let is_empty_on_disk = left.rows.is_none() && left.image.is_none();
        let is_listed = left.dirty_epoch != CLEAN && left.dirty_epoch <= epoch;
        if is_empty_on_disk || is_listed || self.planted(Fault::MergeKeepsImage) {
            return;
        }
        left.dirty_epoch = epoch;
        self.dirty.push(BACKGROUND_PLACE, epoch, left_id);
    }
}
