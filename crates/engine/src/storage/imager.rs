//! Makes images of leaves, many at a time, and writes those that lie together with one call.
//!
//! Invariants
//! 1. Copying the rows, choosing the slot and marking the leaf clean happen under one exclusive
//!    latch: no change falls between.
//! 2. A leaf with an intent of a small transaction gets an image without it and stays dirty, in the epoch that
//!    is current then. Intents of large transactions go into images. What an intent means is not asked here:
//!    a checkpoint resolves what it can before it images a leaf.
//! 3. Until the batch is written, the imager itself keeps every image, so no slot of it is free.

use std::sync::Arc;

use onrush_files::AlignedBuffer;
use onrush_log::Lsn;
use onrush_waits::{Counter, Recorder, Wait};

use super::Storage;
use super::image::{self, Image};
use super::leaf::LeafState;
use crate::error::Result;
use crate::fault::{Fault, planted};
use crate::space::{Cursor, Purpose};
use crate::units::{EXTENT_SLOTS, LEAF_BYTES, LeafId, ObjectId};

/// A batch of images on their way to disk.
pub(crate) struct Imager {
    cursor: Cursor,
    pages: AlignedBuffer,
    batch: Vec<Captured>,
}

/// A leaf whose rows are copied.
#[derive(Clone)]
pub(crate) struct Captured {
    pub(crate) leaf: LeafId,
    pub(crate) image: Arc<Image>,
    object: ObjectId,
}

impl Imager {
    pub(crate) fn new() -> Imager {
        let pages = AlignedBuffer::new(EXTENT_SLOTS * LEAF_BYTES);
        Imager { cursor: Cursor::default(), pages, batch: Vec::with_capacity(EXTENT_SLOTS) }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.batch.len() == EXTENT_SLOTS
    }

    /// Copies the rows of a dirty leaf and makes it clean. The caller holds its latch exclusive
    /// and has seen that the batch is not full. False if it must stay as it is for now: it has an
    /// unresolved intent and no slot is free for the second image it will need.
    pub(crate) fn capture(
        &mut self,
        storage: &Storage,
        permit: usize,
        id: LeafId,
        leaf: &mut LeafState,
    ) -> bool {
        debug_assert!(leaf.is_dirty() && !self.is_full());
        let (Some(object), Some(rows)) = (leaf.object, leaf.rows.as_ref()) else { return false };
        let unresolved = rows.holds_small_intents();
        if unresolved && !storage.space.try_reserve(1, Purpose::Checkpoint) {
            return false;
        }
        let start = self.batch.len() * LEAF_BYTES;
        let page = &mut self.pages[start..start + LEAF_BYTES];
        image::copy_leaf(rows, &leaf.low, leaf.high.as_ref(), page);
        // An intent is seen from the commit on, which may come at any time.
        let has_intents = rows.intents() > 0;
        let below = if has_intents { Lsn::MAX } else { storage.log.changed_below() };
        let image = Image::assigned(storage.space.allocate(&mut self.cursor), below);
        leaf.image = Some(Arc::clone(&image));
        leaf.dirty_epoch = None;
        if unresolved && !planted(Fault::CleanWithIntent) {
            leaf.dirty_epoch = Some(storage.dirty.epoch());
            storage.list_dirty(permit, id, leaf);
        }
        self.batch.push(Captured { leaf: id, image, object });
        true
    }

    /// Writes the batch; what it held is returned. Written is not durable.
    ///
    /// # Errors
    /// A failed write: the engine stops.
    pub(crate) fn write(
        &mut self,
        storage: &Storage,
        recorder: &Recorder,
    ) -> Result<Vec<Captured>> {
        let batch = std::mem::take(&mut self.batch);
        let mut checksums = Vec::with_capacity(batch.len());
        for (number, captured) in batch.iter().enumerate() {
            let page = &mut self.pages[number * LEAF_BYTES..(number + 1) * LEAF_BYTES];
            let slot = captured.image.slot();
            checksums.push(image::seal(page, storage.database_id, captured.object, slot));
        }
        let mut first = 0;
        let mut outcome = Ok(());
        while first < batch.len() {
            let run = run_length(&batch[first..]);
            if outcome.is_ok() {
                let bytes = &self.pages[first * LEAF_BYTES..(first + run) * LEAF_BYTES];
                let _wait = recorder.wait(Wait::ImageWrite);
                outcome = storage.space.files().write(batch[first].image.slot(), bytes);
            }
            for number in first..first + run {
                let checksum = outcome.is_ok().then_some(checksums[number]);
                batch[number].image.finish(&storage.image_writes, checksum);
            }
            first += run;
        }
        recorder.count(Counter::ImageBytes, (batch.len() * LEAF_BYTES) as u64);
        outcome.map_err(|error| storage.stop(error))?;
        Ok(batch)
    }
}

/// How many images from the first on lie side by side in one file.
fn run_length(batch: &[Captured]) -> usize {
    let first = batch[0].image.slot();
    batch
        .iter()
        .enumerate()
        .take_while(|(number, captured)| {
            let slot = captured.image.slot();
            slot.file == first.file && slot.index as usize == first.index as usize + number
        })
        .count()
}
