//! Views as they are kept: definitions of tables with a query in the place of rows, or beside them; and what depends on
//! what.
//!
//! Invariants
//! 1. A view names its sources by number, so it stays what it is when they get other names.
//! 2. What a view uses is not dropped without it, nor does it become of another type.

use onrush::{
    ColumnDefinition, DataType, Table, TableChange, TableDefinition, Transaction, ViewColumnKind,
    ViewDefinition, ViewRows,
};
use onrush_query::ColumnType;

use crate::error::Result;
use crate::schemas;

/// A view that is in the way, and what of that which is to go it depends on.
pub(crate) struct Dependent {
    pub(crate) view: Table,
    pub(crate) on: String,
}

impl Dependent {
    /// As it is told.
    pub(crate) fn told(&self) -> String {
        format!("{} depends on {}", named(&self.view), self.on)
    }
}

/// What a table is called in messages.
pub(crate) fn kind(table: &TableDefinition) -> &'static str {
    match (table.sequence(), table.any_view()) {
        _ if table.is_type() => "type",
        (Some(_), _) => "sequence",
        (_, Some(view)) if view.rows == ViewRows::None => "view",
        (_, Some(_)) => "materialized view",
        _ => "table",
    }
}

/// Whether a table is nothing else beside.
pub(crate) fn is_plain_table(table: &TableDefinition) -> bool {
    table.is_table() && table.materialized_view().is_none()
}

/// What a table is, and its name.
pub(crate) fn named(table: &Table) -> String {
    format!("{} {}", kind(table.definition()), schemas::own_name(table.name()))
}

/// The column of a view as a column of a table, and what it is beside.
pub(crate) fn column(
    name: &str,
    column_type: ColumnType,
) -> (ColumnDefinition, Option<ViewColumnKind>) {
    let (data_type, kind) = match column_type {
        ColumnType::Stored(data_type) => (data_type, None),
        ColumnType::Char => (DataType::Text, Some(ViewColumnKind::Char)),
        ColumnType::Array(element) => (element, Some(ViewColumnKind::Array)),
        ColumnType::Vector(element) => (element, Some(ViewColumnKind::Vector)),
    };
    (ColumnDefinition::new(name, data_type), kind)
}

/// The type of a column, of a view or not.
pub(crate) fn column_type(table: &TableDefinition, column: usize) -> ColumnType {
    let data_type = table.columns()[column].data_type;
    let number = table.column_number(column);
    let kinds = table.view().map_or(&[][..], |view| &view.kinds);
    match kinds.iter().find(|(own, _)| usize::from(*own) == number).map(|(_, kind)| kind) {
        None => data_type.into(),
        Some(ViewColumnKind::Oid) => ColumnType::Stored(DataType::Oid),
        Some(ViewColumnKind::Name) => ColumnType::Stored(DataType::Name),
        Some(ViewColumnKind::Char) => ColumnType::Char,
        Some(ViewColumnKind::Interval) => ColumnType::Stored(DataType::Interval),
        Some(ViewColumnKind::Array) => ColumnType::Array(data_type),
        Some(ViewColumnKind::Vector) => ColumnType::Vector(data_type),
    }
}

fn all(transaction: &Transaction<'_>) -> Vec<Table> {
    let definitions = transaction.tables();
    let views = definitions.iter().filter(|definition| definition.any_view().is_some());
    // One that was dropped just now is left out.
    views.filter_map(|definition| transaction.table(definition.name()).ok()).collect()
}

/// The views that use a table, or one of its columns by number, and those that use them, each behind what it uses.
/// Those of `going`, by number, go anyway.
pub(crate) fn dependents(
    transaction: &Transaction<'_>,
    table: &Table,
    column: Option<(u16, &str)>,
    going: &[u32],
) -> Vec<Dependent> {
    let on = match column {
        Some((_, name)) => format!("column {name} of {}", named(table)),
        None => named(table),
    };
    let views = all(transaction);
    let mut found = Vec::new();
    collect(&views, (table.id(), column.map(|(number, _)| number)), &on, going, &mut found);
    found
}

fn collect(
    views: &[Table],
    (table, column): (u32, Option<u16>),
    on: &str,
    going: &[u32],
    found: &mut Vec<Dependent>,
) {
    for view in views {
        let uses = view.definition().any_view().is_some_and(|own| own.uses(table, column));
        let is_known = found.iter().any(|known| known.view.id() == view.id());
        if uses && !is_known && !going.contains(&view.id()) {
            found.push(Dependent { view: view.clone(), on: on.to_owned() });
            collect(views, (view.id(), None), &named(view), going, found);
        }
    }
}

/// The rows of a table go into another one: views read that.
pub(crate) fn move_table(
    transaction: &mut Transaction<'_>,
    (from, to): (&Table, &Table),
) -> Result<()> {
    let (old, new) = (from.definition(), to.definition());
    let moved = |number: &u16| {
        let is_it = |at: &usize| old.column_number(*at) == usize::from(*number);
        let name = (0..old.columns().len()).find(is_it).map(|at| &old.columns()[at].name)?;
        u16::try_from(new.column_number(new.column_index(name).ok()?)).ok()
    };
    for view in all(transaction) {
        let Some(own) = view.definition().any_view().filter(|own| own.uses(from.id(), None)) else {
            continue;
        };
        let mut sources = own.sources.clone();
        for source in sources.iter_mut().filter(|source| source.table == from.id()) {
            source.table = to.id();
            // A column that is gone keeps its place, with a number that none has.
            let numbers = source.columns.iter().map(|number| moved(number).unwrap_or(u16::MAX));
            source.columns = numbers.collect();
            source.used = source.used.iter().filter_map(moved).collect();
        }
        let change = TableChange::SetView(ViewDefinition { sources, ..own.clone() });
        transaction.alter_table(view.name(), &[change])?;
    }
    Ok(())
}
