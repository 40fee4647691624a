//! Brings the rows of a leaf back from its image.

use std::sync::Arc;

use onrush_files::AlignedBuffer;
use onrush_waits::{Counter, LatchClass, Recorder, Wait};

use super::image::{check_page, load_rows};
use crate::engine::Engine;
use crate::error::{Damage, Error, Result};
use crate::node::leaf::LeafRows;
use crate::units::{LEAF_BYTES, LeafId};

impl Engine {
    /// Makes sure the leaf's rows are in memory, at least for a moment. Called without latches
    /// and without a place inside: it may wait for the disk, which is counted as `wait`, and for a frame.
    ///
    /// # Errors
    /// A damaged image, with its place; a failed read.
    pub(crate) fn load_leaf(&self, id: LeafId, wait: Wait, recorder: &Recorder) -> Result<()> {
        let leaf = self.leaves.get(id.0);
        let frame = self.take_frame(recorder)?;
        let image = {
            let mut state = leaf.latch.exclusive(recorder, LatchClass::Leaf);
            if state.rows.is_some() || state.object.0 == 0 {
                drop(state);
                self.frames.give_back(frame);
                return Ok(());
            }
            match &state.image {
                Some(image) => Arc::clone(image),
                None => {
                    state.rows = Some(LeafRows::empty(frame));
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
        recorder.count(Counter::LeafLoads, 1);
        recorder.count(Counter::LeafLoadBytes, LEAF_BYTES as u64);
        let mut state = leaf.latch.exclusive(recorder, LatchClass::Leaf);
        let unchanged = state.image.as_ref().is_some_and(|now| Arc::ptr_eq(now, &image));
        if state.rows.is_none() && unchanged {
            let mut rows = LeafRows::empty(frame);
            let loaded = check_page(&page, self.database_id, state.object, &image)
                .and_then(|()| load_rows(&page, &state, &mut rows));
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
