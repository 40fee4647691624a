//! Where to split a full leaf: a pure function.
//!
//! * Behind every key at the right edge, and behind a run of ascending keys anywhere: the new key
//!   opens the right leaf, the left one stays as full as it is. Such inserts fill leaves wholly.
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

/// The first `position` rows of the key order stay; the new key opens the right leaf if
/// `new_key_first`, so that the separator lies right below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SplitPoint {
    pub(crate) position: usize,
    pub(crate) kind: SplitKind,
    pub(crate) new_key_first: bool,
}

/// Chooses the split of a leaf with `rows`, in `order`, for a `key` that is not in it.
pub(crate) fn choose(
    rows: &LeafRows,
    order: &[u16],
    key: &[u8],
    is_right_edge: bool,
) -> SplitPoint {
    let count = order.len();
    let at = position(rows, order, key);
    if is_right_edge && at == count {
        return SplitPoint { position: count, kind: SplitKind::RightEdge, new_key_first: true };
    }
    if ends_a_run(rows, order, at) {
        return SplitPoint { position: at, kind: SplitKind::Run, new_key_first: true };
    }
    middle(rows, order, at)
}

/// How many rows are below `key`.
fn position(rows: &LeafRows, order: &[u16], key: &[u8]) -> usize {
    let key_head = head(key);
    order.partition_point(|slot| rows.compare(*slot, key_head, key) == Ordering::Less)
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
    let new_key_first = position == order.len();
    SplitPoint { position, kind: SplitKind::Middle, new_key_first }
}
