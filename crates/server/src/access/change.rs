//! Changes of roles and grants, as a transaction makes them: they are its rows, and come and go with it.

use onrush::{Database, Table, Transaction};

use super::{Right, Role, RoleChange, Roles, place_of_schema, store, way_in};
use crate::error::{Result, SqlError, state};

/// Roles as a transaction sees and changes them.
pub(crate) struct RoleChanges<'c, 't> {
    pub(crate) database: &'c Database,
    pub(crate) transaction: &'c mut Transaction<'t>,
}

impl RoleChanges<'_, '_> {
    fn roles(&mut self) -> Result<Roles> {
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

    /// Makes a role.
    pub(crate) fn create(
        &mut self,
        name: &str,
        change: &RoleChange,
        if_not_exists: bool,
    ) -> Result<()> {
        let roles = self.roles()?;
        if roles.roles.contains_key(name) {
            if if_not_exists {
                return Ok(());
            }
            let message = format!("role {name:?} already exists");
            return Err(SqlError::new(state::DUPLICATE_OBJECT, message));
        }
        let mut role = Role::default();
        role.change(change)?;
        self.check_way_in(&roles, name, Some(&role))?;
        Ok(store::add_role(self.database, self.transaction, name, &role)?)
    }

    /// Changes a role.
    pub(crate) fn alter(&mut self, name: &str, change: &RoleChange) -> Result<()> {
        let roles = self.roles()?;
        let Some(mut role) = roles.roles.get(name).cloned() else { return Err(no_role(name)) };
        role.change(change)?;
        self.check_way_in(&roles, name, Some(&role))?;
        Ok(store::change_role(self.database, self.transaction, name, &role)?)
    }

    /// Forgets a role and what was granted to it.
    pub(crate) fn drop(&mut self, name: &str, if_exists: bool) -> Result<()> {
        let roles = self.roles()?;
        let Some(Role { number, .. }) = roles.roles.get(name) else {
            return if if_exists { Ok(()) } else { Err(no_role(name)) };
        };
        self.check_way_in(&roles, name, None)?;
        store::forget_grants(self.database, self.transaction, |role, _| role == *number)?;
        Ok(store::remove_role(self.database, self.transaction, name)?)
    }

    /// Grants rights on what has this number, or (`is_grant` false) takes them back. The transaction holds it.
    pub(crate) fn grant(
        &mut self,
        role: &str,
        on: i64,
        rights: &[Right],
        is_grant: bool,
    ) -> Result<()> {
        let roles = self.roles()?;
        let Some(Role { number, .. }) = roles.roles.get(role) else { return Err(no_role(role)) };
        let place = (*number, on);
        let mut granted = roles.grants.get(&place).cloned().unwrap_or_default();
        for right in rights {
            if is_grant {
                granted.insert(*right);
            } else {
                granted.remove(right);
            }
        }
        Ok(store::put_grant(self.database, self.transaction, place, &granted)?)
    }
}

/// The transaction drops the table of this number, with what was granted on it.
pub(crate) fn forget_table(
    database: &Database,
    transaction: &mut Transaction<'_>,
    number: u32,
) -> onrush::Result<()> {
    store::forget_grants(database, transaction, |_, on| on == i64::from(number))
}

/// The transaction drops the schema of this number, with what was granted on it.
pub(crate) fn forget_schema(
    database: &Database,
    transaction: &mut Transaction<'_>,
    number: i64,
) -> onrush::Result<()> {
    store::forget_grants(database, transaction, |_, on| on == place_of_schema(number))
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
    store::forget_grants(database, transaction, |_, on| on == from)
}

fn no_role(name: &str) -> SqlError {
    SqlError::new(state::UNDEFINED_OBJECT, format!("role {name:?} does not exist"))
        .with_hint(format!("CREATE ROLE {name} LOGIN PASSWORD '...' makes it."))
}
