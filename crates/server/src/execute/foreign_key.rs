//! Foreign keys that are added, changed and dropped, and what goes with tables that are referenced.

use std::collections::BTreeSet;

use onrush::{
    Deferral, Error, Identities, IndexDefinition, NewForeignKey, Table, TableChange,
    TableDefinition, Transaction,
};

use super::definition::{self, Touched};
use super::transaction::Work;
use super::{Answer, Backend, view};
use crate::error::{Result, SqlError, state};
use crate::sequences::{self, Altered};
use crate::sql::{Change, ConstraintsPlan, ForeignKeyPlan, SequenceOptions};
use crate::{schemas, views};

impl Backend {
    /// Behind a statement of an open transaction: does what foreign keys say. What commits by itself does so then.
    pub(crate) fn settle_references(&mut self) -> Result<()> {
        let Work::Open(open) = &mut self.work else { return Ok(()) };
        open.with_dependent_mut(|_, transaction| {
            transaction.as_mut().map_or(Ok(()), Transaction::settle_references)
        })?;
        Ok(())
    }

    /// SET CONSTRAINTS.
    pub(super) fn set_constraints(&mut self, plan: &ConstraintsPlan) -> Result<Answer> {
        let answer = Answer::Done("SET CONSTRAINTS".into());
        if !self.is_in_transaction() {
            let message = "SET CONSTRAINTS can only be used in transaction blocks";
            self.notices.push(SqlError::new(state::NO_ACTIVE_TRANSACTION, message).warning());
        }
        let which = match &plan.names {
            None => None,
            Some(names) => {
                let named = names.iter().map(|(schema, name)| self.named(schema.as_deref(), name));
                Some(named.collect::<Result<Vec<_>>>()?.concat())
            }
        };
        if !self.is_in_transaction() {
            return Ok(answer);
        }
        self.in_transaction(|transaction| {
            Ok(transaction.defer_references(which.as_deref(), plan.is_deferred)?)
        })?;
        Ok(answer)
    }

    /// The tables that have a foreign key or a UNIQUE constraint of this name: in the first schema of the search path
    /// that has one.
    fn named(&self, schema: Option<&str>, name: &str) -> Result<Vec<(u32, String)>> {
        let path = std::sync::Arc::clone(&self.settings.path);
        let schemas: Vec<&str> = match schema {
            Some(schema) => vec![schema],
            None => path.iter().map(String::as_str).collect(),
        };
        let tables = self.seen.tables();
        for schema in schemas {
            let in_schema = tables.iter().filter(|table| schemas::parts(table.name()).0 == schema);
            let mut found = Vec::new();
            for table in in_schema {
                let definition = table.definition();
                let key = definition.foreign_keys().iter().find(|key| key.name == name);
                let key = key.map(|key| (key.deferral != Deferral::NotDeferrable, name.to_owned()));
                let is_it = |index: &&IndexDefinition| {
                    index.is_constraint && schemas::own_name(&index.name) == name
                };
                let unique = definition.indexes().iter().find(is_it);
                // The engine knows a UNIQUE constraint by its index.
                let unique = unique.map(|index| (index.deferrable.is_some(), index.name.clone()));
                let primary = schemas::has_key_named(definition, name);
                let primary = primary.then(|| (false, name.to_owned()));
                let found_here = key.or(unique).or(primary);
                let Some((is_deferrable, known)) = found_here else { continue };
                if !is_deferrable {
                    let message = format!("constraint {name:?} is not deferrable");
                    return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message));
                }
                found.push((table.id(), known));
            }
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let message = format!("constraint {name:?} does not exist");
        Err(SqlError::new(state::UNDEFINED_OBJECT, message))
    }

    pub(super) fn truncate(
        &mut self,
        names: &[String],
        cascades: bool,
        identities: Identities,
    ) -> Result<()> {
        let notices = self.define(Touched::NOTHING, |transaction| {
            let mut notices = Vec::new();
            let mut all: Vec<String> = names.to_vec();
            let mut next = 0;
            while let Some(name) = all.get(next).cloned() {
                next += 1;
                for (child, _) in transaction.references_to(&name)? {
                    if all.contains(&child) {
                        continue;
                    }
                    let (own, of) = (schemas::own_name(&child), schemas::own_name(&name));
                    if !cascades {
                        let message = "cannot truncate a table referenced in a foreign key constraint";
                        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message)
                            .with_detail(format!("Table {own:?} references {of:?}."))
                            .with_hint(format!(
                                "Truncate table {own:?} at the same time, or use TRUNCATE ... CASCADE."
                            )));
                    }
                    notices.push(notice(format!("truncate cascades to table {own:?}")));
                    all.push(child);
                }
            }
            transaction.truncate_tables(&all, identities)?;
            if identities == Identities::BeginAnew {
                restart_owned(transaction, &all)?;
            }
            Ok(notices)
        })?;
        self.notices.extend(notices);
        Ok(())
    }
}

/// Sequences that columns of the tables own begin anew.
fn restart_owned(transaction: &mut Transaction<'_>, names: &[String]) -> Result<()> {
    let restart = SequenceOptions { restart: Some(None), ..SequenceOptions::default() };
    for name in names {
        let table = transaction.table(name)?.id();
        for sequence in sequences::owned_by(transaction, table, None) {
            sequences::alter(transaction, sequence.name(), |old, position| {
                let (sequence, position) = restart.applied_to(old, position)?;
                Ok(Altered { sequence, name: None, position })
            })?;
        }
    }
    Ok(())
}

fn notice(message: String) -> SqlError {
    SqlError::new(state::SUCCESSFUL, message).notice()
}

/// Makes a foreign key of a table.
pub(super) fn add_foreign_key(
    transaction: &mut Transaction<'_>,
    table: &str,
    foreign_key: &ForeignKeyPlan,
) -> Result<Table> {
    let known = transaction.table(table)?;
    let referenced = transaction.table(&foreign_key.referenced_table)?;
    if !views::is_plain_table(referenced.definition()) {
        let name = schemas::own_name(referenced.name());
        let message = format!("referenced relation {name:?} is not a table");
        return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message));
    }
    if known.definition().is_logged() && !referenced.definition().is_logged() {
        let message = "constraints on permanent tables may reference only permanent tables";
        return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, message));
    }
    let is_free = |name: &str| !has_constraint(&known, name);
    let new = foreign_key.new_foreign_key(known.definition(), referenced.definition(), is_free)?;
    transaction.add_foreign_key(table, &new).map_err(|error| match error {
        Error::NoReferencedKey { table, .. } => {
            let name = schemas::own_name(&table);
            if names_deferrable_key(&new, referenced.definition()) {
                let message = format!(
                    "cannot use a deferrable unique constraint for referenced table {name:?}"
                );
                return SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message);
            }
            let message = format!(
                "there is no unique constraint matching given keys for referenced table {name:?}"
            );
            SqlError::new(state::INVALID_FOREIGN_KEY, message)
        }
        other => other.into(),
    })
}

/// Whether the referenced columns are those of a UNIQUE constraint that is deferrable.
fn names_deferrable_key(new: &NewForeignKey, referenced: &TableDefinition) -> bool {
    let name = |number: u16| {
        let column = referenced.column_with_number(number);
        column.map(|column| referenced.columns()[column].name.clone())
    };
    let wanted: BTreeSet<&String> = new.referenced_columns.iter().collect();
    let is_it = |index: &IndexDefinition| {
        let numbers = index.column_numbers().unwrap_or_default().into_iter();
        let names: Vec<String> = numbers.filter_map(name).collect();
        index.deferrable.is_some() && names.iter().collect::<BTreeSet<_>>() == wanted
    };
    referenced.indexes().iter().any(is_it)
}

fn has_constraint(table: &Table, name: &str) -> bool {
    let definition = table.definition();
    let is_check = definition.checks().iter().any(|check| check.name == name);
    is_check
        || definition.foreign_key_position(name).is_ok()
        || super::index::constraint_named(table, name).is_some()
        || schemas::has_key_named(definition, name)
}

/// What an ALTER TABLE changes of foreign keys.
pub(super) enum ForeignChange {
    Add(ForeignKeyPlan),
    Drop(String),
    Rename(String, String),
    Validate(String),
}

impl ForeignChange {
    /// None if the change is of something else.
    pub(super) fn of(table: &Table, change: &Change) -> Option<ForeignChange> {
        let is_one = |name: &str| table.definition().foreign_key_position(name).is_ok();
        match change {
            Change::AddForeignKey(plan) => Some(ForeignChange::Add(plan.clone())),
            Change::Validate(name) => Some(ForeignChange::Validate(name.clone())),
            Change::Other(TableChange::DropCheck { name }) if is_one(name) => {
                Some(ForeignChange::Drop(name.clone()))
            }
            Change::Other(TableChange::RenameCheck { from, to }) if is_one(from) => {
                Some(ForeignChange::Rename(from.clone(), to.clone()))
            }
            _ => None,
        }
    }

    pub(super) fn make(&self, transaction: &mut Transaction<'_>, table: &str) -> Result<()> {
        match self {
            ForeignChange::Add(plan) => drop(add_foreign_key(transaction, table, plan)?),
            ForeignChange::Drop(name) => drop(transaction.drop_foreign_key(table, name)?),
            ForeignChange::Rename(name, to) => {
                let known = transaction.table(table)?;
                if has_constraint(&known, to) {
                    return Err(taken(&known, to));
                }
                transaction.rename_foreign_key(table, name, to)?;
            }
            ForeignChange::Validate(name) => {
                let known = transaction.table(table)?;
                if known.definition().foreign_key_position(name).is_ok() {
                    transaction.validate_foreign_key(table, name)?;
                } else if !has_constraint(&known, name) {
                    let own = schemas::own_name(table);
                    let message = format!("constraint {name:?} of relation {own:?} does not exist");
                    return Err(SqlError::new(state::UNDEFINED_OBJECT, message));
                } else {
                    let own = schemas::own_name(table);
                    let message = format!(
                        "constraint {name:?} of relation {own:?} is not a foreign key or check constraint"
                    );
                    return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message));
                }
            }
        }
        Ok(())
    }
}

fn taken(table: &Table, name: &str) -> SqlError {
    let own = schemas::own_name(table.name());
    let message = format!("constraint {name:?} for relation {own:?} already exists");
    SqlError::new(state::DUPLICATE_OBJECT, message)
}

/// The foreign keys to tables: the referencing table, the foreign key, and the table that it references.
pub(super) fn references_to(
    transaction: &Transaction<'_>,
    names: &[String],
) -> onrush::Result<Vec<(String, String, String)>> {
    let mut all = Vec::new();
    let names: BTreeSet<&String> = names.iter().collect();
    for name in names {
        // One that is not there is told of when it is its turn.
        let references = match transaction.references_to(name) {
            Err(Error::UnknownTable { .. }) => continue,
            other => other?,
        };
        all.extend(references.into_iter().map(|(child, key)| (child, key, name.clone())));
    }
    Ok(all)
}

/// Drops the foreign keys by which tables that stay reference those that go; or refuses, unless it `cascades`. Those
/// among the tables that go are dropped either way.
pub(super) fn drop_references(
    transaction: &mut Transaction<'_>,
    names: &[String],
    cascades: bool,
    notices: &mut Vec<SqlError>,
) -> Result<()> {
    let references = references_to(transaction, names)?;
    let is_inner = |(child, ..): &(String, String, String)| names.contains(child);
    let (inner, outer): (Vec<_>, Vec<_>) = references.into_iter().partition(is_inner);
    if !outer.is_empty() && !cascades {
        return Err(in_the_way(names, &outer));
    }
    let told = outer.iter().map(|(child, foreign_key, _)| dropped(child, foreign_key));
    notices.extend(cascading(&told.collect::<Vec<_>>()));
    for (child, foreign_key, _) in inner.into_iter().chain(outer) {
        transaction.drop_foreign_key(&child, &foreign_key)?;
    }
    Ok(())
}

/// Drops the foreign keys to a table that `is_meant` of, where the key that they reference goes; or refuses, unless it
/// `cascades`.
pub(super) fn drop_references_to_key(
    transaction: &mut Transaction<'_>,
    table: &Table,
    (what, cascades): (&str, bool),
    is_meant: impl Fn(&onrush::ForeignKey) -> bool,
    notices: &mut Vec<SqlError>,
) -> Result<()> {
    let mut meant = Vec::new();
    let mut references = transaction.references_to(table.name())?;
    let own = table.definition().foreign_keys().iter();
    let own = own.filter(|key| key.referenced_table == table.id());
    references.extend(own.map(|key| (table.name().to_owned(), key.name.clone())));
    for (child, name) in references {
        let known = transaction.table(&child)?;
        let position = known.definition().foreign_key_position(&name)?;
        if is_meant(&known.definition().foreign_keys()[position]) {
            meant.push((child, name));
        }
    }
    if meant.is_empty() {
        return Ok(());
    }
    if !cascades {
        let message = format!("cannot drop {what} because other objects depend on it");
        let lines: Vec<String> = meant
            .iter()
            .map(|(child, name)| {
                let child = schemas::own_name(child);
                format!("constraint {name} on table {child} depends on {}", what_depends(what))
            })
            .collect();
        return Err(SqlError::new(state::DEPENDENT_OBJECTS, message)
            .with_detail(lines.join("\n"))
            .with_hint(CASCADE));
    }
    let told: Vec<String> = meant.iter().map(|(child, name)| dropped(child, name)).collect();
    notices.extend(cascading(&told));
    for (child, name) in meant {
        transaction.drop_foreign_key(&child, &name)?;
    }
    Ok(())
}

/// A constraint is an index to those who depend on it.
fn what_depends(what: &str) -> String {
    match what.split_once(" on table ") {
        Some((constraint, _)) => constraint.replacen("constraint", "index", 1),
        None => what.to_owned(),
    }
}

pub(super) const CASCADE: &str = "Use DROP ... CASCADE to drop the dependent objects too.";

fn in_the_way(names: &[String], outer: &[(String, String, String)]) -> SqlError {
    let message = match names {
        [name] => {
            let name = schemas::own_name(name);
            format!("cannot drop table {name} because other objects depend on it")
        }
        _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
    };
    let line = |(child, foreign_key, table): &(String, String, String)| {
        let (child, table) = (schemas::own_name(child), schemas::own_name(table));
        format!("constraint {foreign_key} on table {child} depends on table {table}")
    };
    let lines: Vec<String> = outer.iter().map(line).collect();
    SqlError::new(state::DEPENDENT_OBJECTS, message)
        .with_detail(lines.join("\n"))
        .with_hint(CASCADE)
}

fn dropped(child: &str, foreign_key: &str) -> String {
    format!("drop cascades to constraint {foreign_key} on table {}", schemas::own_name(child))
}

/// What is told of that which is dropped, too.
pub(super) fn cascading(lines: &[String]) -> Option<SqlError> {
    match lines {
        [] => None,
        [line] => Some(notice(line.clone())),
        lines => {
            let message = format!("drop cascades to {} other objects", lines.len());
            Some(notice(message).with_detail(lines.join("\n")))
        }
    }
}

/// Drops tables with what was granted on them and said of them, and with the foreign keys to them.
pub(super) fn drop_all(
    database: &onrush::Database,
    transaction: &mut Transaction<'_>,
    names: &[String],
    notices: &mut Vec<SqlError>,
) -> Result<()> {
    drop_references(transaction, names, true, notices)?;
    view::drop_dependents(database, transaction, names, true, notices)?;
    names.iter().try_for_each(|name| Ok(definition::drop_table(database, transaction, name)?))
}
