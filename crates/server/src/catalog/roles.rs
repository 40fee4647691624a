//! Roles and what was granted to them, as psql's `\\du` and `\\dp` read it.

use onrush::{Row, Table, Value};
use onrush_query::write_array;

use super::kinds::{BOOL, INT4, NAME, OID, TEXTS, TIMESTAMP};
use super::names::{OWNER, OWNER_OID, quoted, role_oid};
use super::{PG_CATALOG, SystemTable, oid};
use crate::access::{Right, Role, Roles};
use crate::seen::Seen;

pub(super) const ALL: &[SystemTable] = &[SystemTable {
    schema: PG_CATALOG,
    name: "pg_roles",
    columns: &[
        ("oid", OID),
        ("rolname", NAME),
        ("rolsuper", BOOL),
        ("rolinherit", BOOL),
        ("rolcreaterole", BOOL),
        ("rolcreatedb", BOOL),
        ("rolcanlogin", BOOL),
        ("rolreplication", BOOL),
        ("rolconnlimit", INT4),
        ("rolvaliduntil", TIMESTAMP),
        ("rolbypassrls", BOOL),
        ("rolconfig", TEXTS),
    ],
    rows: |seen, _| roles(seen),
}];

/// The owner of everything, and the roles that were made.
fn roles(seen: &Seen) -> Vec<Row> {
    let owner = Role { is_superuser: true, can_login: true, ..Role::default() };
    let mut rows = vec![row(OWNER_OID, OWNER, &owner)];
    // Of a database that has stopped nothing is told.
    let made = seen.roles().unwrap_or_default().roles;
    rows.extend(made.iter().map(|(name, role)| row(role_oid(name), name, role)));
    rows
}

fn row(number: u32, name: &str, role: &Role) -> Row {
    let no = Value::Boolean(false);
    vec![
        oid(number),
        name.to_owned().into(),
        Value::Boolean(role.is_superuser),
        Value::Boolean(true),
        no.clone(),
        no.clone(),
        Value::Boolean(role.can_login),
        no.clone(),
        Value::Int32(-1),
        Value::Null,
        no,
        Value::Null,
    ]
}

/// What was granted on tables.
pub(super) struct Rights {
    roles: Roles,
}

impl Rights {
    pub(super) fn of(seen: &Seen) -> Rights {
        Rights { roles: seen.roles().unwrap_or_default() }
    }

    /// The rights on a table, each role's as PostgreSQL writes it; NULL if nothing was granted.
    pub(super) fn on(&self, table: &Table) -> Value<'static> {
        let granted: Vec<String> = self.roles.granted_on(table).iter().map(entry).collect();
        if granted.is_empty() {
            return Value::Null;
        }
        let all = match table.definition().sequence() {
            Some(_) => Right::OF_SEQUENCES.to_vec(),
            None => Right::ALL.to_vec(),
        };
        let owner = entry(&(OWNER.to_owned(), all));
        let all = std::iter::once(&owner).chain(&granted);
        write_array(all.map(|entry| Some(entry.as_str()))).into()
    }

    /// The rights on a schema, in the same way.
    pub(super) fn on_schema(&self, schema: &str) -> Value<'static> {
        let users = self.roles.users_of(schema);
        if users.is_empty() {
            return Value::Null;
        }
        let granted = users.iter().map(|role| format!("{}=U/{OWNER}", quoted(role)));
        let all: Vec<String> =
            std::iter::once(format!("{OWNER}=UC/{OWNER}")).chain(granted).collect();
        write_array(all.iter().map(|entry| Some(entry.as_str()))).into()
    }
}

fn entry((role, rights): &(String, Vec<Right>)) -> String {
    let letter = |right: &Right| match right {
        Right::Insert => 'a',
        Right::Select => 'r',
        Right::Update => 'w',
        Right::Delete => 'd',
        Right::Truncate => 'D',
        Right::Usage => 'U',
    };
    let mut letters: Vec<char> = rights.iter().map(letter).collect();
    letters.sort_unstable_by_key(|letter| "arwdDU".find(*letter));
    let letters: String = letters.into_iter().collect();
    format!("{}={letters}/{OWNER}", quoted(role))
}
