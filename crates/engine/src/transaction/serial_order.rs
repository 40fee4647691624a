//! The order in which serializable transactions could have run one after the other.
//!
//! A serializable transaction notes what it reads. Its commit *enters* the order before its changes are published: it
//! is refused where another one that has entered before it, and that its snapshot does not see, has changed what it has
//! read. So it has read what it would have read if it ran where it enters.
//!
//! One that has changed nothing runs where its snapshot stands: right behind the last one that the snapshot sees. Only
//! those matter to it that have entered before that one and are not seen.
//!
//! 1. [`SerialOrder::register`] comes before the snapshot: changes that the snapshot may not see are kept from then on.
//! 2. [`Registered::enter`] looks at the changes of others and leaves its own, in one stay under the lock.
//! 3. [`Entered::end`] says where the commit stands in the log; dropped before, there is none.
//! 4. Changes are forgotten once all registered snapshots see them.
//!
//! Invariants
//! 1. Of two serializable transactions that both enter and change something, the later one has looked at the changes of
//!    the earlier one, unless its snapshot sees them.
//! 2. Who has changed nothing has read nothing that one has changed which entered before another one that it has seen,
//!    unless it has seen both.
//!
//! Changes of the same row are not looked at: the first committer wins. Transactions of other isolation levels are no
//! part of it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use onrush_log::Lsn;
use parking_lot::Mutex;

use crate::tree::Bounds;
use crate::units::ObjectId;

/// Of one object so many keys are told apart, and so many ranges; beyond that all of the object is meant.
const KEYS_MAX: usize = 4096;
const RANGES_MAX: usize = 256;

/// So many commits are told apart, with so many keys in all; beyond that they are one, which has changed all of their
/// objects.
const COMMITS_MAX: usize = 4096;
const COMMITTED_KEYS_MAX: usize = 65_536;

/// What a serializable transaction has read.
#[derive(Default)]
pub(crate) struct ReadSet(Mutex<BTreeMap<ObjectId, ObjectReads>>);

#[derive(Default)]
struct ObjectReads {
    is_whole: bool,
    keys: HashSet<Vec<u8>>,
    ranges: Vec<Bounds>,
}

impl ReadSet {
    pub(crate) fn note_key(&self, object: ObjectId, key: &[u8]) {
        let mut objects = self.0.lock();
        let reads = objects.entry(object).or_default();
        if reads.holds(key) {
            return;
        }
        match reads.keys.len() < KEYS_MAX {
            true => drop(reads.keys.insert(key.to_vec())),
            false => reads.be_whole(),
        }
    }

    pub(crate) fn note_range(&self, object: ObjectId, bounds: &Bounds) {
        let mut objects = self.0.lock();
        let reads = objects.entry(object).or_default();
        if reads.is_whole || reads.ranges.iter().any(|known| is_inside(bounds, known)) {
            return;
        }
        let is_all = bounds.low.is_empty() && bounds.high.is_none();
        match !is_all && reads.ranges.len() < RANGES_MAX {
            true => reads.ranges.push(bounds.clone()),
            false => reads.be_whole(),
        }
    }

    fn meets(&self, changes: &ChangedKeys) -> bool {
        let objects = self.0.lock();
        changes.0.iter().any(|(object, changed)| {
            objects.get(object).is_some_and(|reads| match changed {
                Changed::All => true,
                Changed::Keys(keys) => keys.iter().any(|key| reads.holds(key)),
            })
        })
    }
}

impl ObjectReads {
    fn holds(&self, key: &[u8]) -> bool {
        let has_key = |bounds: &Bounds| {
            key >= bounds.low.as_slice()
                && bounds.high.as_ref().is_none_or(|high| key < high.as_slice())
        };
        self.is_whole || self.keys.contains(key) || self.ranges.iter().any(has_key)
    }

    fn be_whole(&mut self) {
        *self = ObjectReads { is_whole: true, ..ObjectReads::default() };
    }
}

fn is_inside(inner: &Bounds, outer: &Bounds) -> bool {
    let ends_inside = match (&inner.high, &outer.high) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(inner), Some(outer)) => inner <= outer,
    };
    inner.low >= outer.low && ends_inside
}

/// What a serializable transaction has changed.
#[derive(Default)]
pub(crate) struct ChangedKeys(BTreeMap<ObjectId, Changed>);

enum Changed {
    All,
    Keys(Vec<Vec<u8>>),
}

impl ChangedKeys {
    pub(crate) fn add(&mut self, object: ObjectId, key: &[u8]) {
        let changed = self.0.entry(object).or_insert_with(|| Changed::Keys(Vec::new()));
        match changed {
            Changed::Keys(keys) if keys.len() < KEYS_MAX => keys.push(key.to_vec()),
            _ => *changed = Changed::All,
        }
    }

    fn key_count(&self) -> usize {
        let count = |changed: &Changed| match changed {
            Changed::All => 1,
            Changed::Keys(keys) => keys.len(),
        };
        self.0.values().map(count).sum()
    }

    pub(crate) fn add_all(&mut self, object: ObjectId) {
        self.0.insert(object, Changed::All);
    }
}

/// The changes of a transaction that has entered.
struct Commit {
    /// Its turn; of several that are one, the first.
    turn: u64,
    /// Its turn; of several, the last.
    last_turn: u64,
    changes: ChangedKeys,
    /// Where it stands in the log; none before that is known.
    end: Option<Lsn>,
}

impl Commit {
    fn is_seen_at(&self, snapshot: Lsn) -> bool {
        self.end.is_some_and(|end| end <= snapshot)
    }
}

/// The snapshot of a registered transaction.
#[derive(Clone, Copy)]
struct OpenSnapshot {
    /// It sees all below; zero before it is open.
    lsn: Lsn,
    /// The last turn before it was opened.
    opened_behind: u64,
    /// The newest turn of which it is known that the snapshot sees its changes.
    newest_seen: u64,
}

#[derive(Default)]
struct State {
    next_number: u64,
    last_turn: u64,
    registered: BTreeMap<u64, OpenSnapshot>,
    commits: Vec<Commit>,
    /// The newest turn, and the last end, of those that have ended.
    newest_ended: u64,
    last_end: Lsn,
}

impl State {
    fn forget_seen(&mut self) {
        let oldest = self.registered.values().map(|snapshot| snapshot.lsn).min();
        let oldest = oldest.unwrap_or(Lsn::MAX);
        self.commits.retain(|commit| !commit.is_seen_at(oldest));
    }

    fn is_full(&self) -> bool {
        let keys = self.commits.iter().map(|commit| commit.changes.key_count());
        self.commits.len() >= COMMITS_MAX || keys.sum::<usize>() >= COMMITTED_KEYS_MAX
    }

    /// Makes one commit of all that have ended.
    fn merge_ended(&mut self) {
        let (ended, mut others): (Vec<Commit>, Vec<Commit>) =
            std::mem::take(&mut self.commits).into_iter().partition(|commit| commit.end.is_some());
        let objects = ended.iter().flat_map(|commit| commit.changes.0.keys());
        let changes = ChangedKeys(objects.map(|object| (*object, Changed::All)).collect());
        let turn = ended.iter().map(|commit| commit.turn).min();
        let last_turn = ended.iter().map(|commit| commit.last_turn).max();
        let end = ended.iter().filter_map(|commit| commit.end).max();
        let turns = turn.zip(last_turn);
        others.extend(turns.map(|(turn, last_turn)| Commit { turn, last_turn, changes, end }));
        self.commits = others;
    }

    /// Before which turn it matters that another one is not seen by who has only read.
    fn runs_behind(&self, snapshot: &OpenSnapshot) -> u64 {
        // Those that are about to end may be seen.
        let pending = self.commits.iter().filter(|commit| commit.end.is_none());
        let pending = pending.map(|commit| commit.turn).filter(|it| *it <= snapshot.opened_behind);
        pending.max().unwrap_or(0).max(snapshot.newest_seen)
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct SerialOrder(Mutex<State>);

impl SerialOrder {
    /// A serializable transaction begins. The snapshot that is to be opened now must see all below the position.
    pub(crate) fn register(self: &Arc<SerialOrder>) -> (Registered, Lsn) {
        let mut state = self.0.lock();
        state.next_number += 1;
        let (number, newest_seen) = (state.next_number, state.newest_ended);
        let snapshot = OpenSnapshot { lsn: Lsn::ZERO, opened_behind: 0, newest_seen };
        state.registered.insert(number, snapshot);
        (Registered { order: Arc::clone(self), number }, state.last_end)
    }
}

/// A serializable transaction, until this is dropped.
pub(crate) struct Registered {
    order: Arc<SerialOrder>,
    number: u64,
}

impl Registered {
    /// The transaction has opened a snapshot, which sees all below the position.
    pub(crate) fn sees_below(&self, lsn: Lsn) {
        let mut state = self.order.0.lock();
        let State { registered, commits, last_turn, .. } = &mut *state;
        let Some(snapshot) = registered.get_mut(&self.number) else { return };
        let seen = commits.iter().filter(|commit| commit.is_seen_at(lsn));
        let newest_seen = seen.map(|commit| commit.last_turn).max().unwrap_or(0);
        let newest_seen = newest_seen.max(snapshot.newest_seen);
        *snapshot = OpenSnapshot { lsn, opened_behind: *last_turn, newest_seen };
    }

    /// The transaction takes its turn; none if another one has changed what it has read.
    pub(crate) fn enter(&self, reads: &ReadSet, changes: ChangedKeys) -> Option<Entered> {
        let mut state = self.order.0.lock();
        let snapshot = *state.registered.get(&self.number)?;
        let before = match changes.0.is_empty() {
            true => state.runs_behind(&snapshot),
            false => u64::MAX,
        };
        let matters = |commit: &&Commit| commit.turn < before && !commit.is_seen_at(snapshot.lsn);
        if state.commits.iter().filter(matters).any(|commit| reads.meets(&commit.changes)) {
            return None;
        }
        if state.is_full() {
            state.merge_ended();
        }
        state.last_turn += 1;
        let turn = state.last_turn;
        if !changes.0.is_empty() {
            state.commits.push(Commit { turn, last_turn: turn, changes, end: None });
        }
        Some(Entered { order: Arc::clone(&self.order), turn })
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut state = self.order.0.lock();
        state.registered.remove(&self.number);
        state.forget_seen();
    }
}

/// A transaction that has entered, until its outcome is known. Dropped before, it has changed nothing.
pub(crate) struct Entered {
    order: Arc<SerialOrder>,
    turn: u64,
}

impl Entered {
    /// The changes are committed by a record with this end.
    pub(crate) fn end(self, end: Lsn) {
        let mut state = self.order.0.lock();
        let State { registered, commits, newest_ended, last_end, .. } = &mut *state;
        let Some(own) = commits.iter_mut().find(|commit| commit.turn == self.turn) else { return };
        own.end = Some(end);
        *newest_ended = self.turn.max(*newest_ended);
        *last_end = end.max(*last_end);
        for snapshot in registered.values_mut().filter(|snapshot| end <= snapshot.lsn) {
            snapshot.newest_seen = self.turn.max(snapshot.newest_seen);
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut state = self.order.0.lock();
        let turn = self.turn;
        state.commits.retain(|commit| commit.turn != turn || commit.end.is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> ObjectId {
        ObjectId::new(7).expect("a number")
    }

    fn changed(keys: &[&[u8]]) -> ChangedKeys {
        let mut changes = ChangedKeys::default();
        keys.iter().for_each(|key| changes.add(object(), key));
        changes
    }

    fn read(keys: &[&[u8]]) -> ReadSet {
        let reads = ReadSet::default();
        keys.iter().for_each(|key| reads.note_key(object(), key));
        reads
    }

    fn begin(order: &Arc<SerialOrder>, snapshot: u64) -> Registered {
        let (registered, newest) = order.register();
        assert!(newest <= Lsn(snapshot));
        registered.sees_below(Lsn(snapshot));
        registered
    }

    #[test]
    fn a_commit_whose_outcome_is_not_known_counts_and_one_that_failed_does_not() {
        let order = Arc::new(SerialOrder::default());
        let (first, second) = (begin(&order, 10), begin(&order, 10));
        let entered = first.enter(&read(&[]), changed(&[b"a"])).expect("the first");
        assert!(second.enter(&read(&[b"a"]), changed(&[b"b"])).is_none());
        assert!(second.enter(&read(&[b"b"]), changed(&[b"b"])).is_some());
        drop(entered);
        assert!(second.enter(&read(&[b"a"]), changed(&[b"b"])).is_some());
    }

    #[test]
    fn what_the_snapshot_sees_does_not_matter() {
        let order = Arc::new(SerialOrder::default());
        let (first, old) = (begin(&order, 10), begin(&order, 10));
        first.enter(&read(&[]), changed(&[b"a"])).expect("the first").end(Lsn(20));
        let new = begin(&order, 20);
        assert!(new.enter(&read(&[b"a"]), changed(&[b"b"])).is_some());
        assert!(old.enter(&read(&[b"a"]), changed(&[b"c"])).is_none());
    }

    #[test]
    fn who_only_reads_runs_where_its_snapshot_stands() {
        let order = Arc::new(SerialOrder::default());
        let (writer, reader) = (begin(&order, 10), begin(&order, 10));
        writer.enter(&read(&[]), changed(&[b"a"])).expect("a writer").end(Lsn(20));
        assert!(reader.enter(&read(&[b"a"]), changed(&[])).is_some());
    }

    /// The one that entered first is published last, and the snapshot sees the other one alone.
    #[test]
    fn who_only_reads_is_refused_where_it_sees_the_later_of_two_alone() {
        for is_ended_before in [true, false] {
            let order = Arc::new(SerialOrder::default());
            let (first, second) = (begin(&order, 10), begin(&order, 10));
            let first_entered = first.enter(&read(&[b"b"]), changed(&[b"a"])).expect("the first");
            let second_entered = second.enter(&read(&[]), changed(&[b"b"])).expect("the second");
            if is_ended_before {
                second_entered.end(Lsn(20));
                let reader = begin(&order, 20);
                first_entered.end(Lsn(30));
                assert!(reader.enter(&read(&[b"a"]), changed(&[])).is_none());
                assert!(reader.enter(&read(&[b"b"]), changed(&[])).is_some());
            } else {
                let reader = begin(&order, 20);
                assert!(reader.enter(&read(&[b"a"]), changed(&[])).is_none());
                second_entered.end(Lsn(20));
                assert!(reader.enter(&read(&[b"a"]), changed(&[])).is_none());
                first_entered.end(Lsn(30));
                assert!(reader.enter(&read(&[b"a"]), changed(&[])).is_none());
            }
        }
    }

    #[test]
    fn changes_are_kept_as_long_as_somebody_may_not_see_them() {
        let order = Arc::new(SerialOrder::default());
        let (first, second) = (begin(&order, 10), begin(&order, 10));
        first.enter(&read(&[]), changed(&[b"a"])).expect("the first").end(Lsn(20));
        drop(first);
        assert_eq!(order.0.lock().commits.len(), 1);
        drop(second);
        assert!(order.0.lock().commits.is_empty());
        assert_eq!(order.register().1, Lsn(20));
    }

    #[test]
    fn commits_that_became_one_are_seen_up_to_the_last_of_them() {
        let order = Arc::new(SerialOrder::default());
        let keeper = begin(&order, 10);
        let pending = begin(&order, 10);
        let first = begin(&order, 10).enter(&read(&[]), changed(&[b"x"])).expect("the first");
        first.end(Lsn(15));
        let unseen =
            pending.enter(&read(&[]), changed(&[b"a"])).expect("one that is published last");
        let (reader, _) = order.register();
        let last = begin(&order, 15).enter(&read(&[]), changed(&[b"b"])).expect("the last");
        last.end(Lsn(20));
        order.0.lock().merge_ended();
        reader.sees_below(Lsn(20));
        unseen.end(Lsn(30));
        // It sees the last one, and not the one that entered before that.
        assert!(reader.enter(&read(&[b"a"]), changed(&[])).is_none());
        drop(keeper);
    }

    #[test]
    fn more_than_can_be_told_apart_is_all_of_an_object() {
        let order = Arc::new(SerialOrder::default());
        let old = begin(&order, 10);
        for number in 0..=COMMITS_MAX as u64 {
            let writer = begin(&order, 10 + number);
            let key = number.to_be_bytes();
            let entered = writer.enter(&read(&[]), changed(&[&key])).expect("a writer");
            entered.end(Lsn(11 + number));
        }
        assert!(order.0.lock().commits.len() <= 2);
        assert!(old.enter(&read(&[b"never changed"]), changed(&[b"x"])).is_none());

        let reads = ReadSet::default();
        (0..=KEYS_MAX as u64).for_each(|key| reads.note_key(object(), &key.to_be_bytes()));
        assert!(reads.meets(&changed(&[b"never read"])));
        let reads = ReadSet::default();
        for number in 0..=RANGES_MAX as u64 {
            let key = |number: u64| (number * 2).to_be_bytes().to_vec();
            let bounds = Bounds { low: key(number), high: Some(key(number + 1)) };
            reads.note_range(object(), &bounds);
        }
        assert!(reads.meets(&changed(&[b"never read"])));
    }
}
