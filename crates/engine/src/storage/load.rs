//! Brings the rows of a leaf back from its image.

use std::sync::Arc;

use onrush_files::AlignedBuffer;
use onrush_waits::{Counter, LatchClass, Recorder, Wait};

use super::Storage;
use super::image::{BadImage, Image, check_page, load_rows, visit_entries};
use crate::error::{Damage, Error, Result};
use crate::memory::Frame;
use crate::node::leaf::{Entry, LeafRows};
use crate::options::Background;
use crate::space::SlotId;
use crate::units::{LEAF_BYTES, LeafId, ObjectId};

/// Images that one of several readers reads, one after the other.
const IMAGES_OF_A_READER: usize = 4;

impl Storage {
    /// Makes sure the leaf's rows are in memory, at least for a moment. Called without latches
    /// and without an admission permit: it may wait for the disk, which is counted as `wait`, and for a frame,
    /// or for whoever is reading the leaf already.
    ///
    /// # Errors
    /// A damaged image, with its place; a failed read.
    pub(crate) fn load_leaf(&self, id: LeafId, wait: Wait, recorder: &Recorder) -> Result<()> {
        let Some(_claim) = self.read_ahead.begin(id, recorder) else { return Ok(()) };
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

    /// Reads images into `pages`, one behind the other, several at a time. Called without latches and without a permit.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) fn read_leaf_images(&self, images: &[Arc<Image>], pages: &mut [u8]) -> Result<()> {
        let read = |images: &[Arc<Image>], pages: &mut [u8]| {
            let pages = pages.chunks_exact_mut(LEAF_BYTES);
            let mut pairs = images.iter().zip(pages);
            pairs.try_for_each(|(image, page)| self.space.files().read(image.slot(), page))
        };
        if self.options.background == Background::Callers || images.len() <= IMAGES_OF_A_READER {
            return Ok(read(images, pages)?);
        }
        std::thread::scope(|scope| {
            let pages = pages.chunks_mut(IMAGES_OF_A_READER * LEAF_BYTES);
            let parts = images.chunks(IMAGES_OF_A_READER).zip(pages);
            let readers: Vec<_> =
                parts.map(|(images, pages)| scope.spawn(|| read(images, pages))).collect();
            let mut ends = readers.into_iter().map(|reader| reader.join());
            // A reader that panicked has said so; whoever waits for it goes the same way.
            ends.try_for_each(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })?;
        Ok(())
    }

    /// Calls `visit` with the rows of a page that was read from an image of a leaf of `object`.
    ///
    /// # Errors
    /// A damaged image, with its place; and those of `visit`.
    pub(crate) fn visit_image<'p>(
        &self,
        object: ObjectId,
        image: &Image,
        page: &'p [u8],
        mut visit: impl FnMut(Entry<'p>) -> Result<()>,
    ) -> Result<()> {
        let named = (image.slot(), image.checksum());
        let mut visited = Ok(());
        let read = check_page(page, self.database_id, object, named).and_then(|()| {
            visit_entries(page, |_, entry| {
                if visited.is_ok() {
                    visited = visit(entry);
                }
            })
        });
        read.map_err(|bad| self.damage(image.slot(), bad))?;
        visited
    }

    /// What is wrong with the image in a slot.
    pub(super) fn damage(&self, slot: SlotId, bad: BadImage) -> Error {
        let path = self.space.files().path(slot.file);
        Error::Damaged(Damage::new(path, slot.offset(), bad.words()))
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
                return Err(self.damage(image.slot(), bad));
            }
            image.learn_below(page);
            state.rows = Some(rows);
            leaf.touch();
            return Ok(());
        }
        drop(state);
        self.frames.give_back(frame);
        Ok(())
    }
}
