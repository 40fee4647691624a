//! CREATE, ALTER and DROP TYPE of enumerated types: changes of a transaction, as those of tables.

use onrush::{Database, EnumType, Error, Table, TableChange, TableDefinition, Transaction};

use super::definition::{Touched, drop_table};
use super::foreign_key::{CASCADE, cascading};
use super::{Backend, view};
use crate::error::{Result, SqlError, state};
use crate::sql::{EnumChange, EnumPlan, bad_label, names_type};
use crate::{enum_types, schemas, views};

impl Backend {
    pub(super) fn change_enums(&mut self, plan: &EnumPlan) -> Result<()> {
        match plan {
            EnumPlan::Create { name, labels } => {
                let definition = TableDefinition::builder(name).labels(labels.clone()).build()?;
                self.define_own(Touched::NOTHING, |transaction| {
                    transaction.create_table(definition.clone()).map(|_| ()).map_err(exists)
                })
            }
            EnumPlan::Alter { name, change } => self.alter_enum(name, change),
            EnumPlan::Drop { names, missing, cascades } => {
                self.notices.extend(missing.iter().cloned());
                self.drop_enums(names, *cascades)
            }
        }
    }

    fn alter_enum(&mut self, name: &str, change: &EnumChange) -> Result<()> {
        let notice = self.define(Touched::NOTHING, |transaction| {
            let table = transaction.lock_table(name)?;
            let Some(labels) = table.definition().labels().cloned() else {
                return Err(Error::UnknownTable { name: name.to_owned() }.into());
            };
            let change = match change {
                EnumChange::Rename(to) => TableChange::Rename { to: to.clone() },
                EnumChange::AddLabel { label, place, if_not_exists } => {
                    let is_there = labels.iter().any(|(_, own)| own == label);
                    if *if_not_exists && is_there {
                        let message = format!("enum label \"{label}\" already exists, skipping");
                        let notice = SqlError::new(state::DUPLICATE_OBJECT, message).notice();
                        return Ok(Some(notice));
                    }
                    let labels = labels.with(label, place.borrowed()).map_err(bad_label)?;
                    TableChange::SetLabels(labels)
                }
                EnumChange::RenameLabel { from, to } => {
                    TableChange::SetLabels(labels.renamed(from, to).map_err(bad_label)?)
                }
            };
            let altered = transaction.alter_table(name, &[change]).map_err(exists)?;
            follow(transaction, &altered)?;
            Ok(None)
        })?;
        self.notices.extend(notice);
        Ok(())
    }

    fn drop_enums(&mut self, names: &[String], cascades: bool) -> Result<()> {
        let database = self.database.clone();
        let notices = self.define(Touched::ROLES, |transaction| {
            let mut notices = Vec::new();
            for name in names {
                let table = transaction.lock_table(name)?;
                free(&database, transaction, &table, cascades, &mut notices)?;
                drop_table(&database, transaction, name)?;
            }
            Ok(notices)
        })?;
        self.notices.extend(notices);
        Ok(())
    }
}

fn exists(error: Error) -> SqlError {
    match error {
        Error::TableExists { name } => {
            let message = format!("type \"{}\" already exists", schemas::own_name(&name));
            SqlError::new(state::DUPLICATE_OBJECT, message)
        }
        other => other.into(),
    }
}

/// Gives the columns of a type the labels and the name that it has now.
pub(super) fn follow(transaction: &mut Transaction<'_>, altered: &Table) -> Result<()> {
    let Some(of) = enum_types::of_table(altered) else { return Ok(()) };
    for (table, _) in enum_types::users(transaction, of.id()) {
        transaction.alter_table(table.name(), &[TableChange::SetLabelsOfColumns(of)])?;
    }
    Ok(())
}

/// Drops the columns and views that use a type which is to go; or refuses, unless it `cascades`.
fn free(
    database: &Database,
    transaction: &mut Transaction<'_>,
    of: &Table,
    cascades: bool,
    notices: &mut Vec<SqlError>,
) -> Result<()> {
    let own = schemas::own_name(of.name());
    let users = enum_types::users(transaction, of.id());
    let views = views_of(transaction, of.id());
    let mut told = Vec::new();
    for (table, columns) in
        users.iter().filter(|(table, _)| views::is_plain_table(table.definition()))
    {
        let definition = table.definition();
        told.extend(columns.iter().map(|column| {
            let column = &definition.columns()[*column].name;
            format!("column {column} of table {}", schemas::own_name(table.name()))
        }));
    }
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
    for (table, columns) in
        users.iter().filter(|(table, _)| views::is_plain_table(table.definition()))
    {
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
fn views_of(transaction: &Transaction<'_>, of: u32) -> Vec<Table> {
    let mut found = Vec::new();
    for definition in transaction.tables() {
        let Some(kept) = definition.any_view() else { continue };
        let is_of = |column: &onrush::ColumnDefinition| {
            enum_types::of_column(column.data_type).map(EnumType::id) == Some(of)
        };
        if names_type(&kept.query, of) || definition.columns().iter().any(is_of) {
            found.extend(transaction.table(definition.name()).ok());
        }
    }
    found
}
