//! Who may come in, and what they may do: roles, their passwords as SCRAM verifiers, and what was
//! granted to them. Kept in tables of the database itself, so that a backup has them too; all of
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
mod checks;
mod defaults;
mod logins;
mod members;
mod membership;
mod rights;
mod roles;
mod store;
mod verifier;
mod way_in;

use std::sync::Arc;

use onrush::Database;
use parking_lot::{Mutex, RwLock};

pub(crate) use change::own_tables;
pub(crate) use change::{RoleChanges, forget_schema, forget_table, move_table};
pub(crate) use defaults::{DefaultGrants, grant_defaults};
pub use logins::Logins;
pub(crate) use membership::{Granting, ShownMember};
pub(crate) use rights::{Kind, Right};
pub(crate) use roles::{Object, PLACE_OF_PUBLIC, PUBLIC, Role, RoleChange, Roles, place_of_schema};
pub(crate) use verifier::Verifier;

use crate::kept::Reads;
use verifier::Pretence;

/// How the names of the tables of roles begin.
const RESERVED: &str = "onrush.";

/// Whether a table is the server's own.
pub(crate) fn is_reserved(table: &str) -> bool {
    table.starts_with(RESERVED)
}

/// See the module.
pub(crate) struct Access {
    database: Database,
    roles: RwLock<Arc<Roles>>,
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
    /// Roles and grants as its open transaction has made them.
    pub(crate) own_roles: Option<Arc<Roles>>,
}

impl Identity {
    /// A role of this name, which has proven who it is.
    pub(crate) fn named(name: &str) -> Identity {
        let (name, temporary_schema) = (name.to_owned(), String::new());
        Identity { name, is_trusted: false, temporary_schema, own_roles: None }
    }
}

impl Access {
    /// Reads the roles of a database.
    pub(crate) fn load(database: &Database) -> onrush::Result<Access> {
        let roles = store::load(database, &mut database.session()?)?;
        Ok(Access {
            database: database.clone(),
            roles: RwLock::new(Arc::new(roles)),
            reading: Mutex::new(()),
            pretence: Pretence::new(),
        })
    }

    /// A commit has changed roles or grants: whoever made it sees it.
    pub(crate) fn read_again(&self, reads: &mut impl Reads) -> onrush::Result<()> {
        let _reading = self.reading.lock();
        *self.roles.write() = Arc::new(store::load(&self.database, reads)?);
        Ok(())
    }

    /// Whether who comes in as `asking` may read what `other` says to the database.
    pub(crate) fn sees_statements(&self, asking: &str, other: &str) -> bool {
        let is_trusted = !self.has_passwords();
        self.acts_as(&Identity { is_trusted, ..Identity::named(asking) }, other)
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
}
