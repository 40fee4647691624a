//! The way to a leaf in steps, each of which asks for the memory that the next one reads: who
//! knows a key some inserts ahead does not wait for memory when its turn comes. Figures:
//! `docs/decisions/0004-random-keys-are-prefetched.md`.
//!
//! What a step finds is where the key belonged a moment ago; whoever latches the leaf looks again.

use onrush_waits::Recorder;

use super::Trees;
use super::{Hint, Tree};
use crate::node::fence::head;
use crate::units::{InnerId, LeafId};

/// How far the way to one key has been gone.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) enum LeafPrefetch {
    /// Not begun.
    #[default]
    Root,
    /// The node above the leaf has been asked for.
    Parent(InnerId),
    /// The header of the leaf has been asked for.
    Header(LeafId),
    /// The lines of the leaf that an insert touches have been asked for.
    Rows(LeafId),
}

impl LeafPrefetch {
    /// Goes one step on, on the way to `key`, for a row of about `entry_bytes`.
    #[inline]
    pub(crate) fn step(
        self,
        tree: &Tree,
        trees: &Trees,
        recorder: &Recorder,
        key: &[u8],
        entry_bytes: usize,
    ) -> LeafPrefetch {
        match self {
            LeafPrefetch::Root => {
                let parent = tree.descend_to_parent(trees, recorder, head(key), key);
                trees.inners.get(parent.0).prefetch();
                LeafPrefetch::Parent(parent)
            }
            LeafPrefetch::Parent(parent) => {
                let leaf = tree.descend_from(trees, recorder, parent, head(key), key);
                crate::memory::prefetch(std::slice::from_ref(trees.leaves.get(leaf.0)));
                LeafPrefetch::Header(leaf)
            }
            LeafPrefetch::Header(leaf) => {
                if let Some(state) = trees.leaves.get(leaf.0).latch.try_exclusive()
                    && let Some(rows) = &state.rows
                {
                    rows.prefetch(entry_bytes);
                }
                LeafPrefetch::Rows(leaf)
            }
            LeafPrefetch::Rows(_) => self,
        }
    }

    /// What has been found, for the insert itself.
    #[inline]
    pub(crate) fn hint(self, key: &[u8]) -> Option<Hint> {
        match self {
            LeafPrefetch::Root | LeafPrefetch::Parent(_) => None,
            LeafPrefetch::Header(leaf) | LeafPrefetch::Rows(leaf) => {
                Some(Hint::at(leaf, head(key)))
            }
        }
    }
}

impl Tree {
    /// Goes the whole way to the leaf of `key` at once and asks for its header, for who does something else before he
    /// latches it.
    pub(crate) fn prefetch_header(&self, trees: &Trees, recorder: &Recorder, key: &[u8]) -> Hint {
        let key_head = head(key);
        let leaf = self.descend(trees, recorder, key_head, key);
        crate::memory::prefetch(std::slice::from_ref(trees.leaves.get(leaf.0)));
        Hint::at(leaf, key_head)
    }
}
