//! Recovery: the directory and what it leads to, then the log from C. Redo places rows blindly; it reads no image of a
//! stock.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::disk::{Content, Disk, Head, Page, Place};
use super::flush::flush_locked;
use super::install::{Directory, Entry, EntryKind, RangeEntry, range_entry};
use super::leaf::{Home, Leaf};
use super::oracle::State;
use super::plant::Plant;
use super::stock::{Filter, Fragment, RunImage, Stock};
use super::types::{Change, KEYS, Key, Lsn, Rows, Version};
use super::world::{REDO_WORKERS, Shared, World};

/// A range as the disk has it.
pub(super) struct OpenedRange {
    filter: Option<BTreeSet<Key>>,
    heads: Vec<Rc<Head>>,
    /// All versions of all runs.
    versions: Vec<(Key, Version)>,
}

/// One entry of a directory and what it leads to.
pub(super) enum Opened {
    Leaf(Rows),
    Range(OpenedRange),
}

/// A page is taken only if its checksum fits.
fn checked(page: Option<&Page>, is_checked: bool) -> Option<&Content> {
    page.filter(|page| !is_checked || !page.is_damaged).map(|page| &page.content)
}

fn read_rows(disk: &Disk, place: &Place, low: Key, high: Key) -> Result<Rows, String> {
    match disk.read(place) {
        Some(Content::Image(rows)) if low < high => {
            Ok(rows.range(low..high).map(|(key, version)| (*key, *version)).collect())
        }
        Some(Content::Image(_)) => Ok(Rows::new()),
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
            EntryKind::Leaf(None) => Opened::Leaf(Rows::new()),
            EntryKind::Leaf(Some(image)) => {
                Opened::Leaf(read_rows(disk, image, entry.low, entry.high)?)
            }
            EntryKind::Range(range) => {
                let range = open_range(disk, entry, range, plant)?;
                check_range(entry, &range, directory.end)?;
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
    let mut versions = Vec::new();
    let lows = range.base.iter().map(|image| image.low).skip(1).chain([entry.high]);
    for (image, high) in range.base.iter().zip(lows) {
        versions.extend(read_rows(disk, &image.place, image.low, high)?);
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
        let mut rows = 0;
        for (at, image) in head.images.iter().enumerate() {
            let high = head.images.get(at + 1).map_or(entry.high, |next| next.low);
            let place = Place {
                slot: image.slot,
                stamp: image.stamp,
                is_written: std::cell::Cell::new(true),
            };
            let read = read_rows(disk, &place, image.low, high)?;
            rows += read.len();
            versions.extend(read);
        }
        if rows != head.rows {
            return Err(format!("a fragment of {} rows has {rows}", head.rows));
        }
        heads.push(head.clone());
    }
    Ok(OpenedRange { filter, heads, versions })
}

/// What `check` says of a range: keys inside it, LSNs below E, heads in order.
fn check_range(entry: &Entry, range: &OpenedRange, end: Lsn) -> Result<(), String> {
    for (key, version) in &range.versions {
        if version.lsn >= end && version.lsn > 0 {
            return Err(format!("key {key} of LSN {} in a directory of E {end}", version.lsn));
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
        let mut keys: BTreeMap<Key, Version> = BTreeMap::new();
        let mut flush_lsns = [0; KEYS as usize];
        for (entry, opened) in directory.entries.iter().zip(&opened) {
            match (opened, &entry.kind) {
                (Opened::Leaf(rows), _) => keys.extend(rows),
                (Opened::Range(range), EntryKind::Range(of)) => {
                    flush_lsns[usize::from(entry.low)..usize::from(entry.high)].fill(of.flush_lsn);
                    for (key, version) in &range.versions {
                        let newest = keys.entry(*key).or_insert(*version);
                        if newest.lsn < version.lsn {
                            *newest = *version;
                        }
                    }
                }
                _ => {}
            }
        }
        self.redo_all(&mut keys, &flush_lsns, directory.start, log_end)?;
        let live = keys.iter().filter_map(|(key, version)| Some((*key, version.value?)));
        let found: State = live.collect();
        let expected = self.oracle.expected(log_end)?;
        if found == expected {
            return Ok(());
        }
        let (start, end) = (directory.start, directory.end);
        Err(format!(
            "C {start}, E {end}, log to {log_end}: recovered {found:?}, expected {expected:?}"
        ))
    }

    fn redo_all(
        &self,
        keys: &mut BTreeMap<Key, Version>,
        flush_lsns: &[Lsn; KEYS as usize],
        start: Lsn,
        log_end: Lsn,
    ) -> Result<(), String> {
        for lsn in start..log_end {
            let Some(record) = &self.log[lsn as usize] else {
                return Err(format!("LSN {lsn} is durable, and was never copied"));
            };
            for change in &record.0 {
                if lsn >= flush_lsns[usize::from(change.key)] {
                    // Placed blindly: the newest is what redo placed last, the log being whole.
                    keys.insert(change.key, Version { lsn, value: change.value });
                }
            }
        }
        Ok(())
    }

    /// The power fails: what is left of the disk, the directory that the newest superblock leads to, and where the
    /// log ends.
    pub(super) fn crash(&mut self) -> (Disk, Rc<Directory>, Lsn) {
        let end = self.durable + self.random.below(self.written - self.durable + 1);
        let installing = self.installing.clone().filter(|_| self.random.one_in(2));
        let directory = installing.unwrap_or_else(|| self.installed.clone());
        (self.disk.crash(&mut self.random), directory, end)
    }

    /// A damaged head is noticed before its fragment is used.
    pub(super) fn check_damage(
        &mut self,
        disk: &Disk,
        directory: &Directory,
    ) -> Result<(), String> {
        let heads = directory.entries.iter().flat_map(|entry| match &entry.kind {
            EntryKind::Range(range) => range.heads.as_slice(),
            EntryKind::Leaf(_) => &[],
        });
        let heads: Vec<usize> = heads.map(|head| head.slot).collect();
        if heads.is_empty() {
            return Ok(());
        }
        let slot = heads[self.random.below(heads.len() as u64) as usize];
        let mut disk = disk.clone();
        disk.damage(slot, self.random.below(8) as usize);
        match open(&disk, directory, self.plant) {
            Ok(_) => Err(format!("the damaged head in slot {slot} is taken for a sound one")),
            Err(_) => Ok(()),
        }
    }

    /// The next incarnation over what a crash left: the same directory and C, and redo still to be done.
    pub(super) fn reopened(
        self,
        mut disk: Disk,
        directory: &Directory,
        end: Lsn,
    ) -> Result<World, String> {
        let plant = self.plant;
        let expected = self.oracle.expected(end)?;
        let mut random = self.random;
        if self.damages && random.one_in(3) {
            let filters = directory.entries.iter().filter_map(|entry| match &entry.kind {
                EntryKind::Range(range) => range.filter.as_ref().map(|place| place.slot),
                EntryKind::Leaf(_) => None,
            });
            for slot in filters.collect::<Vec<_>>() {
                disk.damage(slot, random.below(8) as usize);
            }
        }
        let opened = open(&disk, directory, plant)?;
        let mut world = World::new(plant, random, self.in_flight.len(), disk);
        world.damages = self.damages;
        (world.log, world.log_start) = (self.log, self.log_start);
        world.log.truncate(end as usize);
        (world.written, world.durable, world.prefix_published) = (end, end, end);
        world.oracle = super::oracle::Oracle::new(expected);
        (world.next_number, world.counts, world.trace) =
            (self.next_number, self.counts, self.trace);
        world.redone = Some([directory.start; REDO_WORKERS]);
        world.leaves.clear();
        let mut entries = Vec::new();
        for (entry, opened) in directory.entries.iter().zip(opened) {
            entries.push(world.adopt(entry, opened));
        }
        let (start, directory_end) = (directory.start, directory.end);
        world.installed = Rc::new(Directory::new(start, directory_end, entries));
        world.note(|| format!("=== crash; the log ends at {end}; open again, redo from {start}"));
        Ok(world)
    }

    fn adopt_place(&mut self, slot: usize, stamp: u64) -> Rc<Place> {
        let is_shared = self.plant != Plant::SharedImageOwnedTwice;
        self.disk.adopt(slot, stamp, is_shared)
    }

    fn adopt(&mut self, entry: &Entry, opened: Opened) -> Entry {
        let (low, high) = (entry.low, entry.high);
        let leaf = |home| Leaf {
            high,
            is_latched: false,
            rows: Rows::new(),
            intents: BTreeMap::new(),
            dirty: None,
            frozen: None,
            home,
        };
        match (&entry.kind, opened) {
            (EntryKind::Leaf(image), _) => {
                let image = image.as_ref().map(|image| self.adopt_place(image.slot, image.stamp));
                let home = Home::Whole { image: image.clone(), is_in_memory: false };
                self.leaves.insert(low, leaf(home));
                Entry { low, high, kind: EntryKind::Leaf(image), stock: None }
            }
            (EntryKind::Range(range), Opened::Range(opened)) => {
                let stock = self.adopt_stock(entry, range, opened);
                let stock = self.new_stock(stock);
                let range = self.new_range(stock, false);
                self.leaves.insert(low, leaf(Home::Front(range.clone())));
                range_entry(range.stock())
            }
            (EntryKind::Range(_), Opened::Leaf(_)) => entry.clone(),
        }
    }

    fn adopt_stock(&mut self, entry: &Entry, range: &RangeEntry, opened: OpenedRange) -> Stock {
        let base = range.base.iter().map(|image| RunImage {
            low: image.low,
            place: self.adopt_place(image.place.slot, image.place.stamp),
        });
        let base = base.collect();
        let filter = match (&range.filter, opened.filter) {
            (Some(place), Some(keys)) => {
                let place = self.adopt_place(place.slot, place.stamp);
                Some(Filter { place, keys: Rc::new(keys) })
            }
            (Some(_), None) => {
                self.counts.damages += 1;
                None
            }
            (None, _) => None,
        };
        let mut fragments = Vec::new();
        for (place, head) in range.heads.iter().zip(&opened.heads) {
            let images = head.images.iter().map(|image| RunImage {
                low: image.low,
                place: self.adopt_place(image.slot, image.stamp),
            });
            fragments.push(Fragment {
                images: images.collect(),
                head: self.adopt_place(place.slot, place.stamp),
                located: Rc::new(head.hashes.clone()),
                rows: head.rows,
            });
        }
        let (low, high, flush_lsn) = (entry.low, entry.high, range.flush_lsn);
        Stock { address: 0, low, high, base, filter, fragments, flush_lsn }
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
            let mut versions = self.memory_versions(key);
            if let Some(stock) = self.leaf(key).range().map(|range| range.stock()) {
                let parts = stock.candidates(key);
                for part in parts {
                    let Some(image) = stock.image(part, key) else { continue };
                    let rows = self.read_image(&image.place, key, key + 1);
                    versions.extend(rows.get(&key));
                }
            }
            let newest = versions.into_iter().max_by_key(|version| version.lsn);
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

/// Redoes the changes of a worker's keys from C while others may flush, merge and install. When all are done, the
/// engine is open.
pub(super) async fn redo(shared: Shared, worker: usize) {
    let Some(redone) = shared.world().redone else { return };
    let mut lsn = redone[worker];
    let end = shared.world().tail();
    while lsn < end {
        shared.step().await;
        let record = shared.world().log[lsn as usize].clone();
        let Some(record) = record else {
            shared.world().must(Err(format!("redo finds no record at LSN {lsn}")));
            return;
        };
        let own = |change: &Change| usize::from(change.key) % REDO_WORKERS == worker;
        for change in record.0.into_iter().filter(own) {
            let low = shared.latch(change.key).await;
            let version = Version { lsn, value: change.value };
            redo_change(&shared, change.key, version).await;
            shared.unlatch(low);
        }
        lsn += 1;
        if let Some(redone) = &mut shared.world().redone {
            redone[worker] = lsn;
        }
        flush_if_full(&shared).await;
    }
    let mut world = shared.world();
    if world.redone.is_some_and(|redone| redone.into_iter().all(|redone| redone == end)) {
        world.redone = None;
        world.note(|| "the engine is open".to_owned());
    }
}

async fn redo_change(shared: &Shared, key: Key, version: Version) {
    let plant = shared.plant();
    let stock = shared.world().leaf(key).range().map(|range| range.stock());
    let Some(stock) = stock else {
        let mut world = shared.world();
        let low = world.low(key);
        world.load(low);
        world.redo(key, version);
        return;
    };
    if version.lsn < stock.flush_lsn {
        return;
    }
    if plant == Plant::RedoReadsStock {
        let candidates = stock.candidates(key);
        super::locate::read_key(shared, &stock, &candidates, key).await;
    }
    let mut world = shared.world();
    let in_front = world.leaf(key).rows.get(&key).is_some_and(|row| row.value.is_some());
    if plant == Plant::RedoRefusesDuplicate && (in_front || !stock.candidates(key).is_empty()) {
        return;
    }
    world.redo(key, version);
}

/// The front is full: redo flushes a range as running sessions do.
async fn flush_if_full(shared: &Shared) {
    if !shared.world().random.one_in(6) {
        return;
    }
    let Some(range) = shared.world().some_range() else { return };
    if shared.lock(&range).await {
        let _ = flush_locked(shared, &range).await;
        range.unlock();
    }
}
