//! CREATE, ALTER and DROP INDEX, REINDEX, and UNIQUE constraints that are added and dropped.
//!
//! By itself an index is built [beside those who write to its table](onrush::Database::build_index). In a transaction
//! block, which may have changed the table, it is made with the table locked.

use std::sync::Arc;

use onrush::{Error, IndexBuildOptions, NewIndex, Table, Transaction};

use super::definition::Touched;
use super::{Backend, Work};
use crate::error::{Result, SqlError, state};
use crate::sql::{IndexPlan, Rebuilt, StoragePlan};
use crate::{comments, schemas, sequences};

impl Backend {
    pub(super) fn create_index(
        &mut self,
        table: &str,
        index: &IndexPlan,
        if_not_exists: bool,
    ) -> Result<()> {
        let made = match index.taken_key_name(&self.seen, table) {
            Some(name) => Err(Error::TableExists { name }.into()),
            None if self.is_alone() => self.build_index(table, index),
            None => self.define(Touched::NOTHING, |transaction| {
                match add_index(transaction, table, index) {
                    // The transaction goes on.
                    Err(error) if if_not_exists && error.is_table_exists() => Ok(Some(error)),
                    made => made.map(|_| None),
                }
            }),
        };
        let taken = match made {
            Err(error) if if_not_exists && error.is_table_exists() => Some(error),
            made => made?,
        };
        let notice =
            |error| SqlError::new(state::DUPLICATE_TABLE, format!("{error}, skipping")).notice();
        self.notices.extend(taken.map(notice));
        Ok(())
    }

    fn is_alone(&self) -> bool {
        matches!(self.work, Work::Idle(_))
    }

    fn build_index(&mut self, table: &str, index: &IndexPlan) -> Result<Option<SqlError>> {
        let known = self.database.table(table)?;
        let new = new_index(&known, index, |name| self.database.table(name))?;
        let options = self.build_options();
        tokio::task::block_in_place(|| self.database.build_index(table, &new, &options))
            .map_err(cannot_be_unique)?;
        self.forget_definitions();
        Ok(None)
    }

    fn build_options(&self) -> IndexBuildOptions {
        self.patience.end_with_client();
        IndexBuildOptions {
            waiting: Some(Arc::new(self.patience.clone())),
            session: u64::from(self.client.number.unsigned_abs()),
            ..IndexBuildOptions::default()
        }
    }

    /// REINDEX, and what there is nothing to do for.
    pub(super) fn change_storage(&mut self, plan: &StoragePlan) -> Result<()> {
        plan.alone.map_or(Ok(()), |what| self.outside_transaction(what))?;
        let of_tables = |is_meant: &dyn Fn(&str) -> bool| -> Vec<(String, String)> {
            let tables = self.seen.relations().into_iter();
            let indexes = tables.filter(|table| is_meant(table.name())).flat_map(|table| {
                let indexes = table.definition().indexes().iter();
                indexes.map(|it| (table.name().to_owned(), it.name.clone())).collect::<Vec<_>>()
            });
            indexes.collect()
        };
        let own = plan.table.as_deref().unwrap_or_default();
        let indexes = match &plan.rebuilt {
            Rebuilt::Nothing => return Ok(()),
            Rebuilt::Index(index) => return self.rebuild_index(own, index),
            Rebuilt::OfTable => of_tables(&|name| name == own),
            Rebuilt::OfSchema(schema) => of_tables(&|name| schemas::parts(name).0 == schema),
            Rebuilt::OfDatabase => of_tables(&|_| true),
        };
        for (table, index) in indexes {
            match self.rebuild_index(&table, &index) {
                // Somebody dropped it meanwhile.
                Err(error) if error.is_unknown_index() => {}
                rebuilt => rebuilt?,
            }
        }
        Ok(())
    }

    fn rebuild_index(&mut self, table: &str, index: &str) -> Result<()> {
        let database = self.database.clone();
        if !self.is_alone() {
            return self.define(Touched::KEPT, |transaction| {
                let before = transaction.table(table)?;
                let after = transaction.rebuild_index(index)?;
                Ok(comments::follow_indexes(&database, transaction, (&before, &after))?)
            });
        }
        let (before, options) = (database.table(table)?, self.build_options());
        let after = tokio::task::block_in_place(|| database.rebuild_index(index, &options))?;
        // A crash in front of this takes away what was said of the index, and nothing else.
        self.define(Touched::KEPT, |transaction| {
            Ok(comments::follow_indexes(&database, transaction, (&before, &after))?)
        })
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
    let new = new_index(&known, index, |name| transaction.table(name))?;
    transaction.create_index(table, &new).map_err(cannot_be_unique)
}

/// The index as the engine makes it, with a free name if it has none.
fn new_index(
    table: &Table,
    index: &IndexPlan,
    find: impl Fn(&str) -> onrush::Result<Table>,
) -> Result<NewIndex> {
    let key = schemas::key_name(table.definition());
    let key = key.map(|own| schemas::joined(schemas::parts(table.name()).0, &own));
    let is_key = |name: &str| key.as_deref() == Some(name);
    let is_free =
        |name: &str| !is_key(name) && matches!(find(name), Err(Error::UnknownTable { .. }));
    let new = index.new_index(table.definition(), is_free)?;
    match is_key(&new.name) {
        true => Err(Error::TableExists { name: new.name }.into()),
        false => Ok(new),
    }
}

/// Why an index was not made; rows that there are may have the same values in its columns.
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
