//! Recovery: the directory and what it leads to, then the log from C. Redo places rows blindly; it reads no image of a
//! stock.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::disk::{Disk, Place};
use super::flush::flush_locked;
use super::install::{Directory, Entry, EntryKind, RangeEntry, range_entry};
use super::leaf::{Home, Leaf};
use super::plant::Plant;
use super::proof::{Opened, OpenedRange, open};
use super::status::RolledBack;
use super::stock::{Filter, Fragment, RunImage, Stock};
use super::types::{Change, LargeIntent, LargeOwner, Lsn, Number, Record, Rows, Version};
use super::world::{REDO_WORKERS, Shared, World};

impl World {
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
        world.restore(&directory.large, directory.start);
        world.redone = Some([directory.start; REDO_WORKERS]);
        world.leaves.clear();
        let mut entries = Vec::new();
        for (entry, opened) in directory.entries.iter().zip(opened) {
            entries.push(world.adopt(entry, opened));
        }
        let (start, directory_end) = (directory.start, directory.end);
        world.installed =
            Rc::new(Directory::new(start, directory_end, entries, directory.large.clone()));
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
        let base_held = self.hold(range.base_numbers.iter().copied());
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
                held: self.hold(head.numbers.iter().copied()),
            });
        }
        let (low, high, flush_lsn) = (entry.low, entry.high, range.flush_lsn);
        Stock { address: 0, low, high, base, base_held, filter, fragments, flush_lsn }
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
        let (owner, changes) = match record {
            Record::Commit(changes) => (None, changes),
            Record::Piece(owner, changes) => (Some(owner), changes),
            Record::LargeCommit(number, rolled_back) => {
                redo_large_commit(&shared, (number, lsn), rolled_back).await;
                (None, Vec::new())
            }
        };
        if let Some(owner) = owner {
            shared.world().large.note_number(owner.number);
        }
        let own = |change: &Change| usize::from(change.key) % REDO_WORKERS == worker;
        for change in changes.into_iter().filter(own) {
            let low = shared.latch(change.key).await;
            redo_change(&shared, (lsn, owner), change).await;
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

/// An outcome counts when every worker has placed the pieces before it.
async fn redo_large_commit(shared: &Shared, (number, lsn): (Number, Lsn), rolled_back: RolledBack) {
    let is_there = |redone: [Lsn; REDO_WORKERS]| redone.into_iter().all(|redone| redone >= lsn);
    shared.until(|world| world.redone.is_none_or(is_there)).await;
    let mut world = shared.world();
    world.large.note_number(number);
    world.large.commit(number, lsn, rolled_back);
}

async fn redo_change(
    shared: &Shared,
    (lsn, owner): (Lsn, Option<LargeOwner>),
    Change { key, value }: Change,
) {
    let plant = shared.plant();
    let place = move |world: &mut World| match owner {
        Some(owner) => world.redo_intent(key, LargeIntent { owner, value }),
        None => world.redo_row(key, Version { lsn, value }),
    };
    let stock = shared.world().leaf(key).range().map(|range| range.stock());
    let Some(stock) = stock else {
        let mut world = shared.world();
        let low = world.low(key);
        world.load(low);
        place(&mut world);
        return;
    };
    if lsn < stock.flush_lsn {
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
    place(&mut world);
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
