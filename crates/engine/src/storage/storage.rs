//! The leaves of all trees, in memory and on disk, with what brings them from one to the other.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use super::{
    DirtyLists, EmptiedLeaves, Evictors, ImageWrites, Leaf, LeafState, Pace, Ranges, ReadAhead,
};
use crate::memory::{Arena, FramePool};
use crate::node::inner::InnerNode;
use crate::runtime::Runtime;
use crate::space::Space;
use crate::units::Epoch;

/// See the module. Trees stand on it; it knows none of them.
pub(crate) struct Storage {
    runtime: Runtime,
    pub(crate) leaves: Arena<Leaf>,
    pub(crate) inners: Arena<InnerNode>,
    pub(crate) frames: FramePool,
    pub(crate) space: Arc<Space>,
    pub(crate) dirty: DirtyLists,
    pub(crate) image_writes: Arc<ImageWrites>,
    pub(crate) emptied: EmptiedLeaves,
    pub(crate) evictors: Evictors,
    pub(crate) ranges: Arc<Ranges>,
    /// Of flushes and compactions.
    pub(crate) run_pace: Pace,
    pub(crate) read_ahead: ReadAhead,
    /// Woken when frames run short.
    evictor_thread: OnceLock<Thread>,
}

impl Deref for Storage {
    type Target = Runtime;

    #[inline]
    fn deref(&self) -> &Runtime {
        &self.runtime
    }
}

impl Storage {
    /// Without leaves. `image_writes` and `ranges` are among those that the runtime stops.
    pub(crate) fn new(
        runtime: Runtime,
        (image_writes, ranges): (Arc<ImageWrites>, Arc<Ranges>),
        frames: FramePool,
        space: Arc<Space>,
        epoch: Epoch,
    ) -> Storage {
        Storage {
            leaves: Arena::new(),
            inners: Arena::new(),
            frames,
            space,
            dirty: DirtyLists::new(runtime.admission.permits(), epoch),
            image_writes,
            emptied: EmptiedLeaves::default(),
            evictors: Evictors::new(),
            ranges,
            run_pace: Pace::of_runs(),
            read_ahead: ReadAhead::new(runtime.options.background),
            evictor_thread: OnceLock::new(),
            runtime,
        }
    }

    pub(crate) fn set_evictor_thread(&self, thread: Thread) {
        let _ = self.evictor_thread.set(thread);
    }

    /// Asks for free frames ahead of need.
    pub(crate) fn wake_evictor(&self) {
        if let Some(thread) = self.evictor_thread.get() {
            thread.unpark();
        }
    }

    /// Takes everything off a leaf whose object is gone. The caller holds its latch exclusive.
    pub(crate) fn retire_leaf(&self, leaf: &mut LeafState) {
        self.drop_rows(leaf);
        *leaf = LeafState::default();
    }

    /// Gives the frame and the reserved slot of a leaf back, whatever its rows are. False if it had no frame.
    pub(crate) fn drop_rows(&self, leaf: &mut LeafState) -> bool {
        if leaf.is_dirty() {
            self.space.unreserve(1);
            leaf.dirty_epoch = None;
        }
        self.give_back_rows(leaf)
    }

    /// Leaves of all tables, those on disk only included.
    pub(crate) fn leaf_count(&self) -> u64 {
        self.leaves.in_use()
    }
}
