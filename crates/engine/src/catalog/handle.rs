//! A table as a program knows it.

use std::sync::Arc;

use onrush_types::{Schema, TIE, TableDefinition, Value};

use super::TableEntry;
use crate::error::{Error, KeyInWords, Result};

/// A table of an open database. A handle: clones are the same table.
#[derive(Clone)]
pub struct Table {
    pub(crate) entry: Arc<TableEntry>,
    pub(crate) database_id: u128,
}

/// Handles are equal if they are of the same definition of the same table.
impl PartialEq for Table {
    fn eq(&self, other: &Table) -> bool {
        Arc::ptr_eq(&self.entry, &other.entry)
    }
}

impl Eq for Table {}

impl Table {
    /// The table's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.entry.name()
    }

    /// The number by which the engine knows the table, as long as it is there.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.entry.id
    }

    /// Whether this is the table as it is now: there, and not altered since the handle was got. One
    /// that is not refuses to write, and to read rows that are newer than itself.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.entry.is_current()
    }

    /// Whether an open transaction defines the table, or wants to, so that whoever writes to it has to wait.
    #[must_use]
    pub fn is_being_defined(&self) -> bool {
        self.entry.tree.is_stopped()
    }

    /// The table's definition.
    #[must_use]
    pub fn definition(&self) -> &TableDefinition {
        self.entry.schema.definition()
    }

    /// The compiled form that encodes and decodes rows.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.entry.schema
    }

    /// A handle of another database must not meet this one's leaves.
    #[inline]
    pub(crate) fn check_database(&self, database_id: u128) -> Result<()> {
        if self.database_id == database_id {
            return Ok(());
        }
        Err(Error::UnknownTable { name: self.name().to_owned() })
    }

    /// Column names to column numbers.
    pub(crate) fn resolve<'v>(
        &self,
        assignments: &[(&str, Value<'v>)],
    ) -> Result<Vec<(usize, Value<'v>)>> {
        let definition = self.definition();
        let resolve =
            |(name, value): &(&str, Value<'v>)| Ok((definition.column_index(name)?, value.clone()));
        assignments.iter().map(resolve).collect()
    }

    /// Whether rows can be written to it.
    #[inline]
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.entry.takes_rows { Ok(()) } else { Err(self.takes_no_rows()) }
    }

    /// Whether rows of it can be changed and deleted.
    pub(crate) fn check_changeable(&self) -> Result<()> {
        self.check_writable()?;
        if self.definition().appends_only() {
            return Err(Error::AppendsOnly { name: self.name().to_owned() });
        }
        Ok(())
    }

    #[cold]
    fn takes_no_rows(&self) -> Error {
        let name = self.name().to_owned();
        if self.entry.is_index() { Error::IsIndex { name } } else { Error::IsView { name } }
    }

    /// Another row has this key.
    #[cold]
    pub(crate) fn duplicate_key(&self, key: &[u8]) -> Error {
        Error::DuplicateKey {
            table: self.name().to_owned(),
            constraint: self.definition().key_name().map(Into::into),
            key: self.describe_key(key),
        }
    }

    /// A key in words, for messages: of the entries of an index the indexed columns.
    pub(crate) fn describe_key(&self, key: &[u8]) -> KeyInWords {
        let definition = self.definition();
        let Ok(values) = self.entry.schema.decode_key(key) else {
            return KeyInWords(vec![("bytes".to_owned(), format!("{key:02x?}"))]);
        };
        let name = |column: &usize| definition.columns()[*column].name.clone();
        let columns = definition.primary_key().iter().map(name);
        let entries = definition.entries_of().filter(|_| !definition.is_long_values());
        let indexed = entries.map_or(values.len(), |of| of.orders.len());
        let words = columns.zip(values.iter().map(ToString::to_string)).take(indexed);
        KeyInWords(words.filter(|(name, _)| name != TIE).collect())
    }
}
