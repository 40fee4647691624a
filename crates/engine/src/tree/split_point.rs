//! Where to split a full leaf: a pure function.
//!
//! * Behind every key at the right edge, and behind a run of ascending keys with nothing above it:
//!   the new key opens the right leaf, the left one stays as full as it is.
//! * Behind a run with rows above it: those rows go to the right leaf, and the run goes on filling
//!   the left one. Taking them along would leave every leaf of the run as empty as they are many.
//! * Elsewhere in the middle of the bytes.

use std::cmp::Ordering;

use crate::node::fence::head;
use crate::node::leaf::{Entry, LeafRows};

/// So many latest arrivals must ascend side by side up to the new key to count as a run.
const RUN: usize = 4;

/// Which way a leaf splits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SplitKind {
    RightEdge,
    Run,
    Middle,
}

/// The first `position` rows of the key order stay, the others go to the right leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SplitPoint {
    pub(crate) position: usize,
    pub(crate) kind: SplitKind,
    pub(crate) new_key: Side,
}

/// Where the separator lies as seen from the new key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// Right below the new key: it opens the right leaf.
    OpensRight,
    /// Right above the new key: it ends the left leaf.
    EndsLeft,
    /// Between two rows; the new key goes where it belongs.
    Either,
}

/// Chooses the split of a leaf with `rows`, in `order`, for a `key` that needs space.
pub(crate) fn choose(
    rows: &LeafRows,
    order: &[u16],
    key: &[u8],
    is_right_edge: bool,
) -> SplitPoint {
    let count = order.len();
    let at = position(rows, order, key);
    if is_right_edge && at == count {
        let new_key = Side::OpensRight;
        return SplitPoint { position: count, kind: SplitKind::RightEdge, new_key };
    }
    if ends_a_run(rows, order, at) {
        let new_key = match () {
            () if at == count => Side::OpensRight,
            // A row that grows, or gets an intent: the separator cannot lie between it and itself.
            () if rows.key_at(order, at) == key => Side::Either,
            () => Side::EndsLeft,
        };
        return SplitPoint { position: at, kind: SplitKind::Run, new_key };
    }
    middle(rows, order, at)
}

/// How many rows are below `key`.
fn position(rows: &LeafRows, order: &[u16], key: &[u8]) -> usize {
    let key_head = head(key);
    order.partition_point(|index| rows.compare(*index, key_head, key) == Ordering::Less)
}

/// Whether the latest arrivals are the rows right below position `at`, in ascending order.
fn ends_a_run(rows: &LeafRows, order: &[u16], at: usize) -> bool {
    let count = rows.len();
    at >= RUN
        && count > RUN
        && (0..RUN).all(|back| usize::from(order[at - 1 - back]) == count - 1 - back)
}

fn middle(rows: &LeafRows, order: &[u16], at: usize) -> SplitPoint {
    let half = rows.live_bytes() / 2;
    let mut bytes = 0;
    let mut position = 0;
    while position < order.len() && bytes < half {
        let entry = rows.entry(usize::from(order[position]));
        bytes += Entry::bytes(entry.key, entry.value);
        position += 1;
    }
    // A key has up to two entries (a row and an intent), which stay together.
    let same = |p: usize| rows.key_at(order, p - 1) == rows.key_at(order, p);
    while position > 0 && position < order.len() && same(position) {
        position += 1;
    }
    if position == order.len() {
        position = (1..order.len()).rev().find(|p| !same(*p)).unwrap_or(0);
    }
    if position == 0 {
        // All entries are of one key: the new key goes to one side, they to the other.
        position = if at == 0 { 0 } else { order.len() };
    }
    let new_key = match position {
        0 => Side::EndsLeft,
        position if position == order.len() => Side::OpensRight,
        _ => Side::Either,
    };
    SplitPoint { position, kind: SplitKind::Middle, new_key }
}
