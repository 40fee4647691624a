//! Values that do not fit into a leaf with their row, as definitions know of them: they are kept in pieces, in a table
//! beside the one whose rows they are of.
//!
//! | column of that table | what it is |
//! |---|---|
//! | [`ID`] | names the value; a UUID of version 7, so that the pieces of a value lie together |
//! | [`NUMBER`] | which piece of it, from 0 on |
//! | [`PIECE`] | its bytes: [`PIECE_BYTES`], fewer of the last one alone |
//!
//! Like the entries of an index it is reached by its number alone, and names the table that it is of.

use super::{ColumnDefinition, EntriesOf, TableDefinition};
use crate::{DataType, TypeError};

/// The column that names a value.
pub const ID: &str = "id";
/// The column that counts its pieces.
pub const NUMBER: &str = "number";
/// The column of its bytes.
pub const PIECE: &str = "piece";

/// Rows whose columns of variable width take no more have no long values.
const SHORT_BYTES_MAX: usize = 2000;

/// Bytes of a piece: two fill a leaf.
pub const PIECE_BYTES: usize = 7900;

impl TableDefinition {
    /// The number of the table that keeps the long values of the rows; none where rows have none.
    #[must_use]
    pub fn long_values(&self) -> Option<u32> {
        self.long_values
    }

    /// The same definition with, or without, a table for its long values.
    #[must_use]
    pub fn with_long_values(mut self, table: Option<u32>) -> TableDefinition {
        self.long_values = table;
        self
    }

    /// Whether it keeps the long values of another table.
    #[must_use]
    pub fn is_long_values(&self) -> bool {
        // An index is ordered by one column at least.
        self.entries_of.as_ref().is_some_and(|of| of.orders.is_empty())
    }

    /// Whether a row may be larger than what is stored of it in one place.
    #[must_use]
    pub fn may_have_long_values(&self) -> bool {
        let most = |(at, column): (usize, &ColumnDefinition)| match column.data_type {
            _ if self.primary_key.contains(&at) => 0,
            DataType::Char(_) => 0,
            data_type => data_type.bytes_max(),
        };
        let most: usize = self.columns.iter().enumerate().map(most).fold(0, usize::saturating_add);
        self.is_table() && self.entries_of.is_none() && most > SHORT_BYTES_MAX
    }

    /// The definition of the table for the long values of this one, whose number that is.
    ///
    /// # Errors
    /// A name that is none.
    pub fn long_values_definition(
        &self,
        name: &str,
        table: u32,
    ) -> Result<TableDefinition, TypeError> {
        let builder = TableDefinition::builder(name)
            .column(ColumnDefinition::new(ID, DataType::Uuid).not_null())
            .column(ColumnDefinition::new(NUMBER, DataType::Int32).not_null())
            .column(ColumnDefinition::new(PIECE, DataType::Bytes).not_null())
            .primary_key([ID, NUMBER])
            .entries_of(EntriesOf { table, orders: Vec::new() });
        let builder = if self.is_logged() { builder } else { builder.unlogged() };
        builder.build()
    }
}

impl DataType {
    /// Most bytes of a value of variable width.
    fn bytes_max(self) -> usize {
        match self {
            // As tables that are there were made, whatever bytes a character takes: a text that takes more than that
            // stays in its row, which may be too long then.
            DataType::Varchar(length) => length as usize,
            DataType::Name => usize::from(crate::data_type::NAME_BYTES_MAX),
            DataType::Numeric(Some((precision, _))) => usize::from(precision),
            data_type => data_type.fixed_width_bytes().map_or(usize::MAX, |_| 0),
        }
    }
}
