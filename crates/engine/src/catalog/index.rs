//! The indexes of a table as those use them who write its rows: what the entry of a row is, and where it goes.
//!
//! An index's entries are a table of their own, so that pages, log, checkpoints, recovery, snapshots and checks know
//! them as they know any other. How an entry is made of a row: [`IndexDefinition`].
//!
//! Invariants
//! 1. A change of a row and the changes of its entries are one commit, and so one log record.
//! 2. Whoever defines an index, or what its entries are of, has locked the table. So who may write a row of the
//!    table's newest version may write its entries.

use std::sync::Arc;

use onrush_types::expression::PreparedExpression;
use onrush_types::{
    DeferrableUnique, EncodedRow, EntrySource, IndexDefinition, Schema, Uniqueness, Value,
};

use super::TableEntry;
use crate::constraint::failed;
use crate::error::{Error, Result};

/// See the module.
pub(crate) struct Index {
    pub(crate) entries: Arc<TableEntry>,
    uniqueness: Uniqueness,
    deferrable: Option<DeferrableUnique>,
    /// How many columns are indexed.
    columns: usize,
    /// Where each column of an entry comes from.
    sources: Box<[EntrySource]>,
    expressions: Box<[PreparedExpression]>,
    /// The key of an entry ends with the key of the row as it is, from this column of it on.
    row_key_at: Option<usize>,
    /// Which rows have entries; none: all.
    predicate: Option<PreparedExpression>,
    /// Whether rows may still lack their entries.
    is_building: bool,
}

impl Index {
    pub(crate) fn new(
        schema: &Schema,
        definition: &IndexDefinition,
        entries: Arc<TableEntry>,
    ) -> Result<Index> {
        let table = schema.definition();
        let sources: Box<[EntrySource]> = definition.sources(table)?.into();
        let (uniqueness, columns) = (definition.uniqueness, definition.columns.len());
        let row_key = table.primary_key().iter().map(|column| EntrySource::Column(*column));
        let entry_key = sources.get(columns..entries.schema.definition().primary_key().len());
        let ends_with_row_key = entry_key.is_some_and(|end| row_key.eq(end.iter().copied()));
        let row_key_at = ends_with_row_key.then_some(columns);
        let mut expressions = Vec::with_capacity(definition.expressions.len());
        for indexed in &definition.expressions {
            let form = &indexed.of.form;
            expressions.push(PreparedExpression::assigned(table, form, indexed.data_type)?);
        }
        let predicate = definition.predicate.as_ref();
        let predicate = predicate.map(|of| PreparedExpression::new(table, &of.form)).transpose()?;
        let expressions = expressions.into();
        let is_building = definition.is_building;
        Ok(Index {
            entries,
            uniqueness,
            deferrable: definition.deferrable,
            columns,
            sources,
            expressions,
            row_key_at,
            predicate,
            is_building,
        })
    }

    /// Whether an entry with the same key may be another row's.
    pub(crate) fn is_unique(&self) -> bool {
        self.uniqueness != Uniqueness::NotUnique
    }

    /// Whether rows may have the same indexed columns only for a while.
    pub(crate) fn deferrable(&self) -> Option<DeferrableUnique> {
        self.deferrable
    }

    /// The part of an entry's key that has the indexed columns, where no other row may have them when all is done; none
    /// where one is NULL that differs from NULL, and where the index is not of a deferrable constraint.
    pub(crate) fn key_in_the_end(&self, entry: &EncodedRow) -> Result<Option<Vec<u8>>> {
        let Some(deferrable) = self.deferrable else { return Ok(None) };
        let mut values = self.entries.schema.decode_key(&entry.key)?;
        values.truncate(self.columns);
        if !deferrable.nulls_equal && values.iter().any(Value::is_null) {
            return Ok(None);
        }
        let mut prefix = Vec::new();
        self.entries.schema.encode_key_prefix(&values, &mut prefix)?;
        Ok(Some(prefix))
    }

    /// Whether rows may still lack their entries: nobody finds rows by it.
    pub(crate) fn is_building(&self) -> bool {
        self.is_building
    }

    /// The primary key of the row that an entry is of.
    pub(crate) fn row_key(
        &self,
        schema: &Schema,
        (key, entry): (&[u8], &[u8]),
    ) -> Result<Vec<Value<'static>>> {
        let entry = self.entries.schema.decode_row(key, entry)?;
        let value = |column: &usize| {
            let at = self.sources.iter().position(|source| *source == EntrySource::Column(*column));
            let value = at.and_then(|at| entry.get(at).cloned());
            value.ok_or_else(|| Error::Internal("an entry lacks a part of the key".into()))
        };
        schema.definition().primary_key().iter().map(value).collect()
    }

    /// Makes the entry of a row of the table. False for a row that has none, as it does not meet the predicate.
    pub(crate) fn encode(
        &self,
        schema: &Schema,
        (key, row): (&[u8], &[u8]),
        out: &mut EncodedRow,
    ) -> Result<bool> {
        let row = schema.view(key, row)?;
        if let Some(predicate) = &self.predicate
            && !predicate.is_true(&row).map_err(failed)?
        {
            return Ok(false);
        }
        // The indexed columns come first in the key, and so before the tie.
        let mut some_null = false;
        let value = |column: usize| -> Result<Value<'_>> {
            let value = match self.sources[column] {
                EntrySource::Column(column) => row.column(column)?,
                EntrySource::Expression(at) => self.expressions[at].value(&row).map_err(failed)?,
                EntrySource::Tie if some_null => Value::Bytes(key.into()),
                EntrySource::Tie => Value::Null,
            };
            some_null |= column < self.columns && value.is_null();
            Ok(value)
        };
        let entries = &self.entries.schema;
        let key_end = match self.row_key_at {
            Some(at) => (at, key),
            None => (entries.definition().primary_key().len(), &[][..]),
        };
        entries.encode_columns(value, key_end, out)?;
        Ok(true)
    }
}

impl TableEntry {
    /// Whether its rows are the entries of an index.
    #[inline]
    pub(crate) fn is_index(&self) -> bool {
        self.schema.definition().entries_of().is_some()
    }

    /// Whether its rows are the entries of an index of this table.
    pub(crate) fn is_index_of(&self, table: u32) -> bool {
        self.schema.definition().entries_of().is_some_and(|of| of.table == table)
    }

    /// Whether its rows have entries in indexes.
    #[inline]
    pub(crate) fn is_indexed(&self) -> bool {
        self.is_indexed
    }

    /// The indexes of the table, whose entries are found by their numbers when they are first asked for.
    ///
    /// # Errors
    /// One is gone: the table was altered since.
    pub(crate) fn indexes(
        &self,
        find: impl Fn(u32) -> Option<Arc<TableEntry>>,
    ) -> Result<&[Index]> {
        if !self.is_indexed {
            return Ok(&[]);
        }
        if let Some(indexes) = self.indexes.get() {
            return Ok(indexes);
        }
        let changed = || Error::TableChanged { name: self.name().to_owned() };
        let index = |definition: &IndexDefinition| {
            let entries = find(definition.entries).ok_or_else(changed)?;
            Index::new(&self.schema, definition, entries)
        };
        let definitions = self.schema.definition().indexes();
        let indexes = definitions.iter().map(index).collect::<Result<Box<[Index]>>>()?;
        Ok(self.indexes.get_or_init(|| indexes))
    }
}
