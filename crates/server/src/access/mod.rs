//! Who may come in, and what they may do: roles, their passwords as SCRAM verifiers, and what was
//! granted to them. Kept in two tables of the database itself, so that a backup has them too; all of
//! it is in memory while the server runs.
//!
//! Invariants
//! 1. A password is never stored, and never told: only a verifier of it, and that to nobody.
//! 2. A change is durable before the statement that made it is answered, and counts for everyone's
//!    next statement.
//! 3. The tables cannot be named in SQL: their names begin with [`RESERVED`], which stands for the
//!    schema of the system views there.
//! 4. As long as any role can come in, a superuser can: see [`way_in`].

mod logins;
mod store;
mod verifier;
mod way_in;

use std::collections::{BTreeMap, BTreeSet};

use onrush::Database;
use parking_lot::{Mutex, RwLock};

pub use logins::Logins;
pub(crate) use verifier::Verifier;

use crate::error::{Result, SqlError, state};
use verifier::Pretence;

/// How the names of the tables of roles begin.
const RESERVED: &str = "onrush.";

/// Whether a table is the server's own.
pub(crate) fn is_reserved(table: &str) -> bool {
    table.starts_with(RESERVED)
}

/// What can be granted on a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    Select,
    Insert,
    Update,
    Delete,
    Truncate,
}

impl Right {
    pub(crate) const ALL: [Right; 5] =
        [Right::Select, Right::Insert, Right::Update, Right::Delete, Right::Truncate];

    /// As it stands in GRANT, and in the table of grants.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Right::Select => "SELECT",
            Right::Insert => "INSERT",
            Right::Update => "UPDATE",
            Right::Delete => "DELETE",
            Right::Truncate => "TRUNCATE",
        }
    }
}

/// What a role is, its name apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Role {
    pub(crate) verifier: Option<Verifier>,
    /// May do everything.
    pub(crate) is_superuser: bool,
    pub(crate) can_login: bool,
}

/// What is to be different in a role.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoleChange {
    /// `Some(None)`: no password, and so no way in.
    pub(crate) password: Option<Option<Verifier>>,
    pub(crate) is_superuser: Option<bool>,
    pub(crate) can_login: Option<bool>,
}

impl Role {
    fn change(&mut self, change: &RoleChange) -> Result<()> {
        if let Some(password) = &change.password {
            let checked = password.as_ref().map_or(Ok(()), Verifier::check);
            checked.map_err(|why| SqlError::new(state::INVALID_PARAMETER_VALUE, why))?;
            self.verifier.clone_from(password);
        }
        self.is_superuser = change.is_superuser.unwrap_or(self.is_superuser);
        self.can_login = change.can_login.unwrap_or(self.can_login);
        Ok(())
    }
}

/// Roles, and what each was granted.
#[derive(Clone, Debug, Default)]
struct Roles {
    roles: BTreeMap<String, Role>,
    /// By role and table.
    grants: BTreeMap<(String, String), BTreeSet<Right>>,
}

/// See the module.
pub(crate) struct Access {
    database: Database,
    roles: RwLock<Roles>,
    /// Held while roles are changed, on disk and then in memory.
    changing: Mutex<()>,
    pretence: Pretence,
}

/// All roles by name.
pub(crate) fn all_roles(database: &Database) -> onrush::Result<BTreeMap<String, Role>> {
    Ok(store::load(database)?.roles)
}

/// What was granted: to which role, on which table.
pub(crate) fn all_grants(database: &Database) -> onrush::Result<Vec<(String, String, Vec<Right>)>> {
    let grants = store::load(database)?.grants.into_iter();
    let grant =
        |((role, table), rights): (_, BTreeSet<Right>)| (role, table, rights.into_iter().collect());
    Ok(grants.map(grant).collect())
}

/// Who a client is, once it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) name: String,
    /// Came in by a way that needs no password: may do everything, whatever its name.
    pub(crate) is_trusted: bool,
}

impl Access {
    /// Reads the roles of a database.
    pub(crate) fn load(database: &Database) -> onrush::Result<Access> {
        let roles = store::load(database)?;
        Ok(Access {
            database: database.clone(),
            roles: RwLock::new(roles),
            changing: Mutex::new(()),
            pretence: Pretence::new(),
        })
    }

    /// Whether who comes in as `asking` may read what `other` says to the database.
    pub(crate) fn sees_statements(&self, asking: &str, other: &str) -> bool {
        let is_trusted = !self.has_passwords();
        asking == other || self.is_superuser(&Identity { name: asking.to_owned(), is_trusted })
    }

    /// Whether anybody can come in by a password.
    pub(crate) fn has_passwords(&self) -> bool {
        self.roles.read().roles.values().any(Role::lets_in)
    }

    /// Refuses a change of this role, to none where it is dropped, that [`way_in`] does not allow.
    fn check_way_in(&self, name: &str, changed: Option<&Role>) -> Result<()> {
        let before = self.roles.read().roles.clone();
        let mut after = before.clone();
        match changed {
            Some(role) => after.insert(name.to_owned(), role.clone()),
            None => after.remove(name),
        };
        way_in::check(&before, &after)
    }

    /// What a client of this name has to prove that it knows. Of a name that cannot come in, one that
    /// nobody knows: an answer must not tell which names there are.
    pub(crate) fn verifier_of(&self, name: &str) -> Verifier {
        let roles = self.roles.read();
        let role = roles.roles.get(name).filter(|role| role.can_login);
        let known = role.and_then(|role| role.verifier.clone());
        known.unwrap_or_else(|| self.pretence.verifier_of(name))
    }

    /// Whether the client may do everything.
    pub(crate) fn is_superuser(&self, who: &Identity) -> bool {
        let known =
            |roles: &Roles| roles.roles.get(&who.name).is_some_and(|role| role.is_superuser);
        who.is_trusted || known(&self.roles.read())
    }

    /// Refuses what only superusers may do.
    pub(crate) fn check_superuser(&self, who: &Identity, what: &str) -> Result<()> {
        if self.is_superuser(who) {
            return Ok(());
        }
        let message = format!("permission denied: {what} needs a superuser");
        Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, message)
            .with_hint(format!("A superuser can ALTER ROLE {} SUPERUSER.", who.name)))
    }

    /// Refuses what was not granted.
    pub(crate) fn check(&self, who: &Identity, right: Right, table: &str) -> Result<()> {
        if self.is_superuser(who) {
            return Ok(());
        }
        let place = (who.name.clone(), table.to_owned());
        let is_granted =
            |roles: &Roles| roles.grants.get(&place).is_some_and(|rights| rights.contains(&right));
        if is_granted(&self.roles.read()) {
            return Ok(());
        }
        let message = format!("permission denied for table {table}: {} is needed", right.name());
        let hint = format!("A superuser can GRANT {} ON {table} TO {}.", right.name(), who.name);
        Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, message).with_hint(hint))
    }

    /// Makes a role.
    pub(crate) fn create_role(
        &self,
        name: &str,
        change: &RoleChange,
        if_not_exists: bool,
    ) -> Result<()> {
        let _changing = self.changing.lock();
        if self.roles.read().roles.contains_key(name) {
            if if_not_exists {
                return Ok(());
            }
            let message = format!("role {name} exists already");
            return Err(SqlError::new(state::DUPLICATE_OBJECT, message));
        }
        let mut role = Role::default();
        role.change(change)?;
        self.check_way_in(name, Some(&role))?;
        store::put_role(&self.database, name, &role)?;
        self.roles.write().roles.insert(name.to_owned(), role);
        Ok(())
    }

    /// Changes a role.
    pub(crate) fn alter_role(&self, name: &str, change: &RoleChange) -> Result<()> {
        let _changing = self.changing.lock();
        let role = self.roles.read().roles.get(name).cloned();
        let Some(mut role) = role else { return Err(no_role(name)) };
        role.change(change)?;
        self.check_way_in(name, Some(&role))?;
        store::put_role(&self.database, name, &role)?;
        self.roles.write().roles.insert(name.to_owned(), role);
        Ok(())
    }

    /// Forgets a role and what was granted to it.
    pub(crate) fn drop_role(&self, name: &str, if_exists: bool) -> Result<()> {
        let _changing = self.changing.lock();
        if !self.roles.read().roles.contains_key(name) {
            return if if_exists { Ok(()) } else { Err(no_role(name)) };
        }
        self.check_way_in(name, None)?;
        self.forget_grants(|role, _| role == name)?;
        store::remove_role(&self.database, name)?;
        self.roles.write().roles.remove(name);
        Ok(())
    }

    /// Grants rights, or (`is_grant` false) takes them back.
    pub(crate) fn grant(
        &self,
        role: &str,
        table: &str,
        rights: &[Right],
        is_grant: bool,
    ) -> Result<()> {
        let _changing = self.changing.lock();
        if !self.roles.read().roles.contains_key(role) {
            return Err(no_role(role));
        }
        let place = (role.to_owned(), table.to_owned());
        let mut granted = self.roles.read().grants.get(&place).cloned().unwrap_or_default();
        for right in rights {
            if is_grant {
                granted.insert(*right);
            } else {
                granted.remove(right);
            }
        }
        store::put_grant(&self.database, &place, &granted)?;
        self.roles.write().grants.insert(place, granted);
        Ok(())
    }

    /// A table is gone: one that gets its name later begins without grants.
    pub(crate) fn forget_table(&self, name: &str) -> onrush::Result<()> {
        let _changing = self.changing.lock();
        self.forget_grants(|_, table| table == name)
    }

    /// A table has another name: what was granted on it goes with it.
    pub(crate) fn rename_table(&self, from: &str, to: &str) -> onrush::Result<()> {
        let _changing = self.changing.lock();
        let granted: Vec<(String, BTreeSet<Right>)> = {
            let roles = self.roles.read();
            let own = roles.grants.iter().filter(|((_, table), _)| table == from);
            own.map(|((role, _), rights)| (role.clone(), rights.clone())).collect()
        };
        for (role, rights) in granted {
            let place = (role, to.to_owned());
            store::put_grant(&self.database, &place, &rights)?;
            self.roles.write().grants.insert(place, rights);
        }
        self.forget_grants(|_, table| table == from)
    }

    fn forget_grants(&self, is_meant: impl Fn(&str, &str) -> bool) -> onrush::Result<()> {
        let places: Vec<(String, String)> = {
            let roles = self.roles.read();
            roles.grants.keys().filter(|(role, table)| is_meant(role, table)).cloned().collect()
        };
        for place in places {
            store::put_grant(&self.database, &place, &BTreeSet::new())?;
            self.roles.write().grants.remove(&place);
        }
        Ok(())
    }
}

fn no_role(name: &str) -> SqlError {
    SqlError::new(state::UNDEFINED_OBJECT, format!("there is no role {name}"))
        .with_hint(format!("CREATE ROLE {name} LOGIN PASSWORD '...' makes it."))
}
