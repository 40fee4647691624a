//! DROP of types of users, enumerated ones and domains, and of what uses them.

use onrush::{ColumnDefinition, Database, Table, TableChange, Transaction};

use super::definition::{Touched, drop_table};
use super::foreign_key::{CASCADE, cascading};
use super::{Backend, view};
use crate::error::{Result, SqlError, state};
use crate::sql::names_type;
use crate::{domains, own_types, schemas, views};

impl Backend {
    pub(super) fn drop_types(
        &mut self,
        names: &[String],
        missing: &[SqlError],
        cascades: bool,
    ) -> Result<()> {
        self.notices.extend(missing.iter().cloned());
        let database = self.database.clone();
        let notices = self.define(Touched::ROLES, |transaction| {
            let mut notices = Vec::new();
            for name in names {
                // It may be gone with another one.
                if cascades && transaction.table(name).is_err() {
                    continue;
                }
                let table = transaction.lock_table(name)?;
                drop_type(&database, transaction, &table, cascades, &mut notices)?;
            }
            Ok(notices)
        })?;
        self.notices.extend(notices);
        Ok(())
    }
}

/// Drops a type, and with `cascades` what uses it.
pub(super) fn drop_type(
    database: &Database,
    transaction: &mut Transaction<'_>,
    of: &Table,
    cascades: bool,
    notices: &mut Vec<SqlError>,
) -> Result<()> {
    free(database, transaction, of, cascades, notices)?;
    Ok(drop_table(database, transaction, of.name())?)
}

/// The tables, views and domains with columns of a type, and the positions of those.
fn users(transaction: &Transaction<'_>, of: &Table) -> Vec<(Table, Vec<usize>)> {
    match of.definition().domain() {
        Some(_) => domains::users(transaction, of.id()),
        None => {
            let mut users = own_types::users(transaction, of.id());
            // What is of a domain depends on that.
            for (table, columns) in &mut users {
                let of_domain = |at: &usize| table.definition().columns()[*at].domain.is_some();
                columns.retain(|at| !of_domain(at));
            }
            users.retain(|(_, columns)| !columns.is_empty());
            users
        }
    }
}

/// Drops the columns, domains and views that use a type which is to go; or refuses, unless it `cascades`.
fn free(
    database: &Database,
    transaction: &mut Transaction<'_>,
    of: &Table,
    cascades: bool,
    notices: &mut Vec<SqlError>,
) -> Result<()> {
    let own = schemas::own_name(of.name());
    let users = users(transaction, of);
    let views = views_of(transaction, of);
    let of_tables = || users.iter().filter(|(table, _)| views::is_plain_table(table.definition()));
    let of_composites = || users.iter().filter(|(table, _)| table.definition().is_composite());
    let of_domains = || users.iter().filter(|(table, _)| table.definition().domain().is_some());
    let mut told = Vec::new();
    for (table, columns) in of_tables() {
        let definition = table.definition();
        told.extend(columns.iter().map(|column| {
            let column = &definition.columns()[*column].name;
            format!("column {column} of table {}", schemas::own_name(table.name()))
        }));
    }
    for (table, columns) in of_composites() {
        let definition = table.definition();
        told.extend(columns.iter().map(|column| {
            let column = &definition.columns()[*column].name;
            format!("column {column} of composite type {}", schemas::own_name(table.name()))
        }));
    }
    told.extend(of_domains().map(|(domain, _)| views::named(domain)));
    told.extend(views.iter().map(views::named));
    if told.is_empty() {
        return Ok(());
    }
    if !cascades {
        let message = format!("cannot drop type {own} because other objects depend on it");
        let lines = told.iter().map(|thing| format!("{thing} depends on type {own}"));
        return Err(SqlError::new(state::DEPENDENT_OBJECTS, message)
            .with_detail(lines.collect::<Vec<_>>().join("\n"))
            .with_hint(CASCADE));
    }
    let told: Vec<String> = told.iter().map(|thing| format!("drop cascades to {thing}")).collect();
    notices.extend(cascading(&told));
    // What goes with those is not told one by one.
    let mut untold = Vec::new();
    for gone in &views {
        let names = [gone.name().to_owned()];
        if transaction.table(gone.name()).is_ok() {
            view::drop_dependents(database, transaction, &names, true, &mut untold)?;
            drop_table(database, transaction, gone.name())?;
        }
    }
    for (domain, _) in of_domains() {
        if transaction.table(domain.name()).is_ok() {
            drop_type(database, transaction, domain, true, &mut untold)?;
        }
    }
    if of_composites().next().is_some() {
        return Err(SqlError::not_supported(
            "dropping a field of a composite type with its type",
            "Drop the composite type first.",
        ));
    }
    for (table, columns) in of_tables() {
        for column in columns {
            let place = (table, *column);
            view::drop_dependents_of_column(database, transaction, place, true, &mut untold)?;
        }
        let name = |column: &usize| table.definition().columns()[*column].name.clone();
        let drop = |column| TableChange::DropColumn { name: name(column) };
        let changes: Vec<TableChange> = columns.iter().map(drop).collect();
        transaction.alter_table(table.name(), &changes)?;
    }
    Ok(())
}

/// The views that name a type, or have a column of it.
fn views_of(transaction: &Transaction<'_>, of: &Table) -> Vec<Table> {
    let mut found = Vec::new();
    for definition in transaction.tables() {
        let Some(kept) = definition.any_view() else { continue };
        let is_of =
            |column: &ColumnDefinition| own_types::number_of(column.data_type) == Some(of.id());
        if names_type(&kept.query, of.id()) || definition.columns().iter().any(is_of) {
            found.extend(transaction.table(definition.name()).ok());
        }
    }
    found
}
