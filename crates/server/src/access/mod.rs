//! Who may come in, and what they may do: roles, their passwords as SCRAM verifiers, and what was
//! granted to them. Kept in two tables of the database itself, so that a backup has them too; all of
//! it is in memory while the server runs.
//!
//! Invariants
//! 1. A password is never stored, and never told: only a verifier of it, and that to nobody.
//! 2. A change is a row of the transaction that makes it. What is in memory is read anew behind its commit and
//!    before that is answered, so it is never anything that was not committed.
//! 3. The tables cannot be named in SQL: their names begin with [`RESERVED`], which stands for the
//!    schema of the system views there.
//! 4. As long as any role can come in, a superuser can: see [`way_in`].

mod change;
mod logins;
mod store;
mod verifier;
mod way_in;

use std::collections::{BTreeMap, BTreeSet};

use onrush::{Database, Table};
use parking_lot::{Mutex, RwLock};

pub(crate) use change::{RoleChanges, forget_schema, forget_table, move_table};
pub use logins::Logins;
pub(crate) use verifier::Verifier;

use crate::error::{Result, SqlError, state};
use crate::kept::Reads;
use crate::{schemas, views};
use verifier::Pretence;

/// How the names of the tables of roles begin.
const RESERVED: &str = "onrush.";

/// Whether a table is the server's own.
pub(crate) fn is_reserved(table: &str) -> bool {
    table.starts_with(RESERVED)
}

/// What can be granted: on a table, and the last one on a schema or a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    Select,
    Insert,
    Update,
    Delete,
    Truncate,
    /// Of a schema: without it nothing can be done with its tables. Everyone has that of `public`. Of a sequence: to
    /// be given its values.
    Usage,
}

impl Right {
    /// Those on a table.
    pub(crate) const ALL: [Right; 5] =
        [Right::Select, Right::Insert, Right::Update, Right::Delete, Right::Truncate];

    /// Those on a sequence.
    pub(crate) const OF_SEQUENCES: [Right; 3] = [Right::Select, Right::Update, Right::Usage];

    /// As it stands in GRANT, and in the table of grants.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Right::Select => "SELECT",
            Right::Insert => "INSERT",
            Right::Update => "UPDATE",
            Right::Delete => "DELETE",
            Right::Truncate => "TRUNCATE",
            Right::Usage => "USAGE",
        }
    }
}

/// What a role is, its name apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Role {
    /// By which grants know it.
    pub(crate) number: i64,
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
pub(crate) struct Roles {
    pub(crate) roles: BTreeMap<String, Role>,
    /// By the numbers of role and table, or of a schema below zero.
    grants: BTreeMap<(i64, i64), BTreeSet<Right>>,
    /// Numbers of schemas, by their names.
    schemas: BTreeMap<String, i64>,
}

/// A schema where a grant has the number of a table.
pub(crate) fn place_of_schema(number: i64) -> i64 {
    -number
}

impl Roles {
    /// Roles that may use a schema, by their names.
    pub(crate) fn users_of(&self, schema: &str) -> Vec<String> {
        let Some(number) = self.schemas.get(schema) else { return Vec::new() };
        let may = |role: &Role| self.grants.contains_key(&(role.number, place_of_schema(*number)));
        let users = self.roles.iter().filter(|(_, role)| may(role));
        users.map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn may_use(&self, role: &Role, schema: &str) -> bool {
        let number = self.schemas.get(schema);
        let is_granted =
            |number: &i64| self.grants.contains_key(&(role.number, place_of_schema(*number)));
        schema == schemas::PUBLIC || number.is_some_and(is_granted)
    }

    /// What a role was granted on a table.
    pub(crate) fn granted_to(&self, role: &Role, table: &Table) -> Vec<Right> {
        let rights = self.grants.get(&(role.number, i64::from(table.id())));
        rights.into_iter().flatten().copied().collect()
    }

    /// What was granted on a table, by the names of roles.
    pub(crate) fn granted_on(&self, table: &Table) -> Vec<(String, Vec<Right>)> {
        let rights = |(name, role): (&String, &Role)| {
            let rights = self.grants.get(&(role.number, i64::from(table.id())))?;
            Some((name.clone(), rights.iter().copied().collect()))
        };
        self.roles.iter().filter_map(rights).collect()
    }
}

/// See the module.
pub(crate) struct Access {
    database: Database,
    roles: RwLock<Roles>,
    /// Held while they are read anew: who comes later reads what is newer.
    reading: Mutex<()>,
    pretence: Pretence,
}

/// Roles and grants as somebody sees them.
pub(crate) fn roles_of(database: &Database, reads: &mut impl Reads) -> onrush::Result<Roles> {
    store::load(database, reads)
}

/// Who a client is, once it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) name: String,
    /// Came in by a way that needs no password: may do everything, whatever its name.
    pub(crate) is_trusted: bool,
    /// In which it may do everything.
    pub(crate) temporary_schema: String,
}

impl Access {
    /// Reads the roles of a database.
    pub(crate) fn load(database: &Database) -> onrush::Result<Access> {
        let roles = store::load(database, &mut database.session()?)?;
        Ok(Access {
            database: database.clone(),
            roles: RwLock::new(roles),
            reading: Mutex::new(()),
            pretence: Pretence::new(),
        })
    }

    /// A commit has changed roles or grants: whoever made it sees it.
    pub(crate) fn read_again(&self, reads: &mut impl Reads) -> onrush::Result<()> {
        let _reading = self.reading.lock();
        *self.roles.write() = store::load(&self.database, reads)?;
        Ok(())
    }

    /// Whether who comes in as `asking` may read what `other` says to the database.
    pub(crate) fn sees_statements(&self, asking: &str, other: &str) -> bool {
        let is_trusted = !self.has_passwords();
        asking == other
            || self.is_superuser(&Identity {
                name: asking.to_owned(),
                is_trusted,
                temporary_schema: String::new(),
            })
    }

    /// Whether anybody can come in by a password.
    pub(crate) fn has_passwords(&self) -> bool {
        self.roles.read().roles.values().any(Role::lets_in)
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
    pub(crate) fn check(&self, who: &Identity, right: Right, table: &Table) -> Result<()> {
        if self.is_superuser(who) || schemas::parts(table.name()).0 == who.temporary_schema {
            return Ok(());
        }
        self.check_usage(who, schemas::parts(table.name()).0)?;
        if self.is_granted(who, right, table) {
            return Ok(());
        }
        let what = views::kind(table.definition());
        let table = table.name();
        let message = format!("permission denied for {what} {}", schemas::own_name(table));
        let hint = format!("A superuser can GRANT {} ON {table} TO {}.", right.name(), who.name);
        Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, message).with_hint(hint))
    }

    /// Refuses what none of these rights on a sequence was granted for.
    pub(crate) fn check_sequence(
        &self,
        who: &Identity,
        rights: &[Right],
        sequence: &Table,
    ) -> Result<()> {
        let (schema, name) = schemas::parts(sequence.name());
        if self.is_superuser(who) || schema == who.temporary_schema {
            return Ok(());
        }
        self.check_usage(who, schema)?;
        if rights.iter().any(|right| self.is_granted(who, *right, sequence)) {
            return Ok(());
        }
        let message = format!("permission denied for sequence {name}");
        let right = rights.first().map_or("", |right| right.name());
        let hint = format!(
            "A superuser can GRANT {right} ON SEQUENCE {} TO {}.",
            sequence.name(),
            who.name
        );
        Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, message).with_hint(hint))
    }

    fn check_usage(&self, who: &Identity, schema: &str) -> Result<()> {
        let may_use = {
            let roles = self.roles.read();
            roles.roles.get(&who.name).is_some_and(|role| roles.may_use(role, schema))
        };
        if may_use {
            return Ok(());
        }
        let message = format!("permission denied for schema {schema}");
        let hint = format!("A superuser can GRANT USAGE ON SCHEMA {schema} TO {}.", who.name);
        Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, message).with_hint(hint))
    }

    fn is_granted(&self, who: &Identity, right: Right, table: &Table) -> bool {
        let roles = self.roles.read();
        let Some(role) = roles.roles.get(&who.name) else { return false };
        let rights = roles.grants.get(&(role.number, i64::from(table.id())));
        rights.is_some_and(|rights| rights.contains(&right))
    }
}
