//! Leaves: whole ones, as the engine has always had, and front leaves above the stock of a range.
//!
//! All of it is done under the leaf's latch.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::disk::{Content, Place};
use super::entries::{ByKey, Entries, Entry, newest};
use super::plant::Plant;
use super::status::{Hold, Status};
use super::stock::{Part, Range, Stock};
use super::types::{Intent, Key, LEAF_ROWS, LargeIntent, Owner, Rows, Version};
use super::world::World;

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
    /// What undecided transactions want; beside a row that it would replace.
    pub(super) intents: BTreeMap<Key, Intent>,
    /// The epoch in which it became dirty; it is on the list of that epoch.
    pub(super) dirty: Option<u64>,
    /// What a flush of the range is writing; shared with siblings of a split, trimmed by fences.
    pub(super) frozen: Option<Rc<Frozen>>,
    pub(super) home: Home,
}

/// Rows, and intents of large transactions, whose status it keeps from being forgotten.
#[derive(Debug)]
pub(super) struct Frozen {
    pub(super) entries: Entries,
    _held: Vec<Hold>,
}

/// What was read outside all latches, and for which stock. What its intents mean is asked under the latch.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) stock: Option<Rc<Stock>>,
    pub(super) address: u64,
    /// Those of older runs first.
    pub(super) found: Vec<Entry>,
}

/// What a look at a key under its leaf's latch gives.
pub(super) enum Look {
    Found {
        newest: Option<Version>,
        active: Option<LargeIntent>,
    },
    /// The stock has to be read, outside the latch.
    Refused(Rc<Stock>, Vec<Part>),
}

/// What is committed of a key in a leaf. The version store has what `own` had before, and so comes between.
#[derive(Default)]
pub(super) struct InLeaf {
    pub(super) frozen: Vec<Version>,
    pub(super) own: Vec<Version>,
}

impl Look {
    fn found(world: &World, entries: &[Entry]) -> Look {
        let newest = newest(world.versions(entries));
        Look::Found { newest, active: world.active(entries) }
    }
}

impl Leaf {
    pub(super) fn range(&self) -> Option<&Rc<Range>> {
        match &self.home {
            Home::Front(range) => Some(range),
            Home::Whole { .. } => None,
        }
    }

    /// What an image of it has: small intents mean nothing after a crash.
    pub(super) fn large_intents(&self) -> BTreeMap<Key, LargeIntent> {
        let large = self.intents.iter().filter_map(|(key, Intent { owner, value })| match owner {
            Owner::Large(owner) => Some((*key, LargeIntent { owner: *owner, value: *value })),
            Owner::Small(_) => None,
        });
        large.collect()
    }

    pub(super) fn has_small_intents(&self) -> bool {
        self.intents.values().any(|intent| matches!(intent.owner, Owner::Small(_)))
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

    /// Turns the intents of decided transactions into rows, or takes them out. Those of large ones may be in the leaf's
    /// image, so the leaf becomes dirty.
    pub(super) fn resolve_leaf(&mut self, low: Key) {
        let intents = std::mem::take(&mut self.leaf(low).intents);
        let mut changes_image = false;
        for (key, intent) in intents {
            let status = self.status(intent.owner);
            match status {
                Status::Active => {
                    self.leaf(low).intents.insert(key, intent);
                }
                Status::Committed(lsn) => self.settle(key, Version { lsn, value: intent.value }),
                Status::Aborted => {}
            }
            changes_image |= status != Status::Active && matches!(intent.owner, Owner::Large(_));
        }
        if changes_image && self.plant != Plant::ResolvedNotDirty {
            self.make_dirty(low);
        }
    }

    /// A committed change takes the place of what the leaf has of its key. That goes to the version store; what is
    /// frozen or in the stock stays there.
    pub(super) fn settle(&mut self, key: Key, version: Version) {
        // Redo places a piece again beside what its commit, or a later one, has made of the key already.
        let keeps_all = self.plant == Plant::StoreTakesWhatIsNotOlder;
        let is_older = |before: &Version| keeps_all || before.lsn < version.lsn;
        if let Some(before) = self.put(key, version).filter(is_older) {
            self.keep_old(key, before, version.lsn);
        }
    }

    /// A whole leaf has no tombstones.
    fn put(&mut self, key: Key, version: Version) -> Option<Version> {
        let leaf = self.leaf(key);
        match (&leaf.home, version.value) {
            (Home::Whole { .. }, None) => leaf.rows.remove(&key),
            _ => leaf.rows.insert(key, version),
        }
    }

    /// A row of redo: placed without a look at anything. The transaction whose intent stands there was decided before.
    pub(super) fn redo_row(&mut self, key: Key, version: Version) {
        let low = self.low(key);
        self.make_dirty(low);
        self.put(key, version);
        if self.plant != Plant::RowRedoneBesideIntent {
            self.leaf(key).intents.remove(&key);
        }
    }

    /// A change of a piece: placed over the intent that stands there, once that is a row if it was committed.
    pub(super) fn redo_intent(&mut self, key: Key, LargeIntent { owner, value }: LargeIntent) {
        let low = self.low(key);
        self.make_dirty(low);
        self.resolve_leaf(low);
        self.leaf(key).intents.insert(key, Intent { owner: Owner::Large(owner), value });
    }

    /// The newest version of a key, and what an open large transaction wants of it, in the order rows and intents,
    /// frozen ones, stock.
    pub(super) fn look(&mut self, key: Key, known: Option<&Known>) -> Look {
        let plant = self.plant;
        let mut entries = self.frozen_entries(key);
        if plant == Plant::FrozenIntentIgnored {
            entries.retain(|entry| matches!(entry, Entry::Row(_)));
        }
        entries.extend(self.own_entries(key));
        let in_memory = Look::found(self, &entries);
        let Home::Front(range) = &self.leaf(key).home else { return in_memory };
        if !matches!(in_memory, Look::Found { newest: None, active: None }) {
            return in_memory;
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
                let found = Look::found(self, &known.found);
                return match found {
                    Look::Found { newest, .. } if plant == Plant::StockIntentIgnored => {
                        Look::Found { newest, active: None }
                    }
                    found => found,
                };
            }
        }
        let candidates = stock.candidates(key);
        if candidates.is_empty() {
            return in_memory;
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
        let Entries { rows, intents } = self.read_image(&image, low, high);
        let intent = |(key, LargeIntent { owner, value })| {
            (key, Intent { owner: Owner::Large(owner), value })
        };
        let leaf = self.leaf(low);
        (leaf.rows, leaf.intents) = (rows, intents.into_iter().map(intent).collect());
    }

    /// The entries of an image between two fences.
    pub(super) fn read_image(&mut self, place: &Place, low: Key, high: Key) -> Entries {
        let Some(Content::Image(entries)) = self.disk.read(place) else {
            let what = format!("slot {} does not hold the image that is looked for", place.slot);
            self.must(Err(what));
            return Entries::default();
        };
        let high = if self.plant == Plant::ImageNotTrimmed { Key::MAX } else { high };
        entries.between(low, high)
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

    /// What a flush does to one leaf: intents of decided transactions are resolved, the rows and the intents of large
    /// transactions are frozen. Small intents stay, and with them the leaf is dirty in this epoch.
    pub(super) fn freeze(&mut self, low: Key) -> Entries {
        self.resolve_leaf(low);
        let plant = self.plant;
        let epoch = self.epoch;
        let leaf = self.leaf(low);
        let high = leaf.high;
        let mut frozen =
            Entries { rows: std::mem::take(&mut leaf.rows), intents: leaf.large_intents() };
        leaf.intents.retain(|_, intent| matches!(intent.owner, Owner::Small(_)));
        let before = leaf.frozen.take();
        if plant == Plant::IntentsFlushed {
            let intents = leaf.intents.iter();
            let row =
                |(key, intent): (&Key, &Intent)| (*key, Version { lsn: 0, value: intent.value });
            frozen.rows.extend(intents.map(row));
        }
        if plant == Plant::LargeIntentsFlushedAsRows {
            let intents = std::mem::take(&mut frozen.intents).into_iter();
            let row =
                |(key, intent): (Key, LargeIntent)| (key, Version { lsn: 0, value: intent.value });
            frozen.rows.extend(intents.map(row));
        }
        leaf.dirty = None;
        if !leaf.intents.is_empty() && plant != Plant::CleanWithIntent {
            leaf.dirty = Some(epoch);
            self.lists.entry(epoch).or_default().push(low);
        }
        if let Some(before) = before {
            frozen = self.over_left(before.entries.between(low, high), frozen);
        }
        self.counts.intents_flushed += frozen.intents.len() as u64;
        let held = self.hold(frozen.numbers());
        let kept = Frozen { entries: frozen.clone(), _held: held };
        self.leaf(low).frozen = (!frozen.is_empty()).then(|| Rc::new(kept));
        frozen
    }

    /// What is left of a flush that failed, and over it what is newer.
    fn over_left(&mut self, left: Entries, newer: Entries) -> Entries {
        let mut all = ByKey::new();
        left.add_to(&mut all);
        newer.add_to(&mut all);
        let mut over = Entries::default();
        for (key, entries) in all {
            let kept = self.kept(&entries);
            over.rows.extend(kept.row.map(|row| (key, row)));
            over.intents.extend(kept.intent.map(|intent| (key, intent)));
            for (version, ended_at) in kept.forgotten {
                if self.plant != Plant::FrozenVersionForgotten {
                    self.keep_old(key, version, ended_at);
                }
            }
        }
        over
    }

    /// What the imager takes of a latched leaf: committed rows, and intents of large transactions.
    pub(super) fn entries_for_image(&mut self, low: Key) -> Entries {
        self.resolve_leaf(low);
        let leaf = self.leaf(low);
        Entries { rows: leaf.rows.clone(), intents: leaf.large_intents() }
    }

    fn frozen_entries(&mut self, key: Key) -> Vec<Entry> {
        let frozen = self.leaf(key).frozen.clone();
        frozen.iter().flat_map(|frozen| frozen.entries.of(key)).collect()
    }

    /// What the leaf has of a key in rows and intents of large transactions.
    fn own_entries(&mut self, key: Key) -> Vec<Entry> {
        let leaf = self.leaf(key);
        let row = leaf.rows.get(&key).copied().map(Entry::Row);
        let intent = leaf.large_intents().get(&key).copied().map(Entry::Intent);
        row.into_iter().chain(intent).collect()
    }

    /// What a latched leaf knows to be committed of a key.
    pub(super) fn committed_in_leaf(&mut self, key: Key) -> InLeaf {
        let entries = self.frozen_entries(key);
        let frozen = self.versions(&entries);
        let entries = self.own_entries(key);
        let mut own = self.versions(&entries);
        let intent = self.leaf(key).intents.get(&key).copied();
        if let Some(Intent { owner: Owner::Small(transaction), value }) = intent
            && let Status::Committed(lsn) = self.statuses[transaction]
        {
            own.push(Version { lsn, value });
        }
        InLeaf { frozen, own }
    }
}
