//! Makes a range with a stock of neighbouring leaves that are read from the disk for changes again and again: the
//! leaves of one node above them, or where there is little memory a part of these.
//!
//! 1. Nobody may load one of them from now on. The images of those that are clean are read, and written as the base.
//! 2. All are latched, from left to right, and lose their images: they stand in front of a stock that has the rows of
//!    the clean ones; the others are dirty. 3. The range is flushed, so that their frames are free.
//!
//! Invariants
//! 1. No checkpoint is taken meanwhile: it would meet leaves with images beside leaves of the range.
//! 2. Intents of large transactions in images come into the base as they are; those in memory wait for the flush.
//! 3. Nothing is read or written under the latches.
//! 4. A leaf whose image was read is still clean with this image when it is latched: the base has what it has. A row
//!    that was removed from it since would be there again.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use onrush_files::AlignedBuffer;
use onrush_latch::{ExclusiveGuard, lock_counted};
use onrush_log::Lsn;
use onrush_waits::{Counter, LatchClass, Recorder, Wait};

use super::{Tree, Trees};
use crate::error::Result;
use crate::node::fence::{Fence, head};
use crate::node::inner::InnerNode;
use crate::node::leaf::Entry;
use crate::options::Background;
use crate::space::Purpose;
use crate::storage::{Image, LeafState, Range, RunWriter, Stock};
use crate::units::{EXTENT_SLOTS, LEAF_BYTES, LeafId, ObjectId};

/// Images that are read before their rows are written.
const IMAGES_AT_A_TIME: usize = EXTENT_SLOTS;
/// Fewer leaves are not worth a range.
pub(crate) const LEAVES_OF_A_RANGE_MIN: usize = 8;
/// The leaves may all be in memory: they take this part of the frames at most.
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

/// A leaf that has in memory nothing that its image has not, as it was looked at.
struct CleanLeaf {
    image: Arc<Image>,
    low: Box<[u8]>,
    high: Option<Box<[u8]>>,
}

impl CleanLeaf {
    fn of(leaf: &LeafState) -> Option<CleanLeaf> {
        let image = leaf.image.as_ref().filter(|_| !leaf.is_dirty())?;
        let (low, high) = (leaf.low.bytes().into(), leaf.high.as_ref());
        let high = high.map(|high| high.bytes().into());
        Some(CleanLeaf { image: Arc::clone(image), low, high })
    }

    fn is_still(&self, leaf: &LeafState) -> bool {
        let has_image = leaf.image.as_ref().is_some_and(|now| Arc::ptr_eq(now, &self.image));
        has_image && !leaf.is_dirty()
    }

    fn covers(&self, key: &[u8]) -> bool {
        *self.low <= *key && self.high.as_ref().is_none_or(|high| *key < **high)
    }
}

/// The clean ones of the leaves. The others are made to stay in memory for a while.
fn clean_leaves(
    trees: &Trees,
    recorder: &Recorder,
    object: ObjectId,
    leaves: &[LeafId],
) -> HashMap<LeafId, CleanLeaf> {
    let look = |id: &LeafId| {
        let leaf = trees.leaves.try_get(id.0)?;
        leaf.touch();
        let state = leaf.latch.shared(recorder, LatchClass::Leaf);
        CleanLeaf::of(&state).filter(|_| state.object == Some(object)).map(|clean| (*id, clean))
    };
    leaves.iter().filter_map(look).collect()
}

/// Waits for whoever writes the image; not where that may be the caller himself, further out.
fn is_written(trees: &Trees, image: &Image) -> bool {
    match trees.options.background {
        Background::Threads => image.wait_written(&trees.image_writes),
        Background::Callers => image.is_written(),
    }
}

/// Writes a stock of what the images have. None if an image could not be written.
fn write_base(
    trees: &Trees,
    recorder: &Recorder,
    object: ObjectId,
    clean: &HashMap<LeafId, CleanLeaf>,
) -> Result<Option<Stock>> {
    let mut clean: Vec<&CleanLeaf> = clean.values().collect();
    clean.sort_unstable_by(|a, b| a.low.cmp(&b.low));
    let mut writer = RunWriter::new(trees, recorder, object);
    let mut pages = AlignedBuffer::new(IMAGES_AT_A_TIME.min(clean.len()) * LEAF_BYTES);
    for leaves in clean.chunks(IMAGES_AT_A_TIME) {
        if !leaves.iter().all(|leaf| is_written(trees, &leaf.image)) {
            return Ok(None);
        }
        let images: Vec<Arc<Image>> = leaves.iter().map(|leaf| Arc::clone(&leaf.image)).collect();
        {
            let _wait = recorder.wait(Wait::StockRead);
            trees.read_leaf_images(&images, &mut pages[..images.len() * LEAF_BYTES])?;
        }
        for (leaf, page) in leaves.iter().zip(pages.chunks_exact(LEAF_BYTES)) {
            // A row, until it is known whether an intent stands on it.
            let mut row: Option<Entry<'_>> = None;
            trees.visit_image(object, &leaf.image, page, |entry| {
                if !leaf.covers(entry.key) {
                    return Ok(());
                }
                let before = row.take();
                if entry.stamp.as_intent().is_none() {
                    row = Some(entry);
                    return before.map_or(Ok(()), |it| writer.push(it.stamp, it.key, it.value));
                }
                let below = before.filter(|row| row.key == entry.key);
                if let Some(it) = before.filter(|_| below.is_none()) {
                    writer.push(it.stamp, it.key, it.value)?;
                }
                let below = below.map(|row| (row.stamp, row.value));
                writer.push_intent(entry.key, below, (entry.stamp, entry.value))
            })?;
            row.map_or(Ok(()), |it| writer.push(it.stamp, it.key, it.value))?;
        }
    }
    let base = match writer.is_empty() {
        true => None,
        false => Some(writer.finish(Some(trees.filter_bits()))?),
    };
    Ok(Some(Stock::of_base(base, Lsn::ZERO)))
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
        let claim = trees.read_ahead.claim(&node.leaves, recorder);
        let clean = clean_leaves(trees, recorder, object, &node.leaves);
        let Some(stock) = write_base(trees, recorder, object, &clean)? else { return Ok(false) };
        let leaves = node.leaves.len() as i64;
        while !trees.space.try_reserve(leaves, Purpose::Checkpoint) {
            trees.space.grow()?;
        }
        let held = self.latch_all(trees, recorder, object, &node, &clean);
        let range =
            held.map(|held| self.put_behind(trees, (object, &node, &clean), held, leaves, stock));
        drop(claim);
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

    /// Latches the leaves of a node from left to right. None if they are not what they were.
    fn latch_all<'e>(
        &self,
        trees: &'e Trees,
        recorder: &Recorder,
        object: ObjectId,
        node: &Node,
        clean: &HashMap<LeafId, CleanLeaf>,
    ) -> Option<Vec<Held<'e>>> {
        let key = (head(&node.low), node.low.as_slice());
        let (id, first) = self.latch_exclusive(trees, recorder, None, key, object).ok()?;
        let is_convertible = |id: LeafId, leaf: &LeafState, low: &[u8]| {
            let is_as_read = match clean.get(&id) {
                Some(clean) => clean.is_still(leaf),
                None => leaf.rows.is_some() || leaf.image.is_none(),
            };
            let is_ours = leaf.object == Some(object) && leaf.logged && leaf.range.is_none();
            is_ours && leaf.low.bytes() == low && is_as_read
        };
        if !is_convertible(id, &first, &node.low) {
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
            if !is_convertible(next, &leaf, low) {
                return None;
            }
            held.push((next, leaf));
        }
    }

    /// Puts the leaves in front of a stock that has the rows of the clean ones, and makes the others dirty; of the
    /// reserved slots those that were not take one each.
    fn put_behind(
        &self,
        trees: &Trees,
        (object, node, clean): (ObjectId, &Node, &HashMap<LeafId, CleanLeaf>),
        mut held: Vec<Held<'_>>,
        reserved: i64,
        stock: Stock,
    ) -> Arc<Range> {
        let bounds = (node.low.as_slice().into(), node.high.as_deref().map(Box::from));
        let range = trees.ranges.add(object, bounds, stock);
        let mut left = reserved;
        for (id, leaf) in &mut held {
            if clean.contains_key(id) {
                trees.give_back_rows(leaf);
            }
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
        range
    }
}
