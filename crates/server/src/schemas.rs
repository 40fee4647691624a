//! Schemas: names in front of tables' names. The engine knows none: there a table has one name, that of
//! its schema in front of its own unless the schema is `public`. Which schemas there are is kept in a table
//! of the database itself, so that a backup has it too.
//!
//! Invariants
//! 1. A schema's name has no dot in it, so that the name of each table is read one way only.
//! 2. The table of schemas cannot be named in SQL, as those of roles.

use std::collections::BTreeSet;

use onrush::{ColumnDefinition, DataType, Database, Result, ScanOptions, TableDefinition};

use crate::access::is_reserved;
use crate::kept::{durable_session, existing, made};

/// The schema of tables with nothing in front.
pub(crate) const PUBLIC: &str = "public";

const SCHEMAS: &str = "onrush.schemas";

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
    Ok(TableDefinition::builder(SCHEMAS).column(name).primary_key(["name"]).build()?)
}

/// The schemas that users have made, and those that tables are in.
pub(crate) fn all(database: &Database) -> Result<BTreeSet<String>> {
    let mut schemas = BTreeSet::new();
    if let Some(table) = existing(database, SCHEMAS)? {
        for row in database.session()?.scan(&table, &ScanOptions::default())? {
            schemas.extend(row?[0].as_str().map(str::to_owned));
        }
    }
    let tables = database.tables();
    let tables = tables.iter().map(|table| table.name()).filter(|name| !is_reserved(name));
    schemas.extend(tables.map(|name| parts(name).0.to_owned()));
    schemas.remove(PUBLIC);
    Ok(schemas)
}

/// Whether tables can be in a schema of this name.
pub(crate) fn is_there(database: &Database, name: &str) -> Result<bool> {
    if name == PUBLIC {
        return Ok(true);
    }
    if let Some(table) = existing(database, SCHEMAS)?
        && database.session()?.get(&table, &[name.into()])?.is_some()
    {
        return Ok(true);
    }
    Ok(!tables_of(database, name).is_empty())
}

/// The engine's names of the tables of a schema.
pub(crate) fn tables_of(database: &Database, schema: &str) -> Vec<String> {
    let tables = database.tables();
    let names = tables.iter().map(|table| table.name()).filter(|name| !is_reserved(name));
    names.filter(|name| parts(name).0 == schema).map(str::to_owned).collect()
}

/// Makes a schema that is not there.
pub(crate) fn create(database: &Database, name: &str) -> Result<()> {
    let schemas = made(database, definition()?)?;
    durable_session(database)?.upsert(&schemas, &[name.into()])
}

/// Forgets a schema that has no tables.
pub(crate) fn forget(database: &Database, name: &str) -> Result<()> {
    match existing(database, SCHEMAS)? {
        Some(schemas) => durable_session(database)?.delete(&schemas, &[name.into()]).map(drop),
        None => Ok(()),
    }
}
