//! A snapshot is given up while it reads and while a transaction commits by it: in whatever order the steps fall,
//! a read is right or is told that it is too old, which nobody is whose snapshot was not given up, and no
//! transaction misses that somebody else changed its row. Each trap, planted, is found.
//!
//! A miniature of `tree/versions.rs`, `status/snapshots.rs` and of who asks them (`tree/read.rs`,
//! `tree/intent.rs`), under shuttle, which chooses who goes on at every lock and atomic. Seeds are fixed, so a run can
//! be had again; `ONRUSH_MODEL_SCALE=100` runs that many times as long.

#![allow(clippy::unwrap_used, reason = "a lock of the model is never poisoned but by its failure")]

mod shuttled;

use std::collections::{BTreeMap, BTreeSet};

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use shuttle::sync::{Arc, Mutex, RwLock};
use shuttle::thread;
use shuttled::{Runs, faults_show};

const KEYS: usize = 2;
const WRITERS: usize = 2;
const CHANGES: usize = 4;
const SNAPSHOTS: usize = 3;
const COLLECTIONS: usize = 3;
const RUNS: Runs = Runs { depth: 3, sound: 5_000, with_fault: 50_000, stack_bytes: None };

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    /// A reader asks what has gone before its look.
    AskedBeforeLook,
    /// A reader asks nothing.
    NotAsked,
    /// What has gone is told after it has gone.
    ToldLate,
    /// The store counts as empty before it is told what has gone.
    CountedEarly,
    /// A transaction that finds no row asks nothing.
    ConflictNotAsked,
    /// A new snapshot registers after it has read its LSN.
    RegisteredLate,
}

/// A row: the LSN that wrote it, which is also its value.
type Row = Option<u64>;

struct Version {
    key: usize,
    written_at: u64,
    ended_at: u64,
}

#[derive(Default)]
struct Store {
    versions: RwLock<Vec<Version>>,
    count: AtomicUsize,
    gone_to: AtomicU64,
}

#[derive(Default)]
struct Snapshots {
    at: BTreeMap<u64, usize>,
    held_from: u64,
}

/// The tail, and the LSNs that are reserved and not complete.
struct Log {
    tail: u64,
    in_flight: BTreeSet<u64>,
}

struct Model {
    fault: Fault,
    leaves: [RwLock<Row>; KEYS],
    store: Store,
    snapshots: Mutex<Snapshots>,
    log: Mutex<Log>,
    /// Every change: its LSN, its key, and whether the row is there behind it.
    history: std::sync::Mutex<Vec<(u64, usize, bool)>>,
}

impl Model {
    fn new(fault: Fault) -> Model {
        Model {
            fault,
            leaves: std::array::from_fn(|_| RwLock::new(None)),
            store: Store::default(),
            snapshots: Mutex::default(),
            log: Mutex::new(Log { tail: 1, in_flight: BTreeSet::new() }),
            history: std::sync::Mutex::default(),
        }
    }

    fn prefix(&self) -> u64 {
        let log = self.log.lock().unwrap();
        log.in_flight.first().copied().unwrap_or(log.tail)
    }

    fn open(&self) -> u64 {
        let early = (self.fault == Fault::RegisteredLate).then(|| self.prefix());
        let mut open = self.snapshots.lock().unwrap();
        let lsn = early.unwrap_or_else(|| self.prefix());
        *open.at.entry(lsn).or_insert(0) += 1;
        lsn
    }

    fn close(&self, lsn: u64) {
        let mut open = self.snapshots.lock().unwrap();
        let count = open.at.get_mut(&lsn).unwrap();
        *count -= 1;
        if *count == 0 {
            open.at.remove(&lsn);
        }
    }

    fn is_given_up(&self, lsn: u64) -> bool {
        lsn < self.snapshots.lock().unwrap().held_from
    }

    /// Changes a row as a transaction does that began at `since`, if nobody was first.
    fn change(&self, key: usize, removes: bool, since: Option<u64>) {
        let mut leaf = self.leaves[key].write().unwrap();
        if leaf.is_none() && removes {
            return;
        }
        if let Some(since) = since {
            let changed_at = leaf.unwrap_or_else(|| self.removed_at(key));
            let asks = self.fault != Fault::ConflictNotAsked;
            if leaf.is_none() && asks && self.lacks(since) || changed_at >= since {
                return;
            }
        }
        let before = *leaf;
        if let Some(written_at) = before {
            self.store.versions.write().unwrap().push(Version {
                key,
                written_at,
                ended_at: u64::MAX,
            });
            self.store.count.fetch_add(1, Ordering::SeqCst);
        }
        let lsn = {
            let mut log = self.log.lock().unwrap();
            let lsn = log.tail;
            log.tail += 1;
            log.in_flight.insert(lsn);
            lsn
        };
        if before.is_some() {
            let mut versions = self.store.versions.write().unwrap();
            let kept = versions.iter_mut().rev().find(|version| version.key == key);
            kept.unwrap().ended_at = lsn;
        }
        *leaf = (!removes).then_some(lsn);
        let missed = {
            let mut history = self.history.lock().unwrap();
            let is_missed = |(at, own, _): &&(u64, usize, bool)| {
                *own == key && since.is_some_and(|since| *at >= since)
            };
            let missed = history.iter().find(is_missed).copied();
            history.push((lsn, key, !removes));
            missed
        };
        drop(leaf);
        self.log.lock().unwrap().in_flight.remove(&lsn);
        assert_eq!(missed, None, "missed by one that began at {since:?}");
    }

    fn removed_at(&self, key: usize) -> u64 {
        if self.store.count.load(Ordering::SeqCst) == 0 {
            return 0;
        }
        let versions = self.store.versions.read().unwrap();
        versions.iter().filter(|own| own.key == key).map(|own| own.ended_at).max().unwrap_or(0)
    }

    fn lacks(&self, snapshot: u64) -> bool {
        snapshot <= self.store.gone_to.load(Ordering::SeqCst)
    }

    /// What the snapshot sees; none if it is too old.
    fn read(&self, key: usize, snapshot: u64) -> Option<Row> {
        let leaf = self.leaves[key].read().unwrap();
        if let Some(lsn) = *leaf
            && lsn < snapshot
        {
            return Some(Some(lsn));
        }
        let asked_before = self.lacks(snapshot);
        if self.store.count.load(Ordering::SeqCst) > 0 {
            let versions = self.store.versions.read().unwrap();
            let seen = versions.iter().find(|own| {
                own.key == key && own.written_at < snapshot && snapshot <= own.ended_at
            });
            if let Some(seen) = seen {
                return Some(Some(seen.written_at));
            }
        }
        let is_too_old = match self.fault {
            Fault::NotAsked => false,
            Fault::AskedBeforeLook => asked_before,
            _ => self.lacks(snapshot),
        };
        (!is_too_old).then_some(None)
    }

    /// Gives the oldest snapshot up and drops what nobody holds.
    fn collect(&self) {
        let horizon = {
            let mut open = self.snapshots.lock().unwrap();
            let next = self.prefix();
            let held_from = open.held_from;
            if let Some((lowest, _)) = open.at.range(held_from..).next().filter(|own| *own.0 < next)
            {
                open.held_from = *lowest + 1;
            }
            let held_from = open.held_from;
            open.at.range(held_from..).next().map_or(next, |(lowest, _)| next.min(*lowest))
        };
        if self.store.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut versions = self.store.versions.write().unwrap();
        let gone = versions.iter().filter(|own| own.ended_at < horizon);
        let Some(newest) = gone.clone().map(|own| own.ended_at).max() else { return };
        let count = gone.count();
        if self.fault == Fault::CountedEarly {
            self.store.count.fetch_sub(count, Ordering::SeqCst);
        }
        if self.fault != Fault::ToldLate {
            self.store.gone_to.fetch_max(newest, Ordering::SeqCst);
        }
        versions.retain(|own| own.ended_at >= horizon);
        if self.fault != Fault::CountedEarly {
            self.store.count.fetch_sub(count, Ordering::SeqCst);
        }
        drop(versions);
        self.store.gone_to.fetch_max(newest, Ordering::SeqCst);
    }

    /// What a snapshot must see.
    fn expected(&self, key: usize, snapshot: u64) -> Row {
        let history = self.history.lock().unwrap();
        let changes = history.iter().filter(|(lsn, own, _)| *own == key && *lsn < snapshot);
        let last = changes.max_by_key(|(lsn, ..)| *lsn);
        last.and_then(|(lsn, _, is_there)| is_there.then_some(*lsn))
    }
}

fn some_key() -> usize {
    thread_rng().gen_range(0..KEYS)
}

fn run(fault: Fault) {
    let model = Arc::new(Model::new(fault));
    (0..KEYS).for_each(|key| model.change(key, false, None));
    let mut threads = Vec::new();
    let mut begin = |work: fn(&Model)| {
        let model = Arc::clone(&model);
        threads.push(thread::spawn(move || work(&model)));
    };
    for _ in 0..WRITERS {
        begin(|model| {
            for _ in 0..CHANGES {
                model.change(some_key(), thread_rng().gen_bool(0.5), None);
            }
        });
    }
    begin(|model| {
        for _ in 0..SNAPSHOTS {
            let snapshot = model.open();
            for key in 0..KEYS {
                match model.read(key, snapshot) {
                    Some(seen) => assert_eq!(seen, model.expected(key, snapshot), "key {key}"),
                    None => assert!(model.is_given_up(snapshot), "{snapshot} was not given up"),
                }
            }
            model.close(snapshot);
        }
    });
    begin(|model| {
        let since = model.open();
        model.change(some_key(), false, Some(since));
        model.close(since);
    });
    begin(|model| (0..COLLECTIONS).for_each(|_| model.collect()));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_read_is_right_or_told_and_no_conflict_is_missed() {
    RUNS.are_sound(|| run(Fault::None));
}

faults_show! {
    one_who_asks_before_the_look_is_found: AskedBeforeLook,
    one_who_does_not_ask_is_found: NotAsked,
    telling_what_has_gone_late_is_found: ToldLate,
    counting_versions_as_gone_early_is_found: CountedEarly,
    a_conflict_that_is_not_asked_for_is_found: ConflictNotAsked,
    a_snapshot_that_registers_late_is_found: RegisteredLate,
}
