//! Serializable transactions in any order of their steps, as if on many threads: what commits has no cycle.

use std::collections::BTreeSet;
use std::sync::Arc;

use onrush_log::Lsn;
use proptest::prelude::*;

use super::serial_order::{ChangedKeys, Entered, ReadSet, Registered, SerialOrder};
use crate::units::ObjectId;

const TRANSACTIONS: usize = 5;
const KEYS: u8 = 4;

#[derive(Debug, Clone, Copy)]
enum Step {
    Read(u8),
    Write(u8),
    /// Goes on with its end: it enters, its record comes into the log, and that is told.
    GoOn,
    RollBack,
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let step = prop_oneof![
        4 => (0..KEYS).prop_map(Step::Read),
        3 => (0..KEYS).prop_map(Step::Write),
        5 => Just(Step::GoOn),
        1 => Just(Step::RollBack),
    ];
    (0..TRANSACTIONS, step)
}

/// A transaction before its record is in the log.
struct Open {
    /// Dropped behind what has entered.
    registered: Registered,
    /// None before the snapshot is open.
    snapshot: Option<u64>,
    noted: Arc<ReadSet>,
    reads: BTreeSet<u8>,
    writes: BTreeSet<u8>,
    entered: Option<Entered>,
    /// Where its record ends.
    end: Option<u64>,
}

/// One that has committed.
#[derive(Debug)]
struct Ran {
    snapshot: u64,
    reads: BTreeSet<u8>,
    writes: BTreeSet<u8>,
    /// None of one that has changed nothing.
    end: Option<u64>,
}

impl Ran {
    /// Whether it must have run before the other one.
    fn is_before(&self, other: &Ran) -> bool {
        let both_write = self.end.zip(other.end).is_some_and(|(own, other)| own < other)
            && !self.writes.is_disjoint(&other.writes);
        let is_read = self.end.is_some_and(|end| end <= other.snapshot)
            && !self.writes.is_disjoint(&other.reads);
        let is_overwritten = other.end.is_some_and(|end| end > self.snapshot)
            && !self.reads.is_disjoint(&other.writes);
        both_write || is_read || is_overwritten
    }
}

/// Whether nobody must have run before itself.
fn has_an_order(ran: &[Ran]) -> bool {
    let mut left: Vec<usize> = (0..ran.len()).collect();
    while !left.is_empty() {
        let is_first =
            |at: &usize| left.iter().all(|other| other == at || !ran[*other].is_before(&ran[*at]));
        let Some(first) = left.iter().copied().find(|at| is_first(at)) else { return false };
        left.retain(|at| *at != first);
    }
    true
}

struct World {
    order: Arc<SerialOrder>,
    open: Vec<Option<Open>>,
    ran: Vec<Ran>,
    /// The end of the log: all below is seen by who begins now.
    end: u64,
}

impl World {
    fn new(commits_max: usize) -> World {
        let order = Arc::new(SerialOrder::with_commits_max(commits_max));
        let open = (0..TRANSACTIONS).map(|_| None).collect();
        World { order, open, ran: Vec::new(), end: 10 }
    }

    fn run(&mut self, who: usize, step: Step) {
        let Some(open) = &mut self.open[who] else {
            let (registered, newest) = self.order.register();
            assert!(newest <= Lsn(self.end));
            self.open[who] = Some(Open {
                registered,
                snapshot: None,
                noted: Arc::default(),
                reads: BTreeSet::new(),
                writes: BTreeSet::new(),
                entered: None,
                end: None,
            });
            return;
        };
        let Some(snapshot) = open.snapshot else {
            open.snapshot = Some(self.end);
            open.registered.sees_below(Lsn(self.end));
            return;
        };
        let is_over = open.entered.is_some();
        match step {
            Step::Read(key) if !is_over && !open.writes.contains(&key) => {
                open.noted.note_key(object(), &[key]);
                open.reads.insert(key);
            }
            Step::Write(key) if !is_over => drop(open.writes.insert(key)),
            Step::Read(_) | Step::Write(_) => {}
            // Not once its record is in the log.
            Step::RollBack if open.end.is_none() => self.open[who] = None,
            Step::RollBack => {}
            Step::GoOn => self.go_on(who, snapshot),
        }
    }

    fn go_on(&mut self, who: usize, snapshot: u64) {
        let Some(open) = &mut self.open[who] else { return };
        if open.entered.is_none() {
            let mut changes = ChangedKeys::default();
            open.writes.iter().for_each(|key| changes.add(object(), &[*key]));
            open.entered = open.registered.enter(&open.noted, changes);
            if open.entered.is_none() {
                self.open[who] = None;
            } else if open.writes.is_empty() {
                self.has_run(who);
            }
        } else if let Some(end) = open.end {
            if let Some(entered) = open.entered.take() {
                entered.end(Lsn(end));
            }
            self.has_run(who);
        } else {
            // The first committer wins.
            let is_newer = |ran: &Ran| ran.end.is_some_and(|end| end > snapshot);
            let of_others = self.ran.iter().filter(|ran| is_newer(ran)).map(|ran| &ran.writes);
            let published =
                self.open.iter().flatten().filter(|it| it.end.is_some_and(|end| end > snapshot));
            let mut of_others = of_others.chain(published.map(|it| &it.writes));
            let own = self.open[who].as_ref().map(|open| open.writes.clone()).unwrap_or_default();
            if of_others.any(|writes| !writes.is_disjoint(&own)) {
                self.open[who] = None;
                return;
            }
            self.end += 10;
            if let Some(open) = &mut self.open[who] {
                open.end = Some(self.end);
            }
        }
    }

    fn has_run(&mut self, who: usize) {
        let Some(open) = self.open[who].take() else { return };
        let Open { snapshot, reads, writes, end, .. } = open;
        self.ran.push(Ran { snapshot: snapshot.unwrap_or_default(), reads, writes, end });
    }

    /// Whoever is in the log has committed, whether that was told or not.
    fn finish(&mut self) {
        for who in 0..TRANSACTIONS {
            if self.open[who].as_ref().is_some_and(|open| open.end.is_some()) {
                self.has_run(who);
            }
        }
    }
}

fn object() -> ObjectId {
    ObjectId::new(7).expect("a number")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_commits_could_have_run_one_after_the_other(
        commits_max in 1..12usize,
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let mut world = World::new(commits_max);
        for (who, step) in steps {
            world.run(who, step);
        }
        world.finish();
        prop_assert!(has_an_order(&world.ran), "{:?}", world.ran);
    }
}

/// Else nobody would have to be refused.
#[test]
fn two_that_have_read_what_the_other_writes_have_no_order() {
    let (one, two) = (BTreeSet::from([1]), BTreeSet::from([2]));
    let ran = |reads: &BTreeSet<u8>, writes: &BTreeSet<u8>, end| Ran {
        snapshot: 10,
        reads: reads.clone(),
        writes: writes.clone(),
        end: Some(end),
    };
    assert!(!has_an_order(&[ran(&one, &two, 20), ran(&two, &one, 30)]));
    assert!(has_an_order(&[ran(&one, &two, 20), ran(&one, &one, 30)]));
}
