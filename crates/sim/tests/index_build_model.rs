//! An index is filled beside writers who change, remove and insert rows: in whatever order the steps fall, afterwards
//! each row has its entry and no entry is without its row, and no writer is refused for it. Each trap, planted, is
//! found.
//!
//! A miniature of `session/index_filler.rs`, of intents and the traces of removals (`tree/intent.rs`) and of entries
//! that are written blind (`tree/group/with_entries.rs`), under shuttle, which chooses who goes on at every lock.
//! Seeds are fixed, so a run can be had again; `ONRUSH_MODEL_SCALE=100` runs that many times as long.

#![allow(clippy::unwrap_used, reason = "a lock of the model is never poisoned but by its failure")]

mod shuttled;

use std::collections::{BTreeMap, BTreeSet};

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::{Arc, Mutex, RwLock};
use shuttle::thread;
use shuttled::{Runs, faults_show};

const ROWS: usize = 2;
const VALUES: usize = 2;
const WRITERS: usize = 2;
const CHANGES: usize = 3;
const FILLS: usize = 2;
const COLLECTIONS: usize = 2;
const RUNS: Runs = Runs { depth: 3, sound: 5_000, with_fault: 50_000, stack_bytes: None };

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    /// A removal of an entry that is not there leaves no trace.
    NoTrace,
    /// The filler does not look for traces.
    TraceNotAsked,
    /// The filler writes an entry where an intent stands.
    IntentPassedOver,
    /// A trace goes while a snapshot from before it is open.
    CollectedEarly,
    /// A writer is refused where an entry was written after it began.
    AsksWhoWasFirst,
    /// A new row's entry is written blind where intents stand.
    BlindBesideIntents,
}

type Number = u64;

/// What a key is; the LSN that wrote it, and what it has. Of an entry that is nothing.
#[derive(Clone, Copy, Default)]
struct Slot {
    committed: Option<(u64, usize)>,
    /// Of this transaction; none removes.
    intent: Option<(Number, Option<usize>)>,
}

/// Entries of one value, by row.
type EntryLeaf = [Slot; ROWS];

#[derive(Default)]
struct Store {
    /// Row, value, written at, ended at.
    rows: Vec<(usize, usize, u64, u64)>,
    /// Value, row, and when the entry was removed.
    traces: Vec<(usize, usize, u64)>,
}

struct Log {
    tail: u64,
    in_flight: BTreeSet<u64>,
}

struct Model {
    fault: Fault,
    rows: [RwLock<Slot>; ROWS],
    entries: [RwLock<EntryLeaf>; VALUES],
    store: RwLock<Store>,
    /// LSNs of transactions that were committed; one that is not there is pending.
    outcomes: Mutex<(Number, BTreeMap<Number, u64>)>,
    snapshots: Mutex<BTreeMap<u64, usize>>,
    log: Mutex<Log>,
}

impl Model {
    /// Two rows without entries.
    fn new(fault: Fault) -> Model {
        let row = |row| Slot { committed: Some((1, row % VALUES)), intent: None };
        Model {
            fault,
            rows: std::array::from_fn(|at| RwLock::new(row(at))),
            entries: std::array::from_fn(|_| RwLock::default()),
            store: RwLock::default(),
            outcomes: Mutex::default(),
            snapshots: Mutex::default(),
            log: Mutex::new(Log { tail: 2, in_flight: BTreeSet::new() }),
        }
    }

    fn prefix(&self) -> u64 {
        let log = self.log.lock().unwrap();
        log.in_flight.first().copied().unwrap_or(log.tail)
    }

    fn open(&self) -> u64 {
        let mut open = self.snapshots.lock().unwrap();
        let lsn = self.prefix();
        *open.entry(lsn).or_insert(0) += 1;
        lsn
    }

    fn close(&self, lsn: u64) {
        let mut open = self.snapshots.lock().unwrap();
        let count = open.get_mut(&lsn).unwrap();
        *count -= 1;
        if *count == 0 {
            open.remove(&lsn);
        }
    }

    fn reserve(&self) -> u64 {
        let mut log = self.log.lock().unwrap();
        let lsn = log.tail;
        log.tail += 1;
        log.in_flight.insert(lsn);
        lsn
    }

    fn complete(&self, lsn: u64) {
        self.log.lock().unwrap().in_flight.remove(&lsn);
    }

    fn outcome(&self, number: Number) -> Option<u64> {
        self.outcomes.lock().unwrap().1.get(&number).copied()
    }

    /// What the snapshot sees of a row.
    fn read(&self, row: usize, snapshot: u64) -> Option<usize> {
        let slot = self.rows[row].read().unwrap();
        if let Some((number, value)) = slot.intent
            && self.outcome(number).is_some_and(|lsn| lsn < snapshot)
        {
            return value;
        }
        match slot.committed {
            Some((lsn, value)) if lsn < snapshot => return Some(value),
            _ => {}
        }
        let store = self.store.read().unwrap();
        let seen = store.rows.iter().find(|(own, _, written_at, ended_at)| {
            *own == row && *written_at < snapshot && snapshot <= *ended_at
        });
        seen.map(|(_, value, ..)| *value)
    }

    /// Makes of a decided intent on a row what its outcome says.
    fn resolve_row(&self, row: usize, slot: &mut Slot) {
        let Some((number, value)) = slot.intent else { return };
        let Some(lsn) = self.outcome(number) else { return };
        if let Some((written_at, before)) = slot.committed {
            self.store.write().unwrap().rows.push((row, before, written_at, lsn));
        }
        *slot = Slot { committed: value.map(|value| (lsn, value)), intent: None };
    }

    fn resolve_entry(&self, (value, row): (usize, usize), slot: &mut Slot) {
        let Some((number, there)) = slot.intent else { return };
        let Some(lsn) = self.outcome(number) else { return };
        let was_there = slot.committed.is_some();
        if there.is_none() && (was_there || self.fault != Fault::NoTrace) {
            self.store.write().unwrap().traces.push((value, row, lsn));
        }
        slot.intent = None;
        // What was written later is not what it replaces.
        if slot.committed.is_none_or(|(written_at, _)| written_at < lsn) {
            slot.committed = there.map(|there| (lsn, there));
        }
    }

    /// Changes a row and its entries as a transaction; nothing happens where somebody else does so.
    fn change(&self, row: usize, to: Option<usize>) {
        let since = self.open();
        let before = self.read(row, since);
        let number = {
            let mut outcomes = self.outcomes.lock().unwrap();
            outcomes.0 += 1;
            outcomes.0
        };
        if before != to && self.place(row, number, to, since) {
            self.change_entries((row, number), (before, to), since);
            let lsn = self.reserve();
            self.outcomes.lock().unwrap().1.insert(number, lsn);
            self.complete(lsn);
            self.resolve_row(row, &mut self.rows[row].write().unwrap());
            for value in [before, to].into_iter().flatten() {
                let mut leaf = self.entries[value].write().unwrap();
                self.resolve_entry((value, row), &mut leaf[row]);
            }
        }
        self.close(since);
    }

    /// Places the intent on the row, if nobody was first.
    fn place(&self, row: usize, number: Number, to: Option<usize>, since: u64) -> bool {
        let mut slot = self.rows[row].write().unwrap();
        self.resolve_row(row, &mut slot);
        let ended = |store: &Store| {
            let ends = store.rows.iter().filter(|(own, ..)| *own == row);
            ends.map(|(.., ended_at)| *ended_at).max().unwrap_or(0)
        };
        let changed_at =
            slot.committed.map_or_else(|| ended(&self.store.read().unwrap()), |it| it.0);
        let is_first = slot.intent.is_none() && changed_at < since;
        if is_first {
            slot.intent = Some((number, to));
        }
        is_first
    }

    fn change_entries(
        &self,
        (row, number): (usize, Number),
        (before, to): (Option<usize>, Option<usize>),
        since: u64,
    ) {
        for (value, there) in [(before, None), (to, Some(0))] {
            let Some(value) = value else { continue };
            let mut leaf = self.entries[value].write().unwrap();
            self.resolve_entry((value, row), &mut leaf[row]);
            let slot = &mut leaf[row];
            assert!(slot.intent.is_none(), "who has the row has its entries");
            if let Some((lsn, _)) = slot.committed {
                assert!(there.is_none(), "a new entry is in the way of its own row");
                let is_refused = self.fault == Fault::AsksWhoWasFirst && lsn >= since;
                assert!(!is_refused, "a writer is refused for what a filler has written");
            }
            slot.intent = Some((number, there));
        }
    }

    /// Inserts a row and its entry with their leaves latched together, where there is neither row nor intent.
    fn insert_blind(&self, row: usize, value: usize) {
        let mut slot = self.rows[row].write().unwrap();
        self.resolve_row(row, &mut slot);
        if slot.committed.is_some() || slot.intent.is_some() {
            return;
        }
        let mut leaf = self.entries[value].write().unwrap();
        let has_intents = leaf.iter().any(|slot| slot.intent.is_some());
        if has_intents && self.fault != Fault::BlindBesideIntents {
            self.resolve_entry((value, row), &mut leaf[row]);
            assert!(leaf[row].intent.is_none(), "an intent without one on its row");
        }
        assert!(leaf[row].committed.is_none(), "an entry has outlived its row");
        let lsn = self.reserve();
        slot.committed = Some((lsn, value));
        leaf[row].committed = Some((lsn, 0));
        self.complete(lsn);
    }

    /// Writes the entry of a row as a snapshot sees it. False where the row may be another one since.
    fn put(&self, (value, row): (usize, usize), since: u64) -> bool {
        let mut leaf = self.entries[value].write().unwrap();
        let slot = &mut leaf[row];
        if self.fault != Fault::IntentPassedOver {
            self.resolve_entry((value, row), slot);
            if slot.intent.is_some() {
                return false;
            }
        }
        if slot.committed.is_some() {
            return true;
        }
        let is_later =
            |trace: &&(usize, usize, u64)| (trace.0, trace.1) == (value, row) && trace.2 >= since;
        let has_gone = self.store.read().unwrap().traces.iter().any(|trace| is_later(&trace));
        if has_gone && self.fault != Fault::TraceNotAsked {
            return false;
        }
        let lsn = self.reserve();
        slot.committed = Some((lsn, 0));
        self.complete(lsn);
        true
    }

    /// Writes the entries of all rows; whether there is nothing to be done again.
    fn fill(&self) -> bool {
        let since = self.open();
        let seen: Vec<_> = (0..ROWS).map(|row| self.read(row, since)).collect();
        let entries = seen.iter().enumerate().filter_map(|(row, value)| Some(((*value)?, row)));
        let put: Vec<bool> = entries.map(|entry| self.put(entry, since)).collect();
        self.close(since);
        put.iter().all(|put| *put)
    }

    /// Drops what no snapshot needs.
    fn collect(&self) {
        let horizon = {
            let open = self.snapshots.lock().unwrap();
            let next = self.prefix();
            match self.fault {
                Fault::CollectedEarly => next,
                _ => open.first_key_value().map_or(next, |(lowest, _)| next.min(*lowest)),
            }
        };
        let mut store = self.store.write().unwrap();
        store.traces.retain(|(.., removed_at)| *removed_at >= horizon);
    }

    fn assert_follows(&self) {
        for row in 0..ROWS {
            let mut slot = self.rows[row].write().unwrap();
            self.resolve_row(row, &mut slot);
            for value in 0..VALUES {
                let mut leaf = self.entries[value].write().unwrap();
                self.resolve_entry((value, row), &mut leaf[row]);
                let is_its_own = slot.committed.is_some_and(|(_, own)| own == value);
                assert_eq!(leaf[row].committed.is_some(), is_its_own, "row {row}, value {value}");
            }
        }
    }
}

fn run(fault: Fault) {
    let model = Arc::new(Model::new(fault));
    let mut threads = Vec::new();
    let mut begin = |work: fn(&Model)| {
        let model = Arc::clone(&model);
        threads.push(thread::spawn(move || work(&model)));
    };
    for _ in 0..WRITERS {
        begin(|model| {
            for _ in 0..CHANGES {
                let row = thread_rng().gen_range(0..ROWS);
                let value = thread_rng().gen_range(0..VALUES);
                match thread_rng().gen_range(0..4) {
                    0 => model.change(row, None),
                    1 => model.insert_blind(row, value),
                    _ => model.change(row, Some(value)),
                }
            }
        });
    }
    begin(|model| _ = (0..FILLS).any(|_| model.fill()));
    begin(|model| (0..COLLECTIONS).for_each(|_| model.collect()));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    // While nobody writes.
    assert!(model.fill());
    model.assert_follows();
}

#[test]
fn each_row_has_its_entry_and_no_writer_is_refused() {
    RUNS.are_sound(|| run(Fault::None));
}

faults_show! {
    a_removal_without_a_trace_is_found: NoTrace,
    a_trace_that_is_not_asked_for_is_found: TraceNotAsked,
    an_intent_that_is_passed_over_is_found: IntentPassedOver,
    a_trace_that_goes_early_is_found: CollectedEarly,
    a_writer_that_asks_who_was_first_is_found: AsksWhoWasFirst,
    an_entry_written_blind_beside_intents_is_found: BlindBesideIntents,
}
