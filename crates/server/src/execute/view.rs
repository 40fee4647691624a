//! CREATE, ALTER and DROP VIEW: changes of a transaction, as those of tables.

use onrush::{
    Database, Error, Table, TableBuilder, TableChange, TableDefinition, Transaction,
    ViewDefinition, ViewRows,
};

use super::Backend;
use super::definition::{Touched, drop_table, skipped};
use super::foreign_key::{CASCADE, cascading};
use crate::error::{Result, SqlError, state};
use crate::sql::{NewView, ViewPlan, is_no_view, view_kind};
use crate::{schemas, values, views};

impl Backend {
    pub(super) fn change_views(&mut self, plan: &ViewPlan) -> Result<()> {
        match plan {
            ViewPlan::Create(view) => self.create_view(view),
            ViewPlan::Alter { plan, .. } => self.alter_table(plan),
            ViewPlan::Drop { names, if_exists, cascades, is_materialized } => {
                self.drop_views(names, (*if_exists, *cascades), *is_materialized)
            }
        }
    }

    fn create_view(&mut self, view: &NewView) -> Result<()> {
        let name = &view.name;
        let made = self.define_own(Touched::NOTHING, |transaction| {
            for table in &view.tables {
                transaction.hold_table(table)?;
            }
            match transaction.table(name) {
                Ok(known) if view.or_replace => replace(transaction, &known, view)?,
                _ => return Ok(Some(transaction.create_table(definition(view)?)?.id())),
            }
            Ok(None)
        })?;
        if made.is_some() {
            self.note_made(made, name, None);
        }
        if view.is_temporary && !view.is_said_to_be {
            let message = format!("view \"{}\" will be a temporary view", schemas::own_name(name));
            self.notices.push(SqlError::new(state::SUCCESSFUL, message).notice());
        }
        Ok(())
    }

    fn drop_views(
        &mut self,
        names: &[String],
        (if_exists, cascades): (bool, bool),
        is_materialized: bool,
    ) -> Result<()> {
        let kind = view_kind(is_materialized);
        let database = self.database.clone();
        let notices = self.define(Touched::ROLES, |transaction| {
            let mut notices = Vec::new();
            let mut there = Vec::new();
            for name in names {
                match transaction.table(name) {
                    Ok(known) => {
                        if views::kind(known.definition()) != kind {
                            return Err(
                                is_no_view(name, is_materialized).with_hint(way_to_drop(&known))
                            );
                        }
                        there.push(name.clone());
                    }
                    Err(Error::UnknownTable { .. }) if if_exists => {
                        notices.push(skipped(kind, schemas::own_name(name)));
                    }
                    Err(Error::UnknownTable { .. }) => {
                        let name = schemas::own_name(name);
                        let message = format!("{kind} \"{name}\" does not exist");
                        return Err(SqlError::new(state::UNDEFINED_TABLE, message));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            drop_dependents(&database, transaction, &there, cascades, &mut notices)?;
            for name in &there {
                drop_table(&database, transaction, name)?;
            }
            Ok(notices)
        })?;
        self.notices.extend(notices);
        Ok(())
    }
}

/// How a thing is dropped that is not what it was taken for.
pub(super) fn way_to_drop(known: &Table) -> String {
    let kind = views::kind(known.definition());
    format!("Use DROP {} to remove a {kind}.", kind.to_uppercase())
}

fn definition(view: &NewView) -> Result<TableDefinition> {
    let mut kinds = Vec::new();
    let mut builder = TableDefinition::builder(&view.name);
    for (at, (name, column_type)) in view.columns.iter().enumerate() {
        let (column, kind) = views::column(name, *column_type);
        // There are at most 1,024.
        kinds.extend(kind.map(|kind| (at as u16, kind)));
        builder = builder.column(column);
    }
    let (query, sources) = (view.query.clone(), view.sources.clone());
    builder = builder.view(ViewDefinition { query, sources, kinds, rows: ViewRows::None });
    if view.is_temporary {
        builder = TableBuilder::unlogged(builder);
    }
    Ok(builder.build()?)
}

/// Gives a view another query, whose first columns are those that it has.
fn replace(transaction: &mut Transaction<'_>, known: &Table, view: &NewView) -> Result<()> {
    let old = known.definition();
    if old.view().is_none() {
        return Err(is_no_view(known.name(), false));
    }
    let refused = |message: String| SqlError::new(state::INVALID_TABLE_DEFINITION, message);
    let shown: Vec<usize> = old.shown_columns().collect();
    if view.columns.len() < shown.len() {
        return Err(refused("cannot drop columns from view".to_owned()));
    }
    for (at, (name, column_type)) in shown.iter().zip(&view.columns) {
        let (own, own_type) = (&old.columns()[*at].name, views::column_type(old, *at));
        if own != name {
            let message = format!("cannot change name of view column \"{own}\" to \"{name}\"");
            return Err(refused(message).with_hint(
                "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.",
            ));
        }
        if own_type != *column_type {
            let (own_type, other) = (values::name_of(own_type), values::name_of(*column_type));
            let message = format!(
                "cannot change data type of view column \"{own}\" from {own_type} to {other}"
            );
            return Err(refused(message));
        }
    }
    let added = view.columns.iter().skip(shown.len());
    let added = added.map(|(name, own)| TableChange::AddColumn(views::column(name, *own).0));
    let added: Vec<TableChange> = added.collect();
    let grown = match added.is_empty() {
        true => known.clone(),
        false => transaction.alter_table(known.name(), &added)?,
    };
    let grown = grown.definition();
    let kinds = grown.shown_columns().zip(&view.columns).filter_map(|(at, (name, own))| {
        let number = u16::try_from(grown.column_number(at)).ok()?;
        Some((number, views::column(name, *own).1?))
    });
    let kinds = kinds.collect();
    let (query, sources) = (view.query.clone(), view.sources.clone());
    let view = ViewDefinition { query, sources, kinds, rows: ViewRows::None };
    let change = TableChange::SetView(view);
    transaction.alter_table(known.name(), &[change])?;
    Ok(())
}

/// Drops the views that use what is to go and stay themselves; or refuses, unless it `cascades`.
pub(super) fn drop_dependents(
    database: &Database,
    transaction: &mut Transaction<'_>,
    names: &[String],
    cascades: bool,
    notices: &mut Vec<SqlError>,
) -> Result<()> {
    // One that is not there is told of when it is its turn.
    let going: Vec<Table> = names.iter().filter_map(|name| transaction.table(name).ok()).collect();
    let numbers: Vec<u32> = going.iter().map(Table::id).collect();
    let mut found: Vec<views::Dependent> = Vec::new();
    for table in &going {
        let known = |dependent: &views::Dependent| {
            found.iter().any(|other| other.view.id() == dependent.view.id())
        };
        let mut own = views::dependents(transaction, table, None, &numbers);
        own.retain(|dependent| !known(dependent));
        found.extend(own);
    }
    let what = match going.as_slice() {
        [one] => views::named(one),
        _ => String::new(),
    };
    drop_found(database, transaction, &found, (&what, cascades), notices)
}

/// Drops the views that use a column which is to go; or refuses, unless it `cascades`.
pub(super) fn drop_dependents_of_column(
    database: &Database,
    transaction: &mut Transaction<'_>,
    (table, column): (&Table, usize),
    cascades: bool,
    notices: &mut Vec<SqlError>,
) -> Result<()> {
    let definition = table.definition();
    let name = definition.columns()[column].name.as_str();
    let number = u16::try_from(definition.column_number(column)).unwrap_or(u16::MAX);
    let found = views::dependents(transaction, table, Some((number, name)), &[]);
    let what = format!("column {name} of {}", views::named(table));
    drop_found(database, transaction, &found, (&what, cascades), notices)
}

/// `what` is empty where it is several things.
fn drop_found(
    database: &Database,
    transaction: &mut Transaction<'_>,
    found: &[views::Dependent],
    (what, cascades): (&str, bool),
    notices: &mut Vec<SqlError>,
) -> Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    if !cascades {
        let message = match what {
            "" => "cannot drop desired object(s) because other objects depend on them".to_owned(),
            what => format!("cannot drop {what} because other objects depend on it"),
        };
        let lines: Vec<String> = found.iter().map(views::Dependent::told).collect();
        return Err(SqlError::new(state::DEPENDENT_OBJECTS, message)
            .with_detail(lines.join("\n"))
            .with_hint(CASCADE));
    }
    let told = |dependent: &views::Dependent| {
        format!("drop cascades to {}", views::named(&dependent.view))
    };
    notices.extend(cascading(&found.iter().map(told).collect::<Vec<_>>()));
    for dependent in found {
        drop_table(database, transaction, dependent.view.name())?;
    }
    Ok(())
}

/// Refuses another type for a column that a view uses.
pub(super) fn check_type_may_change(
    transaction: &Transaction<'_>,
    table: &Table,
    column: usize,
) -> Result<()> {
    let definition = table.definition();
    let name = definition.columns()[column].name.as_str();
    let number = u16::try_from(definition.column_number(column)).unwrap_or(u16::MAX);
    let found = views::dependents(transaction, table, Some((number, name)), &[]);
    let Some(first) = found.first() else { return Ok(()) };
    let view = views::named(&first.view);
    let message = "cannot alter type of a column used by a view or rule";
    Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message)
        .with_detail(format!("rule _RETURN on {view} depends on column \"{name}\"")))
}

#[cfg(test)]
mod tests {
    use onrush_query::ColumnType;

    use super::*;

    #[test]
    fn types_of_columns_come_back() {
        for column_type in
            [onrush::DataType::Interval.into(), onrush::DataType::Oid.into(), ColumnType::Char]
        {
            let (column, kind) = views::column("a", column_type);
            let kinds = kind.map(|kind| (0, kind)).into_iter().collect();
            let (query, sources) = ("SELECT 1".to_owned(), Vec::new());
            let view = ViewDefinition { query, sources, kinds, rows: ViewRows::None };
            let table = TableDefinition::builder("v").column(column).view(view).build().unwrap();
            assert_eq!(views::column_type(&table, 0), column_type);
        }
    }
}
