//! Rows in key order, a leaf at a time, forward or backward, as a snapshot sees them.
//!
//! A scan keeps no latch and no leaf between two batches: it goes on at the fence where it
//! stopped, found from the root. So a split, an eviction or the reuse of a leaf's place between
//! two batches cannot lose or repeat a row.

use std::borrow::Cow;
use std::sync::Arc;

use onrush_log::Lsn;
use parking_lot::RwLockReadGuard;

use super::Trees;
use super::{Blocked, Refusal, Seat, Tree, View};
use crate::node::fence::Fence;
use crate::node::leaf::LeafRows;
use crate::storage::{LeafState, OnDisk, Stock, StockKey, StockPart, WantedPart};
use crate::tree::read::{Seen, resolved_intent};
use crate::tree::stock_intents::seen_in_stock;
use crate::units::{LeafId, ObjectId};
use onrush_waits::LatchClass;

/// Which way a scan goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// From the lowest key up.
    #[default]
    Forward,
    /// From the highest key down.
    Backward,
}

/// Key bytes from `low` on and below `high`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) low: Vec<u8>,
    pub(crate) high: Option<Vec<u8>>,
}

/// The rows that one leaf gives to a scan.
#[derive(Default, Debug)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    rows: Vec<RowSpan>,
}

/// Where a row lies in the bytes of a batch.
#[derive(Clone, Copy, Debug)]
struct RowSpan {
    /// The record that wrote the row; none of a row that an open transaction has written.
    lsn: Option<Lsn>,
    key_at: usize,
    value_at: usize,
    end: usize,
}

impl Batch {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Key bytes and value bytes of a row.
    pub(crate) fn row(&self, index: usize) -> (&[u8], &[u8]) {
        let row = self.rows[index];
        (&self.bytes[row.key_at..row.value_at], &self.bytes[row.value_at..row.end])
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    /// The LSN of the record that wrote a row; none of a row that an open transaction has written.
    pub(crate) fn lsn(&self, index: usize) -> Option<Lsn> {
        self.rows[index].lsn
    }

    /// Leaves the rows out that were written below `since`; what an open transaction has written is newer than all.
    pub(super) fn keep_since(&mut self, since: Lsn) {
        self.rows.retain(|row| row.lsn.is_none_or(|lsn| lsn >= since));
    }

    fn push(&mut self, lsn: Option<Lsn>, key: &[u8], value: &[u8]) {
        let key_at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let value_at = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.rows.push(RowSpan { lsn, key_at, value_at, end: self.bytes.len() });
    }

    /// Takes all committed rows that `view` sees, in key order: one copy of the whole leaf instead of
    /// one for each row.
    fn take_leaf(&mut self, rows: &LeafRows, view: View) {
        self.bytes.extend_from_slice(rows.entry_bytes());
        self.rows.reserve(rows.len());
        rows.visit_in_order(|stamp, key_at, value_at, end| {
            let lsn = stamp.lsn();
            if lsn.is_some_and(|lsn| view.sees(lsn)) {
                self.rows.push(RowSpan { lsn, key_at, value_at, end });
            }
        });
    }
}

impl Tree {
    /// Fills `batch` with the next rows of `bounds`, in the scan's direction, and narrows
    /// `bounds` to what is left. Returns false when nothing is left.
    pub(crate) fn scan(
        &self,
        trees: &Trees,
        seat: &Seat<'_>,
        (object, view): (ObjectId, View),
        direction: Direction,
        bounds: &mut Bounds,
        batch: &mut Batch,
    ) -> Result<bool, Refusal> {
        batch.clear();
        if bounds.high.as_ref().is_some_and(|high| *high <= bounds.low) {
            return Ok(false);
        }
        match direction {
            Direction::Forward => {
                let (id, leaf) = self.latch_shared(trees, seat.recorder, &bounds.low, object)?;
                let stock = hold_stock(&leaf);
                let part = stock_part(seat, &leaf, stock.as_deref(), bounds, direction)?;
                let reach = self.collect(trees, (id, &leaf, part), view, bounds, batch)?;
                match reach.high {
                    Some(high) => bounds.low = high,
                    None => return Ok(false),
                }
            }
            Direction::Backward => {
                let (id, leaf) = self.latch_below(trees, seat, bounds.high.as_deref(), object)?;
                let stock = hold_stock(&leaf);
                let part = stock_part(seat, &leaf, stock.as_deref(), bounds, direction)?;
                let reach = self.collect(trees, (id, &leaf, part), view, bounds, batch)?;
                batch.rows.reverse();
                if reach.low <= bounds.low {
                    return Ok(false);
                }
                bounds.high = Some(reach.low);
            }
        }
        Ok(true)
    }

    /// Latches the leaf that holds the keys right below `high`, shared.
    fn latch_below<'e>(
        &self,
        trees: &'e Trees,
        seat: &Seat<'_>,
        high: Option<&[u8]>,
        object: ObjectId,
    ) -> Result<(LeafId, onrush_latch::SharedGuard<'e, LeafState>), Refusal> {
        let mut id = self.descend_below(trees, seat.recorder, high);
        loop {
            let leaf = trees.leaves.get(id.0);
            let state = leaf.latch.shared(seat.recorder, LatchClass::Leaf);
            self.check_current(object)?;
            let starts_below = high.is_none_or(|high| state.low.bytes() < high);
            let reaches = match (high, &state.high) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(high), Some(own)) => own.bytes() >= high,
            };
            if state.object == Some(object) && starts_below && reaches {
                leaf.touch();
                return Ok((id, state));
            }
            id = match state.next {
                Some(next) if state.object == Some(object) && starts_below => next,
                _ => {
                    drop(state);
                    self.descend_below(trees, seat.recorder, high)
                }
            };
        }
    }

    /// The rows of a latched leaf, and of the part of the stock behind it, that are inside `bounds` and visible, in
    /// key order. The caller holds the stock. Returns the keys that this is about: those of the leaf, but no more
    /// than of the part.
    pub(super) fn collect(
        &self,
        trees: &Trees,
        (id, leaf, part): (LeafId, &LeafState, Option<&StockPart>),
        view: View,
        bounds: &Bounds,
        batch: &mut Batch,
    ) -> Result<Bounds, Refusal> {
        let object = leaf.object.ok_or(Refusal::Gone)?;
        let rows = leaf.rows_in_memory().map_err(|OnDisk| Blocked::LoadToRead(id))?;
        if rows.is_some_and(LeafRows::is_sortable) && trees.leaves.get(id.0).is_worth_sorting() {
            return Err(Blocked::Sort(id).into());
        }
        let reach_low = leaf.low.bytes().max(part.map_or(&[], StockPart::low));
        let reach_high =
            lower(leaf.high.as_ref().map(Fence::bytes), part.and_then(StockPart::high));
        let reach = Bounds { low: reach_low.to_vec(), high: reach_high.map(<[u8]>::to_vec) };
        let low = bounds.low.as_slice().max(reach_low);
        let high = lower(bounds.high.as_deref(), reach_high);
        let older = view.lsn().map_or_else(Vec::new, |lsn| self.versions.range(low, high, lsn));
        // After the look, not before: what is not there may have gone.
        if view.lsn().is_some_and(|snapshot| self.versions.lacks(snapshot)) {
            return Err(Refusal::TooOld);
        }
        let takes_all = low == leaf.low.bytes() && high == leaf.high.as_ref().map(Fence::bytes);
        if let Some(rows) = rows.filter(|rows| rows.intents() == 0)
            && takes_all
            && part.is_none()
            && older.is_empty()
        {
            batch.take_leaf(rows, view);
            return Ok(reach);
        }
        let mut merged = Merged { older: older.into_iter().peekable(), batch };
        let mut stocked = StockRows::between(trees, (object, view), part, low, high);
        let order = rows.map_or_else(Vec::new, |rows| rows.order_between(low, high));
        if let Some(rows) = rows {
            let mut position = 0;
            while position < order.len() {
                let key = rows.key_at(&order, position);
                let same = order[position..]
                    .iter()
                    .take(2)
                    .filter(|i| rows.entry(usize::from(**i)).key == key);
                let count = same.count();
                let indexes = &order[position..position + count];
                stocked.push_below(Some(key), &mut merged)?;
                let row = match visible(trees, object, rows, indexes, view)? {
                    // Beside an intent that is not seen: nothing of the leaf tells about the key.
                    InLeaf::Nothing => stocked.take(key)?,
                    row => row,
                };
                stocked.skip(key);
                merged.push(key, row);
                position += count;
            }
        }
        stocked.push_below(None, &mut merged)?;
        merged.finish();
        Ok(reach)
    }
}

/// The lower of two upper bounds.
pub(super) fn lower<'b>(a: Option<&'b [u8]>, b: Option<&'b [u8]>) -> Option<&'b [u8]> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Holds the stock behind a leaf, if there is one, as long as it is asked what its intents mean.
pub(super) fn hold_stock(leaf: &LeafState) -> Option<RwLockReadGuard<'_, Arc<Stock>>> {
    leaf.range.as_ref().map(|range| range.hold_stock())
}

/// The part of the stock behind a leaf that a scan needs next; none if there is no stock, or nothing in it. `Blocked`
/// if it must be read: twice as much as the scan has read before, up to a limit.
pub(super) fn stock_part<'s>(
    seat: &'s Seat<'_>,
    leaf: &LeafState,
    stock: Option<&Arc<Stock>>,
    bounds: &Bounds,
    direction: Direction,
) -> Result<Option<&'s StockPart>, Blocked> {
    let Some((range, stock)) = leaf.range.as_ref().zip(stock).filter(|(_, it)| !it.is_empty())
    else {
        return Ok(None);
    };
    let low = bounds.low.as_slice().max(&range.low);
    let high = lower(bounds.high.as_deref(), range.high.as_deref());
    let from_high = direction == Direction::Backward;
    let part = seat.spares.part.as_ref();
    let is_next = |part: &&StockPart| match from_high {
        false => part.covers(low.max(leaf.low.bytes())),
        true => {
            let high = lower(high, leaf.high.as_ref().map(Fence::bytes));
            let reaches = part.high().is_none_or(|end| high.is_some_and(|high| high <= end));
            reaches && high.is_none_or(|high| part.low() < high)
        }
    };
    if let Some(part) = part.filter(|part| part.is_of(stock)).filter(is_next) {
        return Ok(Some(part));
    }
    // Whoever has come to the end of what it had goes on from there.
    let goes_on = part.filter(|part| match from_high {
        false => part.high() == Some(bounds.low.as_slice()),
        true => bounds.high.as_deref() == Some(part.low()),
    });
    let images_max = goes_on.map_or(1, StockPart::images_next);
    Err(WantedPart::keys(stock, range.object, (low, high), from_high, images_max).into())
}

/// The rows of a part of a stock that are not merged yet.
struct StockRows<'p> {
    trees: &'p Trees,
    object: ObjectId,
    view: View,
    part: Option<&'p StockPart>,
    next: usize,
    end: usize,
}

impl<'p> StockRows<'p> {
    fn between(
        trees: &'p Trees,
        (object, view): (ObjectId, View),
        part: Option<&'p StockPart>,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> StockRows<'p> {
        let next = part.map_or(0, |part| part.rows_below(low));
        let below = |part: &StockPart| {
            high.map_or_else(|| part.len(), |high| part.rows_below(high)).max(next)
        };
        StockRows { trees, object, view, part, next, end: part.map_or(0, below) }
    }

    fn first(&self) -> Option<StockKey<'p>> {
        self.part.filter(|_| self.next < self.end).map(|part| part.key_at(self.next))
    }

    /// Merges the rows below `key`, or all.
    fn push_below<I: Iterator<Item = (Box<[u8]>, Seen)>>(
        &mut self,
        key: Option<&[u8]>,
        merged: &mut Merged<'_, I>,
    ) -> Result<(), Blocked> {
        while let Some(found) = self.first() {
            let own = found.key();
            if key.is_some_and(|key| own >= key) {
                break;
            }
            merged.push(own, self.seen(&found)?);
            self.next += found.len();
        }
        Ok(())
    }

    /// What the stock says about a key, below which all is merged.
    fn take(&self, key: &[u8]) -> Result<InLeaf<'p>, Blocked> {
        let found = self.first().filter(|found| found.key() == key);
        found.map_or(Ok(InLeaf::Nothing), |found| self.seen(&found))
    }

    /// The leaf has told about the key.
    fn skip(&mut self, key: &[u8]) {
        self.next += self.first().filter(|found| found.key() == key).map_or(0, |found| found.len());
    }

    fn seen(&self, found: &StockKey<'p>) -> Result<InLeaf<'p>, Blocked> {
        Ok(match seen_in_stock(self.trees, self.object, found, self.view)? {
            Some((lsn, Some(value))) => InLeaf::Row(lsn, value),
            Some((_, None)) => InLeaf::Removed,
            None => InLeaf::NotVisible,
        })
    }
}

/// What the leaf itself says about a key.
enum InLeaf<'a> {
    /// Nothing that is decided.
    Nothing,
    /// The snapshot sees this value, written by the record with this LSN.
    Row(Option<Lsn>, Cow<'a, [u8]>),
    /// The snapshot sees that the key is removed.
    Removed,
    /// Too new: an older version may be kept.
    NotVisible,
}

/// The version among those at `indexes`, a row and perhaps an intent on the same key, that `view` sees.
fn visible<'a>(
    trees: &Trees,
    object: ObjectId,
    rows: &'a LeafRows,
    indexes: &[u16],
    view: View,
) -> Result<InLeaf<'a>, Blocked> {
    let mut answer = InLeaf::Nothing;
    for index in indexes {
        let entry = rows.entry(usize::from(*index));
        match entry.stamp.lsn() {
            Some(lsn) if view.sees(lsn) => {
                answer = InLeaf::Row(Some(lsn), Cow::Borrowed(entry.value));
            }
            Some(_) => answer = InLeaf::NotVisible,
            None if entry.stamp.as_intent().is_none() => answer = InLeaf::NotVisible,
            None => match resolved_intent(trees, object, entry, view)? {
                Some((lsn, Some(value))) => return Ok(InLeaf::Row(lsn, value)),
                Some((_, None)) => return Ok(InLeaf::Removed),
                None => {}
            },
        }
    }
    Ok(answer)
}

/// Merges the rows of a leaf with older versions from the store, both in key order.
struct Merged<'b, I: Iterator<Item = (Box<[u8]>, Seen)>> {
    older: std::iter::Peekable<I>,
    batch: &'b mut Batch,
}

impl<I: Iterator<Item = (Box<[u8]>, Seen)>> Merged<'_, I> {
    fn push(&mut self, key: &[u8], row: InLeaf<'_>) {
        while let Some((older_key, seen)) = self.older.next_if(|(older, _)| **older < *key) {
            self.batch.push(Some(seen.lsn), &older_key, &seen.value);
        }
        let older = self.older.next_if(|(older, _)| **older == *key);
        match (row, older) {
            (InLeaf::Row(lsn, value), _) => self.batch.push(lsn, key, &value),
            (InLeaf::NotVisible | InLeaf::Nothing, Some((_, seen))) => {
                self.batch.push(Some(seen.lsn), key, &seen.value)
            }
            (InLeaf::Removed | InLeaf::NotVisible | InLeaf::Nothing, _) => {}
        }
    }

    fn finish(self) {
        for (key, seen) in self.older {
            self.batch.push(Some(seen.lsn), &key, &seen.value);
        }
    }
}
