//! Makes a range with a stock of neighbouring leaves whose rows are mostly on the disk: all leaves of one node above them.
//!
//! 1. Leaf by leaf they are latched, from left to right, and stay latched: each keeps its order after the one before it.
//! 2. What is below the completed prefix, in memory or in images, is written as a base. 3. The leaves lose their images
//!    and look at the range; what is in memory above the prefix stays in them. 4. Those with nothing left are merged.
//!
//! Invariants
//! 1. No checkpoint is taken meanwhile: it would meet leaves with images beside leaves of the range.
//! 2. Leaves with intents of large transactions are not converted: a stock has none.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use onrush_files::AlignedBuffer;
use onrush_latch::{ExclusiveGuard, lock_counted};
use onrush_log::Lsn;
use onrush_waits::{Counter, LatchClass, Phase, Recorder, Wait};

use super::flush::shed;
use super::intent::resolve_intents;
use super::{Tree, Trees};
use crate::error::Result;
use crate::node::fence::{Fence, head};
use crate::node::leaf::LeafRows;
use crate::storage::{Image, LeafState, Range, RunWriter, Stock};
use crate::units::{LEAF_BYTES, LeafId, ObjectId};

/// Fewer leaves are not worth a range.
pub(crate) const LEAVES_OF_A_RANGE_MIN: usize = 8;

/// A latched leaf.
type Held<'e> = (LeafId, ExclusiveGuard<'e, LeafState>);

/// The leaves of a node, as many as there are and as many as have rows in memory.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Neighbours {
    pub(crate) leaves: usize,
    pub(crate) in_memory: usize,
}

/// The leaves of one node right above leaves, and where their keys begin and end.
struct Node {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    leaves: Vec<LeafId>,
}

/// What a leaf's image holds, read before the leaf is latched.
struct ReadAhead {
    image: Arc<Image>,
    page: AlignedBuffer,
}

impl Tree {
    /// Where the keys of the node above the leaf of `key` begin.
    pub(crate) fn node_low(&self, trees: &Trees, recorder: &Recorder, key: &[u8]) -> Vec<u8> {
        self.node_of(trees, recorder, key).low
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
    /// A full disk, a damaged image: nothing has changed. A failed write: the engine stops.
    pub(crate) fn convert(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        object: ObjectId,
        key: &[u8],
    ) -> Result<bool> {
        let _work = recorder.work(Phase::Compact);
        let node = self.node_of(trees, recorder, key);
        let read = self.read_images(trees, recorder, object, &node)?;
        let frame = trees.take_frame(recorder)?;
        let mut scratch = LeafRows::empty(frame);
        let converted = match self.latch_all(trees, recorder, object, &node) {
            Some(held) => convert_held(self, trees, recorder, (object, &node), held, &read, &mut scratch),
            None => Ok(None),
        };
        trees.frames.give_back(scratch.into_frame());
        let Some((range, emptied)) = converted? else { return Ok(false) };
        recorder.count(Counter::RangesMade, 1);
        let _one = range.maintenance.lock();
        self.pack(trees, recorder, &range, emptied);
        Ok(true)
    }

    fn node_of(&self, trees: &Trees, recorder: &Recorder, key: &[u8]) -> Node {
        let _structure = lock_counted(&self.structure, recorder, LatchClass::TreeStructure);
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
        let leaves = (0..node.len()).map(|index| LeafId(node.child(index))).collect();
        Node { low, high, leaves }
    }

    /// Reads the images of the leaves that are on disk only.
    fn read_images(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        object: ObjectId,
        node: &Node,
    ) -> Result<HashMap<LeafId, ReadAhead>> {
        let mut read = HashMap::new();
        for id in &node.leaves {
            let Some(image) = trees.image_to_read(object, *id) else { continue };
            let page = read_page(trees, recorder, &image)?;
            read.insert(*id, ReadAhead { image, page });
        }
        Ok(read)
    }

    /// Latches the leaves of a node from left to right. None if they are not what they were.
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
            leaf.object == Some(object) && leaf.low.bytes() == low && leaf.range.is_none()
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
            let low = high.filter(|high| node.high.as_ref().is_none_or(|end| *high < end.as_slice()))?;
            let next = last.next?;
            let leaf = trees.leaves.get(next.0).latch.exclusive(recorder, LatchClass::Leaf);
            if !is_convertible(&leaf, low) {
                return None;
            }
            held.push((next, leaf));
        }
    }
}

fn read_page(trees: &Trees, recorder: &Recorder, image: &Image) -> Result<AlignedBuffer> {
    let mut page = AlignedBuffer::new(LEAF_BYTES);
    let _wait = recorder.wait(Wait::PageIoLatchEx);
    trees.space.files().read(image.slot(), &mut page)?;
    recorder.count(Counter::LeafLoads, 1);
    recorder.count(Counter::LeafLoadBytes, LEAF_BYTES as u64);
    Ok(page)
}

/// Leaves that a conversion has left empty, but for the first.
type Converted = (Arc<Range>, Vec<(LeafId, Box<[u8]>)>);

fn convert_held(
    tree: &Tree,
    trees: &Trees,
    recorder: &Recorder,
    (object, node): (ObjectId, &Node),
    mut held: Vec<Held<'_>>,
    read: &HashMap<LeafId, ReadAhead>,
    scratch: &mut LeafRows,
) -> Result<Option<Converted>> {
    let below = wait_complete(trees);
    let mut writer = RunWriter::new(trees, recorder, object);
    for (id, leaf) in &mut held {
        if let Some(rows) = leaf.rows.as_mut() {
            resolve_intents(trees, tree, rows);
        } else if let Some(image) = &leaf.image {
            let ahead = read.get(id).filter(|ahead| Arc::ptr_eq(&ahead.image, image));
            let fresh = match ahead {
                Some(_) => None,
                None => Some(read_page(trees, recorder, image)?),
            };
            let page = fresh.as_ref().or(ahead.map(|ahead| &ahead.page));
            if let Some(page) = page {
                trees.read_rows(object, leaf, image, page, scratch)?;
            }
        }
        let rows = match &leaf.rows {
            Some(rows) => Some(rows),
            None => leaf.image.as_ref().map(|_| &*scratch),
        };
        if let Some(rows) = rows
            && !write_rows(rows, below, &mut writer)?
        {
            return Ok(None);
        }
    }
    let base = match writer.is_empty() {
        true => None,
        false => Some(writer.finish(Some(trees.filter_bits()))?),
    };
    let bounds = (node.low.as_slice().into(), node.high.as_deref().map(Box::from));
    let range = trees.ranges.add(object, bounds, Stock::of_base(base, below));
    let mut emptied = Vec::new();
    for (number, (id, leaf)) in held.iter_mut().enumerate() {
        leaf.image = None;
        trees.set_range(leaf, &range);
        shed(leaf, below);
        if leaf.has_nothing_in_memory() {
            trees.drop_rows(leaf);
            if number > 0 {
                emptied.push((*id, leaf.low.bytes().into()));
            }
        }
        trees.ranges.note_changed(object, leaf.low.bytes());
    }
    Ok(Some((range, emptied)))
}

/// Waits until all that has an LSN is complete. Whoever has one needs no latch any more.
fn wait_complete(trees: &Trees) -> Lsn {
    let end = trees.log.tail();
    while trees.completed_below() < end && !trees.has_failed() {
        std::thread::yield_now();
    }
    trees.completed_below()
}

/// Writes rows below `below`. False if there are intents of large transactions.
fn write_rows(rows: &LeafRows, below: Lsn, writer: &mut RunWriter<'_>) -> Result<bool> {
    for index in rows.order() {
        let entry = rows.entry(usize::from(index));
        match entry.stamp.lsn() {
            Some(lsn) if lsn < below => writer.push(entry.stamp, entry.key, entry.value)?,
            None if !entry.stamp.is_small_intent() => return Ok(false),
            _ => {}
        }
    }
    Ok(true)
}
