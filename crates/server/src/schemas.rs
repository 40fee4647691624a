//! Schemas: names in front of tables' names. The engine knows none: there a table has one name, that of
//! its schema in front of its own unless the schema is `public`. Which schemas there are is kept in a table
//! of the database itself, so that a backup has it too.
//!
//! Invariants
//! 1. A schema's name has no dot in it, so that the name of each table is read one way only.
//! 2. The table of schemas cannot be named in SQL, as those of roles.

use std::collections::BTreeSet;

use onrush::{ColumnDefinition, DataType, Database, Result, TableDefinition, Transaction};

use crate::kept::{self, Reads, existing, made};
use crate::seen::Seen;

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

/// The schemas that users have made.
pub(crate) fn made_ones(database: &Database, reads: &mut impl Reads) -> Result<BTreeSet<String>> {
    let rows = kept::rows(database, reads, SCHEMAS)?;
    Ok(rows.iter().filter_map(|row| row[0].as_str().map(str::to_owned)).collect())
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
    transaction.upsert(&schemas, &[name.into()])
}

/// Forgets a schema that has no tables.
pub(crate) fn forget(
    database: &Database,
    transaction: &mut Transaction<'_>,
    name: &str,
) -> Result<()> {
    match existing(database, SCHEMAS)? {
        Some(schemas) => transaction.delete(&schemas, &[name.into()]).map(drop),
        None => Ok(()),
    }
}
