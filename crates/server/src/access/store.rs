//! The tables of roles and grants, made when the first role is.
//!
//! A role has a number, by which grants know it, as they know tables: a role or a table that gets a name later
//! begins without any.

use std::collections::BTreeSet;

use onrush::{
    ColumnDefinition, DataType, Database, Error, KeyInWords, KeyStrategy, Result, Row, ScanOptions,
    Table, TableDefinition, Transaction, Value,
};

use super::members::{self, Members};
use super::roles::EVERYONE;
use super::verifier::{Verifier, unknown};
use super::{PLACE_OF_PUBLIC, Right, Role, Roles, defaults};
use crate::kept::{self, Reads, existing, made};
use crate::schemas;

const ROLES: &str = "onrush.roles";
const GRANTS: &str = "onrush.grants";
const OWNERS: &str = "onrush.owners";
const GUARDS: &str = "onrush.guards";
/// The roles that do not inherit.
const NO_INHERIT: &str = "onrush.no_inherit";

/// Where it stands that everyone may use the schema `public`.
const USAGE_OF_PUBLIC: (i64, i64) = (EVERYONE, PLACE_OF_PUBLIC);

/// What a transaction writes that takes a way in from a superuser.
const WAY_IN: &str = "way in";
/// The same of one that makes members.
const MEMBERS: &str = "members";

fn table_of_roles(database: &Database) -> Result<Table> {
    let text = |name: &str| ColumnDefinition::new(name, DataType::Text);
    let flag = |name: &str| ColumnDefinition::new(name, DataType::Boolean).not_null();
    let number = KeyStrategy::Identity { start: 1, strict: false };
    let number = ColumnDefinition::new("number", DataType::Int64).not_null().default_key(number);
    let roles = TableDefinition::builder(ROLES)
        .column(text("name").not_null())
        .column(text("verifier"))
        .column(flag("is_superuser"))
        .column(flag("can_login"))
        .column(number)
        .primary_key(["name"])
        .build()?;
    made(database, roles)
}

fn table_of_grants(database: &Database) -> Result<Table> {
    let number = |name: &str| ColumnDefinition::new(name, DataType::Int64).not_null();
    let grants = TableDefinition::builder(GRANTS)
        .column(number("role"))
        .column(number("table"))
        .column(ColumnDefinition::new("rights", DataType::Text).not_null())
        .primary_key(["role", "table"])
        .build()?;
    made(database, grants)
}

fn table_of_owners(database: &Database) -> Result<Table> {
    let number = |name: &str| ColumnDefinition::new(name, DataType::Int64).not_null();
    let owners = TableDefinition::builder(OWNERS)
        .column(number("table"))
        .column(number("role"))
        .primary_key(["table"])
        .build()?;
    made(database, owners)
}

/// Reads everything.
pub(super) fn load(database: &Database, reads: &mut impl Reads) -> Result<Roles> {
    let mut all = Roles::default();
    for row in kept::rows(database, reads, ROLES)? {
        all.roles.extend(role(&row));
    }
    let apart = kept::rows(database, reads, NO_INHERIT)?;
    let apart: BTreeSet<i64> = apart.iter().filter_map(|row| row[0].as_i64()).collect();
    all.roles.values_mut().for_each(|role| role.no_inherit = apart.contains(&role.number));
    all.members = Members::new(members::load(database, reads)?, &all.roles);
    for row in kept::rows(database, reads, GRANTS)? {
        all.grants.extend(grant(&row));
    }
    // As long as nobody has said otherwise.
    let of_public = all.grants.entry(USAGE_OF_PUBLIC);
    of_public.or_insert_with(|| BTreeSet::from([Right::Usage]));
    for row in kept::rows(database, reads, OWNERS)? {
        all.owners.extend(row[0].as_i64().zip(row[1].as_i64()));
    }
    all.defaults = defaults::load(database, reads)?;
    all.schemas = schemas::numbers(database, reads)?;
    Ok(all)
}

fn role(row: &Row) -> Option<(String, Role)> {
    let [name, verifier, is_superuser, can_login, rest @ ..] = row.as_slice() else { return None };
    let flag = |value: &Value<'_>| *value == Value::Boolean(true);
    // One that cannot be read lets nobody in, and is a password all the same: it must not open
    // the door to those who have none.
    let verifier = verifier.as_str().map(|text| text.parse().unwrap_or_else(|_| unknown()));
    let (is_superuser, can_login) = (flag(is_superuser), flag(can_login));
    // Without a number nothing is granted to it.
    let number = rest.first().and_then(Value::as_i64).unwrap_or(0);
    let role = Role { number, verifier, is_superuser, can_login, no_inherit: false };
    Some((name.as_str()?.to_owned(), role))
}

fn grant(row: &Row) -> Option<((i64, i64), BTreeSet<Right>)> {
    Some(((row[0].as_i64()?, row[1].as_i64()?), rights_of(row[2].as_str()?)))
}

/// Rights as they are written in rows.
pub(super) fn rights_of(written: &str) -> BTreeSet<Right> {
    let is_granted = |right: &Right| written.split(' ').any(|name| name == right.name());
    Right::ALL.into_iter().filter(is_granted).collect()
}

/// Writes them.
pub(super) fn written(rights: &BTreeSet<Right>) -> Value<'static> {
    let names: Vec<&str> = rights.iter().map(|right| right.name()).collect();
    names.join(" ").into()
}

fn verifier(role: &Role) -> Value<'static> {
    role.verifier.as_ref().map(Verifier::to_text).map_or(Value::Null, Value::from)
}

/// A role that there is none of yet; it gets its number here.
pub(super) fn add_role(
    database: &Database,
    transaction: &mut Transaction<'_>,
    name: &str,
    role: &Role,
) -> Result<()> {
    let (is_superuser, can_login) = (role.is_superuser.into(), role.can_login.into());
    let row = [name.into(), verifier(role), is_superuser, can_login, Value::Default];
    transaction.insert(&table_of_roles(database)?, &row)
}

pub(super) fn change_role(
    database: &Database,
    transaction: &mut Transaction<'_>,
    name: &str,
    role: &Role,
) -> Result<()> {
    let changes = [
        ("verifier", verifier(role)),
        ("is_superuser", role.is_superuser.into()),
        ("can_login", role.can_login.into()),
    ];
    transaction.update(&table_of_roles(database)?, &[name.into()], &changes)?;
    put_no_inherit(database, transaction, role)
}

/// Whether a role inherits.
pub(super) fn put_no_inherit(
    database: &Database,
    transaction: &mut Transaction<'_>,
    role: &Role,
) -> Result<()> {
    let number = ColumnDefinition::new("role", DataType::Int64).not_null();
    let apart = TableDefinition::builder(NO_INHERIT).column(number).primary_key(["role"]);
    let row = [role.number.into()];
    let kept = role.no_inherit.then_some(row.as_slice());
    put_or_remove(database, transaction, apart.build()?, &row, kept)
}

pub(super) fn remove_role(
    database: &Database,
    transaction: &mut Transaction<'_>,
    name: &str,
    role: &Role,
) -> Result<()> {
    put_no_inherit(database, transaction, &Role { no_inherit: false, ..role.clone() })?;
    members::forget_role(database, transaction, role.number)?;
    transaction.delete(&table_of_roles(database)?, &[name.into()]).map(drop)
}

/// What a role may do with a table or a schema; nothing at all is no row.
pub(super) fn put_grant(
    database: &Database,
    transaction: &mut Transaction<'_>,
    (role, table): (i64, i64),
    rights: &BTreeSet<Right>,
) -> Result<()> {
    let says_something = !rights.is_empty() || (role, table) == USAGE_OF_PUBLIC;
    put_own(database, transaction, (role, table), says_something.then_some(rights))
}

/// As [`put_grant`], of who has rights without being granted any: nothing at all is a row, and none says nothing.
pub(super) fn put_own(
    database: &Database,
    transaction: &mut Transaction<'_>,
    (role, table): (i64, i64),
    rights: Option<&BTreeSet<Right>>,
) -> Result<()> {
    let grants = table_of_grants(database)?;
    let key = [role.into(), table.into()];
    let Some(rights) = rights else { return remove(transaction, &grants, &key) };
    let [role, table] = key;
    transaction.upsert(&grants, &[role, table, written(rights)])
}

/// Whom a table or a schema belongs to; none: the owner of the server.
pub(super) fn put_owner(
    database: &Database,
    transaction: &mut Transaction<'_>,
    table: i64,
    role: Option<i64>,
) -> Result<()> {
    let owners = table_of_owners(database)?;
    match role {
        Some(role) => transaction.upsert(&owners, &[table.into(), role.into()]),
        None => remove(transaction, &owners, &[table.into()]),
    }
}

/// Removes a row. One that somebody has written since the transaction's snapshot is not passed over.
pub(super) fn remove(
    transaction: &mut Transaction<'_>,
    table: &Table,
    key: &[Value<'_>],
) -> Result<()> {
    if transaction.delete(table, key)? || transaction.newest_snapshot().get(table, key)?.is_none() {
        return Ok(());
    }
    Err(Error::Conflict { table: table.name().to_owned(), key: KeyInWords(Vec::new()) })
}

/// Puts a row in place of the one of its key, in a table that is made when it is first needed; none is no row.
pub(super) fn put_or_remove(
    database: &Database,
    transaction: &mut Transaction<'_>,
    definition: TableDefinition,
    key: &[Value<'_>],
    row: Option<&[Value<'_>]>,
) -> Result<()> {
    match row {
        Some(row) => transaction.upsert(&made(database, definition)?, row),
        None => match existing(database, definition.name())? {
            Some(table) => remove(transaction, &table, key),
            None => Ok(()),
        },
    }
}

/// Whom a table belongs to, in a transaction that keeps others from giving it to somebody else.
pub(super) fn owner_of(
    database: &Database,
    transaction: &Transaction<'_>,
    table: i64,
) -> Result<Option<i64>> {
    let Some(owners) = existing(database, OWNERS)? else { return Ok(None) };
    let rows = transaction.newest_snapshot().scan(&owners, &ScanOptions::default())?;
    let rows = rows.collect::<Result<Vec<Row>>>()?;
    Ok(rows.iter().find(|row| row[0].as_i64() == Some(table)).and_then(|row| row[1].as_i64()))
}

/// The transaction drops tables or schemas: they belong to nobody.
pub(super) fn forget_owners(
    database: &Database,
    transaction: &mut Transaction<'_>,
    is_meant: impl Fn(i64) -> bool,
) -> Result<()> {
    kept::remove(database, transaction, OWNERS, |row| row[0].as_i64().is_some_and(&is_meant))
}

/// What is granted on a table that the transaction keeps others from granting more on, by roles.
pub(super) fn granted_on(
    database: &Database,
    transaction: &Transaction<'_>,
    table: i64,
) -> Result<Vec<(i64, BTreeSet<Right>)>> {
    let Some(grants) = existing(database, GRANTS)? else { return Ok(Vec::new()) };
    let rows = transaction.newest_snapshot().scan(&grants, &ScanOptions::default())?;
    let rows = rows.collect::<Result<Vec<Row>>>()?;
    let on_table = rows.iter().filter_map(grant).filter(|((_, on), _)| *on == table);
    Ok(on_table.map(|((role, _), rights)| (role, rights)).collect())
}

/// The transaction drops roles or tables: nothing is granted to them, or on them.
pub(super) fn forget_grants(
    database: &Database,
    transaction: &mut Transaction<'_>,
    is_meant: impl Fn(i64, i64) -> bool,
) -> Result<()> {
    let is_meant = |row: &Row| grant(row).is_some_and(|((role, table), _)| is_meant(role, table));
    kept::remove(database, transaction, GRANTS, is_meant)
}

/// Of transactions that each take a way in from another superuser, only one commits.
pub(super) fn guard_way_in(database: &Database, transaction: &mut Transaction<'_>) -> Result<()> {
    guard(database, transaction, WAY_IN)
}

/// Of transactions that each make members of roles, only one commits: together they could make a circle.
pub(super) fn guard_members(database: &Database, transaction: &mut Transaction<'_>) -> Result<()> {
    guard(database, transaction, MEMBERS)
}

fn guard(database: &Database, transaction: &mut Transaction<'_>, what: &str) -> Result<()> {
    let name = ColumnDefinition::new("name", DataType::Text).not_null();
    let guards = TableDefinition::builder(GUARDS).column(name).primary_key(["name"]).build()?;
    transaction.upsert(&made(database, guards)?, &[what.into()])
}
