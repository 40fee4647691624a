//! Rows in key order, a leaf at a time, forward or backward, as a snapshot sees them.
//!
//! A scan keeps no latch and no leaf between two batches: it goes on at the fence where it
//! stopped, found from the root. So a split, an eviction or the reuse of a leaf's place between
//! two batches cannot lose or repeat a row.

use std::borrow::Cow;

use super::Trees;
use super::{Blocked, Refusal, Seat, Tree, View};
use crate::node::fence::{Fence, head};
use crate::node::leaf::LeafRows;
use crate::storage::LeafState;
use crate::tree::read::{Seen, resolved_intent};
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

#[derive(Clone, Copy, Debug)]
struct RowSpan {
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

    fn push(&mut self, key: &[u8], value: &[u8]) {
        let key_at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let value_at = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.rows.push(RowSpan { key_at, value_at, end: self.bytes.len() });
    }

    /// Takes all committed rows that `view` sees, in key order: one copy of the whole leaf instead of
    /// one for each row.
    fn take_leaf(&mut self, rows: &LeafRows, view: View) {
        self.bytes.extend_from_slice(rows.entry_bytes());
        self.rows.reserve(rows.len());
        rows.visit_in_order(|stamp, key_at, value_at, end| {
            if stamp.lsn().is_some_and(|lsn| view.sees(lsn)) {
                self.rows.push(RowSpan { key_at, value_at, end });
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
                self.collect(trees, id, &leaf, view, bounds, batch)?;
                match &leaf.high {
                    Some(high) => bounds.low = high.bytes().to_vec(),
                    None => return Ok(false),
                }
            }
            Direction::Backward => {
                let (id, leaf) = self.latch_below(trees, seat, bounds.high.as_deref(), object)?;
                self.collect(trees, id, &leaf, view, bounds, batch)?;
                batch.rows.reverse();
                if leaf.low.bytes() <= bounds.low.as_slice() {
                    return Ok(false);
                }
                bounds.high = Some(leaf.low.bytes().to_vec());
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

    /// The rows of a latched leaf that are inside `bounds` and visible, in key order.
    pub(super) fn collect(
        &self,
        trees: &Trees,
        id: LeafId,
        leaf: &LeafState,
        view: View,
        bounds: &Bounds,
        batch: &mut Batch,
    ) -> Result<(), Refusal> {
        let object = leaf.object.ok_or(Refusal::Gone)?;
        let rows = leaf.rows.as_ref().ok_or(Blocked::LoadToRead(id))?;
        let low = bounds.low.as_slice().max(leaf.low.bytes());
        let high = match (&bounds.high, &leaf.high) {
            (Some(bound), Some(fence)) => Some(bound.as_slice().min(fence.bytes())),
            (Some(bound), None) => Some(bound.as_slice()),
            (None, fence) => fence.as_ref().map(|fence| fence.bytes()),
        };
        let older = view.lsn().map_or_else(Vec::new, |lsn| self.versions.range(low, high, lsn));
        // After the look, not before: what is not there may have gone.
        if view.lsn().is_some_and(|snapshot| self.versions.lacks(snapshot)) {
            return Err(Refusal::TooOld);
        }
        let takes_all = low == leaf.low.bytes() && high == leaf.high.as_ref().map(Fence::bytes);
        if takes_all && older.is_empty() && rows.intents() == 0 {
            batch.take_leaf(rows, view);
            return Ok(());
        }
        let mut merged = Merged { older: older.into_iter().peekable(), batch };
        let order = rows.order();
        let low_head = head(low);
        let start = order.partition_point(|index| rows.compare(*index, low_head, low).is_lt());
        let mut position = start;
        while position < order.len() {
            let key = rows.key_at(&order, position);
            if high.is_some_and(|high| key >= high) {
                break;
            }
            let same = order[position..]
                .iter()
                .take(2)
                .filter(|i| rows.entry(usize::from(**i)).key == key);
            let count = same.count();
            let indexes = &order[position..position + count];
            merged.push(key, visible(trees, object, rows, indexes, view)?);
            position += count;
        }
        merged.finish();
        Ok(())
    }
}

/// What the leaf itself says about a key.
enum InLeaf<'a> {
    /// The snapshot sees this value.
    Row(Cow<'a, [u8]>),
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
    let mut answer = InLeaf::NotVisible;
    for index in indexes {
        let entry = rows.entry(usize::from(*index));
        match entry.stamp.lsn() {
            Some(lsn) if view.sees(lsn) => answer = InLeaf::Row(Cow::Borrowed(entry.value)),
            Some(_) => {}
            None => match resolved_intent(trees, object, entry, view)? {
                Some((_, Some(value))) => return Ok(InLeaf::Row(value)),
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
            self.batch.push(&older_key, &seen.value);
        }
        let older = self.older.next_if(|(older, _)| **older == *key);
        match (row, older) {
            (InLeaf::Row(value), _) => self.batch.push(key, &value),
            (InLeaf::NotVisible, Some((_, seen))) => self.batch.push(key, &seen.value),
            (InLeaf::Removed | InLeaf::NotVisible, _) => {}
        }
    }

    fn finish(self) {
        for (key, seen) in self.older {
            self.batch.push(&key, &seen.value);
        }
    }
}
