//! The system's catalogue as PostgreSQL's tools look for it: `pg_catalog` and `information_schema`,
//! made of the definitions of tables whenever somebody asks.
//!
//! Numbers of things: a table has two, its own and that of its primary key, made of the number that
//! the engine knows it by; so they stay as long as the table.

mod activity;
mod comments;
mod constraints;
mod dependencies;
mod domains;
mod empty;
mod foreign_keys;
mod functions;
mod index_progress;
mod indexes;
mod information;
mod members;
mod names;
mod rights;
mod roles;
mod sequences;
mod session_objects;
mod settings;
mod tables;
mod text_functions;
mod types;
mod views;

use std::fmt;
use std::sync::Arc;

use onrush::{Database, Row, Value};
use onrush_query::{ColumnType, MadeRows, Statement};

pub(crate) use functions::functions;
pub(crate) use names::{
    DATABASE_OWNER, OWNER, identity_with, is_identity, number_of, oid_of, own_type_with, quoted,
    table_with,
};

use crate::execute::seen_by;
use crate::seen::Seen;
use crate::sql::Planner;
use activity::ActivityView;
use index_progress::IndexProgressView;

/// A column of a system table.
type Column = (&'static str, ColumnType);

/// A system table.
struct SystemTable {
    schema: &'static str,
    name: &'static str,
    columns: &'static [Column],
    rows: fn(&Seen, &Statement) -> Vec<Row>,
}

/// Where PostgreSQL's own tables are.
pub(crate) const PG_CATALOG: &str = "pg_catalog";
/// Where those of the standard are.
pub(crate) const INFORMATION_SCHEMA: &str = "information_schema";

fn all() -> impl Iterator<Item = &'static SystemTable> {
    let with_rows = tables::ALL
        .iter()
        .chain(indexes::ALL)
        .chain(roles::ALL)
        .chain(types::ALL)
        .chain(settings::ALL);
    let more =
        constraints::ALL.iter().chain(foreign_keys::ALL).chain(information::ALL).chain(views::ALL);
    let more = more
        .chain(members::ALL)
        .chain(session_objects::ALL)
        .chain(dependencies::ALL)
        .chain(domains::ALL);
    with_rows.chain(sequences::ALL).chain(more).chain(comments::ALL).chain(empty::ALL)
}

/// The column that tells for each row which table it is of. PostgreSQL's `*` does not mean it; here it does in the
/// statements that have it.
pub(crate) const TABLEOID: &str = "tableoid";

/// The system table of this name. Those of `pg_catalog` need no schema in front. It has [`TABLEOID`] for the statements
/// that name it.
pub(crate) fn find(
    planner: &Planner<'_>,
    schema: Option<&str>,
    name: &str,
    has_tableoid: bool,
) -> Option<Arc<dyn MadeRows>> {
    let schema = schema.unwrap_or(PG_CATALOG);
    let database = planner.database.clone();
    if (schema, name) == (PG_CATALOG, activity::NAME_OF_VIEW) {
        let (clients, access) = (Arc::clone(planner.clients), Arc::clone(planner.access));
        return Some(Arc::new(ActivityView { database, clients, access }));
    }
    if (schema, name) == (PG_CATALOG, index_progress::NAME_OF_VIEW) {
        return Some(Arc::new(IndexProgressView { database }));
    }
    let table = all().find(|table| table.schema == schema && table.name == name)?;
    let is_of_catalog = has_tableoid && schema == PG_CATALOG;
    let tableoid = if is_of_catalog { names::catalogue_oid(name) } else { None };
    Some(Arc::new(TableOfDatabase { table, database, tableoid }))
}

/// Whether it is a table for things that there are none of here.
pub(crate) fn is_always_empty(schema: Option<&str>, name: &str) -> bool {
    let schema = schema.unwrap_or(PG_CATALOG);
    empty::ALL.iter().any(|table| table.schema == schema && table.name == name)
}

/// A system table and what it tells about.
struct TableOfDatabase {
    table: &'static SystemTable,
    database: Database,
    /// What stands in [`TABLEOID`], if it has that.
    tableoid: Option<i64>,
}

impl fmt::Debug for TableOfDatabase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.table.name)
    }
}

impl MadeRows for TableOfDatabase {
    fn columns(&self) -> Vec<(&str, ColumnType)> {
        let tableoid = self.tableoid.map(|_| (TABLEOID, kinds::OID));
        self.table.columns.iter().copied().chain(tableoid).collect()
    }

    fn rows(&self, statement: &Statement) -> Vec<Row> {
        let mut rows = (self.table.rows)(&seen_by(&statement.client, &self.database), statement);
        if let Some(tableoid) = self.tableoid {
            rows.iter_mut().for_each(|row| row.push(Value::Int64(tableoid)));
        }
        rows
    }
}

/// The number of a thing.
fn oid(number: u32) -> Value<'static> {
    Value::Int64(i64::from(number))
}

/// The columns' types, short.
mod kinds {
    use onrush::DataType;
    use onrush_query::ColumnType;

    pub(super) const OID: ColumnType = ColumnType::Stored(DataType::Oid);
    pub(super) const NAME: ColumnType = ColumnType::Stored(DataType::Name);
    pub(super) const CHAR: ColumnType = ColumnType::Char;
    pub(super) const TEXT: ColumnType = ColumnType::Stored(DataType::Text);
    pub(super) const BOOL: ColumnType = ColumnType::Stored(DataType::Boolean);
    pub(super) const INT2: ColumnType = ColumnType::Stored(DataType::Int16);
    pub(super) const INT4: ColumnType = ColumnType::Stored(DataType::Int32);
    pub(super) const INT8: ColumnType = ColumnType::Stored(DataType::Int64);
    pub(super) const REAL: ColumnType = ColumnType::Stored(DataType::Float32);
    pub(super) const TEXTS: ColumnType = ColumnType::Array(DataType::Text);
    pub(super) const INT2S: ColumnType = ColumnType::Array(DataType::Int16);
    pub(super) const INT2_VECTOR: ColumnType = ColumnType::Vector(DataType::Int16);
    pub(super) const OID_VECTOR: ColumnType = ColumnType::Vector(DataType::Int64);
    pub(super) const OIDS: ColumnType = ColumnType::Array(DataType::Int64);
    pub(super) const TIMESTAMP: ColumnType = ColumnType::Stored(DataType::TimestampTz);
}
