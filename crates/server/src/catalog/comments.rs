//! What COMMENT ON says, as PostgreSQL's tools ask for it.

use onrush::{Database, Row, Value};
use onrush_query::{Statement, SystemFunction};

use super::functions::number;
use super::kinds::{INT4, OID, TEXT};
use super::{PG_CATALOG, SystemTable, names, oid};
use crate::comments::{self, Comment};
use crate::execute::seen_by;
use crate::seen::Seen;

pub(super) const ALL: &[SystemTable] = &[SystemTable {
    schema: PG_CATALOG,
    name: "pg_description",
    columns: &[("objoid", OID), ("classoid", OID), ("objsubid", INT4), ("description", TEXT)],
    rows: descriptions,
}];

fn descriptions(seen: &Seen, _: &Statement) -> Vec<Row> {
    let tables = seen.relations();
    let describe = |comment: Comment| {
        let table = tables.iter().find(|table| i64::from(table.id()) == comment.place.0)?;
        let columns = 0..table.definition().columns().len();
        let mut columns = columns.map(Some);
        // A column's number here is its place.
        let number = match comment.place == comments::place(table, None) {
            true => 0,
            false => columns.position(|it| comments::place(table, it) == comment.place)? + 1,
        };
        let number = Value::Int32(i32::try_from(number).ok()?);
        let class = oid(names::PG_CLASS_OID);
        Some(vec![oid(names::table_oid(table)), class, number, comment.text.into()])
    };
    // Of a database that has stopped nothing is told.
    seen.comments().unwrap_or_default().into_iter().filter_map(describe).collect()
}

/// `obj_description` and `col_description`.
pub(super) fn functions(database: &Database) -> Vec<SystemFunction> {
    let told = |seen: &Seen, table: i64, column: i64| {
        let table = names::table_with(seen, table)?;
        let column = usize::try_from(column).ok()?.checked_sub(1);
        let is_there = |column: usize| column < table.definition().columns().len();
        if !column.is_none_or(is_there) {
            return None;
        }
        seen.comment(comments::place(&table, column)).ok()?
    };
    let (one, other) = (database.clone(), database.clone());
    vec![
        SystemFunction::of_client("obj_description", TEXT, move |client, given| {
            let seen = seen_by(client, &one);
            let table = number(given, 0).filter(|oid| is_table(&seen, *oid));
            table.and_then(|oid| told(&seen, oid, 0)).map_or(Value::Null, Value::from)
        }),
        SystemFunction::of_client("col_description", TEXT, move |client, given| {
            let seen = seen_by(client, &other);
            let place = number(given, 0).zip(number(given, 1));
            let told = place.and_then(|(table, column)| told(&seen, table, column));
            told.map_or(Value::Null, Value::from)
        }),
    ]
}

/// Whether it is a table and not the key of one, which has no comment of its own.
fn is_table(seen: &Seen, oid: i64) -> bool {
    names::table_with(seen, oid).is_some_and(|table| i64::from(names::table_oid(&table)) == oid)
}
