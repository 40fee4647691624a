//! What COMMENT ON says of tables and columns. Kept in a table of the database itself, so that a backup
//! has it too.
//!
//! Invariant: the table cannot be named in SQL, as those of roles.

use onrush::{
    ColumnDefinition, DataType, Database, Result, Row, ScanOptions, Table, TableDefinition,
    Transaction, Value,
};

use crate::kept::{self, Reads, existing, made};

const COMMENTS: &str = "onrush.comments";

/// What a comment is of: the number of a table, and that of a column counted from 1, or 0 for the table itself.
pub(crate) type Place = (i64, i64);

/// A comment and its place.
#[derive(Clone, Debug)]
pub(crate) struct Comment {
    pub(crate) place: Place,
    pub(crate) text: String,
}

/// The place of a table, or of one of its columns.
pub(crate) fn place(table: &Table, column: Option<usize>) -> Place {
    let number = |column| table.definition().column_number(column) + 1;
    // There are at most 1,024.
    (table.id().into(), column.map_or(0, |column| number(column) as i64))
}

fn definition() -> Result<TableDefinition> {
    let number = |name: &str| ColumnDefinition::new(name, DataType::Int64).not_null();
    let text = ColumnDefinition::new("text", DataType::Text).not_null();
    let table = TableDefinition::builder(COMMENTS).column(number("table")).column(number("column"));
    Ok(table.column(text).primary_key(["table", "column"]).build()?)
}

/// Every comment that there is.
pub(crate) fn all(database: &Database, reads: &mut impl Reads) -> Result<Vec<Comment>> {
    let rows = kept::rows(database, reads, COMMENTS)?;
    Ok(rows.iter().filter_map(comment).collect())
}

fn comment(row: &Row) -> Option<Comment> {
    let text = row[2].as_str()?.to_owned();
    Some(Comment { place: (row[0].as_i64()?, row[1].as_i64()?), text })
}

/// The comment at one place.
pub(crate) fn of(database: &Database, place: Place) -> Result<Option<String>> {
    let Some(comments) = existing(database, COMMENTS)? else { return Ok(None) };
    let row = database.session()?.get(&comments, &key(place))?;
    Ok(row.and_then(|row| comment(&row)).map(|comment| comment.text))
}

fn key((table, column): Place) -> [Value<'static>; 2] {
    [table.into(), column.into()]
}

/// Puts a comment in place of what there was; none takes it away.
pub(crate) fn put(
    database: &Database,
    transaction: &mut Transaction<'_>,
    place: Place,
    text: Option<&str>,
) -> Result<()> {
    let [table, column] = key(place);
    match text {
        Some(text) => {
            let comments = made(database, definition()?)?;
            transaction.upsert(&comments, &[table, column, text.into()])
        }
        None => match existing(database, COMMENTS)? {
            Some(comments) => transaction.delete(&comments, &[table, column]).map(drop),
            None => Ok(()),
        },
    }
}

/// The rows of a table go into another one: what is said of it and of its columns goes with them.
pub(crate) fn move_table(
    database: &Database,
    transaction: &mut Transaction<'_>,
    (from, to): (&Table, &Table),
) -> Result<()> {
    let Some(comments) = existing(database, COMMENTS)? else { return Ok(()) };
    let rows = transaction.newest_snapshot().scan(&comments, &ScanOptions::default())?;
    let rows: Vec<Row> = rows.collect::<Result<_>>()?;
    let columns = 0..from.definition().columns().len();
    for column in columns.map(Some).chain([None]) {
        let old = place(from, column);
        let name = column.map(|column| from.definition().columns()[column].name.as_str());
        let new = name.map(|name| to.definition().column_index(name)).transpose();
        let said = rows.iter().filter_map(comment).find(|comment| comment.place == old);
        if let (Some(said), Ok(new)) = (said, new) {
            put(database, transaction, place(to, new), Some(&said.text))?;
        }
    }
    forget(database, transaction, |(table, _)| table == i64::from(from.id()))
}

/// The transaction drops what is at these places.
pub(crate) fn forget(
    database: &Database,
    transaction: &mut Transaction<'_>,
    is_meant: impl Fn(Place) -> bool,
) -> Result<()> {
    let is_meant = |row: &Row| comment(row).is_some_and(|comment| is_meant(comment.place));
    kept::remove(database, transaction, COMMENTS, is_meant)
}
