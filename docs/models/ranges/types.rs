//! What rows, records and scripts are.

use std::collections::BTreeMap;
use std::ops::Range;

pub(super) type Key = u8;
/// Place in the log: one record takes one.
pub(super) type Lsn = u64;
pub(super) type Epoch = u64;

/// Keys of the one table: `0..KEYS`.
pub(super) const KEYS: Key = 14;
/// Rows after which a leaf is split before the next.
pub(super) const LEAF_ROWS: usize = 2;
/// Rows of an image of a base or fragment.
pub(super) const IMAGE_ROWS: usize = 2;

/// What a row says. The number is unique, so that no two are taken for each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Value(pub(super) u32);

/// A row, or where it is `None` a tombstone, and the LSN of the change that made it so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Version {
    pub(super) lsn: Lsn,
    pub(super) value: Option<Value>,
}

pub(super) type Rows = BTreeMap<Key, Version>;

/// What one commit does to one key; `None` deletes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Change {
    pub(super) key: Key,
    pub(super) value: Option<Value>,
}

/// Of a large transaction; never given twice.
pub(super) type Number = u32;
/// Pieces of one large transaction are numbered from 1.
pub(super) type Piece = u32;

/// A large transaction, and the piece of it that an intent is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LargeOwner {
    pub(super) number: Number,
    pub(super) piece: Piece,
}

/// What a large transaction wants of a key; `None` deletes. It may go to the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LargeIntent {
    pub(super) owner: LargeOwner,
    pub(super) value: Option<Value>,
}

/// Whose intent stands in a leaf: a small transaction, by its place in the table of this incarnation, or a large one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    Small(usize),
    Large(LargeOwner),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Intent {
    pub(super) owner: Owner,
    pub(super) value: Option<Value>,
}

/// A record of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Record {
    /// A commit, with all that it changes.
    Commit(Vec<Change>),
    /// Some changes of a large transaction; they mean nothing without its commit.
    Piece(LargeOwner, Vec<Change>),
    /// The commit of a large transaction, and the pieces that it does without.
    LargeCommit(Number, Vec<Range<Piece>>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verb {
    Insert,
    /// The engine draws the key itself, and draws again where the filter says *maybe*.
    InsertDrawn,
    Update,
    Delete,
}

/// What a large transaction does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LargeStep {
    Change(Verb, Key),
    /// What was placed since the last piece is logged as one.
    EndPiece,
    Savepoint,
    /// Back to the last savepoint, which stays.
    RollBack,
    /// The savepoint before the last is the last.
    Release,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Work {
    Single((Verb, Key)),
    Transaction(Vec<(Verb, Key)>),
    Large(Vec<LargeStep>),
}

/// One commit of a client, or a transaction that it gives up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    pub(super) work: Work,
    pub(super) commits: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Script {
    pub(super) durable: bool,
    pub(super) units: Vec<Unit>,
}

/// There is no free slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Full;
