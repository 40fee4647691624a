//! A foreign key with the tables on its sides: the rows that reference a key, and what is told of it.

use std::ops::Bound;
use std::sync::Arc;

use onrush_types::{ForeignKey, TypeError, Value};

use super::ScanOptions;
use super::entries::RowBytes;
use super::snapshot::Snapshot;
use crate::catalog::{Reference, ReferenceLocks, Referenced, Search, Table};
use crate::error::{Error, KeyInWords, Result};

/// A foreign key, with all that is needed to look at it.
pub(super) struct Side {
    pub(super) child: Table,
    pub(super) parent: Table,
    /// The foreign key's.
    pub(super) name: Arc<str>,
    pub(super) foreign_key: ForeignKey,
    pub(super) reference: Reference,
}

/// The foreign keys of tables that a session has written to, as long as no table changes.
#[derive(Default)]
pub(super) struct KnownSides {
    /// Of the list of tables.
    version: u64,
    tables: Vec<(u32, Arc<[Arc<Side>]>)>,
}

/// The foreign keys of more tables are made again each time.
const TABLES_KNOWN_MAX: usize = 64;

impl KnownSides {
    /// Those of a table at a version of the list of tables; all of another version are forgotten.
    pub(super) fn of(&mut self, version: u64, table: u32) -> Option<Arc<[Arc<Side>]>> {
        if self.version != version {
            *self = KnownSides { version, tables: Vec::new() };
        }
        let known = self.tables.iter().find(|(known, _)| *known == table);
        known.map(|(_, sides)| Arc::clone(sides))
    }

    /// To be called behind [`of`](Self::of), with what was seen since.
    pub(super) fn keep(&mut self, table: u32, sides: Arc<[Arc<Side>]>) {
        if self.tables.len() < TABLES_KNOWN_MAX {
            self.tables.push((table, sides));
        }
    }
}

/// Keys of the rows that reference a key.
pub(super) fn referencing_rows(
    snapshot: &Snapshot,
    side: &Side,
    key: &[u8],
    limit: Option<u64>,
) -> Result<Vec<Vec<u8>>> {
    let table = &side.child;
    let definition = table.definition();
    let Some(values) = side.reference.values_of(definition, key)? else { return Ok(Vec::new()) };
    let positions: Vec<usize> = values.iter().map(|(position, _)| *position).collect();
    let value_of = |column: usize| {
        let found = values.iter().find(|(position, _)| *position == column);
        found.map_or(Value::Null, |(_, value)| value.clone())
    };
    let within = |values: Vec<Value<'static>>| ScanOptions {
        from: Bound::Included(values.clone()),
        to: Bound::Included(values),
        limit,
        ..ScanOptions::default()
    };
    let mut rows = Vec::new();
    match Search::by(definition, &positions) {
        Search::PrimaryKey => {
            let columns = definition.primary_key().iter().take(positions.len());
            let bounds = within(columns.map(|column| value_of(*column)).collect());
            snapshot.scan(table, &bounds)?.visit_raw(|key, _| rows.push(key.to_vec()))?;
        }
        Search::Index(position, index) => {
            let entries = snapshot.index_entries(table, position)?;
            let columns = index.column_numbers().unwrap_or_default();
            let columns = columns.into_iter().take(positions.len());
            let column = |number: u16| definition.column_with_number(number).unwrap_or(usize::MAX);
            let values = columns.map(|number| value_of(column(number))).collect();
            let mut keys = Vec::new();
            let found = snapshot.scan(&entries, &within(values))?;
            let indexes = table.entry.indexes(|_| None)?;
            found.visit_raw(|key, entry| {
                keys.push(indexes[position].row_key(table.schema(), (key, entry)));
            })?;
            for key in keys {
                let mut bytes = Vec::new();
                table.schema().encode_key(&key?, &mut bytes)?;
                rows.push(bytes);
            }
        }
        Search::AllRows => {
            let mut failed = None;
            let mut look = |row: RowBytes<'_>| match side.reference.of_row(table.schema(), row) {
                Ok(Referenced::Key(Some(own))) if own == key => rows.push(row.0.to_vec()),
                Ok(_) => {}
                Err(error) => failed = Some(error),
            };
            let all = snapshot.scan(table, &ScanOptions::default())?;
            all.visit_raw(|key, row| look((key, row)))?;
            failed.map_or(Ok(()), Err)?;
        }
    }
    Ok(rows)
}

impl Side {
    /// Whether `table` is referenced.
    pub(super) fn is_to(&self, table: &Table) -> bool {
        self.parent.id() == table.id()
    }

    /// The lock of a referenced key.
    pub(super) fn stripe(&self, key: &[u8]) -> usize {
        ReferenceLocks::stripe(self.reference.keys.id, key)
    }

    /// The referencing columns of a row and their values.
    pub(super) fn key_of_row(&self, key: &[u8], row: &[u8]) -> Option<KeyInWords> {
        let row = self.child.schema().decode_row(key, row).ok()?;
        let columns = self.child.definition().columns();
        let positions = self.foreign_key.positions(self.child.definition()).ok()?;
        let word = |position: usize| (columns[position].name.clone(), row[position].to_string());
        Some(KeyInWords(positions.into_iter().map(word).collect()))
    }

    #[cold]
    pub(super) fn still_referenced(&self, key: &[u8]) -> Error {
        Error::StillReferenced {
            table: self.parent.name().into(),
            constraint: self.foreign_key.name.as_str().into(),
            key: self.describe(key),
            referencing: self.child.name().into(),
        }
    }

    /// The referencing columns cannot take the new key.
    #[cold]
    pub(super) fn cannot_hold(&self, key: &[u8]) -> Error {
        let positions = self.foreign_key.positions(self.child.definition()).unwrap_or_default();
        let column = positions.first().copied().unwrap_or_default();
        let reason = format!("the new key {} of the referenced row", self.describe(key));
        Error::Type(TypeError::OutOfRange {
            column: self.child.definition().column_name(column),
            data_type: self.child.definition().columns()[column].data_type,
            reason: reason.into(),
        })
    }

    /// A referenced key in words.
    fn describe(&self, key: &[u8]) -> KeyInWords {
        let keys = Arc::clone(&self.reference.keys);
        Table { entry: keys, ..self.parent }.describe_key(key)
    }

    #[cold]
    pub(super) fn mixed(&self) -> Error {
        Error::ReferenceMixed {
            table: self.child.name().into(),
            constraint: self.foreign_key.name.as_str().into(),
        }
    }
}
