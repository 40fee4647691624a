//! Images and the slots they lie in.

use std::sync::{Arc, Mutex as Plain};

use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use shuttle::sync::{Condvar, Mutex};

use super::{Key, lock};

pub type SlotId = usize;

/// Slots are more than any run needs.
pub const SLOTS: usize = 64;

/// The free slots. The slot that was freed last is taken first, so one that is freed too early is
/// soon written over.
pub struct Space {
    free: Plain<Vec<SlotId>>,
}

impl Space {
    pub fn new() -> Arc<Space> {
        Arc::new(Space { free: Plain::new((0..SLOTS).rev().collect()) })
    }

    pub fn allocate(self: &Arc<Space>) -> Slot {
        let id = lock(&self.free).pop().expect("enough slots for every run");
        Slot { id, space: Arc::clone(self) }
    }
}

/// Owns a slot; dropping it frees the slot.
pub struct Slot {
    id: SlotId,
    space: Arc<Space>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.space.free).push(self.id);
    }
}

/// Assigned, then written. Whoever has it keeps its slot: leaf, imager, directory.
pub struct Image {
    slot: Slot,
    /// Where the leaf ended; only a fault goes by it.
    pub high: Option<Key>,
    checksum: AtomicU64,
    is_written: AtomicBool,
}

/// Wakes those who wait for images to be written.
#[derive(Default)]
pub struct ImageWrites {
    lock: Mutex<()>,
    changed: Condvar,
}

impl Image {
    pub fn assigned(slot: Slot, high: Option<Key>) -> Arc<Image> {
        let (checksum, is_written) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Image { slot, high, checksum, is_written })
    }

    pub fn standing(slot: Slot, high: Option<Key>, checksum: u64) -> Arc<Image> {
        let (checksum, is_written) = (AtomicU64::new(checksum), AtomicBool::new(true));
        Arc::new(Image { slot, high, checksum, is_written })
    }

    pub fn slot(&self) -> SlotId {
        self.slot.id
    }

    pub fn checksum(&self) -> u64 {
        self.checksum.load(SeqCst)
    }

    pub fn is_written(&self) -> bool {
        self.is_written.load(SeqCst)
    }

    pub fn finish(&self, writes: &ImageWrites, checksum: u64) {
        self.checksum.store(checksum, SeqCst);
        let _guard = writes.lock.lock().expect("held for a moment");
        self.is_written.store(true, SeqCst);
        writes.changed.notify_all();
    }

    pub fn wait_written(&self, writes: &ImageWrites) {
        let mut guard = writes.lock.lock().expect("held for a moment");
        while !self.is_written() {
            guard = writes.changed.wait(guard).expect("held for a moment");
        }
    }
}
