//! What a leaf, an image or a run has of a key: a row, and beside it what a large transaction wants of it.

use std::collections::{BTreeMap, BTreeSet};

use super::plant::Plant;
use super::status::Status;
use super::types::{Key, LargeIntent, Lsn, Number, Owner, Rows, Version};
use super::world::World;

/// Of each key at most a row and an intent.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Entries {
    pub(super) rows: Rows,
    pub(super) intents: BTreeMap<Key, LargeIntent>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entry {
    Row(Version),
    Intent(LargeIntent),
}

/// All entries of some keys, those of older places first.
pub(super) type ByKey = BTreeMap<Key, Vec<Entry>>;

impl Entries {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.intents.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len() + self.intents.len()
    }

    pub(super) fn keys(&self) -> BTreeSet<Key> {
        self.rows.keys().chain(self.intents.keys()).copied().collect()
    }

    pub(super) fn numbers(&self) -> BTreeSet<Number> {
        self.intents.values().map(|intent| intent.owner.number).collect()
    }

    /// Those between two fences.
    pub(super) fn between(&self, low: Key, high: Key) -> Entries {
        if low >= high {
            return Entries::default();
        }
        Entries {
            rows: self.rows.range(low..high).map(|(key, row)| (*key, *row)).collect(),
            intents: self.intents.range(low..high).map(|(key, own)| (*key, *own)).collect(),
        }
    }

    pub(super) fn extend(&mut self, other: Entries) {
        self.rows.extend(other.rows);
        self.intents.extend(other.intents);
    }

    /// The row, then the intent that would replace it.
    pub(super) fn of(&self, key: Key) -> impl Iterator<Item = Entry> {
        let row = self.rows.get(&key).copied().map(Entry::Row);
        row.into_iter().chain(self.intents.get(&key).copied().map(Entry::Intent))
    }

    pub(super) fn add_to(&self, all: &mut ByKey) {
        for key in self.keys() {
            all.entry(key).or_default().extend(self.of(key));
        }
    }
}

/// What a merge leaves of a key.
pub(super) struct Kept {
    /// The newest version; it may be a tombstone.
    pub(super) row: Option<Version>,
    pub(super) intent: Option<LargeIntent>,
    /// Older versions, each with the LSN that ended it.
    pub(super) forgotten: Vec<(Version, Lsn)>,
}

/// The newest of some versions. Of two with one LSN, which are two changes of one transaction, the later in the list,
/// whose place is newer.
pub(super) fn newest(versions: impl IntoIterator<Item = Version>) -> Option<Version> {
    versions.into_iter().max_by_key(|version| version.lsn)
}

impl World {
    /// What is committed of these, in their order: an intent is a version of its transaction's commit.
    pub(super) fn versions(&self, entries: &[Entry]) -> Vec<Version> {
        let version = |entry: &Entry| match entry {
            Entry::Row(version) => Some(*version),
            Entry::Intent(LargeIntent { owner, value }) => {
                match self.status(Owner::Large(*owner)) {
                    Status::Committed(lsn) => Some(Version { lsn, value: *value }),
                    Status::Active | Status::Aborted => None,
                }
            }
        };
        entries.iter().filter_map(version).collect()
    }

    /// The newest intent of a transaction that is undecided.
    pub(super) fn active(&self, entries: &[Entry]) -> Option<LargeIntent> {
        let is_active =
            |intent: &LargeIntent| self.status(Owner::Large(intent.owner)) == Status::Active;
        let active = entries.iter().rev().filter_map(|entry| match entry {
            Entry::Intent(intent) => Some(*intent).filter(is_active),
            Entry::Row(_) => None,
        });
        active.into_iter().next()
    }

    /// What is left of a key's entries, those of older places first, and what is not.
    pub(super) fn kept(&self, entries: &[Entry]) -> Kept {
        let mut versions = self.versions(entries);
        match self.plant {
            Plant::MergeTakesLaterRun => {}
            Plant::MergeTakesOlderVersion => {
                versions.sort_by_key(|version| std::cmp::Reverse(version.lsn));
            }
            Plant::MergeTakesEarlierPiece => {
                versions.reverse();
                versions.sort_by_key(|version| version.lsn);
            }
            _ => versions.sort_by_key(|version| version.lsn),
        }
        let pairs = versions.windows(2).filter(|pair| pair[0].lsn != pair[1].lsn);
        let forgotten = pairs.map(|pair| (pair[0], pair[1].lsn)).collect();
        let intent = self.active(entries).filter(|_| self.plant != Plant::MergeDropsActive);
        let drops_row = intent.is_some() && self.plant == Plant::MergeDropsRowBelow;
        let row = versions.last().copied().filter(|_| !drops_row);
        Kept { row, intent, forgotten }
    }
}
