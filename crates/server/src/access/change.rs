//! Changes of roles and grants, as a transaction makes them: they are its rows, and come and go with it.

use std::collections::BTreeSet;

use onrush::{Database, Table, Transaction};

use super::defaults::{self, Scope};
use super::roles::{EVERYONE, SERVER_OWNER};
use super::{Kind, Object, PUBLIC, Right, Role, RoleChange, Roles, place_of_schema, store, way_in};
use crate::error::{Result, SqlError, state};

/// Roles as a transaction sees and changes them.
pub(crate) struct RoleChanges<'c, 't> {
    pub(crate) database: &'c Database,
    pub(crate) transaction: &'c mut Transaction<'t>,
}

impl RoleChanges<'_, '_> {
    pub(super) fn roles(&mut self) -> Result<Roles> {
        Ok(store::load(self.database, self.transaction)?)
    }

    /// Refuses a change of this role, to none where it is dropped, that [`way_in`] does not allow.
    fn check_way_in(&mut self, before: &Roles, name: &str, changed: Option<&Role>) -> Result<()> {
        let mut after = before.roles.clone();
        let old = match changed {
            Some(role) => after.insert(name.to_owned(), role.clone()),
            None => after.remove(name),
        };
        way_in::check(&before.roles, &after)?;
        // Another one may rest on this role's way in as this one does on that of others.
        if old.is_some_and(|old| old.is_superuser && old.can_login) {
            store::guard_way_in(self.database, self.transaction)?;
        }
        Ok(())
    }

    /// Makes a role. False if there is one already and that is no error.
    pub(crate) fn create(
        &mut self,
        name: &str,
        change: &RoleChange,
        if_not_exists: bool,
    ) -> Result<bool> {
        if matches!(name, PUBLIC | "none") {
            let message = format!("role name {name:?} is reserved");
            return Err(SqlError::new(state::RESERVED_NAME, message));
        }
        let roles = self.roles()?;
        if roles.roles.contains_key(name) {
            if if_not_exists {
                return Ok(false);
            }
            let message = format!("role {name:?} already exists");
            return Err(SqlError::new(state::DUPLICATE_OBJECT, message));
        }
        let mut role = Role::default();
        role.change(change)?;
        self.check_way_in(&roles, name, Some(&role))?;
        store::add_role(self.database, self.transaction, name, &role)?;
        if role.no_inherit {
            role.number = self.number_of(name)?;
            store::put_no_inherit(self.database, self.transaction, &role)?;
        }
        Ok(true)
    }

    /// Changes a role.
    pub(crate) fn alter(&mut self, name: &str, change: &RoleChange) -> Result<()> {
        let roles = self.roles()?;
        let Some(mut role) = roles.roles.get(name).cloned() else { return Err(no_role(name)) };
        role.change(change)?;
        self.check_way_in(&roles, name, Some(&role))?;
        Ok(store::change_role(self.database, self.transaction, name, &role)?)
    }

    /// Forgets a role that owns nothing and was granted nothing.
    pub(crate) fn drop(&mut self, name: &str, if_exists: bool) -> Result<()> {
        let roles = self.roles()?;
        let Some(role) = roles.roles.get(name) else {
            return if if_exists { Ok(()) } else { Err(no_role(name)) };
        };
        if roles.depends_on(role) {
            let message =
                format!("role {name:?} cannot be dropped because some objects depend on it");
            return Err(SqlError::new(state::DEPENDENT_OBJECTS, message).with_hint(format!(
                "DROP OWNED BY {name} drops what belongs to it and takes back what was granted to it."
            )));
        }
        self.check_way_in(&roles, name, None)?;
        Ok(store::remove_role(self.database, self.transaction, name, role)?)
    }

    /// Grants rights on something, or (`is_grant` false) takes them back. The transaction holds it.
    pub(crate) fn grant(
        &mut self,
        role: &str,
        on: Object,
        rights: &[Right],
        is_grant: bool,
    ) -> Result<()> {
        let roles = self.roles()?;
        let number = grantee(&roles, role)?;
        let place = (number, on.place);
        let is_owner = roles.is_owner(number, on);
        let at_first = match number {
            _ if is_owner => on.kind.rights(),
            EVERYONE => on.kind.rights_of_everyone(),
            _ => &[],
        };
        let given = roles.grants.get(&place).cloned();
        let granted = given.unwrap_or_else(|| at_first.iter().copied().collect());
        let granted = changed(granted, rights, is_grant);
        match is_owner || !at_first.is_empty() {
            true => store::put_own(self.database, self.transaction, place, Some(&granted))?,
            false => store::put_grant(self.database, self.transaction, place, &granted)?,
        }
        Ok(())
    }

    /// Gives tables or schemas to a role, or to the owner of the server.
    pub(crate) fn give(&mut self, places: &[i64], role: Option<&str>) -> Result<()> {
        let number = match role {
            Some(name) => Some(self.number_of(name)?),
            None => None,
        };
        let roles = self.roles()?;
        for place in places {
            let old = roles.owners.get(place).copied();
            if old != number {
                // What was taken back from the one is not the other's, either.
                let left = old.and_then(|old| roles.grants.get(&(old, *place)));
                for (number, rights) in [(old, None), (number, left)] {
                    let Some(number) = number else { continue };
                    store::put_own(self.database, self.transaction, (number, *place), rights)?;
                }
            }
            store::put_owner(self.database, self.transaction, *place, number)?;
        }
        Ok(())
    }

    /// What belongs to a role: tables and schemas.
    pub(crate) fn owned_by(&mut self, role: &str) -> Result<Vec<i64>> {
        let number = self.number_of(role)?;
        let owners = self.roles()?.owners;
        Ok(owners
            .into_iter()
            .filter(|(_, owner)| *owner == number)
            .map(|(place, _)| place)
            .collect())
    }

    /// Takes everything back that was granted to a role.
    pub(crate) fn take_grants(&mut self, role: &str) -> Result<()> {
        let number = self.number_of(role)?;
        store::forget_grants(self.database, self.transaction, |role, _| role == number)?;
        Ok(defaults::forget_role(self.database, self.transaction, number)?)
    }

    /// Grants rights on what a role, or with none the owner of the server, is going to make, or takes them back.
    pub(crate) fn grant_by_default(
        &mut self,
        owner: Option<&str>,
        (schema, kind): (Option<i64>, Kind),
        role: &str,
        (rights, is_grant): (&[Right], bool),
    ) -> Result<()> {
        let roles = self.roles()?;
        let owner = match owner {
            Some(name) => roles.roles.get(name).ok_or_else(|| no_role(name))?.number,
            None => SERVER_OWNER,
        };
        let scope = Scope::new(owner, schema, kind);
        let number = grantee(&roles, role)?;
        let at_first = scope.at_first(number);
        let known = roles.defaults.get(&scope).and_then(|granted| granted.get(&number));
        let granted = changed(known.unwrap_or(&at_first).clone(), rights, is_grant);
        let granted = (granted != at_first).then_some(&granted);
        Ok(defaults::put(self.database, self.transaction, (scope, number), granted)?)
    }

    fn number_of(&mut self, role: &str) -> Result<i64> {
        let roles = self.roles()?;
        roles.roles.get(role).map(|role| role.number).ok_or_else(|| no_role(role))
    }
}

/// The transaction has made tables, which belong to a role.
pub(crate) fn own_tables(
    database: &Database,
    transaction: &mut Transaction<'_>,
    tables: impl IntoIterator<Item = u32>,
    role: i64,
) -> onrush::Result<()> {
    for table in tables {
        store::put_owner(database, transaction, i64::from(table), Some(role))?;
    }
    Ok(())
}

/// The transaction drops the table of this number, with what was granted on it.
pub(crate) fn forget_table(
    database: &Database,
    transaction: &mut Transaction<'_>,
    number: u32,
) -> onrush::Result<()> {
    store::forget_owners(database, transaction, |table| table == i64::from(number))?;
    store::forget_grants(database, transaction, |_, on| on == i64::from(number))
}

/// The transaction drops the schema of this number, with what was granted on it.
pub(crate) fn forget_schema(
    database: &Database,
    transaction: &mut Transaction<'_>,
    number: i64,
) -> onrush::Result<()> {
    let place = place_of_schema(number);
    store::forget_owners(database, transaction, |of| of == place)?;
    defaults::forget_schema(database, transaction, place)?;
    store::forget_grants(database, transaction, |_, on| on == place)
}

/// The rows of a table go into another one: what was granted on the one is granted on the other.
pub(crate) fn move_table(
    database: &Database,
    transaction: &mut Transaction<'_>,
    (from, to): (&Table, &Table),
) -> onrush::Result<()> {
    let [from, to] = [from, to].map(|table| i64::from(table.id()));
    for (role, rights) in store::granted_on(database, transaction, from)? {
        store::put_grant(database, transaction, (role, to), &rights)?;
    }
    if let Some(owner) = store::owner_of(database, transaction, from)? {
        store::put_owner(database, transaction, to, Some(owner))?;
        store::forget_owners(database, transaction, |table| table == from)?;
    }
    store::forget_grants(database, transaction, |_, on| on == from)
}

/// Rights with those that are granted, or without those that are taken back.
fn changed(mut granted: BTreeSet<Right>, rights: &[Right], is_grant: bool) -> BTreeSet<Right> {
    for right in rights {
        if is_grant {
            granted.insert(*right);
        } else {
            granted.remove(right);
        }
    }
    granted
}

/// The number of whom something is granted to.
fn grantee(roles: &Roles, name: &str) -> Result<i64> {
    match name {
        PUBLIC => Ok(EVERYONE),
        name => Ok(roles.roles.get(name).ok_or_else(|| no_role(name))?.number),
    }
}

pub(super) fn no_role(name: &str) -> SqlError {
    SqlError::new(state::UNDEFINED_OBJECT, format!("role {name:?} does not exist"))
        .with_hint(format!("CREATE ROLE {name} LOGIN PASSWORD '...' makes it."))
}
