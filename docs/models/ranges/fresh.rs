//! The world that a run begins with: one range and two whole leaves, installed.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::counts::Counts;
use super::disk::{Content, Disk, Place};
use super::entries::Entries;
use super::install::{Directory, Entry, EntryKind, range_entry};
use super::leaf::{Home, Leaf};
use super::oracle::{Oracle, State};
use super::plant::Plant;
use super::random::Random;
use super::status::{LargeRoot, LargeTable};
use super::stock::{Filter, RunImage, Stock};
use super::types::{KEYS, Key, Lsn, Record, Rows, Value, Version};
use super::world::World;

/// Redo of a fresh world begins here; rows of the directory are from below.
const START: Lsn = 8;
/// Keys of the range, and of the two whole leaves behind it.
const RANGE: Key = 6;
const LEAF: Key = 10;

impl World {
    /// Nothing but a disk.
    pub(super) fn new(plant: Plant, random: Random, clients: usize, disk: Disk) -> World {
        World {
            plant,
            random,
            leaves: BTreeMap::new(),
            epoch: 1,
            lists: BTreeMap::new(),
            old: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            statuses: Vec::new(),
            large: LargeTable::new(),
            in_flight: vec![None; clients],
            prefix_published: START,
            log: vec![Some(Record::Commit(Vec::new())); START as usize],
            log_start: START,
            written: START,
            durable: START,
            disk,
            installed: Rc::new(Directory::new(START, START, Vec::new(), LargeRoot::default())),
            installing: None,
            is_install_busy: false,
            addresses: Vec::new(),
            redone: None,
            next_number: 100,
            oracle: Oracle::new(State::new()),
            violation: None,
            is_blocked: false,
            active: 0,
            damages: false,
            trace: None,
            counts: Counts::default(),
        }
    }

    pub(super) fn fresh(plant: Plant, random: Random, clients: usize, slots: usize) -> World {
        let mut world = World::new(plant, random, clients, Disk::new(slots));
        let row = |key: Key| {
            let version = Version { lsn: Lsn::from(key / 2), value: Some(Value(u32::from(key))) };
            (key, version)
        };
        let rows: Rows = [0, 2, 4, 6, 8, 10, 12].into_iter().map(row).collect();
        let mut entries = vec![world.fresh_range(&rows)];
        for (low, high) in [(RANGE, LEAF), (LEAF, KEYS)] {
            let rows = rows.range(low..high).map(|(key, row)| (*key, *row)).collect();
            let entries_of_leaf = Entries { rows, intents: BTreeMap::new() };
            let image = world.fresh_page(Content::Image(Rc::new(entries_of_leaf)));
            let home = Home::Whole { image: image.clone(), is_in_memory: false };
            world.leaves.insert(low, fresh_leaf(high, home));
            entries.push(Entry { low, high, kind: EntryKind::Leaf(image), stock: None });
        }
        let pages = world.disk.unsynced();
        world.disk.synced(&pages);
        world.installed = Rc::new(Directory::new(
            START,
            START,
            entries,
            LargeRoot { next: 1, ..LargeRoot::default() },
        ));
        let state = rows.iter().filter_map(|(key, row)| Some((*key, row.value?)));
        world.oracle = Oracle::new(state.collect());
        world
    }

    fn fresh_range(&mut self, rows: &Rows) -> Entry {
        let in_range: Vec<_> = rows.range(..RANGE).map(|(key, row)| (*key, *row)).collect();
        let image = |rows: &[(Key, Version)]| {
            let low = rows[0].0;
            let rows = rows.iter().copied().collect();
            let entries = Entries { rows, intents: BTreeMap::new() };
            let place = self.fresh_page(Content::Image(Rc::new(entries)));
            Some(RunImage { low, place: place? })
        };
        let base = in_range.chunks(2).filter_map(image).collect();
        let keys = Rc::new(in_range.iter().map(|(key, _)| *key).collect());
        let place = self.fresh_page(Content::Filter(Rc::clone(&keys)));
        let filter = place.map(|place| Filter { place, keys });
        let (fragments, base_held) = (Vec::new(), Vec::new());
        let (low, high, flush_lsn) = (0, RANGE, START);
        let stock = Stock { address: 0, low, high, base, base_held, filter, fragments, flush_lsn };
        let stock = self.new_stock(stock);
        let range = self.new_range(stock, false);
        self.leaves.insert(low, fresh_leaf(high, Home::Front(range.clone())));
        range_entry(range.stock())
    }

    fn fresh_page(&mut self, content: Content) -> Option<Rc<Place>> {
        let place = self.disk.assign().ok()?;
        self.disk.write(&place, content);
        Some(place)
    }
}

pub(super) fn fresh_leaf(high: Key, home: Home) -> Leaf {
    Leaf {
        high,
        is_latched: false,
        rows: Rows::new(),
        intents: BTreeMap::new(),
        dirty: None,
        frozen: None,
        home,
    }
}
