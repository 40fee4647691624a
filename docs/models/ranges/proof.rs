//! What is true of a disk and of an engine at rest: `check` of what a directory leads to, what recovery from a crash
//! gives, and what a running engine has when nobody is at work.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::disk::{Content, Disk, Head, Page, Place};
use super::entries::{ByKey, Entries, Entry as KeyEntry, newest};
use super::install::{Directory, Entry, EntryKind, RangeEntry};
use super::leaf::Home;
use super::oracle::State;
use super::plant::Plant;
use super::status::RolledBack;
use super::types::{KEYS, Key, LargeIntent, Lsn, Number, Record, Version};
use super::world::World;

/// A range as the disk has it.
pub(super) struct OpenedRange {
    pub(super) filter: Option<BTreeSet<Key>>,
    pub(super) heads: Vec<Rc<Head>>,
    /// All entries of all runs, those of older runs first.
    entries: ByKey,
}

/// One entry of a directory and what it leads to.
pub(super) enum Opened {
    Leaf(Entries),
    Range(OpenedRange),
}

/// A page is taken only if its checksum fits.
fn checked(page: Option<&Page>, is_checked: bool) -> Option<&Content> {
    page.filter(|page| !is_checked || !page.is_damaged).map(|page| &page.content)
}

fn read_entries(disk: &Disk, place: &Place, low: Key, high: Key) -> Result<Entries, String> {
    match disk.read(place) {
        Some(Content::Image(entries)) => Ok(entries.between(low, high)),
        _ => Err(format!("slot {} holds no valid image", place.slot)),
    }
}

/// Reads what a directory leads to, and checks what `check` checks.
pub(super) fn open(
    disk: &Disk,
    directory: &Directory,
    plant: Plant,
) -> Result<Vec<Opened>, String> {
    let mut cursor = 0;
    let mut opened = Vec::new();
    for entry in &directory.entries {
        if entry.low != cursor || entry.high <= cursor {
            let (low, high) = (entry.low, entry.high);
            return Err(format!("entry [{low}, {high}) after high fence {cursor}"));
        }
        cursor = entry.high;
        opened.push(match &entry.kind {
            EntryKind::Leaf(None) => Opened::Leaf(Entries::default()),
            EntryKind::Leaf(Some(image)) => {
                Opened::Leaf(read_entries(disk, image, entry.low, entry.high)?)
            }
            EntryKind::Range(range) => {
                let range = open_range(disk, entry, range, plant)?;
                check_range(entry, &range, directory)?;
                Opened::Range(range)
            }
        });
    }
    if cursor == KEYS { Ok(opened) } else { Err(format!("the directory ends at {cursor}")) }
}

fn open_range(
    disk: &Disk,
    entry: &Entry,
    range: &RangeEntry,
    plant: Plant,
) -> Result<OpenedRange, String> {
    let mut all = ByKey::new();
    let mut base_numbers = BTreeSet::new();
    let lows = range.base.iter().map(|image| image.low).skip(1).chain([entry.high]);
    for (image, high) in range.base.iter().zip(lows) {
        let entries = read_entries(disk, &image.place, image.low, high)?;
        base_numbers.extend(entries.numbers());
        entries.add_to(&mut all);
    }
    if !base_numbers.is_subset(&range.base_numbers) && plant != Plant::ConvertedWithoutNumbers {
        return Err(format!(
            "a base of intents of {base_numbers:?} names {:?}",
            range.base_numbers
        ));
    }
    // A filter that does not check is not used: every key may be in the base.
    let filter_page = range.filter.as_ref().and_then(|place| disk.page(place.slot, place.stamp));
    let filter = match checked(filter_page, plant != Plant::FilterNotChecked) {
        Some(Content::Filter(keys)) => Some((**keys).clone()),
        _ => None,
    };
    let mut heads = Vec::new();
    for place in &range.heads {
        let page = disk.page(place.slot, place.stamp);
        let content = checked(page, plant != Plant::HeadNotChecked);
        let Some(Content::Head(head)) = content else {
            return Err(format!("slot {} holds no valid head of a fragment", place.slot));
        };
        let (mut rows, mut numbers) = (0, BTreeSet::new());
        for (at, image) in head.images.iter().enumerate() {
            let high = head.images.get(at + 1).map_or(entry.high, |next| next.low);
            let place = Place {
                slot: image.slot,
                stamp: image.stamp,
                is_written: std::cell::Cell::new(true),
            };
            let read = read_entries(disk, &place, image.low, high)?;
            rows += read.len();
            numbers.extend(read.numbers());
            read.add_to(&mut all);
        }
        if rows != head.rows || numbers != head.numbers {
            return Err(format!(
                "a fragment of {head:?} has {rows} entries, intents of {numbers:?}"
            ));
        }
        heads.push(head.clone());
    }
    Ok(OpenedRange { filter, heads, entries: all })
}

/// What `check` says of a range: keys inside it, LSNs below E, numbers that were given, heads in order.
fn check_range(entry: &Entry, range: &OpenedRange, directory: &Directory) -> Result<(), String> {
    let end = directory.end;
    let all = range.entries.iter().flat_map(|(key, own)| own.iter().map(move |own| (key, own)));
    for (key, own) in all {
        match own {
            KeyEntry::Row(Version { lsn, .. }) if *lsn >= end && *lsn > 0 => {
                return Err(format!("key {key} of LSN {lsn} in a directory of E {end}"));
            }
            KeyEntry::Row(_) | KeyEntry::Intent(_) => {}
        }
        if *key < entry.low || *key >= entry.high {
            return Err(format!("key {key} in the range [{}, {})", entry.low, entry.high));
        }
    }
    let is_sound = |head: &Head| {
        let (lowest, highest) = head.lsn_bounds;
        let is_below_end = lowest <= highest && highest < end && head.flush_lsn <= end;
        is_below_end && (entry.low..entry.high).contains(&head.low)
    };
    match range.heads.iter().find(|head| !is_sound(head)) {
        Some(head) => Err(format!("a head that cannot be: {head:?}, E {end}")),
        None => Ok(()),
    }
}

/// What redo comes to: rows and intents as leaves have them, above what the stocks have.
#[derive(Default)]
struct Redone {
    leaves: Entries,
    stocks: ByKey,
    outcomes: BTreeMap<Number, (Lsn, RolledBack)>,
}

impl Redone {
    fn version(&self, intent: LargeIntent) -> Option<Version> {
        let (lsn, rolled_back) = self.outcomes.get(&intent.owner.number)?;
        let is_rolled_back = rolled_back.iter().any(|pieces| pieces.contains(&intent.owner.piece));
        (!is_rolled_back).then_some(Version { lsn: *lsn, value: intent.value })
    }

    /// Every intent in a leaf of this transaction becomes a row, or goes.
    fn commit(&mut self, number: Number, lsn: Lsn, rolled_back: &RolledBack) {
        self.outcomes.insert(number, (lsn, rolled_back.clone()));
        let intents = std::mem::take(&mut self.leaves.intents);
        for (key, intent) in intents {
            if intent.owner.number != number {
                self.leaves.intents.insert(key, intent);
            } else if let Some(version) = self.version(intent) {
                self.leaves.rows.insert(key, version);
            }
        }
    }

    /// Changes of a range below its flush LSN are in its stock. The others are placed blindly: the newest is what redo
    /// placed last, the log being whole.
    fn record(&mut self, lsn: Lsn, record: &Record, flush_lsns: &[Lsn; KEYS as usize]) {
        let is_due = |key: Key| lsn >= flush_lsns[usize::from(key)];
        match record {
            Record::Commit(changes) => {
                for change in changes.iter().filter(|change| is_due(change.key)) {
                    self.leaves.rows.insert(change.key, Version { lsn, value: change.value });
                    self.leaves.intents.remove(&change.key);
                }
            }
            Record::Piece(owner, changes) => {
                for change in changes.iter().filter(|change| is_due(change.key)) {
                    let standing = self.leaves.intents.get(&change.key);
                    if let Some(version) = standing.and_then(|standing| self.version(*standing)) {
                        self.leaves.rows.insert(change.key, version);
                    }
                    let intent = LargeIntent { owner: *owner, value: change.value };
                    self.leaves.intents.insert(change.key, intent);
                }
            }
            Record::LargeCommit(number, rolled_back) => self.commit(*number, lsn, rolled_back),
        }
    }

    /// What can be read when the log has been read: who has no outcome was aborted.
    fn state(&self) -> State {
        let mut state = State::new();
        for key in 0..KEYS {
            let in_stock = self.stocks.get(&key).cloned().unwrap_or_default();
            let entries = in_stock.into_iter().chain(self.leaves.of(key));
            let versions = entries.filter_map(|entry| match entry {
                KeyEntry::Row(version) => Some(version),
                KeyEntry::Intent(intent) => self.version(intent),
            });
            let value = newest(versions).and_then(|version| version.value);
            state.extend(value.map(|value| (key, value)));
        }
        state
    }
}

impl World {
    /// Recovers from what a crash left, and compares with what was promised.
    pub(super) fn check_recovery(
        &self,
        disk: &Disk,
        directory: &Directory,
        log_end: Lsn,
    ) -> Result<(), String> {
        if log_end < directory.end {
            return Err(format!("the log ends at {log_end} before E {}", directory.end));
        }
        if directory.start < self.log_start {
            let (start, recycled) = (directory.start, self.log_start);
            return Err(format!(
                "redo begins at {start}, and the log below {recycled} is recycled"
            ));
        }
        let opened = open(disk, directory, self.plant)?;
        let mut redone = Redone::default();
        for (number, outcome) in &directory.large.outcomes {
            if outcome.lsn < directory.start || self.plant == Plant::OutcomeBeforeItsRecord {
                redone.commit(*number, outcome.lsn, &outcome.rolled_back);
            }
        }
        let mut flush_lsns = [0; KEYS as usize];
        for (entry, opened) in directory.entries.iter().zip(opened) {
            match (opened, &entry.kind) {
                (Opened::Leaf(entries), _) => redone.leaves.extend(entries),
                (Opened::Range(range), EntryKind::Range(of)) => {
                    flush_lsns[usize::from(entry.low)..usize::from(entry.high)].fill(of.flush_lsn);
                    redone.stocks.extend(range.entries);
                }
                _ => {}
            }
        }
        for lsn in directory.start..log_end {
            let Some(record) = &self.log[lsn as usize] else {
                return Err(format!("LSN {lsn} is durable, and was never copied"));
            };
            redone.record(lsn, record, &flush_lsns);
        }
        let found = redone.state();
        let expected = self.oracle.expected(log_end)?;
        if found == expected {
            return Ok(());
        }
        let (start, end) = (directory.start, directory.end);
        Err(format!(
            "C {start}, E {end}, log to {log_end}: recovered {found:?}, expected {expected:?}"
        ))
    }

    /// When nobody is at work: what the engine has is what the commits say, and no slot is lost.
    pub(super) fn check_live(&mut self) -> Result<(), String> {
        let lows: Vec<Key> = self.leaves.keys().copied().collect();
        for low in lows {
            self.load(low);
            self.resolve_leaf(low);
        }
        let mut found = State::new();
        for key in 0..KEYS {
            let mut in_stock = Vec::new();
            if let Some(stock) = self.leaf(key).range().map(|range| range.stock()) {
                let parts = stock.candidates(key);
                for part in parts.into_iter().rev() {
                    let Some(image) = stock.image(part, key) else { continue };
                    let entries = self.read_image(&image.place, key, key + 1);
                    in_stock.extend(entries.of(key));
                }
            }
            let mut versions = self.versions(&in_stock);
            let in_leaf = self.committed_in_leaf(key);
            versions.extend(in_leaf.frozen.into_iter().chain(in_leaf.own));
            let newest = newest(versions);
            found.extend(newest.and_then(|newest| newest.value).map(|value| (key, value)));
        }
        let expected = self.oracle.state(Lsn::MAX);
        if found != expected {
            return Err(format!("the engine has {found:?}, expected {expected:?}"));
        }
        self.check_slots()
    }

    /// Slots with an owner are those of leaves, stocks and the installed directory.
    fn check_slots(&self) -> Result<(), String> {
        let mut known: BTreeSet<usize> =
            self.installed.named.iter().map(|(slot, _)| *slot).collect();
        for leaf in self.leaves.values() {
            match &leaf.home {
                Home::Whole { image, .. } => known.extend(image.iter().map(|image| image.slot)),
                Home::Front(range) => {
                    known.extend(range.stock().places().map(|place| place.slot));
                }
            }
        }
        match self.disk.owned().keys().find(|slot| !known.contains(slot)) {
            Some(slot) => Err(format!("slot {slot} is nobody's, and not free")),
            None => Ok(()),
        }
    }
}
