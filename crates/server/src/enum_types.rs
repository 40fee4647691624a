//! Enumerated types: definitions of tables without rows that have labels, and columns of those types.
//!
//! Invariants
//! 1. A column of a type has the labels that the type has: both change in one transaction.
//! 2. A type is not dropped while a column is of it.

use onrush::{ColumnDefinition, DataType, EnumType, Error, Result, Table, Transaction};
use onrush_query::ColumnType;

/// The type that a table of the engine's is; none if it is something else.
pub(crate) fn of_table(table: &Table) -> Option<EnumType> {
    let labels = table.definition().labels()?;
    Some(EnumType::new(table.id(), table.name(), labels))
}

/// The enumerated type of a column.
pub(crate) fn of_column(data_type: DataType) -> Option<EnumType> {
    match data_type {
        DataType::Enum(of) => Some(of),
        _ => None,
    }
}

/// The enumerated type of values, or of what arrays of them have.
pub(crate) fn of_values(column_type: ColumnType) -> Option<EnumType> {
    match column_type {
        ColumnType::Stored(data_type)
        | ColumnType::Array(data_type)
        | ColumnType::Vector(data_type) => of_column(data_type),
        ColumnType::Char => None,
    }
}

/// Keeps the types of columns as they are until the transaction ends.
///
/// # Errors
/// [`TableChanged`](Error::TableChanged) where a type is another one by now; those of waiting for it.
pub(crate) fn hold<'c>(
    transaction: &mut Transaction<'_>,
    columns: impl IntoIterator<Item = &'c ColumnDefinition>,
) -> Result<()> {
    for of in columns.into_iter().filter_map(|column| of_column(column.data_type)) {
        let table = transaction.table(of.name())?;
        transaction.hold_table(&table)?;
        if of_table(&table) != Some(of) {
            return Err(Error::TableChanged { name: of.name().to_owned() });
        }
    }
    Ok(())
}

/// The tables and views with columns of a type, and the positions of those.
pub(crate) fn users(transaction: &Transaction<'_>, of: u32) -> Vec<(Table, Vec<usize>)> {
    let mut found = Vec::new();
    for definition in transaction.tables() {
        let is_of = |at: &usize| {
            of_column(definition.columns()[*at].data_type).is_some_and(|own| own.id() == of)
        };
        let columns: Vec<usize> = (0..definition.columns().len()).filter(is_of).collect();
        if !columns.is_empty()
            && let Ok(table) = transaction.table(definition.name())
        {
            found.push((table, columns));
        }
    }
    found
}
