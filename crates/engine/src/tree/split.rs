//! Splits a full leaf under its latch. Nothing is logged: after a crash the rows come from images
//! and log records, and the leaves are whatever they then become.
//!
//! Invariants
//! 1. The sibling has the old leaf's dirty epoch and is on the list of that epoch before the old
//!    leaf's latch is let go, and both hold a reserved slot.
//! 2. The sibling shares the old leaf's image until one of them is imaged anew.
//! 3. Rows and fences agree at every moment the latch is free.

use onrush_latch::ExclusiveGuard;
use onrush_waits::{Counter, LatchClass};

use super::Trees;
use super::split_point::{self, Side, SplitKind};
use super::{Blocked, SPARE_FRAMES, Seat};
use crate::fault::{Fault, planted};
use crate::node::fence::{Fence, separator};
use crate::node::leaf::LeafRows;
use crate::space::Purpose;
use crate::storage::LeafState;
use crate::units::LeafId;

/// A new leaf of which the parent does not know yet.
pub(crate) struct HalfSplit {
    pub(crate) separator: Box<[u8]>,
    pub(crate) leaf: LeafId,
}

/// Splits the dirty leaf `left` so that `key` finds space. Returns the new sibling, latched.
pub(crate) fn split<'e>(
    trees: &'e Trees,
    seat: &mut Seat<'_>,
    left: &mut LeafState,
    key: &[u8],
    purpose: Purpose,
) -> Result<(HalfSplit, ExclusiveGuard<'e, LeafState>), Blocked> {
    let rows = left.rows.as_mut().expect("a leaf that is written to is in memory");
    let order = rows.order();
    let point = split_point::choose(rows, &order, key, left.high.is_none());
    let boundary: Box<[u8]> = {
        let last = || rows.key_at(&order, point.position - 1);
        let first = || rows.key_at(&order, point.position);
        match point.new_key {
            Side::OpensRight => separator(last(), key).into(),
            Side::EndsLeft => separator(key, first()).into(),
            Side::Either => separator(last(), first()).into(),
        }
    };
    if seat.spares.len() < SPARE_FRAMES {
        return Err(Blocked::Spares);
    }
    if !trees.space.try_reserve(1, purpose) {
        return Err(Blocked::Slot);
    }
    let frame = seat.spares.pop().expect("two spares were counted above");
    let moved = rows.split_off(&order, point.position, frame, &mut seat.spares[0]);
    let (half, mut right) = add_sibling(trees, seat, left, boundary);
    trees.put_rows(&mut right, moved);
    seat.recorder.count(
        match point.kind {
            SplitKind::RightEdge => Counter::SplitsRightEdge,
            SplitKind::Run => Counter::SplitsLocalRun,
            SplitKind::Middle => Counter::SplitsMiddle,
        },
        1,
    );
    Ok((half, right))
}

/// Makes the leaf right of `left`, from `boundary` on: fences, link, epoch, list and image. The
/// caller has reserved its slot and gives it rows.
pub(super) fn add_sibling<'e>(
    trees: &'e Trees,
    seat: &Seat<'_>,
    left: &mut LeafState,
    boundary: Box<[u8]>,
) -> (HalfSplit, ExclusiveGuard<'e, LeafState>) {
    let id = LeafId(trees.leaves.add());
    seat.recorder.count(Counter::PagesAllocated, 1);
    let mut right = trees.leaves.get(id.0).latch.exclusive(seat.recorder, LatchClass::Leaf);
    right.object = left.object;
    right.logged = left.logged;
    right.low = Fence::new(&boundary);
    right.high = left.high.replace(Fence::new(&boundary));
    right.next = left.next.replace(id);
    right.range = left.range.clone();
    right.image = left.image.clone().filter(|_| !planted(Fault::SplitNoShare));
    right.dirty_epoch =
        if planted(Fault::SplitNoEpoch) { Some(trees.dirty.epoch()) } else { left.dirty_epoch };
    right.rows = None;
    trees.list_dirty(seat.permit, id, &right);
    (HalfSplit { separator: boundary, leaf: id }, right)
}

/// Opens an empty leaf from `boundary` on at the right edge, for a block of identity values:
/// whoever owns the block fills a leaf of its own. `None` if the edge leaf has rows at or above
/// the boundary, starts there already, or is not the edge.
pub(crate) fn open_edge<'e>(
    trees: &'e Trees,
    seat: &mut Seat<'_>,
    left: &mut LeafState,
    boundary: &[u8],
) -> Result<Option<(HalfSplit, ExclusiveGuard<'e, LeafState>)>, Blocked> {
    let rows = left.rows.as_ref().expect("a leaf that is written to is in memory");
    if left.high.is_some() || left.low.bytes() == boundary || !rows.is_above_all(boundary) {
        return Ok(None);
    }
    if seat.spares.len() < SPARE_FRAMES {
        return Err(Blocked::Spares);
    }
    if !trees.space.try_reserve(1, Purpose::NewRows) {
        return Err(Blocked::Slot);
    }
    let (half, mut right) = add_sibling(trees, seat, left, boundary.into());
    let frame = seat.spares.pop().expect("two spares were counted above");
    let rows = LeafRows::empty_of(frame, right.range.is_some());
    trees.put_rows(&mut right, rows);
    seat.recorder.count(Counter::SplitsBlockGrant, 1);
    Ok(Some((half, right)))
}
