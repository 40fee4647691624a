//! What the clauses of an ALTER TABLE come to for the table as it is.

use onrush::{ColumnDefinition, Table, TableChange, TableDefinition};
use onrush_query::QueryEngine;

use super::foreign_key::ForeignChange;
use super::{generated, index};
use crate::error::{Result, SqlError, state};
use crate::sql::{Change, IndexPlan, PlannedChange};
use crate::{column_change, domains, schemas};

/// What is to be changed of a table as it is now, and what need not be.
#[derive(Default)]
pub(super) struct Changed {
    pub(super) changes: Vec<TableChange>,
    /// Indexes of UNIQUE constraints that are dropped, that get other names, and that are made.
    pub(super) gone: Vec<String>,
    pub(super) renamed: Vec<(String, String)>,
    pub(super) added: Vec<IndexPlan>,
    pub(super) foreign: Vec<ForeignChange>,
    pub(super) notices: Vec<SqlError>,
}

pub(super) fn changed(
    queries: &QueryEngine,
    table: &Table,
    planned: &[PlannedChange],
) -> Result<Changed> {
    let mut definition = table.definition().clone();
    let mut changed = Changed::default();
    for PlannedChange { change, if_needed, cascades } in planned {
        let is_check = |name: &String| definition.checks().iter().any(|it| it.name == *name);
        let is_of_check = matches!(change, Change::Validate(name) if is_check(name));
        if let Some(foreign) = ForeignChange::of(table, change).filter(|_| !is_of_check) {
            changed.foreign.push(foreign);
            continue;
        }
        match change {
            Change::AddUnique(index) => {
                changed.added.push(index.clone());
                continue;
            }
            Change::Other(TableChange::DropCheck { name }) => {
                if let Some(index) = index::constraint_named(table, name) {
                    changed.gone.push(index);
                    continue;
                }
            }
            Change::Other(TableChange::RenameCheck { from, to }) => {
                if let Some(index) = index::constraint_named(table, from) {
                    let to = schemas::joined(schemas::parts(table.name()).0, to);
                    changed.renamed.push((index, to));
                    continue;
                }
            }
            _ => {}
        }
        let Changed { changes, notices, added, foreign, .. } = &mut changed;
        if let (true, Some(skipping)) = (*if_needed, nothing_to_do(&definition, change)) {
            notices.push(skipping.notice());
            continue;
        }
        let checks = match change {
            Change::AddColumn(column, checks, indexes, foreign_keys) => {
                let change = TableChange::AddColumn(column.clone());
                definition = definition.altered(&change, 0)?;
                changes.push(change);
                added.extend(indexes.iter().cloned());
                foreign.extend(foreign_keys.iter().cloned().map(ForeignChange::Add));
                checks.as_slice()
            }
            Change::Validate(name) => {
                let change = TableChange::ValidateCheck { name: name.clone() };
                definition = definition.altered(&change, 0)?;
                changes.push(change);
                &[]
            }
            Change::AddUnique(_) | Change::AddForeignKey(_) | Change::AddGenerated(..) => &[],
            Change::AddCheck(check) => std::slice::from_ref(check),
            Change::Column(name, change) => {
                let at = definition.shown_column_index(name)?;
                let mut column = definition.columns()[at].clone();
                let is_key = definition.primary_key().contains(&at);
                column_change::apply(&mut column, change, (definition.name(), is_key))?;
                if column != definition.columns()[at] {
                    let is_always = column.is_always_generated;
                    let changes_always = is_always != definition.columns()[at].is_always_generated;
                    let ColumnDefinition { name, nullable, default, domain, .. } = column;
                    if domain != definition.columns()[at].domain {
                        let change = domains::with_same_rules(&definition, at, domain);
                        definition = definition.altered(&change, 0)?;
                        changes.push(change);
                    }
                    let set = TableChange::SetColumn { name: name.clone(), nullable, default };
                    let always = TableChange::SetAlwaysGenerated { name, is_always };
                    let always = changes_always.then_some(always);
                    for change in std::iter::once(set).chain(always) {
                        definition = definition.altered(&change, 0)?;
                        changes.push(change);
                    }
                }
                &[]
            }
            Change::Other(change) => {
                if let TableChange::DropColumn { name } = change
                    && *cascades
                {
                    for generated in generated::computed_of(&definition, name) {
                        let message = format!(
                            "drop cascades to column {generated} of table {}",
                            schemas::own_name(table.name())
                        );
                        notices.push(SqlError::new(state::SUCCESSFUL, message).notice());
                        let change = TableChange::DropColumn { name: generated };
                        definition = definition.altered(&change, 0)?;
                        changes.push(change);
                    }
                }
                if let TableChange::RenameColumn { from, to } = change
                    && from == to
                    && definition.column_index(from).is_ok()
                {
                    let table = schemas::own_name(table.name());
                    let message = format!("column \"{to}\" of relation \"{table}\" already exists");
                    return Err(SqlError::new(state::DUPLICATE_COLUMN, message));
                }
                definition = definition.altered(change, 0)?;
                changes.push(change.clone());
                &[]
            }
        };
        for check in checks {
            let check = check.kept(queries, &definition, definition.checks())?;
            let change = TableChange::AddCheck(check);
            definition = definition.altered(&change, 0)?;
            changes.push(change);
        }
    }
    Ok(changed)
}

/// Why a change need not be made.
fn nothing_to_do(table: &TableDefinition, change: &Change) -> Option<SqlError> {
    let has_column = |name: &str| table.columns().iter().any(|column| column.name == name);
    let relation = schemas::own_name(table.name());
    let told = |state, what: &str, name: &str, is: &str| {
        let message = format!("{what} {name:?} of relation {relation:?} {is}, skipping");
        Some(SqlError::new(state, message))
    };
    match change {
        Change::AddColumn(column, ..) if has_column(&column.name) => {
            told(state::DUPLICATE_COLUMN, "column", &column.name, "already exists")
        }
        Change::Other(TableChange::DropColumn { name }) if !has_column(name) => {
            told(state::UNDEFINED_COLUMN, "column", name, "does not exist")
        }
        Change::Other(TableChange::DropCheck { name })
            if !table.checks().iter().any(|check| check.name == *name) =>
        {
            told(state::UNDEFINED_OBJECT, "constraint", name, "does not exist")
        }
        _ => None,
    }
}
