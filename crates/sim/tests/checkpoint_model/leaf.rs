//! A leaf: latch, fences, rows, dirty epoch, image; and how its rows come back from the image.

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::image::Image;
use super::{CLEAN, Engine, Epoch, Fault, Key, LeafId, Lsn, Value};

/// Rows that fit into a leaf, intents included.
pub const ROWS_MAX: usize = 3;
/// More leaves than any run makes.
const LEAVES_MAX: usize = 24;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stamp {
    Committed(Lsn),
    Intent { transaction: usize, removal: bool },
}

impl Stamp {
    pub fn is_intent(self) -> bool {
        matches!(self, Stamp::Intent { .. })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    pub stamp: Stamp,
    pub key: Key,
    pub value: Value,
}

/// Whoever holds the latch exclusive may change it.
#[derive(Default)]
pub struct LeafState {
    pub is_used: bool,
    pub dirty_epoch: Epoch,
    /// In the order of arrival, as in the engine: a key may stand here twice by mistake.
    pub rows: Option<Vec<Entry>>,
    pub low: Key,
    pub high: Option<Key>,
    pub next: Option<LeafId>,
    pub image: Option<Arc<Image>>,
}

impl LeafState {
    pub fn ends_at_or_below(&self, key: Key) -> bool {
        self.high.is_some_and(|high| high <= key)
    }

    pub fn covers(&self, key: Key) -> bool {
        self.is_used && self.low <= key && !self.ends_at_or_below(key)
    }

    pub fn is_dirty(&self) -> bool {
        self.dirty_epoch != CLEAN
    }

    /// The image of a leaf whose rows are on disk is not looked at.
    pub fn is_known_empty(&self) -> bool {
        self.rows.as_ref().map_or(self.image.is_none(), Vec::is_empty)
    }

    pub fn has_intents(&self) -> bool {
        self.rows.iter().flatten().any(|entry| entry.stamp.is_intent())
    }
}

/// The arena of leaves.
pub struct Leaves {
    latches: Vec<RwLock<LeafState>>,
    count: AtomicUsize,
}

pub type Exclusive<'e> = RwLockWriteGuard<'e, LeafState>;
pub type Shared<'e> = RwLockReadGuard<'e, LeafState>;

impl Leaves {
    pub fn new() -> Leaves {
        let latches = (0..LEAVES_MAX).map(|_| RwLock::new(LeafState::default())).collect();
        Leaves { latches, count: AtomicUsize::new(0) }
    }

    pub fn add(&self) -> LeafId {
        self.count.fetch_add(1, SeqCst)
    }

    pub fn len(&self) -> usize {
        self.count.load(SeqCst)
    }

    pub fn exclusive(&self, id: LeafId) -> Exclusive<'_> {
        self.latches[id].write().expect("a run ends with its first panic")
    }

    pub fn try_exclusive(&self, id: LeafId) -> Option<Exclusive<'_>> {
        self.latches[id].try_write().ok()
    }

    pub fn shared(&self, id: LeafId) -> Shared<'_> {
        self.latches[id].read().expect("a run ends with its first panic")
    }
}

impl Engine {
    /// Makes sure the leaf's rows are in memory, at least for a moment. Called without latches.
    pub fn load_leaf(&self, id: LeafId) {
        let image = {
            let mut state = self.leaves.exclusive(id);
            if state.rows.is_some() {
                return;
            }
            match &state.image {
                Some(image) => Arc::clone(image),
                None => {
                    state.rows = Some(Vec::new());
                    return;
                }
            }
        };
        let page = self.disk.read(image.slot());
        let mut state = self.leaves.exclusive(id);
        let unchanged = state.image.as_ref().is_some_and(|now| Arc::ptr_eq(now, &image));
        if state.rows.is_some() || !unchanged {
            return;
        }
        let page = page.filter(|page| page.checksum == image.checksum());
        let page =
            page.unwrap_or_else(|| panic!("slot {} has no image of leaf {id}", image.slot()));
        let trims = !self.planted(Fault::NoTrim);
        let rows = page.rows.into_iter().filter(|entry| !trims || state.covers(entry.key));
        state.rows = Some(rows.collect());
    }
}
