//! The tables of roles and grants, made when the first role is.

use std::collections::BTreeSet;

use onrush::{
    ColumnDefinition, DataType, Database, Result, ScanOptions, Session, Table, TableDefinition,
    Value,
};

use super::verifier::{Verifier, unknown};
use super::{Right, Role, Roles};
use crate::kept::{durable_session, existing};

const ROLES: &str = "onrush.roles";
const GRANTS: &str = "onrush.grants";

fn definitions() -> Result<[TableDefinition; 2]> {
    let text = |name: &str| ColumnDefinition::new(name, DataType::Text).not_null();
    let flag = |name: &str| ColumnDefinition::new(name, DataType::Boolean).not_null();
    let roles = TableDefinition::builder(ROLES)
        .column(text("name"))
        .column(ColumnDefinition::new("verifier", DataType::Text))
        .column(flag("is_superuser"))
        .column(flag("can_login"))
        .primary_key(["name"])
        .build()?;
    let grants = TableDefinition::builder(GRANTS)
        .column(text("role"))
        .column(text("table"))
        .column(text("rights"))
        .primary_key(["role", "table"])
        .build()?;
    Ok([roles, grants])
}

/// The table, made if there is none; and a session that waits for the disk.
fn open(database: &Database, name: &str) -> Result<(Table, Session)> {
    for definition in definitions()? {
        if existing(database, definition.name())?.is_none() {
            database.create_table(definition)?;
        }
    }
    Ok((database.table(name)?, durable_session(database)?))
}

/// Reads everything.
pub(super) fn load(database: &Database) -> Result<Roles> {
    let mut all = Roles::default();
    let mut session = database.session()?;
    if let Some(table) = existing(database, ROLES)? {
        for row in session.scan(&table, &ScanOptions::default())? {
            let row = row?;
            let text = |at: usize| row[at].as_str().unwrap_or_default().to_owned();
            let flag = |at: usize| row[at] == Value::Boolean(true);
            // One that cannot be read lets nobody in, and is a password all the same: it must not open
            // the door to those who have none.
            let verifier = row[1].as_str().map(|text| text.parse().unwrap_or_else(|_| unknown()));
            let role = Role { verifier, is_superuser: flag(2), can_login: flag(3) };
            all.roles.insert(text(0), role);
        }
    }
    if let Some(table) = existing(database, GRANTS)? {
        for row in session.scan(&table, &ScanOptions::default())? {
            let row = row?;
            let text = |at: usize| row[at].as_str().unwrap_or_default().to_owned();
            let rights = text(2);
            let is_granted = |right: &Right| rights.split(' ').any(|name| name == right.name());
            let rights = Right::ALL.into_iter().filter(is_granted).collect();
            all.grants.insert((text(0), text(1)), rights);
        }
    }
    Ok(all)
}

pub(super) fn put_role(database: &Database, name: &str, role: &Role) -> Result<()> {
    let (table, mut session) = open(database, ROLES)?;
    let verifier = role.verifier.as_ref().map(Verifier::to_text);
    let verifier = verifier.map_or(Value::Null, Value::from);
    session
        .upsert(&table, &[name.into(), verifier, role.is_superuser.into(), role.can_login.into()])
}

pub(super) fn remove_role(database: &Database, name: &str) -> Result<()> {
    let (table, mut session) = open(database, ROLES)?;
    session.delete(&table, &[name.into()]).map(drop)
}

/// What a role may do with a table; nothing at all is no row.
pub(super) fn put_grant(
    database: &Database,
    (role, table_name): &(String, String),
    rights: &BTreeSet<Right>,
) -> Result<()> {
    let (table, mut session) = open(database, GRANTS)?;
    let key: [Value<'_>; 2] = [role.as_str().into(), table_name.as_str().into()];
    if rights.is_empty() {
        return session.delete(&table, &key).map(drop);
    }
    let names: Vec<&str> = rights.iter().map(|right| right.name()).collect();
    let [role, table_name] = key;
    session.upsert(&table, &[role, table_name, names.join(" ").into()])
}
