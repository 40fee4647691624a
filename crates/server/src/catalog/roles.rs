//! Roles and what was granted to them, as psql's `\\du` and `\\dp` read it.

use onrush::{Database, Row, Table, Value};
use onrush_query::{Client, SystemFunction, write_array};

use super::functions::number;
use super::kinds::{BOOL, CHAR, INT4, NAME, OID, TEXT, TEXTS, TIMESTAMP};
use super::names::{
    DATABASE_OWNER, DATABASE_OWNER_OID, OWNER, OWNER_OID, default_grants_oid, quoted, role_oid,
    schema_oid,
};
use super::{PG_CATALOG, SystemTable, oid};
use crate::access::{DefaultGrants, Kind, Object, Right, Role, Roles};
use crate::execute::seen_by;
use crate::schemas;
use crate::seen::Seen;

pub(super) const ALL: &[SystemTable] = &[
    SystemTable {
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
            ("rolpassword", TEXT),
            ("rolvaliduntil", TIMESTAMP),
            ("rolbypassrls", BOOL),
            ("rolconfig", TEXTS),
        ],
        rows: |seen, _| roles(seen),
    },
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_default_acl",
        columns: &[
            ("oid", OID),
            ("defaclrole", OID),
            ("defaclnamespace", OID),
            ("defaclobjtype", CHAR),
            ("defaclacl", TEXTS),
        ],
        rows: |seen, _| {
            // Of a database that has stopped nothing is told.
            let all = seen.roles().unwrap_or_default().default_grants();
            all.iter().map(default_grants).collect()
        },
    },
];

fn default_grants(of: &DefaultGrants) -> Row {
    let owner = of.owner.as_deref().unwrap_or(OWNER);
    let schema = of.schema.as_deref().map_or(0, schema_oid);
    let granted = of.granted.iter().filter(|(_, rights)| !rights.is_empty());
    let granted =
        granted.map(|(role, rights)| entry(role.as_deref().unwrap_or(OWNER), rights, owner));
    let granted: Vec<String> = granted.collect();
    vec![
        oid(default_grants_oid(owner, schema, of.kind.letter())),
        oid(owner_oid(owner)),
        oid(schema),
        of.kind.letter().into(),
        write_array(granted.iter().map(|entry| Some(entry.as_str()))).into(),
    ]
}

/// The owner of everything, and the roles that were made.
fn roles(seen: &Seen) -> Vec<Row> {
    let owner = Role { is_superuser: true, can_login: true, ..Role::default() };
    let mut rows = vec![
        row(OWNER_OID, OWNER, &owner),
        row(DATABASE_OWNER_OID, DATABASE_OWNER, &Role::default()),
    ];
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
        Value::Boolean(!role.no_inherit),
        no.clone(),
        no.clone(),
        Value::Boolean(role.can_login),
        no.clone(),
        Value::Int32(-1),
        // As PostgreSQL shows it to everyone.
        "********".into(),
        Value::Null,
        no,
        Value::Null,
    ]
}

/// What was granted on tables, types and schemas.
pub(super) struct Rights {
    roles: Roles,
}

impl Rights {
    pub(super) fn of(seen: &Seen) -> Rights {
        Rights { roles: seen.roles().unwrap_or_default() }
    }

    /// The rights on the schema `public` before anybody granted any.
    pub(super) fn at_first_on_public() -> Value<'static> {
        shown(DATABASE_OWNER, Kind::Schema, &[(String::new(), vec![Right::Usage])])
    }

    /// The rights on a table or a type, each role's as PostgreSQL writes it; NULL if nothing was granted.
    pub(super) fn on(&self, table: &Table) -> Value<'static> {
        let kind = Object::of_table(table).kind();
        shown(self.owner(table), kind, &self.roles.granted_on(table))
    }

    /// The rights on a schema, in the same way.
    pub(super) fn on_schema(&self, schema: &str) -> Value<'static> {
        let granted = self.roles.granted_on_schema(schema);
        shown(self.shown_schema_owner(schema), Kind::Schema, &granted)
    }

    /// Whom a table, sequence, view or type belongs to.
    pub(super) fn owner(&self, table: &Table) -> &str {
        self.roles.owner_of(table).unwrap_or(OWNER)
    }

    /// Whom a schema belongs to.
    pub(super) fn schema_owner(&self, schema: &str) -> &str {
        self.roles.owner_of_schema(schema).unwrap_or(OWNER)
    }

    /// The same as it is shown: `public` belongs to whoever owns the database until it is given to another.
    pub(super) fn shown_schema_owner(&self, schema: &str) -> &str {
        match self.schema_owner(schema) {
            OWNER if schema == schemas::PUBLIC => DATABASE_OWNER,
            other => other,
        }
    }
}

/// The functions that ask for roles.
pub(super) fn functions(database: &Database) -> [SystemFunction; 2] {
    let (of_name, of_rights) = (database.clone(), database.clone());
    [
        SystemFunction::of_client("pg_get_userbyid", TEXT, move |client, given| {
            let Some(oid) = number(given, 0) else { return Value::Null };
            role_name(client, &of_name, oid).into()
        }),
        SystemFunction::of_client("acldefault", TEXTS, move |client, given| {
            let (Some(kind), Some(oid)) = (given.first().and_then(Value::as_str), number(given, 1))
            else {
                return Value::Null;
            };
            rights_at_first(kind, &role_name(client, &of_rights, oid))
        }),
    ]
}

fn role_name(client: &Client, database: &Database, oid: i64) -> String {
    if oid == i64::from(OWNER_OID) {
        return OWNER.to_owned();
    }
    if oid == i64::from(DATABASE_OWNER_OID) {
        return DATABASE_OWNER.to_owned();
    }
    // Of a database that has stopped nothing is told.
    let roles = seen_by(client, database).roles().unwrap_or_default().roles;
    let name = roles.into_keys().find(|name| i64::from(role_oid(name)) == oid);
    name.unwrap_or_else(|| format!("unknown (OID={oid})"))
}

/// The rights on a thing of which nothing was granted: those of everyone and the owner's. NULL for a kind that
/// PostgreSQL does not have.
fn rights_at_first(kind: &str, owner: &str) -> Value<'static> {
    let (of_all, of_owner) = match kind {
        "c" => ("", ""),
        "r" => ("", "arwdDxt"),
        "s" => ("", "rwU"),
        "d" => ("Tc", "CTc"),
        "f" => ("X", "X"),
        "l" | "T" => ("U", "U"),
        "L" => ("", "rw"),
        "n" => ("", "UC"),
        "p" => ("", "sA"),
        "t" => ("", "C"),
        "F" | "S" => ("", "U"),
        _ => return Value::Null,
    };
    let owner = quoted(owner);
    let entries = [(String::new(), of_all), (owner.clone(), of_owner)];
    let entries = entries.iter().filter(|(_, rights)| !rights.is_empty());
    let entries: Vec<String> =
        entries.map(|(role, rights)| format!("{role}={rights}/{owner}")).collect();
    write_array(entries.iter().map(|entry| Some(entry.as_str()))).into()
}

/// The number of an owner.
pub(super) fn owner_oid(owner: &str) -> u32 {
    match owner {
        OWNER => OWNER_OID,
        DATABASE_OWNER => DATABASE_OWNER_OID,
        other => role_oid(other),
    }
}

/// Each role's rights as PostgreSQL writes them, first those that everyone and the owner have by themselves; NULL if
/// nothing was granted.
fn shown(owner: &str, kind: Kind, granted: &[(String, Vec<Right>)]) -> Value<'static> {
    if granted.is_empty() {
        return Value::Null;
    }
    let at_first = [("", kind.rights_of_everyone()), (owner, kind.rights())];
    let is_said = |role: &str| granted.iter().any(|(said, _)| said == role);
    let at_first =
        at_first.into_iter().filter(|(role, rights)| !is_said(role) && !rights.is_empty());
    let at_first = at_first.map(|(role, rights)| entry(role, rights, owner));
    let granted = granted.iter().filter(|(_, rights)| !rights.is_empty());
    let granted = granted.map(|(role, rights)| entry(role, rights, owner));
    let all: Vec<String> = at_first.chain(granted).collect();
    write_array(all.iter().map(|entry| Some(entry.as_str()))).into()
}

fn entry(role: &str, rights: &[Right], owner: &str) -> String {
    let shown = Right::ALL.into_iter().filter(|right| rights.contains(right));
    let letters: String = shown.map(Right::letter).collect();
    let role = if role.is_empty() { String::new() } else { quoted(role) };
    format!("{role}={letters}/{}", quoted(owner))
}
