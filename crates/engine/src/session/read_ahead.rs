//! What a scan asks for ahead of itself, so that leaves that are on disk are read while it is busy with
//! others. [who reads them](crate::storage)
//!
//! A scan whose leaves are in memory never comes here. From the second leaf on that it had to wait for it
//! looks at those that come next and asks for the ones on disk. How far it looks ahead doubles as long as
//! it finds some: a short scan asks for little, a long one keeps the readers busy.

use std::sync::Arc;

use onrush_waits::Recorder;

use crate::engine::Engine;
use crate::storage::AskedAhead;
use crate::tree::{Bounds, Direction, LeavesToRead, Tree};
use crate::units::{LeafId, ObjectId};

/// Leaves that a scan waits for before it reads ahead: one of a few rows waits for one.
const MISSES_BEFORE: u32 = 2;
/// How many leaves are looked at first.
const WINDOW_MIN: usize = 4;

/// How far a scan has looked ahead.
#[derive(Default)]
pub(super) struct ReadAhead {
    /// Leaves that the scan waited for, before it began to read ahead.
    misses: u32,
    /// How many leaves it looks ahead.
    window: usize,
    /// About how many of the leaves looked at it has not passed yet.
    ahead: usize,
    /// What it has not looked at; none if that is nothing.
    rest: Option<Bounds>,
    /// Rows that the last leaf gave.
    rows_of_leaf: u64,
    asked: Option<AskedAhead<Engine>>,
}

/// Where a scan is.
pub(super) struct Position<'s> {
    pub(super) engine: &'s Arc<Engine>,
    pub(super) recorder: &'s Recorder,
    pub(super) tree: &'s Tree,
    pub(super) object: ObjectId,
    pub(super) direction: Direction,
    /// What it has not read.
    pub(super) bounds: &'s Bounds,
    /// Rows that it may still give.
    pub(super) rows_max: u64,
}

impl ReadAhead {
    /// The scan waits for the leaf `missed`, which is the first one of its position.
    pub(super) fn missed(&mut self, position: &Position<'_>, missed: LeafId) {
        if self.asked.is_some() {
            return;
        }
        self.misses += 1;
        if self.misses < MISSES_BEFORE {
            return;
        }
        self.asked = AskedAhead::begin(position.engine);
        self.window = WINDOW_MIN;
        self.rest = Some(position.bounds.clone());
        self.look(position, Some(missed));
    }

    /// The scan has got the `rows` of a leaf, and stands in front of the next one.
    pub(super) fn passed(&mut self, position: &Position<'_>, rows: u64) {
        self.rows_of_leaf = rows;
        if self.asked.is_none() || self.rest.is_none() {
            return;
        }
        self.ahead = self.ahead.saturating_sub(1);
        if self.ahead <= self.window / 2 {
            self.look(position, None);
        }
    }

    /// Looks at more leaves, and asks for those that are on disk.
    fn look(&mut self, position: &Position<'_>, missed: Option<LeafId>) {
        let Some((asked, mut rest)) = self.asked.as_ref().zip(self.rest.take()) else { return };
        if catch_up(&mut rest, position.bounds, position.direction) {
            self.ahead = 0;
        }
        let Position { engine, recorder, tree, object, direction, rows_max, .. } = *position;
        // A scan with a limit looks no further than it comes.
        let to_come = rows_max.div_ceil(self.rows_of_leaf.max(1));
        let to_come = usize::try_from(to_come).unwrap_or(usize::MAX);
        let most = self.window.min(asked.leaves_max()).min(to_come);
        let wanted = most.saturating_sub(self.ahead);
        if wanted == 0 {
            self.rest = Some(rest);
            return;
        }
        // The scan itself meets a table that is gone.
        let found = tree.leaves_to_read(engine, recorder, object, direction, &rest, wanted);
        let Ok(LeavesToRead { mut leaves, rest }) = found else { return };
        self.rest = rest;
        self.ahead += leaves.len();
        leaves.retain(|leaf| Some(*leaf) != missed);
        if asked.ask(object, &leaves) {
            self.window = (self.window * 2).min(asked.leaves_max()).max(WINDOW_MIN);
        }
    }
}

/// Takes off `rest` what the scan has read already; true if there was something to take off.
fn catch_up(rest: &mut Bounds, bounds: &Bounds, direction: Direction) -> bool {
    let is_behind = match direction {
        Direction::Forward => rest.low <= bounds.low,
        Direction::Backward => match (&rest.high, &bounds.high) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(rest), Some(scan)) => rest >= scan,
        },
    };
    if is_behind {
        rest.clone_from(bounds);
    }
    is_behind
}
