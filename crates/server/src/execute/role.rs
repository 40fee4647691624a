//! Changes of roles.

use onrush::{Database, Transaction};

use super::Backend;
use super::definition::Touched;
use crate::access::{Object, PLACE_OF_PUBLIC, RoleChanges, place_of_schema};
use crate::error::{Result, SqlError, state};
use crate::schemas;
use crate::sql::{RoleName, RoleStatement};

impl Backend {
    /// Makes, changes or drops roles, or what is granted to them; durable when it is answered.
    pub(super) fn change_roles(&mut self, statement: &RoleStatement) -> Result<()> {
        self.check_not_in_use(statement)?;
        let database = self.database.clone();
        let grantees: Vec<String> = match statement {
            RoleStatement::Grant { roles, .. } | RoleStatement::GrantByDefault { roles, .. } => {
                roles.iter().map(|name| self.role_named(name)).collect()
            }
            _ => Vec::new(),
        };
        let by: Vec<Option<String>> = match statement {
            RoleStatement::GrantByDefault { by, .. } if by.is_empty() => {
                vec![self.owner_named(&RoleName::Current)]
            }
            RoleStatement::GrantByDefault { by, .. } => {
                by.iter().map(|name| self.owner_named(name)).collect()
            }
            _ => Vec::new(),
        };
        self.define(Touched::ROLES, |transaction| {
            let mut held = Vec::new();
            if let RoleStatement::Grant { tables, .. } = statement {
                for name in tables {
                    let table = transaction.table(name)?;
                    transaction.hold_table(&table)?;
                    held.push(Object::of_table(&table));
                }
            }
            let mut places = Vec::new();
            if let RoleStatement::Grant { schemas, .. }
            | RoleStatement::GrantByDefault { schemas, .. } = statement
            {
                for name in schemas {
                    places.push(hold_schema(&database, transaction, name)?);
                }
            }
            held.extend(places.iter().copied().map(Object::of_schema));
            let mut changes = RoleChanges { database: &database, transaction };
            match statement {
                RoleStatement::Create { names, change, if_not_exists } => {
                    names.iter().try_for_each(|name| changes.create(name, change, *if_not_exists))
                }
                RoleStatement::Alter { name, change } => changes.alter(name, change),
                RoleStatement::Drop { names, if_exists } => {
                    names.iter().try_for_each(|name| changes.drop(name, *if_exists))
                }
                RoleStatement::Grant { rights, is_grant, .. } => {
                    let pairs =
                        grantees.iter().flat_map(|role| held.iter().map(move |on| (role, on)));
                    pairs
                        .into_iter()
                        .try_for_each(|(role, on)| changes.grant(role, *on, rights, *is_grant))
                }
                RoleStatement::GrantByDefault { kind, rights, is_grant, .. } => {
                    let everywhere = places.is_empty().then_some(None);
                    let places = places.iter().copied().map(Some).chain(everywhere);
                    places.into_iter().try_for_each(|place| {
                        let of_role = |by: &Option<String>| {
                            grantees.iter().try_for_each(|role| {
                                let (scope, what) = ((place, *kind), (&rights[..], *is_grant));
                                changes.grant_by_default(by.as_deref(), scope, role, what)
                            })
                        };
                        by.iter().try_for_each(of_role)
                    })
                }
            }
        })
    }

    /// Refuses to drop as whom the client acts.
    fn check_not_in_use(&self, statement: &RoleStatement) -> Result<()> {
        let RoleStatement::Drop { names, .. } = statement else { return Ok(()) };
        let is_dropped = |user: &str| names.iter().any(|name| name == user);
        let used = match (is_dropped(&self.client.user), is_dropped(&self.client.session_user)) {
            (true, _) => "current user",
            (_, true) => "session user",
            _ => return Ok(()),
        };
        Err(SqlError::new(state::OBJECT_IN_USE, format!("{used} cannot be dropped")))
    }

    /// Everyone may change the password of his own role.
    pub(super) fn is_own_password(&self, statement: &RoleStatement) -> bool {
        matches!(statement, RoleStatement::Alter { name, change }
            if *name == self.who.name && change.is_superuser.is_none() && change.can_login.is_none())
    }

    pub(super) fn check_superuser(&self, what: &str) -> Result<()> {
        self.access.check_superuser(&self.who, what)
    }
}

/// Where a grant on a schema stands, which the transaction keeps others from dropping and renaming.
pub(super) fn hold_schema(
    database: &Database,
    transaction: &mut Transaction<'_>,
    name: &str,
) -> Result<i64> {
    match name {
        schemas::PUBLIC => Ok(PLACE_OF_PUBLIC),
        name => Ok(place_of_schema(schemas::hold(database, transaction, name)?)),
    }
}
