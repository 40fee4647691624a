//! Numbers as types, so that a leaf id is never taken for a slot.

use std::fmt;
use std::num::NonZero;
use std::sync::atomic::{AtomicU32, Ordering};

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub(crate) struct $name(pub(crate) $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

unit!(
    /// Place of a leaf header in the leaf table. Reused once the leaf is dead, so whoever keeps
    /// one re-checks object and fences under the latch.
    LeafId(u32)
);
unit!(
    /// Place of an inner node in its arena.
    InnerId(u32)
);

/// A stored object: the rows of one table since its creation or last truncation. From 1, and never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ObjectId(NonZero<u32>);

impl ObjectId {
    /// None for 0, which no object has.
    pub(crate) fn new(number: u32) -> Option<ObjectId> {
        NonZero::new(number).map(ObjectId)
    }

    pub(crate) fn number(self) -> u32 {
        self.0.get()
    }
}

/// The object of a tree that threads share, if the tree has one.
pub(crate) struct AtomicObjectId(AtomicU32); // 0: none

impl AtomicObjectId {
    pub(crate) fn new(object: Option<ObjectId>) -> AtomicObjectId {
        AtomicObjectId(AtomicU32::new(object.map_or(0, ObjectId::number)))
    }

    #[inline]
    pub(crate) fn load(&self, order: Ordering) -> Option<ObjectId> {
        ObjectId::new(self.0.load(order))
    }

    pub(crate) fn store(&self, object: Option<ObjectId>, order: Ordering) {
        self.0.store(object.map_or(0, ObjectId::number), order);
    }
}

/// A checkpoint's number, from 1; a leaf is dirty *for* an epoch. As it is never 0, one that may be missing
/// takes no more space in the header of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Epoch(NonZero<u64>);

impl Epoch {
    /// The epoch that follows the checkpoint with this number; 0 is the empty database.
    pub(crate) fn after(checkpoint: u64) -> Epoch {
        Epoch(NonZero::<u64>::MIN.saturating_add(checkpoint))
    }

    /// The epoch before; of the first one itself.
    pub(crate) fn previous(self) -> Epoch {
        Epoch::after(self.number().saturating_sub(2))
    }

    /// The number of the checkpoint that images what is dirty for the epoch.
    pub(crate) fn number(self) -> u64 {
        self.0.get()
    }
}

/// Bytes of one leaf in memory, of one image on disk and of one slot.
pub(crate) const LEAF_BYTES: usize = 16 * 1024;
/// Slots in one extent (1 MiB).
pub(crate) const EXTENT_SLOTS: usize = 64;
