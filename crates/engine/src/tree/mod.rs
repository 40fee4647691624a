#![doc = include_str!("README.md")]

mod build;
mod changes;
mod compact;
mod convert;
mod cuts;
mod descend;
mod flush;
mod front;
mod group;
mod intent;
mod large_intent;
mod leaves_to_read;
mod merge;
mod old_versions;
mod own_versions;
mod pack;
mod prefetch;
mod read;
mod scan;
mod split;
mod split_point;
mod stock_intents;
#[allow(clippy::module_inception)]
mod tree;
mod trees;
mod versions;
mod write;

pub(crate) use build::LeafDescription;
pub(crate) use changes::TwoBatches;
pub(crate) use convert::{LEAVES_OF_A_RANGE_MIN, Neighbours};
pub(crate) use group::{GROUP_LEAVES_MAX, GROUP_SLOTS_TRIES_MAX, GROUP_TRIES_MAX};
pub(crate) use group::{
    GroupRefusal, GroupRow, GroupRows, RowAndEntries, write_group, write_with_entries,
};
pub(crate) use intent::{Intent, OwnIntent, resolve_intents};
pub(crate) use large_intent::Swept;
pub(crate) use leaves_to_read::LeavesToRead;
pub(crate) use merge::{EmptyLeaf, Merged};
pub(crate) use own_versions::OwnVersions;
pub(crate) use prefetch::LeafPrefetch;
pub(crate) use read::{Look, Seen, View};
pub use scan::Direction;
pub(crate) use scan::{Batch, Bounds};
pub(crate) use tree::{Hint, Tree};
pub(crate) use trees::Trees;
pub(crate) use write::{Change, Expect, RedoneAs};

use std::ops::{Deref, DerefMut};

use onrush_log::Lsn;
use onrush_waits::Recorder;

use crate::memory::Frame;
use crate::status::PendingTransaction;
use crate::storage::{StockPart, WantedPart};
use crate::units::LeafId;

/// What a thread inside the engine has with it: taken before the first latch, so that nobody
/// waits for any of it while holding one.
pub(crate) struct Seat<'a> {
    /// Permit of the admission, which is also the in-flight mark in the log.
    pub(crate) permit: usize,
    pub(crate) recorder: &'a Recorder,
    pub(crate) spares: &'a mut Spares,
}

/// What a thread has brought along for its next try.
#[derive(Default)]
pub(crate) struct Spares {
    /// Frames for splits: one for each new leaf, one to rearrange the old.
    frames: Vec<Frame>,
    /// What was read last of a stock.
    pub(crate) part: Option<StockPart>,
}

impl Deref for Spares {
    type Target = Vec<Frame>;

    #[inline]
    fn deref(&self) -> &Vec<Frame> {
        &self.frames
    }
}

impl DerefMut for Spares {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vec<Frame> {
        &mut self.frames
    }
}

/// Frames that one split needs.
pub(crate) const SPARE_FRAMES: usize = 2;

/// What has to be done, outside of the engine's permits and latches, before another try.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Blocked {
    /// The rows of this leaf are on disk only, and one of them is to change.
    Load(LeafId),
    /// The rows of this leaf are on disk only, and are to be read.
    LoadToRead(LeafId),
    /// The rows of this leaf are out of order, and many scans look for some of them.
    Sort(LeafId),
    /// A part of a stock must be read.
    Stock(Box<WantedPart>),
    /// Two spare frames are needed for a split.
    Spares,
    /// A leaf was split, and the half of the key is still too full: the parent must learn of this split before
    /// another one. It has when the latches are given back, so there is nothing to wait for.
    Split,
    /// No slot could be reserved for a leaf that becomes dirty.
    Slot,
    /// This small transaction decides first.
    Transaction(PendingTransaction),
    /// A definition of the table with this number is under way.
    Definition(u32),
}

/// Why a change was not made. Nothing has happened then: no LSN was reserved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    Blocked(Blocked),
    /// The key is there already, written at this LSN.
    Exists(Lsn),
    /// Memory does not tell whether the key is there, and the caller can take another one.
    MayExist,
    /// The key is not there; if somebody remembers, it was removed at this LSN.
    Missing(Option<Lsn>),
    /// The row is not the version that the change is based on; it was changed at this LSN.
    Changed(Lsn),
    /// A large transaction that is open has changed the row.
    Held,
    /// A transaction that is open has locked the row.
    Locked,
    /// The snapshot was given up, and something has gone that it may have seen here.
    TooOld,
    /// The table was truncated or dropped meanwhile.
    Gone,
}

impl From<WantedPart> for Blocked {
    fn from(wanted: WantedPart) -> Blocked {
        Blocked::Stock(Box::new(wanted))
    }
}

impl From<Blocked> for Refusal {
    fn from(blocked: Blocked) -> Refusal {
        Refusal::Blocked(blocked)
    }
}
