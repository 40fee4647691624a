//! Whether serializable transactions could have run one after the other.
//!
//! A serializable transaction notes what it reads. Where one has read a row that another one, which its snapshot does
//! not see, has changed, it must have run before that one: an edge from the reader to the writer. All of them could
//! have run one after the other unless there is a *pivot*: a transaction with an edge in, from one beside it, and an
//! edge out, to one beside it that has committed before both (Fekete and others, "Making snapshot isolation
//! serializable", ACM TODS 30, 2005). The commit of whoever would complete a pivot is refused.
//!
//! 1. [`SerialOrder::register`] comes before the snapshot: what the snapshot may not see is kept from then on.
//! 2. [`Registered::enter`] looks at what others have read and changed and leaves its own, in one stay under the lock.
//! 3. [`Entered::end`] says where the commit stands in the log; dropped before, there is none.
//! 4. What was read and changed is forgotten once nobody is open who was beside it.
//!
//! Invariants
//! 1. Of two transactions beside each other the one that enters later sees all edges between them.
//! 2. Of a pivot and its two neighbours, whoever enters last is refused. The reader sees that the pivot has an edge
//!    out; the pivot sees both edges; and the writer sees that the pivot has an edge in. The writer can be the last
//!    only while the pivot is pending: its record may yet come before the pivot's.
//! 3. Edges that are not known for certain count: to those whose commit is not decided, which may still fail, and from
//!    and to those of whom only the objects are known.
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

    fn key_count(&self) -> usize {
        let count = |reads: &ObjectReads| reads.keys.len() + reads.ranges.len() + 1;
        self.0.lock().values().map(count).sum()
    }

    fn objects(&self) -> Vec<ObjectId> {
        self.0.lock().keys().copied().collect()
    }

    fn whole(objects: impl IntoIterator<Item = ObjectId>) -> ReadSet {
        let whole = || ObjectReads { is_whole: true, ..ObjectReads::default() };
        ReadSet(Mutex::new(objects.into_iter().map(|object| (object, whole())).collect()))
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

/// What a transaction that has entered has read and changed.
struct Commit {
    /// Its turn, by which it is known; of several that are one it is nobody's.
    turn: u64,
    reads: Arc<ReadSet>,
    changes: ChangedKeys,
    /// Keys and ranges of both.
    size: usize,
    snapshot: Lsn,
    /// Whoever has registered with a lower number may be beside it.
    registered_below: u64,
    /// Where it stands in the log; none before that is known, and for who has changed nothing.
    end: Option<Lsn>,
    /// Somebody has read what it has changed, and does not see it.
    has_edge_in: bool,
    /// It has read what somebody has changed who may have committed before it: the lowest position of these, zero where
    /// one is not known.
    edge_out: Option<Lsn>,
    /// Several that are one.
    is_merged: bool,
}

impl Commit {
    fn has_changed(&self) -> bool {
        !self.changes.0.is_empty()
    }

    fn is_pending(&self) -> bool {
        self.has_changed() && self.end.is_none()
    }

    fn is_seen_at(&self, snapshot: Lsn) -> bool {
        self.end.is_some_and(|end| end <= snapshot)
    }

    /// Whether it is beside an open transaction.
    fn is_beside(&self, number: u64, snapshot: Lsn) -> bool {
        match self.has_changed() {
            // Among several there may be some that have only read.
            true => !self.is_seen_at(snapshot) || self.is_merged && number < self.registered_below,
            false => number < self.registered_below,
        }
    }

    /// Whether the other one may have committed before it; of who has only read, before its snapshot.
    fn may_follow(&self, other: &Commit) -> bool {
        match (self.has_changed(), self.end, other.end) {
            _ if self.is_merged || other.is_merged => true,
            (false, ..) => other.end.is_none_or(|end| end <= self.snapshot),
            // Both may be the same one.
            (true, Some(end), Some(other)) => other <= end,
            (true, ..) => true,
        }
    }
}

struct State {
    commits_max: usize,
    next_number: u64,
    last_turn: u64,
    /// The snapshots of registered transactions; zero before they are open.
    registered: BTreeMap<u64, Lsn>,
    commits: Vec<Commit>,
    /// Of all commits.
    size: usize,
    /// The last end of those that have ended.
    last_end: Lsn,
}

impl Default for State {
    fn default() -> State {
        State {
            commits_max: COMMITS_MAX,
            next_number: 0,
            last_turn: 0,
            registered: BTreeMap::new(),
            commits: Vec::new(),
            size: 0,
            last_end: Lsn::ZERO,
        }
    }
}

impl State {
    fn forget(&mut self) {
        let oldest = self.registered.values().min().copied().unwrap_or(Lsn::MAX);
        let first = self.registered.keys().next().copied().unwrap_or(u64::MAX);
        self.commits.retain(|commit| commit.is_beside(first, oldest));
        self.count();
    }

    fn count(&mut self) {
        self.size = self.commits.iter().map(|commit| commit.size).sum();
    }

    fn is_full(&self) -> bool {
        self.commits.len() >= self.commits_max || self.size >= COMMITTED_KEYS_MAX
    }

    /// Makes one commit of all that are decided.
    fn merge_decided(&mut self) {
        let (pending, decided): (Vec<Commit>, Vec<Commit>) =
            std::mem::take(&mut self.commits).into_iter().partition(Commit::is_pending);
        self.commits = pending;
        if let Some(first) = decided.first() {
            self.last_turn += 1;
            let reads = ReadSet::whole(decided.iter().flat_map(|commit| commit.reads.objects()));
            let changed = decided.iter().flat_map(|commit| commit.changes.0.keys());
            let changes = ChangedKeys(changed.map(|object| (*object, Changed::All)).collect());
            let size = reads.key_count() + changes.key_count();
            self.commits.push(Commit {
                turn: self.last_turn,
                reads: Arc::new(reads),
                changes,
                size,
                snapshot: first.snapshot,
                registered_below: self.next_number + 1,
                end: decided.iter().filter_map(|commit| commit.end).max(),
                has_edge_in: true,
                edge_out: decided.iter().filter_map(|commit| commit.edge_out).min(),
                is_merged: true,
            });
        }
        self.count();
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct SerialOrder(Mutex<State>);

impl SerialOrder {
    /// One that tells only so many commits apart.
    #[cfg(test)]
    pub(super) fn with_commits_max(commits_max: usize) -> SerialOrder {
        SerialOrder(Mutex::new(State { commits_max, ..State::default() }))
    }

    /// A serializable transaction begins. The snapshot that is to be opened now must see all below the position.
    pub(crate) fn register(self: &Arc<SerialOrder>) -> (Registered, Lsn) {
        let mut state = self.0.lock();
        state.next_number += 1;
        let number = state.next_number;
        state.registered.insert(number, Lsn::ZERO);
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
        if let Some(snapshot) = self.order.0.lock().registered.get_mut(&self.number) {
            *snapshot = lsn;
        }
    }

    /// The transaction takes its turn; none if it would complete a pivot.
    pub(crate) fn enter(&self, reads: &Arc<ReadSet>, changes: ChangedKeys) -> Option<Entered> {
        let mut state = self.order.0.lock();
        let snapshot = *state.registered.get(&self.number)?;
        let others = &state.commits;
        let meets = |wanted: &dyn Fn(&Commit) -> bool| -> Vec<usize> {
            (0..others.len()).filter(|at| wanted(&others[*at])).collect()
        };
        // Edges to those that have changed what it has read, and from those that have read what it changes.
        let outs =
            meets(&|it| it.has_changed() && !it.is_seen_at(snapshot) && reads.meets(&it.changes));
        let ins = meets(&|it| it.is_beside(self.number, snapshot) && it.reads.meets(&changes));
        let has_changed = !changes.0.is_empty();
        let completes_as_reader = outs.iter().any(|out| {
            let edge_out = others[*out].edge_out;
            edge_out.is_some_and(|first| has_changed || first <= snapshot)
        });
        let completes_as_pivot = outs
            .iter()
            .any(|out| ins.iter().any(|reader| others[*reader].may_follow(&others[*out])));
        let completes_as_writer =
            ins.iter().any(|pivot| others[*pivot].is_pending() && others[*pivot].has_edge_in);
        if completes_as_reader || completes_as_pivot || completes_as_writer {
            return None;
        }
        let edge_out = outs.iter().map(|out| others[*out].end.unwrap_or_default()).min();
        let has_edge_in = !ins.is_empty();
        outs.iter().for_each(|out| state.commits[*out].has_edge_in = true);
        for pivot in ins {
            if state.commits[pivot].is_pending() {
                state.commits[pivot].edge_out = Some(Lsn::ZERO);
            }
        }
        if state.is_full() {
            state.merge_decided();
        }
        state.last_turn += 1;
        let (turn, registered_below) = (state.last_turn, state.next_number + 1);
        let size = reads.key_count() + changes.key_count();
        state.size += size;
        state.commits.push(Commit {
            turn,
            reads: Arc::clone(reads),
            changes,
            size,
            snapshot,
            registered_below,
            end: None,
            has_edge_in,
            edge_out,
            is_merged: false,
        });
        Some(Entered { order: Arc::clone(&self.order), turn })
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut state = self.order.0.lock();
        state.registered.remove(&self.number);
        state.forget();
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
        if let Some(own) = state.commits.iter_mut().find(|commit| commit.turn == self.turn) {
            own.end = Some(end);
            state.last_end = end.max(state.last_end);
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut state = self.order.0.lock();
        let turn = self.turn;
        state.commits.retain(|commit| commit.turn != turn || !commit.is_pending());
        state.count();
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

    fn read(keys: &[&[u8]]) -> Arc<ReadSet> {
        let reads = Arc::<ReadSet>::default();
        keys.iter().for_each(|key| reads.note_key(object(), key));
        reads
    }

    fn begin(order: &Arc<SerialOrder>, snapshot: u64) -> Registered {
        let (registered, newest) = order.register();
        assert!(newest <= Lsn(snapshot));
        registered.sees_below(Lsn(snapshot));
        registered
    }

    /// It enters, and its commit ends there.
    fn commit(it: &Registered, reads: &[&[u8]], changes: &[&[u8]], end: u64) -> bool {
        let entered = it.enter(&read(reads), changed(changes));
        entered.map(|entered| entered.end(Lsn(end))).is_some()
    }

    #[test]
    fn of_two_that_have_read_what_the_other_changes_one_is_refused() {
        for is_decided in [true, false] {
            let order = Arc::new(SerialOrder::default());
            let (first, second) = (begin(&order, 10), begin(&order, 10));
            let entered = first.enter(&read(&[b"a"]), changed(&[b"b"])).expect("the first");
            let mut pending = Some(entered);
            if is_decided {
                pending.take().expect("it has entered").end(Lsn(20));
            }
            assert!(!commit(&second, &[b"b"], &[b"a"], 30));
            drop(pending);
        }
    }

    #[test]
    fn who_has_read_what_another_one_changed_may_commit_where_nobody_has_read_what_it_changes() {
        let order = Arc::new(SerialOrder::default());
        let (first, second, third) = (begin(&order, 10), begin(&order, 10), begin(&order, 10));
        assert!(commit(&first, &[], &[b"a"], 20));
        // It ran before the first one.
        assert!(commit(&second, &[b"a"], &[b"b"], 30));
        // It would have to run before the second one, which has an edge out.
        assert!(!commit(&third, &[b"b"], &[b"c"], 40));
        assert!(commit(&third, &[b"x"], &[b"c"], 40));
    }

    #[test]
    fn a_commit_whose_outcome_is_not_known_counts_and_one_that_failed_does_not() {
        let order = Arc::new(SerialOrder::default());
        let (first, second) = (begin(&order, 10), begin(&order, 10));
        let entered = first.enter(&read(&[b"a"]), changed(&[b"b"])).expect("the first");
        assert!(second.enter(&read(&[b"b"]), changed(&[b"a"])).is_none());
        drop(entered);
        assert!(second.enter(&read(&[b"b"]), changed(&[b"a"])).is_some());
    }

    #[test]
    fn what_the_snapshot_sees_does_not_matter() {
        let order = Arc::new(SerialOrder::default());
        let (first, old) = (begin(&order, 10), begin(&order, 10));
        assert!(commit(&first, &[b"a"], &[b"b"], 20));
        let new = begin(&order, 20);
        assert!(commit(&new, &[b"b"], &[b"a"], 30));
        assert!(!commit(&old, &[b"b"], &[b"a"], 40));
    }

    /// The reader sees who has committed first, and not the pivot, which has read before that.
    #[test]
    fn who_only_reads_is_refused_where_it_sees_what_the_pivot_has_not() {
        let order = Arc::new(SerialOrder::default());
        let (pivot, first) = (begin(&order, 10), begin(&order, 10));
        assert!(commit(&first, &[], &[b"x"], 20));
        let (reader, before) = (begin(&order, 20), begin(&order, 20));
        assert!(commit(&pivot, &[b"x"], &[b"y"], 30));
        assert!(!commit(&reader, &[b"x", b"y"], &[], 0));
        assert!(commit(&before, &[b"z"], &[], 0));
    }

    #[test]
    fn the_pivot_is_refused_where_the_reader_was_sooner() {
        let order = Arc::new(SerialOrder::default());
        let (pivot, first) = (begin(&order, 10), begin(&order, 10));
        assert!(commit(&first, &[], &[b"x"], 20));
        let reader = begin(&order, 20);
        assert!(commit(&reader, &[b"x", b"y"], &[], 0));
        drop(reader);
        assert!(!commit(&pivot, &[b"x"], &[b"y"], 30));
    }

    #[test]
    fn a_reader_from_before_the_first_commit_is_no_part_of_a_pivot() {
        let order = Arc::new(SerialOrder::default());
        let (pivot, first, reader) = (begin(&order, 10), begin(&order, 10), begin(&order, 10));
        assert!(commit(&first, &[], &[b"x"], 20));
        assert!(commit(&reader, &[b"x", b"y"], &[], 0));
        // Reader, pivot, first.
        assert!(commit(&pivot, &[b"x"], &[b"y"], 30));
    }

    /// All three are on their way to the log, and the one that enters last may come to stand first.
    #[test]
    fn the_writer_is_refused_where_the_pivot_is_not_decided() {
        let order = Arc::new(SerialOrder::default());
        let (pivot, reader, writer) = (begin(&order, 10), begin(&order, 10), begin(&order, 10));
        let pivot = pivot.enter(&read(&[b"x"]), changed(&[b"y"])).expect("the pivot");
        let reader = reader.enter(&read(&[b"y"]), changed(&[b"z"])).expect("the reader");
        assert!(writer.enter(&read(&[]), changed(&[b"x"])).is_none());
        // Once the pivot stands in the log whoever comes later stands behind it.
        pivot.end(Lsn(20));
        assert!(commit(&writer, &[], &[b"x"], 30));
        drop(reader);
    }

    #[test]
    fn the_reader_is_refused_where_the_writer_may_stand_before_the_pivot() {
        let order = Arc::new(SerialOrder::default());
        let (pivot, reader, writer) = (begin(&order, 10), begin(&order, 10), begin(&order, 10));
        let pivot = pivot.enter(&read(&[b"x"]), changed(&[b"y"])).expect("the pivot");
        assert!(commit(&writer, &[], &[b"x"], 20));
        pivot.end(Lsn(30));
        assert!(!commit(&reader, &[b"y"], &[b"z"], 40));
    }

    #[test]
    fn what_was_read_and_changed_is_kept_as_long_as_somebody_was_beside_it() {
        let order = Arc::new(SerialOrder::default());
        let (first, second) = (begin(&order, 10), begin(&order, 10));
        assert!(commit(&first, &[], &[b"a"], 20));
        assert!(commit(&begin(&order, 20), &[b"b"], &[], 0));
        drop(first);
        let later = begin(&order, 20);
        assert_eq!(order.0.lock().commits.len(), 2);
        drop(second);
        assert!(order.0.lock().commits.is_empty());
        assert_eq!(order.0.lock().size, 0);
        drop(later);
        assert_eq!(order.register().1, Lsn(20));
    }

    #[test]
    fn more_than_can_be_told_apart_is_all_of_an_object() {
        let order = Arc::new(SerialOrder::default());
        let old = begin(&order, 10);
        for number in 0..=COMMITS_MAX as u64 {
            let writer = begin(&order, 10 + number);
            let key = number.to_be_bytes();
            assert!(commit(&writer, &[&key], &[&key], 11 + number));
        }
        assert!(order.0.lock().commits.len() <= 2);
        assert!(!commit(&old, &[b"never changed"], &[b"never read"], 10_000));

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
