//! A new row and the entries of its indexes, where nothing has to be made for them: no leaf is split, loaded or waited
//! for but that of the row. Anything else goes the way of a group.
//!
//! The leaf of an entry is one at random, in no cache. So its header was asked for before the row's leaf was latched;
//! under its latch only the header is looked at, the lines that the entry will take are asked for, and it is written
//! last: behind the row and behind the record in the log, which is time for the lines to come.
//!
//! Invariants
//! 1. All leaves are latched, dirty and have space before the LSN is reserved. From there on there are memory copies
//!    alone, and the record is complete after the last of them.
//! 2. A leaf is latched until its row is in it. So who finds the row waits for the leaves of its entries.
//! 3. An entry whose key holds the whole primary key is written *blind*, without a look for its key, where its leaf has
//!    no intents. Since the leaf of the row is latched and has neither the row nor an intent on its key, every change
//!    of it has an outcome. The row is not there, so the last change has removed it, and its entries with it: they
//!    are gone, or intents to remove them still stand in their leaves. In a front leaf there are removals besides.

use onrush_log::Lsn;

use super::super::write::make_dirty;
use super::super::{Hint, Seat, Trees};
use super::{GroupRow, GroupRows};
use crate::node::fence::head;
use crate::node::leaf::{Entry, Found, Stamp};
use crate::space::Purpose;
use crate::status::NO_OWNER;
use crate::storage::LeafState;
use crate::units::LeafId;

/// The row first, then its entries, each of another tree.
pub(crate) trait RowAndEntries: GroupRows {
    /// Whether the key of the entry at `index` holds the whole primary key.
    fn is_blind(&self, index: usize) -> bool;
    /// The leaf of the entry at `index`, as it was a moment ago.
    fn entry_hint(&self, index: usize) -> Option<Hint>;
}

/// Inserts a row and its entries with one record, and returns its end. None if this is not the way to do so; then
/// nothing was written.
pub(crate) fn write_with_entries(
    trees: &Trees,
    seat: &mut Seat<'_>,
    hint: &mut Option<Hint>,
    rows: &impl RowAndEntries,
    record: &[u8],
) -> Option<Lsn> {
    let row = rows.row(0);
    let at = (head(row.key), row.key);
    let latched = row.tree.latch_exclusive(trees, seat.recorder, hint.as_ref(), at, row.object);
    let (id, mut leaf) = latched.ok()?;
    if !takes(trees, seat, (id, &mut leaf), &row, false) {
        return None;
    }
    let mut end = None;
    write_entries(trees, seat, rows, 1, |seat| {
        let reservation = trees.log.reserve(seat.permit, record.len());
        append(&mut leaf, Stamp::committed(reservation.lsn), &row);
        *hint = Some(Hint::of(id, &leaf));
        drop(leaf);
        trees.log.fill(&reservation, &[record]);
        end = Some(reservation.end);
        reservation.lsn
    })?;
    trees.log.complete(seat.permit);
    end
}

/// Latches the leaves of the entries from `index` on, one in each call, writes the row, then the entries. The LSN of
/// the row.
fn write_entries(
    trees: &Trees,
    seat: &Seat<'_>,
    rows: &impl RowAndEntries,
    index: usize,
    write_row: impl FnOnce(&Seat<'_>) -> Lsn,
) -> Option<Lsn> {
    if index == rows.count() {
        return Some(write_row(seat));
    }
    let entry = rows.row(index);
    let (hint, at) = (rows.entry_hint(index), (head(entry.key), entry.key));
    let (id, mut leaf) =
        entry.tree.try_latch_next(trees, seat, hint.as_ref(), &[], at, entry.object)?;
    leaf.rows.as_ref()?.prefetch_place(Entry::bytes(entry.key, entry.value));
    if !takes(trees, seat, (id, &mut leaf), &entry, rows.is_blind(index)) {
        return None;
    }
    let lsn = write_entries(trees, seat, rows, index + 1, write_row)?;
    append(&mut leaf, Stamp::committed(lsn), &entry);
    Some(lsn)
}

/// Whether the latched leaf takes the row as it is: then it is dirty.
fn takes(
    trees: &Trees,
    seat: &Seat<'_>,
    (id, leaf): (LeafId, &mut LeafState),
    row: &GroupRow<'_>,
    is_blind: bool,
) -> bool {
    let bytes = Entry::bytes(row.key, row.value);
    let is_front = leaf.range.is_some();
    let Some(rows) = leaf.rows.as_ref().filter(|rows| !is_front && rows.fits(bytes)) else {
        return false;
    };
    let is_written_blind = is_blind && rows.intents() == 0;
    let is_free = || rows.is_above_all(row.key) || rows.find(row.key) == Found::default();
    debug_assert!(!is_written_blind || is_free(), "an entry has outlived its row (invariant 3)");
    (is_written_blind || is_free())
        && !row.tree.is_locked(trees, row, NO_OWNER)
        && make_dirty(trees, seat.permit, id, leaf, Purpose::NewRows).is_ok()
}

fn append(leaf: &mut LeafState, stamp: Stamp, row: &GroupRow<'_>) {
    let rows = leaf.rows.as_mut().expect("the leaf took the row, and was latched since");
    rows.append(stamp, row.key, row.value);
}
