//! CREATE, ALTER and DROP INDEX, and UNIQUE constraints that are added and dropped.

use onrush::{Error, Table, Transaction};

use super::Backend;
use super::definition::Touched;
use crate::error::{Result, SqlError, state};
use crate::sql::IndexPlan;
use crate::{schemas, sequences};

impl Backend {
    pub(super) fn create_index(
        &mut self,
        table: &str,
        index: &IndexPlan,
        if_not_exists: bool,
    ) -> Result<()> {
        let taken = index.taken_key_name(&self.seen, table);
        let notice = self.define(Touched::NOTHING, |transaction| {
            let made = match &taken {
                Some(name) => Err(Error::TableExists { name: name.clone() }.into()),
                None => add_index(transaction, table, index),
            };
            match made {
                Err(error) if if_not_exists && error.is_table_exists() => Ok(Some(
                    SqlError::new(state::DUPLICATE_TABLE, format!("{error}, skipping")).notice(),
                )),
                other => other.map(|_| None),
            }
        })?;
        self.notices.extend(notice);
        Ok(())
    }

    pub(super) fn rename_index(&mut self, index: &str, to: &str) -> Result<()> {
        self.define(Touched::NOTHING, |transaction| {
            transaction.rename_index(index, to)?;
            Ok(())
        })
    }

    pub(super) fn drop_indexes(&mut self, names: &[String]) -> Result<()> {
        self.define(Touched::NOTHING, |transaction| {
            names.iter().try_for_each(|name| drop_index(transaction, name))
        })
    }
}

/// Makes an index of a table; gives the table's new handle.
pub(crate) fn add_index(
    transaction: &mut Transaction<'_>,
    table: &str,
    index: &IndexPlan,
) -> Result<Table> {
    let known = transaction.table(table)?;
    let key = schemas::key_name(known.definition());
    let key = key.map(|own| schemas::joined(schemas::parts(known.name()).0, &own));
    let is_key = |name: &str| key.as_deref() == Some(name);
    let is_free = |name: &str| {
        !is_key(name) && matches!(transaction.table(name), Err(Error::UnknownTable { .. }))
    };
    let new = index.new_index(known.definition(), is_free)?;
    if is_key(&new.name) {
        return Err(Error::TableExists { name: new.name }.into());
    }
    transaction.create_index(table, &new).map_err(|error| match error {
        Error::UniqueViolated { .. } => cannot_be_unique(error),
        other => other.into(),
    })
}

/// Rows that there are have the same values in the columns of an index that is to be unique.
fn cannot_be_unique(error: Error) -> SqlError {
    let Error::UniqueViolated { table, index, key } = &error else { return error.into() };
    let index = schemas::own_name(index);
    let message = format!("could not create unique index {index:?}");
    SqlError::new(state::UNIQUE_VIOLATION, message)
        .with_detail(format!("Key {} is duplicated.", crate::error::key_and_values(key)))
        .about(crate::error::About::constraint(table, index))
}

/// Drops an index that no constraint needs.
fn drop_index(transaction: &mut Transaction<'_>, name: &str) -> Result<()> {
    let table = transaction.table(&transaction.indexed_table(name)?)?;
    let definition = table.definition();
    let is_needed = |position: usize| definition.indexes()[position].is_constraint;
    if definition.index_position(name).is_ok_and(is_needed) {
        let (own, relation) = (schemas::own_name(name), schemas::own_name(table.name()));
        let message = format!(
            "cannot drop index {own} because constraint {own} on table {relation} requires it"
        );
        return Err(SqlError::new(state::DEPENDENT_OBJECTS, message)
            .with_hint(format!("You can drop constraint {own} on table {relation} instead.")));
    }
    transaction.drop_index(name)?;
    Ok(())
}

/// The indexes of a table that has come into another schema go along, and the sequences that it owns.
pub(super) fn follow_schema(transaction: &mut Transaction<'_>, table: &Table) -> Result<()> {
    let schema = schemas::parts(table.name()).0;
    for index in table.definition().indexes() {
        let to = schemas::joined(schema, schemas::own_name(&index.name));
        if to != index.name {
            transaction.rename_index(&index.name, &to)?;
        }
    }
    for sequence in sequences::owned_by(transaction, table.id(), None) {
        let to = schemas::joined(schema, schemas::own_name(sequence.name()));
        if to != sequence.name() {
            sequences::rename(transaction, sequence.name(), to)?;
        }
    }
    Ok(())
}

/// The engine's name of a UNIQUE constraint of a table.
pub(super) fn constraint_named(table: &Table, name: &str) -> Option<String> {
    let mut indexes = table.definition().indexes().iter();
    let found = indexes.find(|index| index.is_constraint && schemas::own_name(&index.name) == name);
    found.map(|index| index.name.clone())
}
