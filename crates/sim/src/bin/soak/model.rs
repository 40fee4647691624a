//! What one session has in the tables, and what each of its operations does to that.
//!
//! Operation `number` of a session follows from the seed, the session and what the session has: the
//! process that works and the one that verifies come to the same, without telling each other more
//! than numbers.

use std::collections::VecDeque;

use onrush_oracle::Expected;
use onrush_sim::Random;
use xxhash_rust::xxh3::xxh3_64;

use super::tables::{self, Kind};

/// A row of a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Live {
    /// Its number: [`PER_OPERATION`] times that of the operation that added it, and then some.
    pub(crate) number: u64,
    /// The operation that changed it last.
    pub(crate) version: u64,
}

/// The most rows that an operation adds.
pub(crate) const PER_OPERATION: u64 = 16;
/// The most rows that an operation removes, but for a truncate.
pub(crate) const REMOVED_AT_ONCE: usize = 64;

/// How many rows there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Of a session in one table.
    pub(crate) rows: usize,
    /// In the table that is truncated.
    pub(crate) scratch_rows: usize,
}

impl Limits {
    /// So that all rows together take about so many bytes.
    pub(crate) fn of(live_bytes: u64, sessions: u64) -> Limits {
        let rows = live_bytes / tables::ROW_BYTES_MEAN / (sessions * Kind::SHARED as u64);
        let rows = usize::try_from(rows).unwrap_or(usize::MAX).max(4);
        Limits { rows, scratch_rows: rows * 4 }
    }

    /// How many rows the session may have in a table just now: in waves, so that space becomes
    /// free and is wanted again.
    fn rows_at(self, number: u64) -> usize {
        let wave = number / (8 * self.rows as u64);
        if wave % 4 == 3 { self.rows / 4 } else { self.rows }
    }
}

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deed {
    /// Inserts a row.
    Insert(Kind),
    /// Inserts so many rows as one batch.
    Batch(Kind, u64),
    /// Inserts one row into each of two tables in a transaction, and changes a third if there is one.
    Pair(Kind, Kind),
    /// Sets columns of the row at this place in the session's queue.
    Update(Kind, usize),
    /// Replaces a row by its key.
    Upsert(Kind, usize),
    /// Deletes the oldest row.
    DeleteOldest(Kind),
    /// Deletes so many of the oldest rows in one transaction.
    DeleteMany(Kind, usize),
    /// Truncates the scratch table.
    Truncate,
    /// Reads a row.
    Get(Kind, usize),
    /// Reads rows of this session from one on; its keys are its own.
    ScanOwn(usize),
    /// Reads rows of all sessions.
    ScanAll(Kind),
}

/// One step of an operation on the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    Add { kind: Kind, live: Live },
    Replace { kind: Kind, place: usize, version: u64 },
    RemoveOldest { kind: Kind },
    RemoveAll { kind: Kind },
}

/// The rows of one session, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    session: u64,
    rows: [VecDeque<Live>; Kind::ALL.len()],
    digest: u64,
}

impl Model {
    pub(crate) fn new(session: u64) -> Model {
        Model { session, ..Model::default() }
    }

    pub(crate) fn rows(&self, kind: Kind) -> &VecDeque<Live> {
        &self.rows[kind as usize]
    }

    /// How many rows it has in all.
    pub(crate) fn count(&self) -> u64 {
        self.rows.iter().map(|rows| rows.len() as u64).sum()
    }

    fn hash(kind: Kind, live: Live) -> u64 {
        let mut bytes = [0; 17];
        bytes[0] = kind as u8;
        bytes[1..9].copy_from_slice(&live.number.to_le_bytes());
        bytes[9..].copy_from_slice(&live.version.to_le_bytes());
        xxh3_64(&bytes)
    }

    /// Takes a row that was found, younger than those that it has.
    pub(crate) fn add(&mut self, kind: Kind, live: Live) {
        self.digest = self.digest.wrapping_add(Model::hash(kind, live));
        self.rows[kind as usize].push_back(live);
    }

    /// What operation `number` does.
    pub(crate) fn deed(&self, seed: u64, number: u64, limits: Limits) -> Deed {
        let mut random = Random::for_part(seed ^ (self.session << 48), number);
        let kind = Kind::ALL[random.below(Kind::SHARED as u64) as usize];
        let chosen = if random.chance(1, 2) { Kind::Chosen } else { Kind::Named };
        let count = self.rows(kind).len();
        if self.session == 0 && random.chance(1, 20) {
            let is_full = self.rows(Kind::Scratch).len() >= limits.scratch_rows;
            return if is_full { Deed::Truncate } else { Deed::Batch(Kind::Scratch, 12) };
        }
        if count > limits.rows_at(number) && random.chance(3, 4) {
            return match random.below(5) {
                0 => Deed::DeleteMany(kind, count.min(REMOVED_AT_ONCE)),
                _ => Deed::DeleteOldest(kind),
            };
        }
        let place = |random: &mut Random, kind| match self.rows(kind).len() as u64 {
            0 => None,
            count => Some(random.below(count) as usize),
        };
        let deed = match random.below(100) {
            0..60 => None,
            60..64 => Some(Deed::Batch(chosen, 1 + random.below(PER_OPERATION))),
            64..67 => Some(Deed::Pair(kind, chosen)),
            67..80 => place(&mut random, kind).map(|place| Deed::Update(kind, place)),
            80..84 => place(&mut random, chosen).map(|place| Deed::Upsert(chosen, place)),
            84..98 => place(&mut random, kind).map(|place| Deed::Get(kind, place)),
            98 => place(&mut random, Kind::Chosen).map(Deed::ScanOwn),
            _ => Some(Deed::ScanAll(kind)),
        };
        deed.unwrap_or(Deed::Insert(kind))
    }

    /// What operation `number` changes.
    pub(crate) fn changes(deed: Deed, number: u64) -> Vec<Change> {
        let first = number * PER_OPERATION;
        match deed {
            Deed::Insert(kind) => vec![tables::added(kind, first, number)],
            Deed::Batch(kind, rows) => {
                (0..rows).map(|row| tables::added(kind, first + row, number)).collect()
            }
            Deed::Pair(one, other) => {
                vec![tables::added(one, first, number), tables::added(other, first + 1, number)]
            }
            Deed::Update(kind, place) | Deed::Upsert(kind, place) => {
                vec![Change::Replace { kind, place, version: number }]
            }
            Deed::DeleteOldest(kind) => vec![Change::RemoveOldest { kind }],
            Deed::DeleteMany(kind, rows) => vec![Change::RemoveOldest { kind }; rows],
            Deed::Truncate => vec![Change::RemoveAll { kind: Kind::Scratch }],
            Deed::Get(..) | Deed::ScanOwn(_) | Deed::ScanAll(_) => Vec::new(),
        }
    }
}

impl Expected for Model {
    type Change = Change;
    /// The same rows give the same, in any order.
    type Print = u64;

    fn apply(&mut self, change: &Change) {
        match *change {
            Change::Add { kind, live } => self.add(kind, live),
            Change::Replace { kind, place, version } => {
                let Some(live) = self.rows[kind as usize].get_mut(place) else { return };
                let old = Model::hash(kind, *live);
                live.version = version;
                let new = Model::hash(kind, *live);
                self.digest = self.digest.wrapping_sub(old).wrapping_add(new);
            }
            Change::RemoveOldest { kind } => {
                let oldest = self.rows[kind as usize].pop_front();
                let hash = oldest.map_or(0, |live| Model::hash(kind, live));
                self.digest = self.digest.wrapping_sub(hash);
            }
            Change::RemoveAll { kind } => {
                while !self.rows(kind).is_empty() {
                    self.apply(&Change::RemoveOldest { kind });
                }
            }
        }
    }

    fn print(&self) -> u64 {
        self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { rows: 20, scratch_rows: 40 };

    fn after(operations: u64) -> (Model, u64) {
        let (mut model, mut most) = (Model::new(0), 0);
        for number in 1..=operations {
            for change in Model::changes(model.deed(7, number, LIMITS), number) {
                model.apply(&change);
            }
            most = most.max(model.count());
        }
        (model, most)
    }

    #[test]
    fn the_same_seed_gives_the_same_rows() {
        let ((one, _), (other, _)) = (after(5000), after(5000));
        assert_eq!(one.rows, other.rows);
        assert_eq!(one.print(), other.print());
        assert_ne!(one.print(), after(4990).0.print());
    }

    #[test]
    fn rows_stay_bounded() {
        let (_, most) = after(50_000);
        assert!(most < 400, "{most} rows");
    }

    #[test]
    fn a_digest_does_not_depend_on_how_the_rows_came_to_be() {
        let (model, _) = after(5000);
        let mut built = Model::new(0);
        for kind in Kind::ALL {
            model.rows(kind).iter().for_each(|live| built.add(kind, *live));
        }
        assert_eq!(built.print(), model.print());
    }
}
