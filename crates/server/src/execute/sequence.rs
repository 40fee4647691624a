//! CREATE, ALTER and DROP SEQUENCE: changes of a transaction, as those of tables.

use onrush::{
    ColumnDefinition, ComputedDefault, Database, DefaultValue, Error, SequenceDefinition,
    SequenceOwner, Table, TableChange, TableDefinition, Transaction,
};

use super::definition::{Touched, drop_table, skipped};
use super::{Backend, view};
use crate::catalog;
use crate::error::{Result, SqlError, state};
use crate::made_up;
use crate::schemas;
use crate::sequences::{self, Altered, Identity};
use crate::sql::{Owner, SequenceChange, SequenceOptions, SequencePlan};

impl Backend {
    pub(super) fn change_sequences(&mut self, plan: &SequencePlan) -> Result<()> {
        match plan {
            SequencePlan::Create { name, is_temporary, if_not_exists, options } => {
                self.create_sequence((name, *is_temporary), *if_not_exists, options)
            }
            SequencePlan::Alter { name, if_exists, change } => {
                self.alter_sequence(name, *if_exists, change)
            }
            SequencePlan::Drop { names, if_exists, cascade } => {
                self.drop_sequences(names, *if_exists, *cascade)
            }
        }
    }

    fn create_sequence(
        &mut self,
        (name, is_temporary): (&str, bool),
        if_not_exists: bool,
        options: &SequenceOptions,
    ) -> Result<()> {
        let made = self.define_own(Touched::NOTHING, |transaction| {
            let owner = match &options.owner {
                Some(Some(owner)) => Some(found_owner(transaction, name, owner)?),
                _ => None,
            };
            let sequence = SequenceDefinition { owner, ..options.of_new()? };
            let mut builder = TableDefinition::builder(name).sequence(sequence);
            if is_temporary {
                builder = builder.unlogged();
            }
            match sequences::create(transaction, builder.build()?) {
                Err(Error::TableExists { .. }) if if_not_exists => Ok(None),
                other => Ok(Some(other?.id())),
            }
        })?;
        self.note_made(made, name, None);
        Ok(())
    }

    fn alter_sequence(
        &mut self,
        name: &str,
        if_exists: bool,
        change: &SequenceChange,
    ) -> Result<()> {
        let find = |name: &str| self.seen.table(name).ok();
        if find(name).is_none()
            && let Some(identity) = Identity::named(name, find)
        {
            return self.alter_identity(&identity, change);
        }
        let skipping = self.define(Touched::NOTHING, |transaction| {
            match transaction.table(name) {
                Err(Error::UnknownTable { .. }) if if_exists => {
                    return Ok(Some(skipped("relation", name)));
                }
                other => sequences::check_is_sequence(&other?)?,
            }
            let owner = match change {
                SequenceChange::Options(SequenceOptions { owner: Some(owner), .. }) => {
                    let found = |owner: &Owner| found_owner(transaction, name, owner);
                    Some(owner.as_ref().map(found).transpose()?)
                }
                _ => None,
            };
            sequences::alter(transaction, name, |old, position| match change {
                SequenceChange::Options(options) => {
                    let (mut sequence, position) = options.applied_to(old, position)?;
                    sequence.owner = owner.unwrap_or(old.owner);
                    Ok(Altered { sequence, name: None, position })
                }
                SequenceChange::Rename(to) => {
                    check_may_move(name, to, old)?;
                    Ok(Altered { sequence: old.clone(), name: Some(to.clone()), position })
                }
            })?;
            Ok(None)
        })?;
        self.notices.extend(skipping);
        Ok(())
    }

    /// RESTART is what there is of the sequence that an identity is shown as. It counts at once.
    fn alter_identity(&mut self, identity: &Identity, change: &SequenceChange) -> Result<()> {
        let only = SequenceOptions { restart: change.restart(), ..SequenceOptions::default() };
        let (SequenceChange::Options(options), Some(value)) = (change, change.restart()) else {
            return Err(only_restart(identity));
        };
        if *options != only {
            return Err(only_restart(identity));
        }
        self.outside_transaction("ALTER SEQUENCE of an identity column")?;
        let definition = identity.definition();
        let (_, position) = options.applied_to(&definition, identity.position())?;
        self.sequences.restart(identity, value.map_or(definition.start, |_| position.last))
    }

    fn drop_sequences(&mut self, names: &[String], if_exists: bool, cascade: bool) -> Result<()> {
        let database = self.database.clone();
        let notices = self.define(Touched::ROLES, |transaction| {
            let mut notices = Vec::new();
            for name in names {
                let table = match transaction.table(name) {
                    Err(Error::UnknownTable { .. })
                        if identity_named(transaction, name).is_some() =>
                    {
                        let Some(identity) = identity_named(transaction, name) else { continue };
                        return Err(required(&identity));
                    }
                    Err(Error::UnknownTable { name }) if if_exists => {
                        notices.push(skipped("sequence", schemas::own_name(&name)));
                        continue;
                    }
                    Err(Error::UnknownTable { name }) => {
                        let name = schemas::own_name(&name);
                        let message = format!("sequence \"{name}\" does not exist");
                        return Err(SqlError::new(state::UNDEFINED_TABLE, message));
                    }
                    other => other?,
                };
                if table.definition().sequence().is_none() {
                    let message = format!("{:?} is not a sequence", schemas::own_name(name));
                    return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message)
                        .with_hint(view::way_to_drop(&table)));
                }
                notices.extend(drop_sequence(&database, transaction, &table, cascade)?);
            }
            Ok(notices)
        })?;
        self.notices.extend(notices);
        Ok(())
    }
}

fn identity_named(transaction: &Transaction<'_>, name: &str) -> Option<Identity> {
    Identity::named(name, |name| transaction.table(name).ok())
}

/// The sequence that an identity is shown as goes with its column.
fn required(identity: &Identity) -> SqlError {
    let name = identity.name();
    let name = schemas::own_name(&name);
    let column = &identity.table.definition().columns()[identity.column].name;
    let table = schemas::own_name(identity.table.name());
    let message =
        format!("cannot drop sequence {name} because column {column} of table {table} requires it");
    SqlError::new(state::DEPENDENT_OBJECTS, message)
        .with_hint(format!("You can drop column {column} of table {table} instead."))
}

fn only_restart(identity: &Identity) -> SqlError {
    SqlError::not_supported(
        format!("this form of ALTER SEQUENCE {}, which is a column's identity,", identity.name()),
        "There is RESTART [WITH value]; setval sets it, too.",
    )
}

/// Drops a sequence; with `cascade` defaults that use it go, too, which is told.
pub(super) fn drop_sequence(
    database: &Database,
    transaction: &mut Transaction<'_>,
    sequence: &Table,
    cascade: bool,
) -> Result<Vec<SqlError>> {
    let used = sequences::dependents(transaction, sequence.id());
    let told = |(table, column): &(Table, usize)| {
        if table.definition().domain().is_some() {
            return format!("default value for domain {}", schemas::own_name(table.name()));
        }
        let column = &table.definition().columns()[*column].name;
        let table = schemas::own_name(table.name());
        format!("default value for column {column} of table {table}")
    };
    if !cascade && !used.is_empty() {
        let name = schemas::own_name(sequence.name());
        let depends = |dependent| format!("{} depends on sequence {name}", told(dependent));
        let detail: Vec<String> = used.iter().map(depends).collect();
        let message = format!("cannot drop sequence {name} because other objects depend on it");
        return Err(SqlError::new(state::DEPENDENT_OBJECTS, message)
            .with_detail(detail.join("\n"))
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    let mut notices = Vec::new();
    let names = [sequence.name().to_owned()];
    view::drop_dependents(database, transaction, &names, cascade, &mut notices)?;
    for dependent in &used {
        let (table, column) = dependent;
        let ColumnDefinition { name, nullable, .. } = table.definition().columns()[*column].clone();
        let change = TableChange::SetColumn { name, nullable, default: DefaultValue::None };
        transaction.alter_table(table.name(), &[change])?;
        let message = format!("drop cascades to {}", told(dependent));
        notices.push(SqlError::new(state::SUCCESSFUL, message).notice());
    }
    drop_table(database, transaction, sequence.name())?;
    Ok(notices)
}

/// The column that is to own a sequence of this name.
fn found_owner(
    transaction: &mut Transaction<'_>,
    sequence: &str,
    owner: &Owner,
) -> Result<SequenceOwner> {
    let table = transaction.table(&owner.table)?;
    let definition = table.definition();
    if definition.sequence().is_some() {
        let name = schemas::own_name(table.name());
        let message = format!("sequence cannot be owned by relation {name:?}");
        return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message)
            .with_detail("This operation is not supported for sequences."));
    }
    if schemas::parts(sequence).0 != schemas::parts(table.name()).0 {
        let message = "sequence must be in same schema as table it is linked to";
        return Err(SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message));
    }
    let at = definition.shown_column_index(&owner.column).map_err(|_| {
        let (column, table) = (&owner.column, schemas::own_name(table.name()));
        let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
        SqlError::new(state::UNDEFINED_COLUMN, message)
    })?;
    let column = u16::try_from(definition.column_number(at)).unwrap_or(u16::MAX);
    transaction.hold_table(&table)?;
    Ok(SequenceOwner { table: table.id(), column })
}

/// A sequence that a column owns stays in the schema of its table.
fn check_may_move(name: &str, to: &str, sequence: &SequenceDefinition) -> Result<()> {
    let is_moved = schemas::parts(name).0 != schemas::parts(to).0;
    if is_moved && sequence.owner.is_some() {
        let message = "cannot move an owned sequence into another schema";
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message));
    }
    Ok(())
}

/// Makes the sequence of an identity column, which the column owns and has its values from.
pub(super) fn add_to_column(
    transaction: &mut Transaction<'_>,
    table: &str,
    column: &str,
    options: &SequenceOptions,
) -> Result<()> {
    let (schema, own) = schemas::parts(table);
    let is_free = |name: &str| transaction.table(&schemas::joined(schema, name)).is_err();
    let name = made_up::free_name(own, Some(column), "seq", is_free);
    let name = schemas::joined(schema, &name);
    let owner = Owner { table: table.to_owned(), column: column.to_owned() };
    let owner = Some(found_owner(transaction, &name, &owner)?);
    let sequence = SequenceDefinition { owner, ..options.of_new()? };
    let mut builder = TableDefinition::builder(&name).sequence(sequence);
    if schemas::has_temporary(table) {
        builder = builder.unlogged();
    }
    let made = sequences::create(transaction, builder.build()?)?;
    let expression = format!("nextval({})", catalog::oid_of(made.id()));
    let default = DefaultValue::Expression(ComputedDefault { expression, form: None });
    let change = TableChange::SetColumn { name: column.to_owned(), nullable: false, default };
    transaction.alter_table(table, &[change])?;
    Ok(())
}
