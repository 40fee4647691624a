//! Roles and what was granted to them, as psql's `\\du` and `\\dp` read it.

use onrush::{Database, Row, Table, Value};
use onrush_query::{SystemFunction, write_array};

use super::functions::number;
use super::kinds::{BOOL, INT4, NAME, OID, TEXT, TEXTS, TIMESTAMP};
use super::names::{OWNER, OWNER_OID, quoted, role_oid};
use super::{PG_CATALOG, SystemTable, oid};
use crate::access::{Right, Role, Roles};
use crate::execute::seen_by;
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
        let all = match table.definition().sequence() {
            Some(_) => Right::OF_SEQUENCES.to_vec(),
            None => Right::OF_TABLES.to_vec(),
        };
        shown(self.owner(table), &all, &self.roles.granted_on(table))
    }

    /// The rights on a schema, in the same way.
    pub(super) fn on_schema(&self, schema: &str) -> Value<'static> {
        let granted = self.roles.granted_on_schema(schema);
        shown(self.schema_owner(schema), &Right::OF_SCHEMAS, &granted)
    }

    /// Whom a table, sequence or view belongs to.
    pub(super) fn owner(&self, table: &Table) -> &str {
        self.roles.owner_of(table).unwrap_or(OWNER)
    }

    /// Whom a schema belongs to.
    pub(super) fn schema_owner(&self, schema: &str) -> &str {
        self.roles.owner_of_schema(schema).unwrap_or(OWNER)
    }
}

/// `pg_get_userbyid`.
pub(super) fn name_of_user(database: &Database) -> SystemFunction {
    let database = database.clone();
    SystemFunction::of_client("pg_get_userbyid", TEXT, move |client, given| {
        let Some(oid) = number(given, 0) else { return Value::Null };
        if oid == i64::from(OWNER_OID) {
            return OWNER.into();
        }
        // Of a database that has stopped nothing is told.
        let roles = seen_by(client, &database).roles().unwrap_or_default().roles;
        let name = roles.into_keys().find(|name| i64::from(role_oid(name)) == oid);
        name.unwrap_or_else(|| format!("unknown (OID={oid})")).into()
    })
}

/// The number of an owner.
pub(super) fn owner_oid(owner: &str) -> u32 {
    if owner == OWNER { OWNER_OID } else { role_oid(owner) }
}

/// Each role's rights as PostgreSQL writes them, the owner's first if they are all; NULL if nothing was granted.
fn shown(owner: &str, all: &[Right], granted: &[(String, Vec<Right>)]) -> Value<'static> {
    if granted.is_empty() {
        return Value::Null;
    }
    let is_said = granted.iter().any(|(role, _)| role == owner);
    let of_owner = (!is_said).then(|| entry(owner, all, owner));
    let granted = granted.iter().filter(|(_, rights)| !rights.is_empty());
    let granted = granted.map(|(role, rights)| entry(role, rights, owner));
    let all: Vec<String> = of_owner.into_iter().chain(granted).collect();
    write_array(all.iter().map(|entry| Some(entry.as_str()))).into()
}

fn entry(role: &str, rights: &[Right], owner: &str) -> String {
    let shown = Right::ALL.into_iter().filter(|right| rights.contains(right));
    let letters: String = shown.map(Right::letter).collect();
    let role = if role.is_empty() { String::new() } else { quoted(role) };
    format!("{role}={letters}/{}", quoted(owner))
}
