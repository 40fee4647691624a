//! Brings the rows of a leaf back from its image.

use std::sync::Arc;

use onrush_files::AlignedBuffer;
use onrush_waits::{Counter, LatchClass, Recorder, Wait};

use super::Storage;
use super::image::{Image, check_page, load_rows};
use crate::error::{Damage, Error, Result};
use crate::memory::Frame;
use crate::node::leaf::LeafRows;
use crate::units::{LEAF_BYTES, LeafId, ObjectId};

impl Storage {
    /// Makes sure the leaf's rows are in memory, at least for a moment. Called without latches
    /// and without an admission permit: it may wait for the disk, which is counted as `wait`, and for a frame,
    /// or for whoever is reading the leaf ahead.
    ///
    /// # Errors
    /// A damaged image, with its place; a failed read.
    pub(crate) fn load_leaf(&self, id: LeafId, wait: Wait, recorder: &Recorder) -> Result<()> {
        if self.read_ahead.wait_for(id, recorder) {
            return Ok(());
        }
        let leaf = self.leaves.get(id.0);
        let frame = self.take_frame(recorder)?;
        let image = {
            let mut state = leaf.latch.exclusive(recorder, LatchClass::Leaf);
            if state.rows.is_some() || state.object.is_none() {
                drop(state);
                self.frames.give_back(frame);
                return Ok(());
            }
            match &state.image {
                Some(image) => Arc::clone(image),
                None => {
                    let rows = LeafRows::empty_of(frame, state.range.is_some());
                    self.put_rows(&mut state, rows);
                    leaf.touch();
                    return Ok(());
                }
            }
        };
        let mut page = AlignedBuffer::new(LEAF_BYTES);
        {
            let _wait = recorder.wait(wait);
            if let Err(error) = self.space.files().read(image.slot(), &mut page) {
                self.frames.give_back(frame);
                return Err(error.into());
            }
        }
        self.install(id, &image, &page, frame, recorder)
    }

    /// The image that the rows of a leaf of `object` would have to be read from; none if they are in
    /// memory. Nothing is waited for: whoever holds the leaf's latch is about to use its rows.
    pub(crate) fn image_to_read(&self, object: ObjectId, leaf: LeafId) -> Option<Arc<Image>> {
        let state = self.leaves.try_get(leaf.0)?.latch.try_shared()?;
        let is_on_disk = state.object == Some(object) && state.rows.is_none();
        state.image.as_ref().filter(|_| is_on_disk).map(Arc::clone)
    }

    /// Gives a leaf the rows of `page`, which was read from its `image`, in `frame`; unless it has got
    /// rows or another image since.
    ///
    /// # Errors
    /// A damaged image, with its place.
    pub(super) fn install(
        &self,
        id: LeafId,
        image: &Arc<Image>,
        page: &[u8],
        frame: Frame,
        recorder: &Recorder,
    ) -> Result<()> {
        recorder.count(Counter::LeafLoads, 1);
        recorder.count(Counter::LeafLoadBytes, LEAF_BYTES as u64);
        let leaf = self.leaves.get(id.0);
        let mut state = leaf.latch.exclusive(recorder, LatchClass::Leaf);
        let unchanged = state.image.as_ref().is_some_and(|now| Arc::ptr_eq(now, image));
        if let Some(object) = state.object.filter(|_| state.rows.is_none() && unchanged) {
            let mut rows = LeafRows::empty(frame);
            let named = (image.slot(), image.checksum());
            let loaded = check_page(page, self.database_id, object, named)
                .and_then(|()| load_rows(page, &state, &mut rows));
            if let Err(bad) = loaded {
                self.frames.give_back(rows.into_frame());
                let slot = image.slot();
                let path = self.space.files().path(slot.file);
                return Err(Error::Damaged(Damage::new(path, slot.offset(), bad.words())));
            }
            state.rows = Some(rows);
            leaf.touch();
            return Ok(());
        }
        drop(state);
        self.frames.give_back(frame);
        Ok(())
    }
}
