//! CREATE and DROP SCHEMA: rows of the transaction that says so, beside the tables that go with a schema.

use onrush::{Database, TableChange, Transaction};

use super::Backend;
use super::definition::Touched;
use super::foreign_key::drop_all;
use super::sequence::drop_sequence;
use super::{domain, index, own_type};
use crate::access::{self, Object, RoleChanges, place_of_schema};
use crate::error::{Result, SqlError, state};
use crate::seen::Seen;
use crate::sql::{RoleName, SchemaPlan, is_builtin, no_schema};
use crate::{own_types, schemas, sequences};

impl Backend {
    pub(super) fn change_schemas(&mut self, plan: &SchemaPlan) -> Result<()> {
        match plan {
            SchemaPlan::Create { name, owner, if_not_exists } => {
                self.create_schema(name, owner.as_ref(), *if_not_exists)
            }
            SchemaPlan::Drop { names, if_exists, cascade } => {
                self.drop_schemas(names, *if_exists, *cascade)
            }
            SchemaPlan::Rename { name, to } => self.rename_schema(name, to),
        }
    }

    fn drop_schemas(&mut self, names: &[String], if_exists: bool, cascade: bool) -> Result<()> {
        let database = self.database.clone();
        let notices = self.define(Touched::ROLES, |transaction| {
            let mut notices = Vec::new();
            for name in names {
                let seen = Seen::within(&database, transaction, true)?;
                if schemas::is_there(&seen, name)? {
                    drop_schema(&database, transaction, name, cascade, &mut notices)?;
                } else if if_exists {
                    notices.push(no_schema(name).notice());
                } else {
                    return Err(no_schema(name));
                }
            }
            Ok(notices)
        })?;
        self.notices.extend(notices);
        Ok(())
    }

    /// Its tables are called otherwise in the same transaction; what is theirs stays theirs.
    fn rename_schema(&mut self, name: &str, to: &str) -> Result<()> {
        let database = self.database.clone();
        self.define(Touched::ROLES, |transaction| {
            let seen = Seen::within(&database, transaction, true)?;
            if !schemas::is_there(&seen, name)? {
                return Err(no_schema(name));
            }
            if is_builtin(to) || schemas::is_there(&seen, to)? {
                return Err(there_already(to));
            }
            for table in schemas::tables_of(&seen, name) {
                // A sequence that goes with its table may be there already.
                let Ok(known) = transaction.table(&table) else { continue };
                let to = schemas::joined(to, schemas::own_name(&table));
                if known.definition().sequence().is_some() {
                    sequences::rename(transaction, &table, to)?;
                    continue;
                }
                let table = transaction.alter_table(&table, &[TableChange::Rename { to }])?;
                index::follow_schema(transaction, &table)?;
                own_types::follow(transaction, &table)?;
                domain::follow_name(transaction, &table)?;
            }
            Ok(schemas::rename(&database, transaction, (name, to))?)
        })?;
        Ok(())
    }

    fn create_schema(
        &mut self,
        name: &str,
        owner: Option<&RoleName>,
        if_not_exists: bool,
    ) -> Result<()> {
        let database = self.database.clone();
        let owner = self.owner_named(owner.unwrap_or(&RoleName::Current));
        let owner_number = owner.as_ref().and_then(|owner| self.number_of_role(owner));
        let has_defaults = self.access.seen_by(&self.who).has_defaults(owner_number);
        let skipping = self.define(Touched::ROLES, |transaction: &mut Transaction<'_>| {
            let seen = Seen::within(&database, transaction, true)?;
            if !is_builtin(name) && !schemas::is_there(&seen, name)? {
                schemas::create(&database, transaction, name)?;
                if let Some(owner) = &owner {
                    let number = schemas::hold(&database, transaction, name)?;
                    let mut changes = RoleChanges { database: &database, transaction };
                    changes.give(&[place_of_schema(number)], Some(owner))?;
                }
                if has_defaults {
                    let number = schemas::hold(&database, transaction, name)?;
                    let made = [(Object::of_schema(place_of_schema(number)), None)];
                    access::grant_defaults(&database, transaction, owner_number, made)?;
                }
                return Ok(None);
            }
            let told = there_already(name);
            if if_not_exists { Ok(Some(told.notice())) } else { Err(told) }
        })?;
        self.notices.extend(skipping);
        Ok(())
    }
}

/// Drops a schema that is there.
pub(super) fn drop_schema(
    database: &Database,
    transaction: &mut Transaction<'_>,
    name: &str,
    cascade: bool,
    notices: &mut Vec<SqlError>,
) -> Result<()> {
    let seen = Seen::within(database, transaction, true)?;
    check_may_go(&seen, name, cascade)?;
    let (mut tables, mut of_sequences, mut types) = (Vec::new(), Vec::new(), Vec::new());
    for table in schemas::tables_of(&seen, name) {
        let known = transaction.table(&table)?;
        match known.definition() {
            of if of.sequence().is_some() => of_sequences.push(table),
            of if of.is_type() => types.push(table),
            _ => tables.push(table),
        }
    }
    drop_all(database, transaction, &tables, notices)?;
    for name in types {
        // It may be gone with another one.
        if transaction.table(&name).is_ok() {
            let of = transaction.lock_table(&name)?;
            own_type::drop_type(database, transaction, &of, true, notices)?;
        }
    }
    for sequence in of_sequences {
        // It may be gone with its table.
        let Ok(known) = transaction.table(&sequence) else { continue };
        notices.extend(drop_sequence(database, transaction, &known, true)?);
    }
    if let Some(number) = schemas::forget(database, transaction, name)? {
        access::forget_schema(database, transaction, number)?;
    }
    Ok(())
}

fn there_already(name: &str) -> SqlError {
    SqlError::new(state::DUPLICATE_SCHEMA, format!("schema {name:?} already exists"))
}

/// Refuses to drop a schema with tables, unless they are to go with it.
fn check_may_go(seen: &Seen, name: &str, cascade: bool) -> Result<()> {
    let tables = schemas::tables_of(seen, name);
    if cascade || tables.is_empty() {
        return Ok(());
    }
    let message = format!("cannot drop schema {name} because other objects depend on it");
    let tables = tables.join(", ");
    Err(SqlError::new(state::DEPENDENT_OBJECTS, message)
        .with_hint(format!("There are: {tables}. DROP ... CASCADE drops them.")))
}
