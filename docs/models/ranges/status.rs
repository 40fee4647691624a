//! What intents mean: the status of transactions, and how long that of a large one is known.
//!
//! A large transaction has a number that no other one ever gets, so that its intents may go to the disk. An open or
//! committed one is in the table; one that is not was aborted, or while redo runs may still get an outcome. A committed
//! one is forgotten when all leaves were swept, a checkpoint that began later is installed, and nothing *holds* it: no
//! stock that somebody has, no frozen rows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::{Rc, Weak};

use super::plant::Plant;
use super::types::{LargeOwner, Lsn, Number, Owner, Piece};
use super::world::World;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    Active,
    Committed(Lsn),
    Aborted,
}

/// Pieces that were rolled back to savepoints.
pub(super) type RolledBack = Vec<Range<Piece>>;

fn is_among(rolled_back: &RolledBack, piece: Piece) -> bool {
    rolled_back.iter().any(|pieces| pieces.contains(&piece))
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Outcome {
    pub(super) lsn: Lsn,
    pub(super) rolled_back: RolledBack,
    /// No leaf has an intent of it, in memory or in an image that the next checkpoint leaves as it is.
    pub(super) is_swept: bool,
}

#[derive(Clone, Debug)]
enum Known {
    Open(RolledBack),
    Committed(Outcome),
}

/// What a directory says of large transactions.
#[derive(Clone, Default, Debug)]
pub(super) struct LargeRoot {
    pub(super) next: Number,
    pub(super) outcomes: BTreeMap<Number, Outcome>,
}

/// Keeps the status of a large transaction from being forgotten.
pub(super) type Hold = Rc<Number>;

pub(super) struct LargeTable {
    pub(super) next: Number,
    known: BTreeMap<Number, Known>,
    holds: BTreeMap<Number, Weak<Number>>,
}

impl LargeTable {
    pub(super) fn new() -> LargeTable {
        LargeTable { next: 1, known: BTreeMap::new(), holds: BTreeMap::new() }
    }

    pub(super) fn begin(&mut self) -> Number {
        self.next += 1;
        self.known.insert(self.next - 1, Known::Open(RolledBack::new()));
        self.next - 1
    }

    pub(super) fn roll_back(&mut self, number: Number, pieces: Range<Piece>) {
        if let Some(Known::Open(rolled_back)) = self.known.get_mut(&number) {
            rolled_back.push(pieces);
        }
    }

    pub(super) fn rolled_back(&self, number: Number) -> RolledBack {
        match self.known.get(&number) {
            Some(Known::Open(rolled_back)) => rolled_back.clone(),
            _ => RolledBack::new(),
        }
    }

    pub(super) fn commit(&mut self, number: Number, lsn: Lsn, rolled_back: RolledBack) {
        let outcome = Outcome { lsn, rolled_back, is_swept: false };
        self.known.insert(number, Known::Committed(outcome));
    }

    pub(super) fn abort(&mut self, number: Number) {
        self.known.remove(&number);
    }

    /// Redo has met a piece or a commit.
    pub(super) fn note_number(&mut self, number: Number) {
        self.next = self.next.max(number + 1);
    }

    /// The status of an intent; none if nothing is known of its transaction.
    fn status(&self, owner: LargeOwner) -> Option<Status> {
        let (rolled_back, status) = match self.known.get(&owner.number)? {
            Known::Open(rolled_back) => (rolled_back, Status::Active),
            Known::Committed(Outcome { lsn, rolled_back, .. }) => {
                (rolled_back, Status::Committed(*lsn))
            }
        };
        let is_rolled_back = is_among(rolled_back, owner.piece);
        Some(if is_rolled_back { Status::Aborted } else { status })
    }

    pub(super) fn is_committed(&self, number: Number) -> bool {
        matches!(self.known.get(&number), Some(Known::Committed(_)))
    }

    pub(super) fn hold(&mut self, number: Number) -> Hold {
        let known = self.holds.get(&number).and_then(Weak::upgrade);
        let hold = known.unwrap_or_else(|| Rc::new(number));
        self.holds.insert(number, Rc::downgrade(&hold));
        hold
    }

    fn is_held(&self, number: Number) -> bool {
        self.holds.get(&number).is_some_and(|hold| hold.strong_count() > 0)
    }

    fn outcomes(&self) -> impl Iterator<Item = (Number, &Outcome)> {
        self.known.iter().filter_map(|(number, known)| match known {
            Known::Committed(outcome) => Some((*number, outcome)),
            Known::Open(_) => None,
        })
    }

    pub(super) fn to_sweep(&self) -> Vec<Number> {
        let due = self.outcomes().filter(|(_, outcome)| !outcome.is_swept);
        due.map(|(number, _)| number).collect()
    }

    pub(super) fn set_swept(&mut self, number: Number) {
        if let Some(Known::Committed(outcome)) = self.known.get_mut(&number) {
            outcome.is_swept = true;
        }
    }

    /// Those that were swept, for a checkpoint that begins now.
    pub(super) fn swept(&self) -> BTreeSet<Number> {
        let swept = self.outcomes().filter(|(_, outcome)| outcome.is_swept);
        swept.map(|(number, _)| number).collect()
    }
}

impl World {
    pub(super) fn status(&self, owner: Owner) -> Status {
        match owner {
            Owner::Small(transaction) => self.statuses[transaction],
            Owner::Large(owner) => match self.large.status(owner) {
                Some(status) => status,
                None if self.redone.is_some() => Status::Active,
                None => Status::Aborted,
            },
        }
    }

    /// Holds for all of these numbers.
    pub(super) fn hold(&mut self, numbers: impl IntoIterator<Item = Number>) -> Vec<Hold> {
        numbers.into_iter().map(|number| self.large.hold(number)).collect()
    }

    /// What a directory says whose ranges hold `held`, and whose leaves hold nothing of those that are `swept`.
    pub(super) fn large_root(
        &self,
        swept: &BTreeSet<Number>,
        held: &BTreeSet<Number>,
    ) -> LargeRoot {
        let asks_stocks = self.plant != Plant::StatusForgottenWithStock;
        let is_named =
            |number: &Number| !swept.contains(number) || (held.contains(number) && asks_stocks);
        let outcomes = self.large.outcomes().filter(|(number, _)| is_named(number));
        let outcomes = outcomes.map(|(number, outcome)| (number, outcome.clone())).collect();
        LargeRoot { next: self.large.next, outcomes }
    }

    /// A directory without intents of these in its leaves is installed.
    pub(super) fn forget(&mut self, swept: &BTreeSet<Number>) {
        for number in swept {
            let is_held =
                self.large.is_held(*number) && self.plant != Plant::StatusForgottenWithStock;
            if !is_held {
                self.large.known.remove(number);
                self.counts.forgotten += 1;
            }
        }
    }

    /// What a directory says of large transactions, for redo from its C: an outcome of a record that redo will meet is
    /// not known before redo meets it.
    pub(super) fn restore(&mut self, root: &LargeRoot, start: Lsn) {
        self.large.next = root.next;
        for (number, outcome) in &root.outcomes {
            if outcome.lsn < start || self.plant == Plant::OutcomeBeforeItsRecord {
                self.large.commit(*number, outcome.lsn, outcome.rolled_back.clone());
            }
        }
    }
}
