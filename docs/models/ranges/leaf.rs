//! Leaves: whole ones, as the engine has always had, and front leaves above the stock of a range.
//!
//! All of it is done under the leaf's latch.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::disk::{Content, Place};
use super::plant::Plant;
use super::stock::{Part, Range, Stock};
use super::types::{Key, LEAF_ROWS, Rows, Value, Version};
use super::world::{Status, World};

#[derive(Clone, Debug)]
pub(super) enum Home {
    /// All rows of its keys are in memory, or on the disk in its image.
    Whole { image: Option<Rc<Place>>, is_in_memory: bool },
    /// It holds only what is newer than the stock.
    Front(Rc<Range>),
}

#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub(super) high: Key,
    pub(super) is_latched: bool,
    /// A whole leaf has no tombstones.
    pub(super) rows: Rows,
    /// What undecided transactions want.
    pub(super) intents: BTreeMap<Key, (usize, Option<Value>)>,
    /// The epoch in which it became dirty; it is on the list of that epoch.
    pub(super) dirty: Option<u64>,
    /// Rows that a flush of the range is writing; shared with siblings of a split, trimmed by fences.
    pub(super) frozen: Option<Rc<Rows>>,
    pub(super) home: Home,
}

/// What was read outside all latches, and for which stock.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) stock: Option<Rc<Stock>>,
    pub(super) address: u64,
    pub(super) found: Option<Version>,
}

/// What a look at a key under its leaf's latch gives.
pub(super) enum Look {
    Newest(Option<Version>),
    /// The stock has to be read, outside the latch.
    Refused(Rc<Stock>, Vec<Part>),
}

impl Leaf {
    pub(super) fn range(&self) -> Option<&Rc<Range>> {
        match &self.home {
            Home::Front(range) => Some(range),
            Home::Whole { .. } => None,
        }
    }

    fn frozen_version(&self, key: Key) -> Option<Version> {
        self.frozen.as_ref()?.get(&key).copied()
    }
}

impl World {
    pub(super) fn leaf(&mut self, key: Key) -> &mut Leaf {
        self.leaves.range_mut(..=key).next_back().expect("leaves tile the keys").1
    }

    /// The low key of the leaf that a key belongs to.
    pub(super) fn low(&self, key: Key) -> Key {
        *self.leaves.range(..=key).next_back().expect("leaves tile the keys").0
    }

    pub(super) fn unlatch(&mut self, low: Key) {
        if let Some(leaf) = self.leaves.get_mut(&low) {
            leaf.is_latched = false;
        }
    }

    /// A clean leaf becomes dirty, and goes on the list of this epoch.
    pub(super) fn make_dirty(&mut self, low: Key) {
        let epoch = self.epoch;
        let leaf = self.leaf(low);
        if leaf.dirty.is_none() {
            leaf.dirty = Some(epoch);
            self.lists.entry(epoch).or_default().push(low);
        }
    }

    /// Turns the intents of decided transactions into rows, or takes them out.
    pub(super) fn resolve_leaf(&mut self, low: Key) {
        let intents = std::mem::take(&mut self.leaf(low).intents);
        for (key, (transaction, value)) in intents {
            match self.statuses[transaction] {
                Status::Active => {
                    self.leaf(low).intents.insert(key, (transaction, value));
                }
                Status::Committed(lsn) => self.settle(key, Version { lsn, value }),
                Status::Aborted => {}
            }
        }
    }

    /// A committed change takes the place of what the leaf has of its key. What was in memory goes to the version
    /// store; what is in the stock stays there.
    pub(super) fn settle(&mut self, key: Key, version: Version) {
        let plant = self.plant;
        let leaf = self.leaf(key);
        let frozen = leaf.frozen_version(key).filter(|_| plant != Plant::FrozenVersionForgotten);
        let before = leaf.rows.get(&key).copied().or(frozen);
        match (&leaf.home, version.value) {
            (Home::Whole { .. }, None) => leaf.rows.remove(&key),
            _ => leaf.rows.insert(key, version),
        };
        if let Some(before) = before {
            self.keep_old(key, before, version.lsn);
        }
    }

    /// A row of redo: placed without a look at anything.
    pub(super) fn redo(&mut self, key: Key, version: Version) {
        let low = self.low(key);
        self.make_dirty(low);
        let leaf = self.leaf(key);
        match (&leaf.home, version.value) {
            (Home::Whole { .. }, None) => leaf.rows.remove(&key),
            _ => leaf.rows.insert(key, version),
        };
    }

    /// The newest version of a key, in the order rows, frozen, stock.
    pub(super) fn look(&mut self, key: Key, known: Option<&Known>) -> Look {
        let plant = self.plant;
        let leaf = self.leaf(key);
        let in_memory = leaf.rows.get(&key).copied().or_else(|| leaf.frozen_version(key));
        let Home::Front(range) = &leaf.home else { return Look::Newest(in_memory) };
        if in_memory.is_some() {
            return Look::Newest(in_memory);
        }
        let stock = range.stock();
        if let Some(known) = known {
            let same = known.stock.as_ref().is_some_and(|known| Rc::ptr_eq(known, &stock));
            let counts = match plant {
                Plant::LookupKept | Plant::StockBeforeLeaf => true,
                Plant::LookupByAddress => known.address == stock.address,
                _ => same,
            };
            if counts {
                return Look::Newest(known.found);
            }
        }
        let candidates = stock.candidates(key);
        if candidates.is_empty() {
            return Look::Newest(None);
        }
        Look::Refused(stock, candidates)
    }

    /// Brings the rows of a whole leaf into memory.
    pub(super) fn load(&mut self, low: Key) {
        let leaf = self.leaf(low);
        let high = leaf.high;
        let Home::Whole { image, is_in_memory } = &mut leaf.home else { return };
        if std::mem::replace(is_in_memory, true) {
            return;
        }
        let Some(image) = image.clone() else { return };
        let rows = self.read_image(&image, low, high);
        self.leaf(low).rows = rows;
    }

    /// The rows of an image between two fences.
    pub(super) fn read_image(&mut self, place: &Place, low: Key, high: Key) -> Rows {
        let Some(Content::Image(rows)) = self.disk.read(place) else {
            let what = format!("slot {} does not hold the image that is looked for", place.slot);
            self.must(Err(what));
            return Rows::new();
        };
        if low >= high {
            return Rows::new();
        }
        let high = if self.plant == Plant::ImageNotTrimmed { Key::MAX } else { high };
        rows.range(low..high).map(|(key, version)| (*key, *version)).collect()
    }

    /// Splits a leaf; the new sibling is on the list of the same epoch before the leaf is unlatched.
    pub(super) fn split(&mut self, low: Key, at: Key) {
        let leaf = self.leaf(low);
        let mut sibling = leaf.clone();
        sibling.is_latched = false;
        sibling.rows = leaf.rows.split_off(&at);
        sibling.intents = leaf.intents.split_off(&at);
        leaf.high = at;
        if let Some(epoch) = sibling.dirty {
            self.lists.entry(epoch).or_default().push(at);
        }
        self.leaves.insert(at, sibling);
        self.counts.leaf_splits += 1;
        self.note(|| format!("leaf {low} is split at {at}"));
    }

    /// Whether the leaf has to be split before a row of this key, and where.
    pub(super) fn split_at(&mut self, key: Key) -> Option<Key> {
        let low = self.low(key);
        let leaf = self.leaf(key);
        let keys: Vec<Key> = leaf.rows.keys().chain(leaf.intents.keys()).copied().collect();
        if keys.contains(&key) || keys.len() < LEAF_ROWS {
            return None;
        }
        let mut keys = keys;
        keys.sort_unstable();
        Some(keys[keys.len() / 2]).filter(|at| *at > low)
    }

    /// What a flush does to one leaf: intents of decided transactions are resolved, the rows are frozen. Undecided
    /// intents stay, and with them the leaf is dirty in this epoch.
    pub(super) fn freeze(&mut self, low: Key) -> Rows {
        self.resolve_leaf(low);
        let plant = self.plant;
        let epoch = self.epoch;
        let leaf = self.leaf(low);
        let high = leaf.high;
        let rows = std::mem::take(&mut leaf.rows);
        // Left of a flush that failed; what is newer goes over it, and settle has kept the version below.
        let before = leaf.frozen.take();
        let mut frozen: Rows = match &before {
            Some(before) => before.range(low..high).map(|(key, row)| (*key, *row)).collect(),
            None => Rows::new(),
        };
        frozen.extend(rows);
        if plant == Plant::IntentsFlushed {
            let intents = leaf.intents.iter();
            frozen
                .extend(intents.map(|(key, (_, value))| (*key, Version { lsn: 0, value: *value })));
        }
        leaf.frozen = (!frozen.is_empty()).then(|| Rc::new(frozen.clone()));
        leaf.dirty = None;
        if !leaf.intents.is_empty() && plant != Plant::CleanWithIntent {
            leaf.dirty = Some(epoch);
            self.lists.entry(epoch).or_default().push(low);
        }
        frozen
    }

    /// The committed rows of a latched leaf, as its imager takes them.
    pub(super) fn committed_rows(&mut self, low: Key) -> Rows {
        self.resolve_leaf(low);
        self.leaf(low).rows.clone()
    }

    /// The newest change of a key that the leaf knows to be committed below an LSN, intents included, or what it has
    /// at all; and whether the frozen rows have an older one.
    pub(super) fn memory_versions(&mut self, key: Key) -> Vec<Version> {
        let leaf = self.leaf(key);
        let own = [leaf.rows.get(&key).copied(), leaf.frozen_version(key)];
        let intent = leaf.intents.get(&key).copied();
        let committed = intent.and_then(|(transaction, value)| match self.statuses[transaction] {
            Status::Committed(lsn) => Some(Version { lsn, value }),
            _ => None,
        });
        own.into_iter().flatten().chain(committed).collect()
    }
}
