//! Several new rows of one table, and the entries of its indexes, under latches held together: the quick way for a
//! row with entries, for a batch, and for a transaction that only inserts, whose keys lie in few leaves, which is the
//! rule for ascending keys.
//!
//! The first leaf is waited for, the others are only tried, so nobody waits for a leaf while he
//! holds one. While nobody can see it, each row is checked
//! and placed with a provisional stamp; then the LSN is reserved and stamped into all of them, and
//! only then the latches are let go. So the order of each key is the order of the log, as with
//! single rows, and no intents are needed. What does not fit this way (too many leaves, a split
//! that would move placed rows, a key that is taken or held by an intent) is undone under the same
//! latches, and the general way over intents decides.

mod with_entries;

use onrush_latch::ExclusiveGuard;
use onrush_log::{Lsn, Reservation};
use onrush_waits::Recorder;

use super::Trees;
use super::split::HalfSplit;
use super::split_point::{SplitKind, choose};
use super::write::make_dirty;
use super::{Blocked, Hint, LeafPrefetch, Refusal, Seat, Tree};
use crate::fault::{Fault, planted};
use crate::node::fence::head;
use crate::node::leaf::{Entry, Found, Stamp};
use crate::space::Purpose;
use crate::status::{LockOwnerNumber, NO_OWNER, RowLock};
use crate::storage::LeafState;
use crate::units::{LEAF_BYTES, LeafId, ObjectId};

pub(crate) use with_entries::{RowAndEntries, write_with_entries};

/// Leaves that one batch may hold at a time: 4 MiB, some 25,000 rows.
pub(crate) const GROUP_LEAVES_MAX: usize = 256;

/// How often a batch may be blocked, and begin anew, before it goes the general way.
pub(crate) const GROUP_TRIES_MAX: usize = 16;

/// How often of these for want of slots. Each makes the files longer, or on a full disk takes a
/// checkpoint.
pub(crate) const GROUP_SLOTS_TRIES_MAX: usize = 4;

/// Siblings that are looked at for a leaf that its parent does not know yet.
const SIBLINGS_MAX: usize = 16;

/// A new row of a group, and where it goes.
#[derive(Clone, Copy)]
pub(crate) struct GroupRow<'r> {
    pub(crate) tree: &'r Tree,
    pub(crate) object: ObjectId,
    pub(crate) key: &'r [u8],
    pub(crate) value: &'r [u8],
}

/// Rows of one tree after the other, each tree's in ascending key order without duplicates.
pub(crate) trait GroupRows {
    fn count(&self) -> usize;
    fn row(&self, index: usize) -> GroupRow<'_>;
    /// Bytes of all keys and values.
    fn bytes(&self) -> usize;
    /// Leaves that the rows fill if they lie side by side.
    fn leaves(&self) -> usize {
        (self.bytes() + self.count() * Entry::bytes(&[], &[])).div_ceil(LEAF_BYTES)
    }
    /// A key that was changed from this LSN on is a conflict, also one that is not there any more.
    fn unchanged_since(&self) -> Option<Lsn> {
        None
    }
    /// Under which number their transaction has locked rows.
    fn lock_owner(&self) -> LockOwnerNumber {
        NO_OWNER
    }
}

/// Why a batch was not written. Nothing of it is there.
pub(crate) enum GroupRefusal {
    Refused(Refusal),
    /// It needs the general way.
    NotThisWay,
}

impl From<Refusal> for GroupRefusal {
    fn from(refusal: Refusal) -> GroupRefusal {
        GroupRefusal::Refused(refusal)
    }
}

impl From<Blocked> for GroupRefusal {
    fn from(blocked: Blocked) -> GroupRefusal {
        GroupRefusal::Refused(blocked.into())
    }
}

/// Rows whose leaves are prefetched: as many as a prefetch has steps.
const PREFETCHES: usize = 3;

/// The ways to the leaves of the next rows, each at its row's number modulo their number.
#[derive(Default)]
struct Ways([LeafPrefetch; PREFETCHES]);

impl Ways {
    /// The leaf of a row, if the way to it has been gone.
    fn take(&mut self, index: usize, key: &[u8]) -> Option<Hint> {
        std::mem::take(&mut self.0[index % PREFETCHES]).hint(key)
    }

    /// Goes one step on towards each of the rows behind this one.
    fn step(&mut self, trees: &Trees, recorder: &Recorder, rows: &impl GroupRows, index: usize) {
        for next in index + 1..(index + 1 + PREFETCHES).min(rows.count()) {
            let GroupRow { tree, key, value, .. } = rows.row(next);
            let way = &mut self.0[next % PREFETCHES];
            *way = way.step(tree, trees, recorder, key, Entry::bytes(key, value));
        }
    }
}

/// A latched leaf, and the index of the first of the group's rows in it.
struct Held<'e> {
    id: LeafId,
    leaf: ExclusiveGuard<'e, LeafState>,
    first_index: usize,
}

/// Inserts all rows with one record, or none. `hint` is of the tree of the first row.
pub(crate) fn write_group(
    trees: &Trees,
    seat: &mut Seat<'_>,
    hint: &mut Option<Hint>,
    rows: &impl GroupRows,
    record: [&[u8]; 2],
) -> Result<Reservation, GroupRefusal> {
    let mut held: Vec<Held<'_>> = Vec::with_capacity(4);
    let mut halves: Vec<(GroupRow<'_>, HalfSplit)> = Vec::new();
    let mut placed = Ok(());
    let mut ways = Ways::default();
    for index in 0..rows.count() {
        let row = rows.row(index);
        let at = if index == 0 { *hint } else { ways.take(index, row.key) };
        // Rows that lie side by side need no way of their own.
        if held.len() * 2 > index {
            ways.step(trees, seat.recorder, rows, index);
        }
        placed = row.tree.place(trees, seat, at.as_ref(), &row, &mut held, &mut halves);
        // Under the latch of its leaf: nobody removes the key any more.
        let is_refused = || {
            row.tree.was_removed_since(row.key, rows.unchanged_since())
                || row.tree.is_locked(trees, &row, rows.lock_owner())
        };
        if placed.is_ok() && is_refused() {
            placed = Err(GroupRefusal::NotThisWay);
        }
        if placed.is_err() {
            break;
        }
    }
    let result = placed.map(|()| {
        let reservation = trees.log.reserve(seat.permit, record[0].len() + record[1].len());
        stamp_all(&mut held, Stamp::committed(reservation.lsn));
        reservation
    });
    match &result {
        Ok(_) => {
            let first = held.first().and_then(|first| first.leaf.object);
            let last = held.iter().rev().find(|held| held.leaf.object == first);
            *hint = last.map(|last| Hint::of(last.id, &last.leaf));
        }
        Err(_) => undo(&mut held),
    }
    drop(held);
    for (row, half) in halves {
        row.tree.link(trees, seat.recorder, row.object, &half.separator, half.leaf);
    }
    let reservation = result?;
    trees.log.fill(&reservation, &record);
    trees.log.complete(seat.permit);
    Ok(reservation)
}

impl Tree {
    fn was_removed_since(&self, key: &[u8], since: Option<Lsn>) -> bool {
        let is_removed = |since: Lsn| {
            self.versions.removed_at(key).is_some_and(|removed_at| removed_at >= since)
                || self.versions.lacks(since)
        };
        since.is_some_and(is_removed) && !planted(Fault::ConflictIgnored)
    }

    fn is_locked(&self, trees: &Trees, row: &GroupRow<'_>, lock_owner: LockOwnerNumber) -> bool {
        let locks = &trees.resolver.row_locks;
        self.has_locked_inserts()
            && locks.keeps_off(lock_owner, row.object, row.key, RowLock::NoKeyUpdate)
    }

    fn place<'e, 'r>(
        &self,
        trees: &'e Trees,
        seat: &mut Seat<'_>,
        hint: Option<&Hint>,
        row: &GroupRow<'r>,
        held: &mut Vec<Held<'e>>,
        halves: &mut Vec<(GroupRow<'r>, HalfSplit)>,
    ) -> Result<(), GroupRefusal> {
        let GroupRow { object, key, value, .. } = *row;
        let key_head = head(key);
        let covered = held.last().is_some_and(|last| last.leaf.covers(object, key_head, key));
        if !covered {
            if held.len() == GROUP_LEAVES_MAX {
                return Err(GroupRefusal::NotThisWay);
            }
            let at = (key_head, key);
            let (id, mut leaf) = if held.is_empty() {
                self.latch_exclusive(trees, seat.recorder, hint, at, object)?
            } else {
                self.try_latch_next(trees, seat, hint, held, at, object)
                    .ok_or(GroupRefusal::NotThisWay)?
            };
            let rows = leaf.rows.as_ref().ok_or(Blocked::Load(id))?;
            let first_index = rows.len();
            make_dirty(trees, seat.permit, id, &mut leaf, Purpose::NewRows)?;
            held.push(Held { id, leaf, first_index });
        }
        let Some(last) = held.last_mut() else { return Err(GroupRefusal::NotThisWay) };
        // Whether a key is in the stock that memory cannot tell the general way finds out.
        if let Some(range) = &last.leaf.range
            && range.look(seat.spares.part.as_ref(), key, |found| found.is_none()) != Ok(true)
        {
            return Err(GroupRefusal::NotThisWay);
        }
        let rows = last.leaf.rows.as_mut().ok_or(Blocked::Load(last.id))?;
        let bytes = Entry::bytes(key, value);
        if !rows.is_above_all(key) {
            let found = rows.find(key);
            if found != Found::default() {
                return Err(GroupRefusal::NotThisWay);
            }
        }
        if rows.fits(bytes) {
            rows.append(Stamp::PROVISIONAL, key, value);
            return Ok(());
        }
        let next = self.open_next(trees, seat, last, row, halves)?;
        if let Some(next) = next {
            held.push(next);
        }
        self.place(trees, seat, hint, row, held, halves)
    }

    /// The leaf of a key above the held leaves, if it can be had without waiting.
    fn try_latch_next<'e>(
        &self,
        trees: &'e Trees,
        seat: &Seat<'_>,
        hint: Option<&Hint>,
        held: &[Held<'e>],
        (key_head, key): (u64, &[u8]),
        object: ObjectId,
    ) -> Option<(LeafId, ExclusiveGuard<'e, LeafState>)> {
        let mut id = self.find_from(trees, seat.recorder, hint, key_head, key);
        for _ in 0..SIBLINGS_MAX {
            // The parent may not know of a split yet, of ours or another's.
            if let Some(own) = held.iter().find(|held| held.id == id) {
                id = own.leaf.next?;
                continue;
            }
            let leaf = trees.leaves.get(id.0);
            let state = leaf.latch.try_exclusive()?;
            if state.covers(object, key_head, key) {
                leaf.touch();
                return Some((id, state));
            }
            if state.object != Some(object) || !state.ends_at_or_below(key_head, key) {
                return None;
            }
            id = state.next?;
        }
        None
    }

    /// Makes space in the last held leaf, or opens the leaf behind it.
    fn open_next<'e, 'r>(
        &self,
        trees: &'e Trees,
        seat: &mut Seat<'_>,
        last: &mut Held<'e>,
        row: &GroupRow<'r>,
        halves: &mut Vec<(GroupRow<'r>, HalfSplit)>,
    ) -> Result<Option<Held<'e>>, GroupRefusal> {
        let key = row.key;
        let is_right_edge = last.leaf.high.is_none();
        let rows = last.leaf.rows.as_ref().ok_or(Blocked::Load(last.id))?;
        let untouched = last.first_index == rows.len();
        if untouched {
            // No row of the batch is in it yet, so rows may move.
            return self.split_untouched(trees, seat, last, row, halves);
        }
        let order = rows.order();
        let point = choose(rows, &order, key, is_right_edge);
        let moves_nothing = point.position == order.len() && point.kind != SplitKind::Middle;
        if !moves_nothing {
            return Err(GroupRefusal::NotThisWay);
        }
        let (half, right) =
            super::split::split(trees, seat, &mut last.leaf, key, Purpose::NewRows)?;
        let next = Held { id: half.leaf, leaf: right, first_index: 0 };
        halves.push((*row, half));
        Ok(Some(next))
    }

    fn split_untouched<'e, 'r>(
        &self,
        trees: &'e Trees,
        seat: &mut Seat<'_>,
        last: &mut Held<'e>,
        row: &GroupRow<'r>,
        halves: &mut Vec<(GroupRow<'r>, HalfSplit)>,
    ) -> Result<Option<Held<'e>>, GroupRefusal> {
        let key = row.key;
        let bytes = Entry::bytes(key, row.value);
        let rows = last.leaf.rows.as_mut().ok_or(Blocked::Load(last.id))?;
        if rows.fits_compacted(bytes) {
            if seat.spares.len() < super::SPARE_FRAMES {
                return Err(Blocked::Spares.into());
            }
            rows.compact(&mut seat.spares[0]);
            last.first_index = rows.len();
            return Ok(None);
        }
        let (half, right) =
            super::split::split(trees, seat, &mut last.leaf, key, Purpose::NewRows)?;
        last.first_index = last.leaf.rows.as_ref().map_or(0, |rows| rows.len());
        let goes_right = right.low.at_or_below(head(key), key);
        let next = goes_right.then(|| {
            let first_index = right.rows.as_ref().map_or(0, |rows| rows.len());
            Held { id: half.leaf, leaf: right, first_index }
        });
        halves.push((*row, half));
        Ok(next)
    }
}

/// Gives the group's rows their LSN: memory writes only.
fn stamp_all(held: &mut [Held<'_>], stamp: Stamp) {
    for Held { leaf, first_index, .. } in held {
        if let Some(rows) = leaf.rows.as_mut() {
            (*first_index..rows.len()).for_each(|index| rows.restamp(index, stamp));
        }
    }
}

/// Takes the group's rows out again, newest first, which leaves the others where they were.
fn undo(held: &mut [Held<'_>]) {
    for Held { leaf, first_index, .. } in held {
        if let Some(rows) = leaf.rows.as_mut() {
            (*first_index..rows.len()).rev().for_each(|index| rows.remove(index));
        }
    }
}
