//! Schemas: names in front of tables' names. The engine knows none: there a table has one name, that of
//! its schema in front of its own unless the schema is `public`. Which schemas there are is kept in a table
//! of the database itself, so that a backup has it too.
//!
//! Invariants
//! 1. A schema's name has no dot in it, so that the name of each table is read one way only.
//! 2. The table of schemas cannot be named in SQL, as those of roles.
//! 3. A schema has a number, by which grants know it, under each of its names.

use std::collections::{BTreeMap, BTreeSet};

use onrush::{
    ColumnDefinition, DataType, Database, KeyStrategy, Result, TableDefinition, Transaction, Value,
};

use crate::kept::{self, Reads, existing, made};
use crate::made_up;
use crate::seen::Seen;

/// The schema of tables with nothing in front.
pub(crate) const PUBLIC: &str = "public";

const SCHEMAS: &str = "onrush.schemas";

/// What each client calls the schema of its temporary tables.
pub(crate) const TEMPORARY: &str = "pg_temp";

/// The schema of the temporary tables of a client, by the number of its session in the engine.
pub(crate) fn temporary_of(session: u64) -> String {
    format!("{TEMPORARY}_{session}")
}

/// Whether temporary tables of a client are in it.
pub(crate) fn is_temporary(schema: &str) -> bool {
    schema.strip_prefix(TEMPORARY).is_some_and(|number| number.starts_with('_'))
}

/// Whether it is a temporary table of a client, by the engine's name.
pub(crate) fn has_temporary(table: &str) -> bool {
    is_temporary(parts(table).0)
}

/// The engine's name of a table.
pub(crate) fn joined(schema: &str, table: &str) -> String {
    match schema {
        // A dot would say that it is in a schema.
        PUBLIC if !table.contains('.') => table.to_owned(),
        _ => format!("{schema}.{table}"),
    }
}

/// Schema and name of a table, of the engine's name.
pub(crate) fn parts(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or((PUBLIC, name))
}

/// The name of a table in its schema.
pub(crate) fn own_name(name: &str) -> &str {
    parts(name).1
}

fn definition() -> Result<TableDefinition> {
    let name = ColumnDefinition::new("name", DataType::Text).not_null();
    let number = KeyStrategy::Identity { start: 1, strict: false };
    let number = ColumnDefinition::new("number", DataType::Int64).not_null().default_key(number);
    let schemas = TableDefinition::builder(SCHEMAS).column(name).column(number);
    Ok(schemas.primary_key(["name"]).build()?)
}

/// The name of a table's primary key; none for a table without one.
pub(crate) fn key_name(table: &TableDefinition) -> Option<String> {
    let made_up = || made_up_key_name(table.name());
    let own = || table.key_name().map_or_else(made_up, str::to_owned);
    table.row_id().is_none().then(own)
}

/// Whether the primary key of a table has this name.
pub(crate) fn has_key_named(table: &TableDefinition, name: &str) -> bool {
    key_name(table).is_some_and(|key| key == name)
}

/// The name of the primary key of a table whose key was not given one.
pub(crate) fn made_up_key_name(table: &str) -> String {
    made_up::name(own_name(table), None, KEY)
}

/// What made-up names of primary keys end with.
pub(crate) const KEY: &str = "pkey";

/// The schemas that users have made.
pub(crate) fn made_ones(database: &Database, reads: &mut impl Reads) -> Result<BTreeSet<String>> {
    Ok(numbers(database, reads)?.into_keys().collect())
}

/// Their numbers, by their names.
pub(crate) fn numbers(
    database: &Database,
    reads: &mut impl Reads,
) -> Result<BTreeMap<String, i64>> {
    let rows = kept::rows(database, reads, SCHEMAS)?;
    let number = |row: &onrush::Row| Some((row[0].as_str()?.to_owned(), row[1].as_i64()?));
    Ok(rows.iter().filter_map(number).collect())
}

/// Whether users have made this schema.
pub(crate) fn is_made(database: &Database, name: &str) -> Result<bool> {
    match existing(database, SCHEMAS)? {
        Some(table) => Ok(database.session()?.get(&table, &[name.into()])?.is_some()),
        None => Ok(false),
    }
}

/// The schemas that users have made, and those that tables are in.
pub(crate) fn all(seen: &Seen) -> Result<BTreeSet<String>> {
    let mut schemas = seen.made_schemas()?;
    schemas.extend(seen.tables().iter().map(|table| parts(table.name()).0.to_owned()));
    schemas.remove(PUBLIC);
    Ok(schemas)
}

/// Whether tables can be in a schema of this name.
pub(crate) fn is_there(seen: &Seen, name: &str) -> Result<bool> {
    Ok(name == PUBLIC || seen.has_made_schema(name)? || !tables_of(seen, name).is_empty())
}

/// The engine's names of the tables of a schema.
pub(crate) fn tables_of(seen: &Seen, schema: &str) -> Vec<String> {
    let names = seen.names().into_iter();
    names.filter(|name| parts(name).0 == schema).collect()
}

/// Makes a schema that is not there.
pub(crate) fn create(
    database: &Database,
    transaction: &mut Transaction<'_>,
    name: &str,
) -> Result<()> {
    let schemas = made(database, definition()?)?;
    transaction.insert(&schemas, &[name.into(), Value::Default])
}

/// The number of a schema that somebody is granted something on: of two transactions that do this, or drop or
/// rename it, only one commits. One that is there by its tables alone is made here.
pub(crate) fn hold(
    database: &Database,
    transaction: &mut Transaction<'_>,
    name: &str,
) -> Result<i64> {
    let schemas = made(database, definition()?)?;
    let number = |transaction: &mut Transaction<'_>| {
        Ok::<_, onrush::Error>(numbers(database, transaction)?.get(name).copied())
    };
    match number(transaction)? {
        Some(number) => {
            transaction.upsert(&schemas, &[name.into(), number.into()])?;
            Ok(number)
        }
        None => {
            transaction.insert(&schemas, &[name.into(), Value::Default])?;
            Ok(number(transaction)?.unwrap_or_default())
        }
    }
}

/// Gives a schema another name.
pub(crate) fn rename(
    database: &Database,
    transaction: &mut Transaction<'_>,
    (name, to): (&str, &str),
) -> Result<()> {
    let number = hold(database, transaction, name)?;
    let schemas = made(database, definition()?)?;
    transaction.delete(&schemas, &[name.into()])?;
    transaction.insert(&schemas, &[to.into(), number.into()])
}

/// Forgets a schema that has no tables; gives its number if it had one.
pub(crate) fn forget(
    database: &Database,
    transaction: &mut Transaction<'_>,
    name: &str,
) -> Result<Option<i64>> {
    let number = numbers(database, transaction)?.get(name).copied();
    if let Some(schemas) = existing(database, SCHEMAS)? {
        transaction.delete(&schemas, &[name.into()])?;
    }
    Ok(number)
}
