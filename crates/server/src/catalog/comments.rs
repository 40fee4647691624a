//! What COMMENT ON says, as PostgreSQL's tools ask for it.

use onrush::{Database, Row, Value};
use onrush_query::{Statement, SystemFunction};

use super::functions::number;
use super::kinds::{INT4, OID, TEXT};
use super::{PG_CATALOG, SystemTable, names, oid};
use crate::comments;

pub(super) const ALL: &[SystemTable] = &[SystemTable {
    schema: PG_CATALOG,
    name: "pg_description",
    columns: &[("objoid", OID), ("classoid", OID), ("objsubid", INT4), ("description", TEXT)],
    rows: descriptions,
}];

fn descriptions(database: &Database, _: &Statement) -> Vec<Row> {
    let describe = |(table, column, text): (String, String, String)| {
        let table = database.table(&table).ok()?;
        let number = match column.as_str() {
            "" => 0,
            column => i32::try_from(table.definition().column_index(column).ok()? + 1).ok()?,
        };
        let class = oid(names::PG_CLASS_OID);
        Some(vec![oid(names::table_oid(&table)), class, Value::Int32(number), text.into()])
    };
    // Of a database that has stopped nothing is told.
    comments::all(database).unwrap_or_default().into_iter().filter_map(describe).collect()
}

/// `obj_description` and `col_description`.
pub(super) fn functions(database: &Database) -> Vec<SystemFunction> {
    let told = |database: &Database, table: i64, column: i64| {
        let table = names::table_with(database, table)?;
        let columns = table.definition().columns();
        let column = match usize::try_from(column).ok()?.checked_sub(1) {
            None => "",
            Some(at) => &columns.get(at)?.name,
        };
        comments::of(database, table.name(), column).ok()?
    };
    let (one, other) = (database.clone(), database.clone());
    vec![
        SystemFunction::new("obj_description", TEXT, move |given| {
            let table = number(given, 0).filter(|oid| is_table(&one, *oid));
            table.and_then(|oid| told(&one, oid, 0)).map_or(Value::Null, Value::from)
        }),
        SystemFunction::new("col_description", TEXT, move |given| {
            let place = number(given, 0).zip(number(given, 1));
            let told = place.and_then(|(table, column)| told(&other, table, column));
            told.map_or(Value::Null, Value::from)
        }),
    ]
}

/// Whether it is a table and not the key of one, which has no comment of its own.
fn is_table(database: &Database, oid: i64) -> bool {
    names::table_with(database, oid).is_some_and(|table| i64::from(names::table_oid(&table)) == oid)
}
