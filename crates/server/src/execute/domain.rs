//! CREATE and ALTER DOMAIN: changes of a transaction, as those of tables.

use onrush::{
    DomainDefinition, DomainViolation, Error, Table, TableChange, TableDefinition, Transaction,
};
use onrush_query::QueryEngine;
use onrush_types::DOMAIN_VALUE;

use super::Backend;
use super::definition::Touched;
use super::enum_type::exists;
use crate::error::{Result, SqlError, state};
use crate::sql::{DomainChange, DomainPlan};
use crate::{comments, domains, schemas};

impl Backend {
    pub(super) fn change_domains(&mut self, plan: &DomainPlan) -> Result<()> {
        match plan {
            DomainPlan::Create(definition) => self.define_own(Touched::NOTHING, |transaction| {
                let settled = domains::settled(transaction, definition.as_ref().clone())?;
                transaction.create_table(settled).map(|_| ()).map_err(exists)
            }),
            DomainPlan::Alter { name, change, tag: _ } => self.alter_domain(name, change),
        }
    }

    fn alter_domain(&mut self, name: &str, change: &DomainChange) -> Result<()> {
        let (database, queries) = (self.database.clone(), self.queries.clone());
        let notice = self.define(Touched::KEPT, |transaction| {
            let table = transaction.lock_table(name)?;
            if table.definition().domain().is_none() {
                return Err(Error::UnknownTable { name: name.to_owned() }.into());
            }
            let changes = match changes(&queries, table.definition(), change)? {
                Needed::Changes(changes) => changes,
                Needed::Nothing(notice) => return Ok(notice),
            };
            match change {
                DomainChange::DropCheck { name, .. } => {
                    let is_it = |other: &str| other == name;
                    comments::forget_constraints(&database, transaction, table.id(), is_it)?;
                }
                DomainChange::RenameCheck { from, to } => {
                    let names = (from.as_str(), to.as_str());
                    comments::rename_constraint(&database, transaction, table.id(), names)?;
                }
                _ => {}
            }
            let altered = transaction.alter_table(name, &changes).map_err(exists)?;
            domains::follow(transaction, &altered).map_err(of_rows)?;
            Ok(None)
        })?;
        self.notices.extend(notice);
        Ok(())
    }
}

/// What is to be done to a domain.
enum Needed {
    Changes(Vec<TableChange>),
    /// It is as it is to be; maybe that is told.
    Nothing(Option<SqlError>),
}

fn changes(
    queries: &QueryEngine,
    domain: &TableDefinition,
    change: &DomainChange,
) -> Result<Needed> {
    let value = &domain.columns()[0];
    let own = schemas::own_name(domain.name());
    let is_there = |name: &str| domain.checks().iter().any(|check| check.name == *name);
    let unvalidated = |change: &dyn Fn(&mut Vec<String>)| {
        let mut unvalidated =
            domain.domain().map_or_else(Vec::new, |domain| domain.unvalidated.clone());
        change(&mut unvalidated);
        TableChange::SetDomain(DomainDefinition { unvalidated })
    };
    Ok(Needed::Changes(match change {
        DomainChange::Default(default) => vec![TableChange::SetColumn {
            name: DOMAIN_VALUE.to_owned(),
            nullable: value.nullable,
            default: default.clone(),
        }],
        DomainChange::NotNull(is_not_null) if value.nullable != *is_not_null => {
            return Ok(Needed::Nothing(None));
        }
        DomainChange::NotNull(is_not_null) => vec![TableChange::SetColumn {
            name: DOMAIN_VALUE.to_owned(),
            nullable: !is_not_null,
            default: value.default.clone(),
        }],
        DomainChange::AddCheck { check, is_not_valid } => {
            let check = check.kept(queries, domain, domain.checks())?;
            let name = check.name.clone();
            let mut changes = vec![TableChange::AddCheck(check)];
            if *is_not_valid {
                changes.push(unvalidated(&|all| all.push(name.clone())));
            }
            changes
        }
        DomainChange::DropCheck { name, if_exists } if !is_there(name) => {
            let message = format!("constraint \"{name}\" of domain \"{own}\" does not exist");
            if !if_exists {
                return Err(SqlError::new(state::UNDEFINED_OBJECT, message));
            }
            let message = format!("{message}, skipping");
            return Ok(Needed::Nothing(Some(SqlError::new(state::SUCCESSFUL, message).notice())));
        }
        DomainChange::DropCheck { name, .. } => vec![TableChange::DropCheck { name: name.clone() }],
        DomainChange::RenameCheck { from, .. } if !is_there(from) => {
            let message = format!("constraint \"{from}\" for domain {own} does not exist");
            return Err(SqlError::new(state::UNDEFINED_OBJECT, message));
        }
        DomainChange::RenameCheck { to, .. } if is_there(to) => {
            let message = format!("constraint \"{to}\" for domain {own} already exists");
            return Err(SqlError::new(state::DUPLICATE_OBJECT, message));
        }
        DomainChange::RenameCheck { from, to } => {
            vec![TableChange::RenameCheck { from: from.clone(), to: to.clone() }]
        }
        DomainChange::Validate(name) if !is_there(name) => {
            let message = format!("constraint \"{name}\" of domain \"{own}\" does not exist");
            return Err(SqlError::new(state::UNDEFINED_OBJECT, message));
        }
        DomainChange::Validate(name) => {
            vec![unvalidated(&|all| all.retain(|other| other != name))]
        }
        DomainChange::Rename(to) => vec![TableChange::Rename { to: to.clone() }],
    }))
}

/// What is told of rows that keep a domain from being altered.
fn of_rows(error: Error) -> SqlError {
    let Error::RowsViolateDomain(violation) = &error else { return error.into() };
    let DomainViolation { table, column, constraint, domain: _ } = &**violation;
    let table = schemas::own_name(table);
    let (state, what) = match constraint {
        Some(_) => (state::CHECK_VIOLATION, "contains values that violate the new constraint"),
        None => (state::NOT_NULL_VIOLATION, "contains null values"),
    };
    SqlError::new(state, format!("column \"{column}\" of table \"{table}\" {what}"))
}

/// Gives the columns of a domain that got another name the name that it has now.
pub(super) fn follow_name(transaction: &mut Transaction<'_>, altered: &Table) -> Result<()> {
    match altered.definition().domain() {
        Some(_) => Ok(domains::follow(transaction, altered)?),
        None => Ok(()),
    }
}
