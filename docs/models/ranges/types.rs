//! What rows, records and scripts are.

use std::collections::BTreeMap;

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

/// A record of the log: one commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record(pub(super) Vec<Change>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verb {
    Insert,
    /// The engine draws the key itself, and draws again where the filter says *maybe*.
    InsertDrawn,
    Update,
    Delete,
}

/// One commit of a client, or a transaction that it gives up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    pub(super) changes: Vec<(Verb, Key)>,
    pub(super) is_transaction: bool,
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
