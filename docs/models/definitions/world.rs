//! The engine in miniature: memory, log and disk, and what tasks do to them in one step.
//!
//! A task changes the world between two of its steps without being disturbed; where the engine could be
//! interrupted, the task has a step. So what stands in one function here is atomic, and only memory copies
//! under a latch or a mutex may be.

use std::collections::{BTreeMap, BTreeSet};

use super::oracle::{Oracle, State};
use super::plant::Plant;
use super::random::Random;
use super::shared::Blocks;
use super::types::{
    Definition, Definitions, Directory, Key, LEAVES, Lsn, NAMES, Name, Object, Record, Rows,
    SYSTEM, TableId, Value,
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Open,
    Committed(Lsn),
    Aborted,
}

#[derive(Clone, Default)]
pub(super) struct Cell {
    pub(super) row: Option<(Value, Lsn)>,
    /// What an undecided transaction wants, and its number.
    pub(super) intent: Option<(usize, Option<Value>)>,
}

#[derive(Clone, Default)]
pub(super) struct Leaf {
    pub(super) cells: BTreeMap<Key, Cell>,
    pub(super) is_dirty: bool,
    pub(super) image: Rows,
}

pub(super) type Tree = [Leaf; LEAVES];

/// What a key was, oldest first.
pub(super) type Versions = Vec<(Lsn, Option<Value>)>;

/// A counter behind generated keys.
#[derive(Clone, Copy, Default)]
pub(super) struct Counter {
    pub(super) next: u64,
    pub(super) reserved: u64,
    pub(super) is_busy: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum LockName {
    Table(TableId),
    Name(Name),
}

#[derive(Clone, Default)]
pub(super) struct Lock {
    pub(super) exclusive: Option<usize>,
    pub(super) shared: BTreeSet<usize>,
    /// The end of the newest record of those who held it.
    pub(super) released_at: Lsn,
}

pub(super) struct World {
    pub(super) plant: Plant,
    pub(super) random: Random,
    /// The in-memory catalogue, and the LSN after the newest change of each name's meaning.
    pub(super) catalogue: Definitions,
    pub(super) counters: BTreeMap<TableId, Counter>,
    pub(super) name_changed: [Lsn; NAMES as usize],
    pub(super) definitions_mutex: bool,
    pub(super) next_id: u32,
    pub(super) trees: BTreeMap<Object, Tree>,
    /// The LSN of the commit that gave a table this object.
    pub(super) object_since: BTreeMap<Object, Lsn>,
    /// Versions of rows, as snapshots find them.
    pub(super) versions: BTreeMap<(Object, Key), Versions>,
    pub(super) locks: BTreeMap<LockName, Lock>,
    pub(super) waiting: BTreeMap<usize, (LockName, bool)>,
    pub(super) outcomes: Vec<Outcome>,
    /// One mark a client, as in the log's ring.
    pub(super) in_flight: Vec<Option<Lsn>>,
    pub(super) prefix_published: Lsn,
    /// One record an LSN; none: reserved, not copied yet.
    pub(super) log: Vec<Option<Record>>,
    pub(super) written: Lsn,
    pub(super) durable: Lsn,
    /// The newest log segment that is on the disk.
    pub(super) segments_prepared: Lsn,
    pub(super) installed: Directory,
    pub(super) installing: Option<Directory>,
    pub(super) oracle: Oracle,
    pub(super) next_made_by: u32,
    pub(super) next_number: u32,
    pub(super) violation: Option<String>,
    /// The task that was polled last could not go on.
    pub(super) is_blocked: bool,
    /// Tasks that may still write to the log or wait for it.
    pub(super) active: usize,
    pub(super) trace: Option<Vec<String>>,
    pub(super) refusals: u64,
    pub(super) commits: u64,
}

impl World {
    pub(super) fn new(plant: Plant, random: Random, clients: usize) -> World {
        let images = BTreeMap::from([(SYSTEM, Rows::new())]);
        let tables = BTreeMap::new();
        World {
            plant,
            random,
            catalogue: Definitions::new(),
            counters: BTreeMap::new(),
            name_changed: [0; NAMES as usize],
            definitions_mutex: false,
            next_id: 1,
            trees: BTreeMap::from([(SYSTEM, Tree::default())]),
            object_since: BTreeMap::new(),
            versions: BTreeMap::new(),
            locks: BTreeMap::new(),
            waiting: BTreeMap::new(),
            outcomes: Vec::new(),
            in_flight: vec![None; clients],
            prefix_published: 0,
            log: Vec::new(),
            written: 0,
            durable: 0,
            segments_prepared: 1,
            installed: Directory { start: 0, end: 0, tables, images, next_id: 1 },
            installing: None,
            oracle: Oracle::new(State::empty()),
            next_made_by: 1,
            next_number: 1,
            violation: None,
            is_blocked: false,
            active: 0,
            trace: None,
            refusals: 0,
            commits: 0,
        }
    }

    pub(super) fn is_planted(&self, plant: Plant) -> bool {
        self.plant == plant
    }

    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(what());
        }
    }

    pub(super) fn must(&mut self, outcome: Result<(), String>) {
        if let (Err(what), None) = (outcome, &self.violation) {
            self.violation = Some(what);
        }
    }

    pub(super) fn tail(&self) -> Lsn {
        self.log.len() as Lsn
    }

    /// The completed prefix, which never goes back.
    pub(super) fn prefix(&mut self) -> Lsn {
        let marks = self.in_flight.iter().flatten().copied();
        let now = marks.fold(self.tail(), Lsn::min);
        self.prefix_published = self.prefix_published.max(now);
        self.prefix_published
    }

    pub(super) fn mark(&mut self, client: usize) {
        self.in_flight[client] = Some(self.tail());
    }

    pub(super) fn reserve(&mut self) -> Lsn {
        self.log.push(None);
        self.tail() - 1
    }

    pub(super) fn copy(&mut self, lsn: Lsn, record: Record) {
        self.note(|| format!("  LSN {lsn}: {record:?}"));
        self.log[lsn as usize] = Some(record);
    }

    pub(super) fn clear(&mut self, client: usize) {
        self.in_flight[client] = None;
    }

    /// A number that no table or object had before.
    pub(super) fn new_id(&mut self) -> u32 {
        if self.is_planted(Plant::IdReused) {
            let used = self.trees.keys().chain(self.catalogue.keys()).copied().max();
            return used.unwrap_or(0) + 1;
        }
        self.next_id += 1;
        self.next_id - 1
    }

    pub(super) fn new_number(&mut self) -> u32 {
        self.next_number += 1;
        self.next_number
    }

    pub(super) fn leaf(&mut self, object: Object, key: Key) -> Option<&mut Leaf> {
        let tree = self.trees.get_mut(&object)?;
        Some(&mut tree[key as usize % LEAVES])
    }

    /// Turns the intents of decided transactions into rows, or takes them out.
    pub(super) fn fold(&mut self, object: Object, leaf: usize) {
        let Some(tree) = self.trees.get_mut(&object) else { return };
        let leaf = &mut tree[leaf];
        for cell in leaf.cells.values_mut() {
            let Some((transaction, value)) = cell.intent else { continue };
            match self.outcomes[transaction] {
                Outcome::Open => continue,
                Outcome::Committed(lsn) => {
                    cell.row = value.map(|value| (value, lsn));
                }
                Outcome::Aborted => {}
            }
            cell.intent = None;
        }
        leaf.cells.retain(|_, cell| cell.row.is_some() || cell.intent.is_some());
    }

    /// The newest version of a row below a snapshot, and its LSN.
    pub(super) fn version(
        &self,
        object: Object,
        key: Key,
        snapshot: Lsn,
    ) -> Option<(Lsn, Option<Value>)> {
        let versions = self.versions.get(&(object, key))?;
        versions.iter().rev().find(|(lsn, _)| *lsn < snapshot).copied()
    }

    /// The rows of an object that a snapshot sees.
    pub(super) fn scan(&self, object: Object, snapshot: Lsn) -> Vec<(Key, Value)> {
        let keys = self.versions.range((object, 0)..=(object, Key::MAX)).map(|(at, _)| at.1);
        let row = |key| Some((key, self.version(object, key, snapshot)?.1?));
        keys.filter_map(row).collect()
    }

    pub(super) fn named(definitions: &Definitions, name: Name) -> Option<Definition> {
        definitions.values().find(|definition| definition.name == name).copied()
    }
}

impl Blocks for World {
    fn block(&mut self) {
        self.is_blocked = true;
    }
}

/// The world, as tasks share it.
pub(super) type Shared = super::shared::Shared<World>;

impl Shared {
    pub(super) async fn until_durable(&self, below: Lsn) {
        self.until(move |world| world.durable >= below).await;
    }
}
