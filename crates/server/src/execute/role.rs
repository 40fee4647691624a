//! Changes of roles.

use onrush::{Database, Transaction};

use super::Backend;
use super::definition::Touched;
use crate::access::{
    Granting, Kind, Object, PLACE_OF_PUBLIC, Right, RoleChange, RoleChanges, place_of_schema,
};
use crate::catalog::OWNER;
use crate::error::{Result, SqlError, state};
use crate::schemas;
use crate::sql::{FirstMembers, MemberChange, RoleName, RoleStatement};

impl Backend {
    /// Makes, changes or drops roles, or what is granted to them; durable when it is answered.
    pub(super) fn change_roles(&mut self, statement: &RoleStatement) -> Result<()> {
        let database = self.database.clone();
        match statement {
            RoleStatement::Create { names, change, first, if_not_exists } => {
                self.create_roles(names, change, first, *if_not_exists)
            }
            RoleStatement::Alter { name, change } => self.define(Touched::ROLES, |transaction| {
                RoleChanges { database: &database, transaction }.alter(name, change)
            }),
            RoleStatement::Drop { names, if_exists } => {
                self.check_not_in_use(names)?;
                self.define(Touched::ROLES, |transaction| {
                    let mut changes = RoleChanges { database: &database, transaction };
                    names.iter().try_for_each(|name| changes.drop(name, *if_exists))
                })
            }
            RoleStatement::Members { groups, change } => self.change_members(groups, change),
            RoleStatement::Grant { roles, tables, schemas, rights, is_grant } => {
                self.grant(roles, (tables, schemas), rights, *is_grant)
            }
            RoleStatement::GrantByDefault { by, schemas, kind, roles, rights, is_grant } => {
                self.grant_by_default(by, (schemas, *kind), roles, (rights, *is_grant))
            }
        }
    }

    fn create_roles(
        &mut self,
        names: &[String],
        change: &RoleChange,
        first: &FirstMembers,
        if_not_exists: bool,
    ) -> Result<()> {
        let database = self.database.clone();
        let named = |names: &[RoleName]| self.roles_named(names);
        let groups = named(&first.groups);
        let (members, admins) = (named(&first.members), named(&first.admins));
        let granting = self.granting(None);
        let notices = self.define(Touched::ROLES, |transaction| {
            let mut changes = RoleChanges { database: &database, transaction };
            let mut notices = Vec::new();
            for name in names {
                if !changes.create(name, change, if_not_exists)? {
                    continue;
                }
                for group in &groups {
                    let made = std::slice::from_ref(name);
                    notices.extend(changes.add_members(&granting, group, made, false)?);
                }
                notices.extend(changes.add_members(&granting, name, &admins, true)?);
                notices.extend(changes.add_members(&granting, name, &members, false)?);
            }
            Ok(notices)
        })?;
        self.notices.extend(notices);
        Ok(())
    }

    /// Makes roles members of others, or takes them out.
    fn change_members(&mut self, groups: &[RoleName], change: &MemberChange) -> Result<()> {
        let database = self.database.clone();
        let groups = self.roles_named(groups);
        let members = self.roles_named(&change.members);
        let (is_grant, has_admin) = (change.is_grant, change.has_admin);
        let granting = self.granting(change.by.as_ref());
        let notices = self.define(Touched::ROLES, |transaction| {
            let mut changes = RoleChanges { database: &database, transaction };
            let mut notices = Vec::new();
            for group in &groups {
                if change.is_alter {
                    changes.check_alters_group(&granting, group)?;
                }
                notices.extend(match is_grant {
                    true => changes.add_members(&granting, group, &members, has_admin),
                    false => changes.remove_members(&granting, group, &members, has_admin),
                }?);
            }
            Ok(notices)
        })?;
        self.notices.extend(notices);
        Ok(())
    }

    fn granting(&self, by: Option<&RoleName>) -> Granting {
        Granting {
            who: self.shown_role(&RoleName::Current),
            is_superuser: self.access.is_superuser(&self.who),
            by: by.map(|by| self.shown_role(by)),
        }
    }

    fn roles_named(&self, names: &[RoleName]) -> Vec<String> {
        names.iter().map(|name| self.shown_role(name)).collect()
    }

    /// As whom a role in a statement is known, also where it is one that nobody has made.
    pub(super) fn shown_role(&self, name: &RoleName) -> String {
        self.owner_named(name).unwrap_or_else(|| OWNER.to_owned())
    }

    fn grant(
        &mut self,
        roles: &[RoleName],
        (tables, schemas): (&[String], &[String]),
        rights: &[Right],
        is_grant: bool,
    ) -> Result<()> {
        let database = self.database.clone();
        let grantees: Vec<String> = roles.iter().map(|name| self.role_named(name)).collect();
        self.define(Touched::ROLES, |transaction| {
            let mut held = Vec::new();
            for name in tables {
                let table = transaction.table(name)?;
                transaction.hold_table(&table)?;
                held.push(Object::of_table(&table));
            }
            for name in schemas {
                held.push(Object::of_schema(hold_schema(&database, transaction, name)?));
            }
            let mut changes = RoleChanges { database: &database, transaction };
            let mut pairs = grantees.iter().flat_map(|role| held.iter().map(move |on| (role, on)));
            pairs.try_for_each(|(role, on)| changes.grant(role, *on, rights, is_grant))
        })
    }

    fn grant_by_default(
        &mut self,
        by: &[RoleName],
        (schemas, kind): (&[String], Kind),
        roles: &[RoleName],
        what: (&[Right], bool),
    ) -> Result<()> {
        let database = self.database.clone();
        let grantees: Vec<String> = roles.iter().map(|name| self.role_named(name)).collect();
        let by: Vec<Option<String>> = match by.is_empty() {
            true => vec![self.owner_named(&RoleName::Current)],
            false => by.iter().map(|name| self.owner_named(name)).collect(),
        };
        self.define(Touched::ROLES, |transaction| {
            let mut places = Vec::new();
            for name in schemas {
                places.push(Some(hold_schema(&database, transaction, name)?));
            }
            if places.is_empty() {
                places.push(None);
            }
            let mut changes = RoleChanges { database: &database, transaction };
            places.into_iter().try_for_each(|place| {
                let of_role = |by: &Option<String>| {
                    grantees.iter().try_for_each(|role| {
                        changes.grant_by_default(by.as_deref(), (place, kind), role, what)
                    })
                };
                by.iter().try_for_each(of_role)
            })
        })
    }

    /// Refuses to drop as whom the client acts.
    fn check_not_in_use(&self, names: &[String]) -> Result<()> {
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
            if *name == self.who.name
                && change.is_superuser.is_none()
                && change.can_login.is_none()
                && change.no_inherit.is_none())
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
