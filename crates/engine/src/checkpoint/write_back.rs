//! Step 3 of a checkpoint: an image for every leaf that is dirty for an older epoch. Empty leaves need
//! none; they are merged into their left neighbours.
//!
//! The leaves are divided among writers in key order, so each writes neighbours together, and one
//! copies while another waits for the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use onrush_log::Lsn;
use onrush_waits::{Counter, LatchClass, Phase, Recorder};

use super::Store;
use crate::error::Result;
use crate::fault::{Fault, panic_if_planted, planted};
use crate::node::fence::head;
use crate::storage::{Imager, LeafState, Pace, Range};
use crate::tree::{EmptyLeaf, Merged, resolve_intents};
use crate::units::{Epoch, LEAF_BYTES, LeafId, ObjectId};

/// With fewer leaves one writer does it alone.
const LEAVES_PER_WRITER: usize = 256;

/// What became of the leaves. `changed` counts even when there is an error.
pub(super) struct WrittenBack {
    /// Object and low fence of every leaf that was on a list.
    pub(super) changed: Vec<(ObjectId, Box<[u8]>)>,
    /// How many were imaged.
    pub(super) images: Result<u64>,
}

/// Takes the lists of all epochs before `epoch`, and images what is still dirty for one of them;
/// again, until nothing is on these lists. A leaf that splits while it waits here puts its sibling
/// on the list that was just taken: without an image of its own, the sibling would be collected
/// with the one it shares, which lacks what was changed before C.
pub(super) fn write_back(
    store: &Store,
    recorder: &Recorder,
    imagers: &mut [Imager],
    epoch: Epoch,
    start: Lsn,
) -> WrittenBack {
    let mut all = WrittenBack { changed: Vec::new(), images: Ok(0) };
    let pace = Pace::of_write_back();
    loop {
        let listed = store.dirty.take_before(epoch);
        if listed.is_empty() {
            return all;
        }
        let (leaves, empty, ranges) = in_key_order(store, recorder, listed);
        // Those that take the ranges of empty ones are imaged once, after all of them.
        merge_empty_leaves(store, recorder, epoch, empty, &mut all.changed);
        if let Err(error) = flush_ranges(store, recorder, epoch, start, ranges) {
            put_back(store, recorder, store.background_permit(), &leaves);
            return WrittenBack { images: Err(error), ..all };
        }
        store.progress.add_leaves(leaves.len() as u64);
        all.add(write_back_round((store, recorder, &pace), imagers, epoch, &leaves));
        if all.images.is_err() || planted(Fault::ListsTakenOnce) {
            return all;
        }
    }
}

impl WrittenBack {
    fn add(&mut self, other: WrittenBack) {
        self.changed.extend(other.changed);
        let images = std::mem::replace(&mut self.images, Ok(0));
        self.images = images.and_then(|images| Ok(images + other.images?));
    }
}

fn write_back_round(
    (store, recorder, pace): (&Store, &Recorder, &Pace),
    imagers: &mut [Imager],
    epoch: Epoch,
    leaves: &[LeafId],
) -> WrittenBack {
    let writers = imagers.len().min(leaves.len() / LEAVES_PER_WRITER).max(1);
    if writers == 1 {
        return write_back_part((store, recorder, pace), &mut imagers[0], epoch, leaves);
    }
    let part = leaves.len().div_ceil(writers);
    let parts: Vec<WrittenBack> = std::thread::scope(|scope| {
        let run = |(imager, leaves)| {
            let recorder = Recorder::new(&store.registry, "checkpoint writer");
            scope.spawn(move || {
                let _work = recorder.work(Phase::Checkpoint);
                write_back_part((store, &recorder, pace), imager, epoch, leaves)
            })
        };
        let threads: Vec<_> = imagers.iter_mut().zip(leaves.chunks(part)).map(run).collect();
        let finished = |thread: std::thread::ScopedJoinHandle<'_, WrittenBack>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(finished).collect()
    });
    let mut all = WrittenBack { changed: Vec::new(), images: Ok(0) };
    parts.into_iter().for_each(|part| all.add(part));
    all
}

fn write_back_part(
    at: (&Store, &Recorder, &Pace),
    imager: &mut Imager,
    epoch: Epoch,
    leaves: &[LeafId],
) -> WrittenBack {
    let mut changed = Vec::with_capacity(leaves.len());
    let images = image_leaves(at, imager, epoch, leaves, &mut changed);
    WrittenBack { changed, images }
}

fn image_leaves(
    (store, recorder, pace): (&Store, &Recorder, &Pace),
    imager: &mut Imager,
    epoch: Epoch,
    leaves: &[LeafId],
    changed: &mut Vec<(ObjectId, Box<[u8]>)>,
) -> Result<u64> {
    let permit = store.background_permit();
    let mut images = 0;
    let mut number = 0;
    while number < leaves.len() {
        let id = leaves[number];
        let mut leaf = store.leaves.get(id.0).latch.exclusive(recorder, LatchClass::Leaf);
        // The leaf that was listed may have been dropped, and another table have its place.
        let ours = leaf.is_for_checkpoints();
        // A front leaf was flushed, and is on the list of a later epoch if it has rows still.
        let due = ours && leaf.range.is_none() && leaf.dirty_epoch.is_some_and(|own| own < epoch);
        panic_if_planted(Fault::PanicInCheckpoint);
        let empty = due && leaf.is_known_empty();
        if empty {
            forget_image(store, &mut leaf);
        }
        if due && !empty {
            resolve_leaf(store, &mut leaf);
        }
        if due && !empty && !imager.capture(store, permit, id, &mut leaf) {
            // No slot for the second image that an unresolved intent will need: make space
            // outside of the latch, then come back.
            drop(leaf);
            if let Err(error) = store.space.grow() {
                put_back(store, recorder, permit, &leaves[number..]);
                write_images((store, recorder, pace), imager)?;
                return Err(error.into());
            }
            continue;
        }
        if let Some(object) = leaf.object.filter(|_| ours) {
            changed.push((object, leaf.low.bytes().into()));
            if EmptyLeaf::of(id, &leaf).is_some() {
                // It could not be merged, or has lost its rows since: for the next checkpoint.
                store.dirty.push(permit, epoch, id);
            }
        }
        drop(leaf);
        number += 1;
        match due && !empty {
            true => images += 1,
            false => store.progress.add_written(1),
        }
        if imager.is_full() {
            write_images((store, recorder, pace), imager)?;
        }
    }
    write_images((store, recorder, pace), imager)?;
    Ok(images)
}

/// Makes rows of the intents of a leaf that is about to be imaged, where that can be.
fn resolve_leaf(store: &Store, leaf: &mut LeafState) {
    if let Some(object) = leaf.object
        && let Some(rows) = leaf.rows.as_mut()
        && rows.intents() > 0
        && let Some(tree) = store.tree_of(object)
    {
        resolve_intents(store, &tree, rows);
    }
}

/// An empty leaf is clean without an image: its entry in the directory names no slot.
fn forget_image(store: &Store, leaf: &mut LeafState) {
    leaf.image = None;
    leaf.dirty_epoch = None;
    store.space.unreserve(1);
}

fn write_images(
    (store, recorder, pace): (&Store, &Recorder, &Pace),
    imager: &mut Imager,
) -> Result<()> {
    let written = imager.write(store, recorder)?.len() as u64;
    recorder.count(Counter::ImagesCheckpoint, written);
    store.progress.add_written(written);
    pace.wrote(store, recorder, written * LEAF_BYTES as u64)
}

/// Flushes the ranges of front leaves that are due, once all below C, which is `start`, is complete: what a flush
/// leaves behind is at or above the completed prefix.
fn flush_ranges(
    store: &Store,
    recorder: &Recorder,
    epoch: Epoch,
    start: Lsn,
    ranges: Vec<Arc<Range>>,
) -> Result<()> {
    // Between the reservation of an LSN and the end of its change there are only memory copies.
    while !ranges.is_empty() && store.completed_below() < start {
        store.check_running()?;
        std::thread::yield_now();
    }
    for range in ranges {
        if let Some(tree) = store.tree_of(range.object) {
            tree.flush(store, recorder, &range, Some(epoch))?;
        }
    }
    Ok(())
}

/// Neighbours in key order become neighbours on disk. With the leaves, those of them that can be
/// joined, and the ranges of those in front of one.
fn in_key_order(
    store: &Store,
    recorder: &Recorder,
    leaves: Vec<LeafId>,
) -> (Vec<LeafId>, BTreeSet<EmptyLeaf>, Vec<Arc<Range>>) {
    let mut empty = BTreeSet::new();
    let mut ranges: BTreeMap<_, Arc<Range>> = BTreeMap::new();
    let mut keyed: Vec<(Option<ObjectId>, u64, LeafId)> = leaves
        .into_iter()
        .map(|id| {
            let leaf = store.leaves.get(id.0).latch.shared(recorder, LatchClass::Leaf);
            empty.extend(EmptyLeaf::of(id, &leaf).filter(|_| leaf.is_for_checkpoints()));
            if let Some(range) = leaf.range.as_ref().filter(|_| leaf.is_dirty()) {
                let place = (range.object, range.low.clone());
                ranges.entry(place).or_insert_with(|| Arc::clone(range));
            }
            (leaf.object, head(leaf.low.bytes()), id)
        })
        .collect();
    keyed.sort_unstable();
    keyed.dedup();
    (keyed.into_iter().map(|(_, _, id)| id).collect(), empty, ranges.into_values().collect())
}

/// Takes empty leaves out of their trees.
fn merge_empty_leaves(
    store: &Store,
    recorder: &Recorder,
    epoch: Epoch,
    empty: BTreeSet<EmptyLeaf>,
    changed: &mut Vec<(ObjectId, Box<[u8]>)>,
) {
    let permit = store.background_permit();
    let before = if planted(Fault::MergeImagedLate) { epoch } else { epoch.previous() };
    for leaf in empty {
        let Some(tree) = store.tree_of(leaf.object) else { continue };
        let merged = tree.merge_empty(store, recorder, permit, &leaf, before);
        if let Merged::Into(neighbour) = merged {
            changed.push((leaf.object, neighbour));
            changed.push((leaf.object, leaf.low));
        }
    }
}

/// A checkpoint that fails gives the leaves that it has not imaged to the next one.
fn put_back(store: &Store, recorder: &Recorder, permit: usize, leaves: &[LeafId]) {
    for id in leaves {
        let leaf = store.leaves.get(id.0).latch.exclusive(recorder, LatchClass::Leaf);
        if let Some(epoch) = leaf.dirty_epoch {
            store.dirty.push(permit, epoch, *id);
        }
    }
}
