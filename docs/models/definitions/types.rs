//! What the log and the directory hold, and what a client can ask for.

use std::collections::BTreeMap;

pub(super) type Lsn = u64;
pub(super) type TableId = u32;
pub(super) type Object = u32;
pub(super) type Name = u8;
pub(super) type Key = u32;

/// The system table of grants and comments, which is always there.
pub(super) const SYSTEM: TableId = 0;
/// Names that tables fight over.
pub(super) const NAMES: Name = 3;
/// Keys of rows.
pub(super) const KEYS: Key = 3;
/// LSNs of a log segment.
pub(super) const SEGMENT: Lsn = 4;
/// Leaves of an object; a key is in the leaf of its remainder.
pub(super) const LEAVES: usize = 2;
/// Grants and comments by name, where the fault is planted, have keys from here.
pub(super) const KEYS_BY_NAME: Key = 1_000;

/// A definition as the catalogue, the log and the directory hold it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Definition {
    pub(super) id: TableId,
    /// Which CREATE made it: the oracle's alone, since a number whose commit was lost may come again.
    pub(super) made_by: u32,
    pub(super) object: Object,
    pub(super) name: Name,
    pub(super) version: u16,
}

pub(super) type Definitions = BTreeMap<TableId, Definition>;

/// A row. Its number is unique, so that no two are taken for each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Value {
    pub(super) number: u32,
    /// Version of the definition that it was written with.
    pub(super) version: u16,
    /// Of a grant or comment: the table it was meant for, and the CREATE that made that.
    pub(super) about: (TableId, u32),
}

/// A definition entry of a commit record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entry {
    Create { definition: Definition, counter: u64 },
    Alter { from: Name, definition: Definition },
    Drop { id: TableId, name: Name },
    Truncate { id: TableId, object: Object },
}

/// What an entry means, for the oracle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    Create {
        id: TableId,
        made_by: u32,
        name: Name,
    },
    /// A new version, after a look at so many rows.
    Alter {
        id: TableId,
        rows_seen: usize,
    },
    Rename {
        id: TableId,
        name: Name,
    },
    Drop {
        id: TableId,
    },
    Truncate {
        id: TableId,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RowChange {
    pub(super) object: Object,
    pub(super) key: Key,
    pub(super) value: Option<Value>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Record {
    Commit { entries: Vec<Entry>, rows: Vec<RowChange> },
    Sequence { id: TableId, reserved: u64 },
}

/// Rows of an image or of a recovered object, with their LSNs.
pub(super) type Rows = BTreeMap<Key, (Value, Lsn)>;

/// What an installed superblock leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Directory {
    /// Redo begins here.
    pub(super) start: Lsn,
    /// E: the directory holds exactly the definitions below.
    pub(super) end: Lsn,
    pub(super) tables: BTreeMap<TableId, (Definition, u64)>,
    pub(super) images: BTreeMap<Object, Rows>,
    pub(super) next_id: u32,
}

/// One statement of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Statement {
    Create(Name),
    Drop(Name),
    Rename(Name, Name),
    Alter(Name),
    Truncate(Name),
    Insert(Name, Key),
    Delete(Name, Key),
    Generate(Name),
    /// GRANT (0) or COMMENT (1).
    Grant(Name, Key),
    Select(Name, Key),
    Savepoint,
    RollbackTo,
}

/// One transaction, or one statement by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    pub(super) statements: Vec<Statement>,
    pub(super) commits: bool,
}

/// What a client does, one unit after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Script {
    pub(super) durable: bool,
    pub(super) units: Vec<Unit>,
}

/// Why a statement or a commit was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    Deadlock,
    Exists,
    Unknown,
    Duplicate,
    Conflict,
    Failed,
}

/// Changes a list of definitions as an entry says.
pub(super) fn apply(definitions: &mut Definitions, entry: &Entry) {
    match *entry {
        Entry::Create { definition, .. } => {
            definitions.insert(definition.id, definition);
        }
        Entry::Alter { definition, .. } => {
            if let Some(known) = definitions.get_mut(&definition.id) {
                known.name = definition.name;
                known.version = definition.version;
            }
        }
        Entry::Drop { id, .. } => {
            definitions.remove(&id);
        }
        Entry::Truncate { id, object } => {
            if let Some(known) = definitions.get_mut(&id) {
                known.object = object;
            }
        }
    }
}
