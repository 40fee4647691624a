//! COMMENT ON, and comments of constraints that ALTER TABLE drops or renames.

use onrush::{Database, IndexDefinition, Table, TableChange, Transaction};

use super::Backend;
use super::definition::Touched;
use crate::comments::{self, Place};
use crate::error::{Result, SqlError, state};
use crate::schemas;
use crate::sql::{Change, CommentPlan, CommentedPart, PlannedChange};

impl Backend {
    pub(super) fn comment(&mut self, plan: &CommentPlan) -> Result<()> {
        let CommentPlan { table, part, text } = plan;
        let text = text.as_deref();
        let database = self.database.clone();
        self.define(Touched::KEPT, |transaction| {
            let table = transaction.table(table)?;
            transaction.hold_table(&table)?;
            let place = match part {
                CommentedPart::Whole => comments::place(&table, None),
                CommentedPart::Column(name) => {
                    comments::place(&table, Some(table.definition().shown_column_index(name)?))
                }
                CommentedPart::Index(name) => comments::index_place(&table, index(&table, name)),
                CommentedPart::Constraint(name) => match key_constraint(&table, name) {
                    Some(place) => place,
                    None => {
                        check_has_constraint(&table, name)?;
                        let of = (i64::from(table.id()), name.as_str());
                        return Ok(comments::put_of_constraint(&database, transaction, of, text)?);
                    }
                },
            };
            Ok(comments::put(&database, transaction, place, text)?)
        })?;
        Ok(())
    }
}

/// The index of a name; none is the primary key's, of whose name no other index is.
fn index<'t>(table: &'t Table, name: &str) -> Option<&'t IndexDefinition> {
    let mut indexes = table.definition().indexes().iter();
    indexes.find(|index| schemas::own_name(&index.name) == name)
}

/// The place of the constraint of a name, if it is the primary key or UNIQUE.
fn key_constraint(table: &Table, name: &str) -> Option<Place> {
    match index(table, name) {
        Some(index) => {
            index.is_constraint.then(|| comments::key_constraint_place(table, Some(index)))
        }
        None if schemas::has_key_named(table.definition(), name) => {
            Some(comments::key_constraint_place(table, None))
        }
        None => None,
    }
}

fn check_has_constraint(table: &Table, name: &str) -> Result<()> {
    if has_named_constraint(table, name) {
        return Ok(());
    }
    let own = schemas::own_name(table.name());
    let message = format!("constraint \"{name}\" for table \"{own}\" does not exist");
    Err(SqlError::new(state::UNDEFINED_OBJECT, message))
}

/// Whether the table has a CHECK constraint or a foreign key of this name.
fn has_named_constraint(table: &Table, name: &str) -> bool {
    let definition = table.definition();
    definition.checks().iter().any(|check| check.name == name)
        || definition.foreign_key_position(name).is_ok()
}

/// Comments go with constraints that are dropped, and keep to those that get other names.
pub(super) fn follow_constraints(
    database: &Database,
    transaction: &mut Transaction<'_>,
    table: &Table,
    planned: &[PlannedChange],
) -> Result<()> {
    let is_gone = |name: &str| !has_named_constraint(table, name);
    comments::forget_constraints(database, transaction, table.id(), is_gone)?;
    for PlannedChange { change, .. } in planned {
        match change {
            Change::Other(TableChange::DropCheck { name }) => {
                let is_it = |other: &str| other == name;
                comments::forget_constraints(database, transaction, table.id(), is_it)?;
            }
            Change::Other(TableChange::RenameCheck { from, to }) => {
                comments::rename_constraint(database, transaction, table.id(), (from, to))?;
            }
            _ => {}
        }
    }
    Ok(())
}
