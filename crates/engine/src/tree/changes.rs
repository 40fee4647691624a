//! Which leaves may have changed between two snapshots, and what each snapshot sees in them; and which rows were
//! written since an LSN.
//!
//! A row that was changed or removed since one of them is in the store of old versions, as long as that
//! snapshot is open; one that is new has a stamp that the earlier one does not see. An image on disk was made
//! of rows below a known LSN. So a leaf that has nothing of these need not be read, nor compared.
//!
//! Invariant: a leaf is left out only if both snapshots see the same rows in its range.

use onrush_log::Lsn;

use super::Trees;
use super::scan::{Batch, Bounds, Direction, hold_stock, stock_part};
use super::{Refusal, Seat, Tree, View};
use crate::node::fence::Fence;
use crate::storage::{LeafState, StockPart};
use crate::units::{LeafId, ObjectId};

/// Leaves that one stay inside the engine looks at at most.
const LEAVES_INSIDE: usize = 64;

/// What two snapshots see in one leaf.
#[derive(Default, Debug)]
pub(crate) struct TwoBatches {
    pub(crate) earlier: Batch,
    pub(crate) later: Batch,
}

impl Tree {
    /// Fills `batches` with the rows of the next leaf of `bounds` that may have changed between the snapshots
    /// `lsns`, and narrows `bounds` to what is left. Returns false when nothing is left. The batches may be
    /// empty before that.
    pub(crate) fn scan_changed(
        &self,
        trees: &Trees,
        seat: &Seat<'_>,
        (object, lsns): (ObjectId, (Lsn, Lsn)),
        bounds: &mut Bounds,
        batches: &mut TwoBatches,
    ) -> Result<bool, Refusal> {
        batches.earlier.clear();
        batches.later.clear();
        let (earlier, later) = lsns;
        let is_wanted = |leaf: &LeafState, low: &[u8]| !self.is_unchanged(leaf, low, lsns);
        self.scan_some(trees, seat, (object, Some(earlier)), bounds, is_wanted, |leaf, bounds| {
            let view = View::Before(earlier);
            self.collect(trees, leaf, view, bounds, &mut batches.earlier)?;
            let view = View::Before(later);
            self.collect(trees, leaf, view, bounds, &mut batches.later)
        })
    }

    /// Fills `batch` with the rows of the next leaf of `bounds` that `view` sees and that were written at `since` or
    /// later, and narrows `bounds` to what is left. Returns false when nothing is left. The batch may be empty before
    /// that. An older version that the view sees counts as written when it was.
    pub(crate) fn scan_written(
        &self,
        trees: &Trees,
        seat: &Seat<'_>,
        (object, view, since): (ObjectId, View, Lsn),
        bounds: &mut Bounds,
        batch: &mut Batch,
    ) -> Result<bool, Refusal> {
        batch.clear();
        let snapshot = view.lsn();
        let is_wanted = |leaf: &LeafState, low: &[u8]| {
            let (low, high) = (low.max(leaf.low.bytes()), leaf.high.as_ref().map(Fence::bytes));
            let has_older = |lsn: Lsn| !self.versions.range(low, high, lsn).is_empty();
            has_written_since(leaf, since) || snapshot.is_some_and(has_older)
        };
        self.scan_some(trees, seat, (object, snapshot), bounds, is_wanted, |leaf, bounds| {
            let reach = self.collect(trees, leaf, view, bounds, batch)?;
            batch.keep_since(since);
            Ok(reach)
        })
    }

    /// Goes on to the next leaf of `bounds` that is wanted, has it read, and narrows `bounds` to what is left. Returns
    /// false when nothing is left; it may end before there was one. Old versions that `snapshot` sees must be there.
    fn scan_some(
        &self,
        trees: &Trees,
        seat: &Seat<'_>,
        (object, snapshot): (ObjectId, Option<Lsn>),
        bounds: &mut Bounds,
        is_wanted: impl Fn(&LeafState, &[u8]) -> bool,
        mut read: impl FnMut(
            (LeafId, &LeafState, Option<&StockPart>),
            &Bounds,
        ) -> Result<Bounds, Refusal>,
    ) -> Result<bool, Refusal> {
        for _ in 0..LEAVES_INSIDE {
            if bounds.high.as_ref().is_some_and(|high| *high <= bounds.low) {
                return Ok(false);
            }
            let (id, leaf) = self.latch_shared(trees, seat.recorder, &bounds.low, object)?;
            let is_wanted = is_wanted(&leaf, &bounds.low);
            // After the look, not before: a leaf may seem to have nothing because a version has gone.
            if snapshot.is_some_and(|lsn| self.versions.lacks(lsn)) {
                return Err(Refusal::TooOld);
            }
            if is_wanted {
                let stock = hold_stock(&leaf);
                let part = stock_part(seat, &leaf, stock.as_deref(), bounds, Direction::Forward)?;
                let reach = read((id, &*leaf, part), bounds)?;
                let Some(high) = reach.high else { return Ok(false) };
                bounds.low = high;
                break;
            }
            match &leaf.high {
                Some(high) => bounds.low = high.bytes().to_vec(),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Whether both snapshots see the same rows in the leaf, from `low` on.
    fn is_unchanged(&self, leaf: &LeafState, low: &[u8], (earlier, later): (Lsn, Lsn)) -> bool {
        let low = low.max(leaf.low.bytes());
        let high = leaf.high.as_ref().map(Fence::bytes);
        // A row that came between them and was removed behind the later one is an old version to that one alone.
        let is_as_it_was = |snapshot| self.versions.range(low, high, snapshot).is_empty();
        !has_written_since(leaf, earlier) && is_as_it_was(earlier) && is_as_it_was(later)
    }
}

/// Whether a row of the leaf, or of the stock behind it, may have been written at `since` or later.
fn has_written_since(leaf: &LeafState, since: Lsn) -> bool {
    let is_new = |stamp: Option<Lsn>| stamp.is_none_or(|lsn| lsn >= since);
    // The image of a clean leaf has all of its rows.
    let is_imaged = !leaf.is_dirty() && leaf.image.as_ref().is_some_and(|it| it.below() <= since);
    // What the stock has was written below its newest row, whatever leaves it came from.
    let is_stock_old = leaf.range.as_ref().is_none_or(|range| range.stock().newest() < since);
    match (&leaf.rows, &leaf.image) {
        _ if !is_stock_old => true,
        _ if is_imaged => false,
        (Some(rows), _) => {
            (0..rows.len()).any(|index| is_new(rows.entry(index).stamp.decided_at()))
        }
        (None, image) => image.is_some(),
    }
}
