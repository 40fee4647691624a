//! Foreign keys as those use them who write rows: the key that a row references, and the rows that reference a key.

use std::sync::Arc;

use onrush_types::{
    DataType, EncodedRow, ForeignKey, IndexDefinition, ReferencedKey, Schema, TableDefinition,
    TypeError, Uniqueness, Value, has_more_characters,
};

use super::{Index, TableEntry};
use crate::error::{Error, Result};

/// One foreign key, and the tree that has the keys which it references: the referenced table, or the entries of a
/// unique index of it.
pub(crate) struct Reference {
    pub(crate) keys: Arc<TableEntry>,
    /// Positions of the referencing columns, in the order of the referenced key.
    columns: Vec<usize>,
    /// Of the entries of a unique index: the index.
    index: Option<Index>,
    /// Whether the key ends with the tie of a unique index.
    has_tie: bool,
    is_match_full: bool,
}

/// What a row references.
pub(crate) enum Referenced {
    /// Nothing: a column is NULL.
    Nothing,
    /// Some columns are NULL and some are not, where all must be or none.
    Mixed,
    /// A key of the referenced tree. None where no row can have it.
    Key(Option<Vec<u8>>),
}

impl Reference {
    /// A foreign key of `table` to the table `referenced`, whose entries of indexes `find` knows.
    pub(crate) fn new(
        table: &TableDefinition,
        foreign_key: &ForeignKey,
        referenced: &Arc<TableEntry>,
        find: impl Fn(u32) -> Option<Arc<TableEntry>>,
    ) -> Result<Reference> {
        let definition = referenced.schema.definition();
        let changed = || Error::TableChanged { name: referenced.name().to_owned() };
        let key = foreign_key.referenced_key(definition).ok_or_else(changed)?;
        let (keys, index, has_tie) = match key {
            ReferencedKey::Primary => (Arc::clone(referenced), None, false),
            ReferencedKey::Unique(index) => {
                let entries = find(index.entries).ok_or_else(changed)?;
                let has_tie = index.uniqueness == Uniqueness::NullsDistinct;
                let index = Index::new(&referenced.schema, index, Arc::clone(&entries))?;
                (entries, Some(index), has_tie)
            }
        };
        let positions = foreign_key.positions(table)?;
        let order = foreign_key.in_key_order(definition, key)?;
        let columns = order.iter().map(|at| positions[*at]).collect();
        Ok(Reference { keys, columns, index, has_tie, is_match_full: foreign_key.is_match_full })
    }

    /// What a row of the referencing table references.
    pub(crate) fn of_row(&self, schema: &Schema, (key, row): (&[u8], &[u8])) -> Result<Referenced> {
        let row = schema.view(key, row)?;
        let column = |column: &usize| row.column(*column);
        let mut values =
            self.columns.iter().map(column).collect::<std::result::Result<Vec<_>, _>>()?;
        match values.iter().filter(|value| value.is_null()).count() {
            0 => {}
            nulls if self.is_match_full && nulls < values.len() => return Ok(Referenced::Mixed),
            _ => return Ok(Referenced::Nothing),
        }
        let keys = self.keys.schema.definition();
        for (value, key) in values.iter_mut().zip(keys.primary_key()) {
            let data_type = keys.columns()[*key].data_type;
            // A text that is too long for the referenced column, also by blanks alone, which a row would lose.
            if let (Value::Text(text), DataType::Varchar(limit)) = (&*value, data_type)
                && has_more_characters(text, limit)
            {
                return Ok(Referenced::Key(None));
            }
            match as_integer(value, data_type) {
                Some(fitting) => *value = fitting,
                None => return Ok(Referenced::Key(None)),
            }
        }
        if self.has_tie {
            values.push(Value::Null);
        }
        let mut bytes = Vec::new();
        match self.keys.schema.encode_key(&values, &mut bytes) {
            Ok(()) => Ok(Referenced::Key(Some(bytes))),
            Err(TypeError::OutOfRange { .. } | TypeError::KeyTooLarge { .. }) => {
                Ok(Referenced::Key(None))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The key by which a row of the referenced table is referenced; none where a column of it is NULL.
    pub(crate) fn key_of(
        &self,
        referenced: &Schema,
        row: (&[u8], &[u8]),
    ) -> Result<Option<Vec<u8>>> {
        let Some(index) = &self.index else { return Ok(Some(row.0.to_vec())) };
        let mut entry = EncodedRow::new();
        index.encode(referenced, row, &mut entry)?;
        let values = self.keys.schema.decode_key(&entry.key)?;
        let is_null = values.iter().take(self.columns.len()).any(Value::is_null);
        Ok((!is_null).then_some(entry.key))
    }

    /// The referencing columns of `table` and the values that a referenced key has for them. None if one of the
    /// columns cannot hold its value, so that no row references the key.
    pub(crate) fn values_of(&self, table: &TableDefinition, key: &[u8]) -> Result<Option<Values>> {
        let values = self.keys.schema.decode_key(key)?;
        let fitting = |(column, value): (&usize, Value<'static>)| {
            let value = as_integer(&value, table.columns()[*column].data_type)?;
            Some((*column, value))
        };
        Ok(self.columns.iter().zip(values).map(fitting).collect())
    }
}

/// Positions of columns, and their values.
pub(crate) type Values = Vec<(usize, Value<'static>)>;

/// The same number as an integer of another width, if it fits; any other value as it is.
fn as_integer<'v>(value: &Value<'v>, data_type: DataType) -> Option<Value<'v>> {
    let (Value::Int16(_) | Value::Int32(_) | Value::Int64(_)) = value else {
        return Some(value.clone());
    };
    let number = value.as_i64()?;
    match data_type {
        DataType::Int16 => i16::try_from(number).ok().map(Value::Int16),
        DataType::Int32 => i32::try_from(number).ok().map(Value::Int32),
        _ => Some(Value::Int64(number)),
    }
}

/// How the rows that reference a key are found.
pub(crate) enum Search<'d> {
    /// In an index whose first columns are the referencing ones; its position, and their order in it.
    Index(usize, &'d IndexDefinition),
    /// By the first columns of the primary key.
    PrimaryKey,
    /// By reading all rows.
    AllRows,
}

impl Search<'_> {
    /// The way to the rows of `table` whose columns at `positions` have given values.
    pub(crate) fn by<'d>(table: &'d TableDefinition, positions: &[usize]) -> Search<'d> {
        let count = positions.len();
        let begins = |columns: &mut dyn Iterator<Item = usize>| {
            let first: Vec<usize> = columns.take(count).collect();
            first.len() == count && first.iter().all(|column| positions.contains(column))
        };
        if begins(&mut table.primary_key().iter().copied()) {
            return Search::PrimaryKey;
        }
        let is_fitting = |index: &&IndexDefinition| {
            let numbers = index.column_numbers().filter(|_| index.is_plain() && !index.is_building);
            let numbers = numbers.unwrap_or_default();
            begins(&mut numbers.into_iter().filter_map(|number| table.column_with_number(number)))
        };
        let found = table.indexes().iter().enumerate().find(|(_, index)| is_fitting(index));
        found.map_or(Search::AllRows, |(position, index)| Search::Index(position, index))
    }
}

impl TableEntry {
    /// Whether its rows reference others.
    #[inline]
    pub(crate) fn has_foreign_keys(&self) -> bool {
        self.has_foreign_keys
    }

    /// Whether the commit looks once more at a row that comes.
    #[inline]
    pub(crate) fn has_late_looks(&self) -> bool {
        self.has_late_looks
    }

    /// Whether a row that comes has something beside it to look after: entries, or a row that it references.
    #[inline]
    pub(crate) fn is_more_than_rows(&self) -> bool {
        self.is_indexed || self.has_foreign_keys
    }

    /// Whether a row that changes or goes has something beside it to look after: entries, or references.
    #[inline]
    pub(crate) fn is_linked(&self) -> bool {
        self.is_linked
    }
}
