//! Makes a range with a stock of neighbouring leaves that are read from the disk for changes again and again: the
//! leaves of one node above them, or where there is little memory a part of these.
//!
//! 1. Those that are on disk only are loaded. 2. All are latched, from left to right, and lose their images: they stand
//!    in front of a stock in which nothing is yet, and are dirty. 3. The range is flushed, which writes its base.
//!
//! Invariants
//! 1. No checkpoint is taken meanwhile: it would meet leaves with images beside leaves of the range.
//! 2. Leaves with intents of large transactions are not converted: a stock has none.
//! 3. Nothing is read or written under the latches.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use onrush_latch::{ExclusiveGuard, lock_counted};
use onrush_waits::{Counter, LatchClass, Recorder, Wait};

use super::intent::resolve_intents;
use super::{Tree, Trees};
use crate::error::Result;
use crate::node::fence::{Fence, head};
use crate::node::inner::InnerNode;
use crate::space::Purpose;
use crate::storage::{LeafState, Range, Stock};
use crate::units::{LeafId, ObjectId};

/// Fewer leaves are not worth a range.
pub(crate) const LEAVES_OF_A_RANGE_MIN: usize = 8;
/// The leaves are in memory at once: they take this part of the frames at most.
const PART_OF_FRAMES: usize = 4;

/// A latched leaf.
type Held<'e> = (LeafId, ExclusiveGuard<'e, LeafState>);

/// Leaves of a node, as many as there are and as many as have rows in memory.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Neighbours {
    pub(crate) leaves: usize,
    pub(crate) in_memory: usize,
}

/// Leaves of one node right above leaves, and where their keys begin and end.
struct Node {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    leaves: Vec<LeafId>,
}

/// Children of a node right above leaves, and where their keys begin and end.
struct Span<'e> {
    node: &'e InnerNode,
    children: std::ops::Range<usize>,
    low: Vec<u8>,
    high: Option<Vec<u8>>,
}

impl Tree {
    /// Where the keys begin of the leaves that would become a range with that of `key`.
    pub(crate) fn node_low(&self, trees: &Trees, recorder: &Recorder, key: &[u8]) -> Vec<u8> {
        let _structure = lock_counted(&self.structure, recorder, LatchClass::TreeStructure);
        self.span_of(trees, key).low
    }

    /// How many neighbours the leaf of `key` has below its node, and how many of them are in memory.
    pub(crate) fn neighbours(&self, trees: &Trees, recorder: &Recorder, key: &[u8]) -> Neighbours {
        let node = self.node_of(trees, recorder, key);
        let is_in_memory = |id: &&LeafId| {
            let state = trees.leaves.get(id.0).latch.try_shared();
            state.is_none_or(|state| state.rows.is_some())
        };
        let in_memory = node.leaves.iter().filter(is_in_memory).count();
        Neighbours { leaves: node.leaves.len(), in_memory }
    }

    /// Makes a range of the leaf of `key` and its neighbours. False where that cannot be now. The caller keeps
    /// checkpoints away, and holds no latch.
    ///
    /// # Errors
    /// A full disk, a damaged image. A failed write: the engine stops.
    pub(crate) fn convert(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        object: ObjectId,
        key: &[u8],
    ) -> Result<bool> {
        let node = self.node_of(trees, recorder, key);
        for leaf in &node.leaves {
            if trees.image_to_read(object, *leaf).is_some() {
                trees.load_leaf(*leaf, Wait::PageIoLatchEx, recorder)?;
            }
        }
        let leaves = node.leaves.len() as i64;
        while !trees.space.try_reserve(leaves, Purpose::Checkpoint) {
            trees.space.grow()?;
        }
        let held = self.latch_all(trees, recorder, object, &node);
        let range = held.and_then(|held| self.put_behind(trees, (object, &node), held, leaves));
        let Some(range) = range else {
            trees.space.unreserve(leaves);
            return Ok(false);
        };
        recorder.count(Counter::RangesMade, 1);
        self.flush(trees, recorder, &range, None)?;
        Ok(true)
    }

    fn node_of(&self, trees: &Trees, recorder: &Recorder, key: &[u8]) -> Node {
        let _structure = lock_counted(&self.structure, recorder, LatchClass::TreeStructure);
        let Span { node, children, low, high } = self.span_of(trees, key);
        let leaves = children.map(|index| LeafId(node.child(index))).collect();
        Node { low, high, leaves }
    }

    /// The caller holds the structure mutex.
    fn span_of<'e>(&self, trees: &'e Trees, key: &[u8]) -> Span<'e> {
        let mut node = trees.inners.get(self.root.load(Ordering::Acquire));
        let (mut low, mut high) = (Vec::new(), None);
        while node.level() > 1 {
            let index = node.search(head(key), key);
            if index > 0 {
                low = node.separator(index);
            }
            if index + 1 < node.len() {
                high = Some(node.separator(index + 1));
            }
            node = trees.inners.get(node.child(index));
        }
        let most = (trees.frames.frames() / PART_OF_FRAMES).max(1);
        let first = node.search(head(key), key) / most * most;
        let end = (first + most).min(node.len());
        if first > 0 {
            low = node.separator(first);
        }
        if end < node.len() {
            high = Some(node.separator(end));
        }
        Span { node, children: first..end, low, high }
    }

    /// Latches the leaves of a node from left to right. None if they are not what they were, or not in memory.
    fn latch_all<'e>(
        &self,
        trees: &'e Trees,
        recorder: &Recorder,
        object: ObjectId,
        node: &Node,
    ) -> Option<Vec<Held<'e>>> {
        let key = (head(&node.low), node.low.as_slice());
        let (id, first) = self.latch_exclusive(trees, recorder, None, key, object).ok()?;
        let is_convertible = |leaf: &LeafState, low: &[u8]| {
            let is_whole = leaf.range.is_none() && (leaf.rows.is_some() || leaf.image.is_none());
            leaf.object == Some(object) && leaf.logged && leaf.low.bytes() == low && is_whole
        };
        if !is_convertible(&first, &node.low) {
            return None;
        }
        let mut held = vec![(id, first)];
        loop {
            let (_, last) = held.last()?;
            let high = last.high.as_ref().map(Fence::bytes);
            if high == node.high.as_deref() {
                return Some(held);
            }
            let is_inside =
                |high: &&[u8]| node.high.as_ref().is_none_or(|end| *high < end.as_slice());
            let low = high.filter(is_inside)?;
            let next = last.next.filter(|_| held.len() < node.leaves.len())?;
            let leaf = trees.leaves.get(next.0).latch.exclusive(recorder, LatchClass::Leaf);
            if !is_convertible(&leaf, low) {
                return None;
            }
            held.push((next, leaf));
        }
    }

    /// Puts the leaves in front of an empty stock, and makes them dirty; of the reserved slots the clean ones take one
    /// each. None if one of them has an intent that a stock cannot have.
    fn put_behind(
        &self,
        trees: &Trees,
        (object, node): (ObjectId, &Node),
        mut held: Vec<Held<'_>>,
        reserved: i64,
    ) -> Option<Arc<Range>> {
        for (_, leaf) in &mut held {
            if let Some(rows) = leaf.rows.as_mut() {
                resolve_intents(trees, self, rows);
                if rows.holds_large_intents() {
                    return None;
                }
            }
        }
        let bounds = (node.low.as_slice().into(), node.high.as_deref().map(Box::from));
        let range = trees.ranges.add(object, bounds, Stock::default());
        let mut left = reserved;
        for (id, leaf) in &mut held {
            leaf.image = None;
            trees.set_range(leaf, &range);
            if leaf.rows.is_some() && !leaf.is_dirty() {
                leaf.dirty_epoch = Some(trees.dirty.epoch());
                trees.list_dirty(trees.background_permit(), *id, leaf);
                left -= 1;
            }
            trees.ranges.note_changed(object, leaf.low.bytes());
        }
        trees.space.unreserve(left);
        Some(range)
    }
}
