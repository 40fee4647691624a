//! Takes an empty leaf out of the tree: its range goes to the leaf on its left. Nothing is logged.
//! [the reverse: a split](super::split)
//!
//! 1. The inner nodes forget the leaf. What is looked for in it is then found as after a half-done
//!    split, over its left neighbour.
//! 2. Under the latches of both, left before right: the left one takes the range, and the empty one
//!    leaves the chain. If the leaf has got rows meanwhile, the inner nodes learn of it again.
//!
//! Invariants
//! 1. Only a leaf that the inner nodes know is taken out: whoever has split it off and is about to
//!    tell them would lead them to a leaf that is gone.
//! 2. The left leaf's image may hold rows of the range that it takes, from before a split. So it is
//!    imaged anew before anyone needs an image of it: it is made dirty for an epoch before the one
//!    that the checkpoint has begun, whose write-back therefore finds it. Only a checkpoint merges logged
//!    leaves, in its write-back: a walk would meet a leaf that is wider than its image.

use std::sync::Arc;

use onrush_latch::{ExclusiveGuard, lock_counted};
use onrush_waits::{Counter, LatchClass, Recorder, Wait};

use super::Trees;
use super::{Refusal, Tree};
use crate::fault::{Fault, planted};
use crate::node::fence::head;
use crate::node::inner::InnerNode;
use crate::space::Purpose;
use crate::storage::LeafState;
use crate::units::{Epoch, LeafId, ObjectId};

/// How often the left neighbour is loaded in vain: it may be evicted again at once.
const LOADS_MAX: usize = 4;

/// How often the left neighbour is looked for: others split and merge meanwhile. More often it is looked for in vain
/// only where the chain of leaves is damaged, which must not keep a checkpoint for ever.
const DESCENTS_MAX: usize = 10_000;

/// An empty leaf that is about to go. In order they stand from left to right, so that a row of them
/// goes to one neighbour.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct EmptyLeaf {
    pub(crate) object: ObjectId,
    pub(crate) low: Box<[u8]>,
    pub(crate) id: LeafId,
}

impl EmptyLeaf {
    /// The latched leaf, if it is empty, belongs to a table, and has a left neighbour.
    pub(crate) fn of(id: LeafId, leaf: &LeafState) -> Option<EmptyLeaf> {
        let low = leaf.low.bytes();
        let can_go = !low.is_empty() && leaf.is_known_empty();
        leaf.object.filter(|_| can_go).map(|object| EmptyLeaf { object, low: low.into(), id })
    }
}

/// What became of it.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Merged {
    /// It is gone; the leaf that begins here has its range.
    Into(Box<[u8]>),
    /// It has rows again, or it is not a leaf of the table any more.
    NotEmpty,
    /// Another time: the inner nodes do not know it yet or have no space, its neighbour cannot be
    /// loaded, or there is no slot for the neighbour's image.
    NotNow,
}

/// One step from the root down: a node, and which of its children.
struct Step {
    node: u32,
    index: usize,
}

impl Tree {
    /// Merges an empty leaf into its left neighbour, which is made dirty for `epoch`. The first leaf
    /// of a table has none, and must not be asked for. Called without latches: it may wait for the
    /// disk and for a frame.
    pub(crate) fn merge_empty(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        permit: usize,
        empty: &EmptyLeaf,
        epoch: Epoch,
    ) -> Merged {
        if !self.unlink(trees, recorder, empty) {
            return Merged::NotNow;
        }
        let merged = self.merge_unlinked(trees, recorder, permit, empty, epoch);
        if !matches!(merged, Merged::Into(_)) {
            self.link(trees, recorder, empty.object, &empty.low, empty.id);
        }
        merged
    }

    fn merge_unlinked(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        permit: usize,
        empty: &EmptyLeaf,
        epoch: Epoch,
    ) -> Merged {
        for _ in 0..LOADS_MAX {
            let (left_id, mut left) = match self.latch_left_of(trees, recorder, empty) {
                Ok(Some(latched)) => latched,
                Ok(None) => return Merged::NotNow,
                Err(_) => return Merged::NotEmpty,
            };
            if left.rows.is_none() && left.image.is_some() {
                drop(left);
                // A damaged image is for those to report who need its rows.
                if trees.load_leaf(left_id, Wait::PageIoLatchEx, recorder).is_err() {
                    return Merged::NotNow;
                }
                continue;
            }
            let leaf = trees.leaves.get(empty.id.0);
            let mut right = leaf.latch.exclusive(recorder, LatchClass::Leaf);
            if right.object != Some(empty.object) || !right.has_nothing_in_memory() {
                return Merged::NotEmpty;
            }
            if !are_of_one_range(&left, &right) {
                return Merged::NotNow;
            }
            if !prepare(trees, permit, left_id, &mut left, &mut right, epoch) {
                return Merged::NotNow;
            }
            left.high = right.high.take();
            left.next = right.next;
            trees.retire_leaf(&mut right);
            drop(right);
            trees.leaves.give_back(empty.id.0);
            recorder.count(Counter::LeavesRemoved, 1);
            return Merged::Into(left.low.bytes().into());
        }
        Merged::NotNow
    }

    /// Latches the leaf that ends where the empty one begins, exclusive. None: it is not found.
    fn latch_left_of<'e>(
        &self,
        trees: &'e Trees,
        recorder: &Recorder,
        empty: &EmptyLeaf,
    ) -> Result<Option<(LeafId, ExclusiveGuard<'e, LeafState>)>, Refusal> {
        let low = &*empty.low;
        let mut id = self.descend_below(trees, recorder, Some(low));
        let mut descents = 1;
        while descents <= DESCENTS_MAX {
            self.check_current(empty.object)?;
            let state = trees.leaves.get(id.0).latch.exclusive(recorder, LatchClass::Leaf);
            let is_here = state.object == Some(empty.object) && state.low.bytes() < low;
            if is_here && state.next == Some(empty.id) {
                return Ok(Some((id, state)));
            }
            let ends_before = state.high.as_ref().is_some_and(|high| high.bytes() < low);
            id = match state.next {
                Some(next) if is_here && ends_before => next,
                _ => {
                    drop(state);
                    descents += 1;
                    self.descend_below(trees, recorder, Some(low))
                }
            };
        }
        Ok(None)
    }

    /// Makes the inner nodes forget a leaf. False if they do not know it, or if it must stay for
    /// want of space for another separator.
    fn unlink(&self, trees: &Trees, recorder: &Recorder, empty: &EmptyLeaf) -> bool {
        let _structure = lock_counted(&self.structure, recorder, LatchClass::TreeStructure);
        if self.object() != Some(empty.object) {
            return false;
        }
        let path = self.path_to(trees, &empty.low);
        let knows = |step: &Step| trees.inners.get(step.node).child(step.index) == empty.id.0;
        // Where the ways to the leaf and to its left neighbour part.
        let parting = path.iter().rposition(|step| step.index > 0);
        let (Some(parting), Some(true)) = (parting, path.last().map(knows)) else { return false };
        let node = |at: usize| trees.inners.get(path[at].node);
        if node(parting).separator(path[parting].index) != *empty.low {
            return false;
        }
        // From there on the leaf is below first children only. The lowest node that has others.
        let only_child = |at: usize| at > parting && node(at).len() == 1;
        let bottom = path.len() - 1;
        let Some(keeper) = (parting..=bottom).rev().find(|at| !only_child(*at)) else {
            return false;
        };
        if keeper > parting {
            let separator = node(keeper).separator(1);
            let index = path[parting].index;
            if !node(parting).has_space_instead(index, &separator) {
                return false;
            }
            // First the range goes to the left, then the leaf: a reader in between begins again.
            change(node(parting), recorder, |node| node.replace_separator(index, &separator));
        }
        change(node(keeper), recorder, |node| node.remove(path[keeper].index));
        for step in &path[keeper + 1..] {
            trees.inners.give_back(step.node);
        }
        true
    }

    /// The way from the root to the leaf of `key`. The caller holds the structure mutex.
    fn path_to(&self, trees: &Trees, key: &[u8]) -> Vec<Step> {
        let mut path = Vec::new();
        let mut at = self.root.load(std::sync::atomic::Ordering::Acquire);
        loop {
            let node = trees.inners.get(at);
            let index = node.search(head(key), key);
            path.push(Step { node: at, index });
            if node.level() == 1 {
                return path;
            }
            at = node.child(index);
        }
    }
}

/// Changes a node that readers may be in.
fn change(node: &InnerNode, recorder: &Recorder, work: impl FnOnce(&InnerNode)) {
    let _version = node.version.write(recorder);
    work(node);
}

/// Whether both have images, or the stock of one range behind them, whose bounds stay as they are.
fn are_of_one_range(left: &LeafState, right: &LeafState) -> bool {
    match (&left.range, &right.range) {
        (None, None) => true,
        (Some(left), Some(right)) => Arc::ptr_eq(left, right),
        _ => false,
    }
}

/// Sees to it that the left leaf's image is never read for the range that it takes. False if no
/// slot is free for a new one.
fn prepare(
    trees: &Trees,
    permit: usize,
    left_id: LeafId,
    left: &mut LeafState,
    right: &mut LeafState,
    epoch: Epoch,
) -> bool {
    if left.range.is_some() || (left.image.is_none() && left.rows.is_none()) {
        // Empty as well, or in front of a stock, and no image to be too wide.
        return true;
    }
    if planted(Fault::MergeKeepsImage) {
        return true;
    }
    if !left.is_dirty() {
        if right.is_dirty() {
            // The slot that was reserved for the empty leaf's image.
            right.dirty_epoch = None;
        } else if !trees.space.try_reserve(1, Purpose::Checkpoint) {
            return false;
        }
    } else if left.dirty_epoch.is_some_and(|own| own <= epoch) {
        return true;
    }
    left.dirty_epoch = Some(epoch);
    trees.list_dirty(permit, left_id, left);
    true
}
