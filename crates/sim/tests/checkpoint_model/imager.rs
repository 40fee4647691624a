//! Images of leaves, captured under their latches and written in batches; and the evictor.

use std::sync::{Arc, Weak};

use super::disk::Page;
use super::image::{Image, SlotId};
use super::leaf::{Entry, LeafState, Stamp};
use super::{BACKGROUND_PLACE, CLEAN, Engine, Fault, LeafId};

/// Images that are written together.
const BATCH_MAX: usize = 2;

#[derive(Default)]
pub struct Imager {
    batch: Vec<Captured>,
}

/// A leaf whose rows are copied.
pub struct Captured {
    leaf: LeafId,
    slot: SlotId,
    image: Weak<Image>,
    /// Until it is written, this keeps its slot.
    _keeps_slot: Option<Arc<Image>>,
    page: Page,
}

impl Imager {
    pub fn is_full(&self) -> bool {
        self.batch.len() == BATCH_MAX
    }

    /// Copies the rows of a dirty leaf and makes it clean, or dirty for the current epoch if it
    /// has an unresolved intent. The latch is held exclusive.
    pub fn capture(&mut self, engine: &Engine, id: LeafId, leaf: &mut LeafState) {
        let rows = leaf.rows.as_mut().expect("a leaf without rows is clean");
        engine.fold_resolved(rows);
        let rows = copy_rows(engine, rows);
        let unresolved = leaf.has_intents();
        let page = Page::new(leaf, rows);
        let image = Image::assigned(engine.space.allocate(), leaf.high);
        leaf.image = Some(Arc::clone(&image));
        leaf.dirty_epoch = CLEAN;
        if unresolved && !engine.planted(Fault::CleanWithIntent) {
            let epoch = engine.dirty.epoch();
            leaf.dirty_epoch = epoch;
            engine.dirty.push(BACKGROUND_PLACE, epoch, id);
        }
        self.batch.push(Captured {
            leaf: id,
            slot: image.slot(),
            image: Arc::downgrade(&image),
            _keeps_slot: (!engine.planted(Fault::WriterKeepsNoSlot)).then_some(image),
            page,
        });
    }

    /// Writes the batch; written is not durable.
    pub fn write(&mut self, engine: &Engine) -> Vec<Captured> {
        let batch = std::mem::take(&mut self.batch);
        for captured in &batch {
            engine.disk.write(captured.slot, captured.page.clone());
            if let Some(image) = captured.image.upgrade() {
                image.finish(&engine.image_writes, captured.page.checksum);
            }
        }
        batch
    }
}

fn copy_rows(engine: &Engine, rows: &[Entry]) -> Vec<Entry> {
    if engine.planted(Fault::IntentImaged) {
        let committed = |entry: &Entry| match entry.stamp {
            Stamp::Intent { .. } => Entry { stamp: Stamp::Committed(0), ..*entry },
            Stamp::Committed(_) => *entry,
        };
        return rows.iter().map(committed).collect();
    }
    rows.iter().filter(|entry| !entry.stamp.is_intent()).copied().collect()
}

/// Drops the rows of leaves, after imaging the dirty ones. More hostile than the engine's: it
/// takes leaves that are in use.
#[derive(Default)]
pub struct Evictor {
    imager: Imager,
}

impl Evictor {
    /// Goes once over all leaves.
    pub fn run(&mut self, engine: &Engine) {
        for id in 0..engine.leaves.len() {
            self.visit(engine, id);
            if self.imager.is_full() {
                self.write_and_drop(engine);
            }
        }
        self.write_and_drop(engine);
    }

    fn visit(&mut self, engine: &Engine, id: LeafId) {
        let Some(mut state) = engine.leaves.try_exclusive(id) else { return };
        if state.rows.is_none() || state.has_intents() {
            return;
        }
        if state.is_known_empty() && state.is_dirty() {
            state.rows = None;
            state.image = None;
            state.dirty_epoch = CLEAN;
            return;
        }
        if state.is_dirty() {
            self.imager.capture(engine, id, &mut state);
            return;
        }
        let is_unwritten = state.image.as_ref().is_some_and(|image| !image.is_written());
        if is_unwritten && !engine.planted(Fault::DropUnwritten) {
            return;
        }
        state.rows = None;
    }

    fn write_and_drop(&mut self, engine: &Engine) {
        for captured in self.imager.write(engine) {
            let Some(mut state) = engine.leaves.try_exclusive(captured.leaf) else { continue };
            let is_captured = |now: &Arc<Image>| captured.image.ptr_eq(&Arc::downgrade(now));
            let same = state.image.as_ref().is_some_and(is_captured);
            if same && !state.has_intents() && !state.is_dirty() {
                state.rows = None;
            }
        }
    }
}
