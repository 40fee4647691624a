//! Enumerated and composite types: definitions of tables without rows that have labels, or whose columns are fields,
//! and columns of those types.
//!
//! Invariants
//! 1. A column of a type has the labels or the fields that the type has: both change in one transaction.
//! 2. A type is not dropped while a column is of it.

use onrush::{
    ColumnDefinition, CompositeType, DataType, EnumType, Error, Result, Table, TableChange,
    Transaction,
};
use onrush_query::ColumnType;

/// The type that a table of the engine's is; none if it is a domain, or something else.
pub(crate) fn of_table(table: &Table) -> Option<DataType> {
    let definition = table.definition();
    if definition.is_composite() {
        let field = |at: usize| {
            let column = &definition.columns()[at];
            (column.name.as_str().into(), column.data_type)
        };
        let fields = definition.shown_columns().map(field).collect();
        return Some(DataType::Composite(CompositeType::new(table.id(), table.name(), fields)));
    }
    let labels = definition.labels()?;
    Some(DataType::Enum(EnumType::new(table.id(), table.name(), labels)))
}

/// The number of the enumerated or composite type of a column.
pub(crate) fn number_of(data_type: DataType) -> Option<u32> {
    match data_type {
        DataType::Enum(of) => Some(of.id()),
        DataType::Composite(of) if !of.is_anonymous() => Some(of.id()),
        _ => None,
    }
}

/// The number of the enumerated or composite type of values, or of what arrays of them have.
pub(crate) fn number_of_values(column_type: ColumnType) -> Option<u32> {
    match column_type {
        ColumnType::Stored(data_type)
        | ColumnType::Array(data_type)
        | ColumnType::Vector(data_type) => number_of(data_type),
        ColumnType::Char => None,
    }
}

fn name_of(data_type: DataType) -> Option<&'static str> {
    match data_type {
        DataType::Enum(of) => Some(of.name()),
        DataType::Composite(of) if !of.is_anonymous() => Some(of.name()),
        _ => None,
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
    for data_type in columns.into_iter().map(|column| column.data_type) {
        let Some(name) = name_of(data_type) else { continue };
        let table = transaction.table(name)?;
        transaction.hold_table(&table)?;
        if of_table(&table) != Some(data_type) {
            return Err(Error::TableChanged { name: name.to_owned() });
        }
    }
    Ok(())
}

/// The tables, views and types with columns of a type, and the positions of those.
pub(crate) fn users(transaction: &Transaction<'_>, of: u32) -> Vec<(Table, Vec<usize>)> {
    let mut found = Vec::new();
    for definition in transaction.tables() {
        let is_of = |at: &usize| number_of(definition.columns()[*at].data_type) == Some(of);
        let columns: Vec<usize> = (0..definition.columns().len()).filter(is_of).collect();
        if !columns.is_empty()
            && let Ok(table) = transaction.table(definition.name())
        {
            found.push((table, columns));
        }
    }
    found
}

/// Gives the columns of a type what it is now, and those of composite types that have such fields what those are.
///
/// # Errors
/// Those of waiting for who uses a table.
pub(crate) fn follow(transaction: &mut Transaction<'_>, altered: &Table) -> Result<()> {
    let Some(data_type) = of_table(altered) else { return Ok(()) };
    let change = match data_type {
        DataType::Enum(of) => TableChange::SetLabelsOfColumns(of),
        DataType::Composite(of) => TableChange::SetCompositeOfColumns(of),
        _ => return Ok(()),
    };
    for (table, _) in users(transaction, altered.id()) {
        let user = transaction.alter_table(table.name(), std::slice::from_ref(&change))?;
        follow(transaction, &user)?;
    }
    Ok(())
}
