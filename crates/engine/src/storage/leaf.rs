//! The header of a leaf: it stays in memory while the rows may be on disk only.
//!
//! Invariants
//! 1. A leaf without rows in memory is clean, and its image is written; without an image it is empty, or it is a
//!    front leaf (`range.rs`).
//! 2. `dirty_epoch` is set and the leaf is on the list of exactly that epoch before the LSN of the
//!    change is reserved; a dirty leaf holds one reserved slot.
//! 3. A leaf whose rows are not logged is in no directory; eviction alone images it. A list may hold
//!    its place for the logged leaf that was there before.
//! 4. Fences only get narrower while an image stands, so an image may be wider than the leaf and
//!    is trimmed when it is loaded. A leaf that takes the range of an empty neighbour is imaged anew
//!    before its image is needed again (`tree/merge.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use onrush_latch::Latch;
use onrush_waits::{LatchClass, Recorder};

use super::image::Image;
use super::range::Range;
use crate::node::fence::Fence;
use crate::node::leaf::LeafRows;
use crate::units::{Epoch, LeafId, ObjectId};

/// A leaf: latch, and what the latch protects. Processors fetch cache lines in pairs, and a leaf's
/// first pair holds all that an insert looks at.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Leaf {
    pub(crate) latch: Latch<LeafState>,
    /// Somebody used the leaf since the evictor last came by. Anyone sets it, the evictor clears.
    recently_used: AtomicBool,
    /// Scans that found the rows out of order since they were sorted last.
    unsorted_scans: AtomicU8,
}

/// A scan of a leaf whose rows are out of order looks at each of them. To sort them costs as much as some ten such
/// scans, and the next insert may bring them out of order.
const UNSORTED_SCANS_MAX: u8 = 8;

/// Everything about a leaf. Whoever holds the latch exclusive may change it.
pub(crate) struct LeafState {
    /// Which object's rows these are; none for a leaf that is not in use.
    pub(crate) object: Option<ObjectId>,
    /// Epoch for which the leaf must be imaged; none when clean.
    pub(crate) dirty_epoch: Option<Epoch>,
    /// Whether the rows are logged, and so whether checkpoints look at the leaf. Never changes
    /// while the leaf is in use.
    pub(crate) logged: bool,
    pub(crate) rows: Option<LeafRows>,
    pub(crate) low: Fence,
    /// None: no upper bound.
    pub(crate) high: Option<Fence>,
    pub(crate) next: Option<LeafId>,
    /// The image that stands for the rows below the last checkpoint; may be shared with a sibling
    /// after a split. None for a leaf that never had one.
    pub(crate) image: Option<Arc<Image>>,
    /// Of a front leaf: the range whose stock has the rows that are not in memory. Such a leaf has no image.
    pub(crate) range: Option<Arc<Range>>,
}

impl Default for LeafState {
    fn default() -> Self {
        LeafState {
            object: None,
            dirty_epoch: None,
            logged: true,
            rows: None,
            low: Fence::new(&[]),
            high: None,
            next: None,
            image: None,
            range: None,
        }
    }
}

/// The rows of a leaf are on disk only.
pub(crate) struct OnDisk;

impl LeafState {
    /// Whether `key` of `object` belongs here.
    #[inline]
    pub(crate) fn covers(&self, object: ObjectId, key_head: u64, key: &[u8]) -> bool {
        self.object == Some(object)
            && self.low.at_or_below(key_head, key)
            && !self.ends_at_or_below(key_head, key)
    }

    /// Whether the leaf ends at or below `key`: then the key is to the right.
    #[inline]
    pub(crate) fn ends_at_or_below(&self, key_head: u64, key: &[u8]) -> bool {
        self.high.as_ref().is_some_and(|high| high.at_or_below(key_head, key))
    }

    /// Whether `key` lies in the range of the leaf; for loaders that trim a wider image.
    pub(crate) fn range_holds(&self, key_head: u64, key: &[u8]) -> bool {
        self.low.at_or_below(key_head, key) && !self.ends_at_or_below(key_head, key)
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty_epoch.is_some()
    }

    /// Whether checkpoints image the leaf and put it into the directory.
    pub(crate) fn is_for_checkpoints(&self) -> bool {
        self.object.is_some() && self.logged
    }

    /// The rows for a reader: none of a front leaf that has none in memory.
    ///
    /// # Errors
    /// They are on disk.
    pub(crate) fn rows_in_memory(&self) -> Result<Option<&LeafRows>, OnDisk> {
        match &self.rows {
            None if self.range.is_none() => Err(OnDisk),
            rows => Ok(rows.as_ref()),
        }
    }

    /// Whether there are no rows and no intents, as far as memory tells: the image of a leaf whose
    /// rows are on disk is not looked at. Of a front leaf nothing is known.
    pub(crate) fn is_known_empty(&self) -> bool {
        self.range.is_none() && self.has_nothing_in_memory()
    }

    /// Whether there are no rows and no intents, but for what a stock may have.
    pub(crate) fn has_nothing_in_memory(&self) -> bool {
        match &self.rows {
            Some(rows) => rows.len() == 0,
            None => self.image.is_none(),
        }
    }
}

impl Leaf {
    /// Tells the evictor that the leaf is in use.
    #[inline]
    pub(crate) fn touch(&self) {
        if !self.recently_used.load(Ordering::Relaxed) {
            self.recently_used.store(true, Ordering::Relaxed);
        }
    }

    /// Counts a scan that found the rows out of order: whether they are worth being sorted now.
    pub(crate) fn is_worth_sorting(&self) -> bool {
        let scans = self.unsorted_scans.load(Ordering::Relaxed);
        // Scans beside this one may be lost: then the rows are sorted a little later.
        self.unsorted_scans.store(scans.saturating_add(1), Ordering::Relaxed);
        scans >= UNSORTED_SCANS_MAX
    }

    /// Sorts the rows, unless they changed so that there is nothing to sort.
    pub(crate) fn sort(&self, recorder: &Recorder) {
        let mut state = self.latch.exclusive(recorder, LatchClass::Leaf);
        self.unsorted_scans.store(0, Ordering::Relaxed);
        if let Some(rows) = state.rows.as_mut().filter(|rows| rows.is_sortable()) {
            rows.sort();
        }
    }

    /// Whether the leaf was used since the last call.
    pub(crate) fn take_recently_used(&self) -> bool {
        self.recently_used.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use onrush_log::Lsn;
    use onrush_waits::Registry;

    use super::*;
    use crate::memory::{FramePool, LargePages};
    use crate::node::leaf::{Owner, Stamp};

    /// A leaf with these keys, in the order of arrival.
    fn leaf(recorder: &Recorder, pool: &FramePool, keys: [&[u8]; 3]) -> Leaf {
        let mut rows = LeafRows::empty(pool.take(recorder).unwrap());
        for key in keys {
            rows.append(Stamp::committed(Lsn(1)), key, b"");
        }
        let leaf = Leaf::default();
        leaf.latch.exclusive(recorder, LatchClass::Leaf).rows = Some(rows);
        leaf
    }

    fn order(recorder: &Recorder, leaf: &Leaf) -> Vec<u16> {
        let state = leaf.latch.shared(recorder, LatchClass::Leaf);
        state.rows.as_ref().unwrap().order()
    }

    #[test]
    fn rows_are_sorted_for_the_scans_that_come_again_and_again() {
        let recorder = Recorder::new(&Registry::new(), "test");
        let pool = FramePool::new(1, LargePages::Off, false).unwrap();
        let leaf = leaf(&recorder, &pool, [b"c", b"a", b"b"]);
        assert_eq!(order(&recorder, &leaf), [1, 2, 0]);
        let scans = (0..20).position(|_| leaf.is_worth_sorting());
        assert_eq!(scans, Some(UNSORTED_SCANS_MAX.into()));
        leaf.sort(&recorder);
        assert_eq!(order(&recorder, &leaf), [0, 1, 2]);
        assert!(!leaf.is_worth_sorting(), "scans are counted anew");
    }

    #[test]
    fn a_leaf_with_intents_keeps_its_order() {
        let recorder = Recorder::new(&Registry::new(), "test");
        let pool = FramePool::new(1, LargePages::Off, false).unwrap();
        let leaf = leaf(&recorder, &pool, [b"c", b"a", b"b"]);
        let mut state = leaf.latch.exclusive(&recorder, LatchClass::Leaf);
        let rows = state.rows.as_mut().unwrap();
        rows.append(Stamp::intent(Owner::Small(9), false), b"a", b"new");
        drop(state);
        leaf.sort(&recorder);
        assert_eq!(order(&recorder, &leaf), [1, 3, 2, 0]);
    }
}
