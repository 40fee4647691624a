//! What COMMENT ON says of tables and columns. Kept in a table of the database itself, so that a backup
//! has it too.
//!
//! Invariant: the table cannot be named in SQL, as those of roles.

use onrush::{ColumnDefinition, DataType, Database, Result, ScanOptions, TableDefinition};

use crate::kept::{durable_session, existing, made};

const COMMENTS: &str = "onrush.comments";

/// A comment: its table, its column (empty: the table itself), its text.
type Comment = (String, String, String);

/// Where a comment goes: table and column, of the column where it was.
type Elsewhere<'m> = dyn Fn(&str) -> (String, String) + 'm;

fn definition() -> Result<TableDefinition> {
    let text = |name: &str| ColumnDefinition::new(name, DataType::Text).not_null();
    let columns = ["table", "column", "text"].map(text).into_iter();
    let table =
        columns.fold(TableDefinition::builder(COMMENTS), |table, column| table.column(column));
    Ok(table.primary_key(["table", "column"]).build()?)
}

/// Every comment that there is.
pub(crate) fn all(database: &Database) -> Result<Vec<Comment>> {
    let Some(table) = existing(database, COMMENTS)? else { return Ok(Vec::new()) };
    let mut comments = Vec::new();
    for row in database.session()?.scan(&table, &ScanOptions::default())? {
        let row = row?;
        let text = |at: usize| row[at].as_str().unwrap_or_default().to_owned();
        comments.push((text(0), text(1), text(2)));
    }
    Ok(comments)
}

/// The comment on a column, or on the table where `column` is empty.
pub(crate) fn of(database: &Database, table: &str, column: &str) -> Result<Option<String>> {
    let Some(comments) = existing(database, COMMENTS)? else { return Ok(None) };
    let row = database.session()?.get(&comments, &[table.into(), column.into()])?;
    Ok(row.and_then(|row| row[2].as_str().map(str::to_owned)))
}

/// Puts a comment in place of what there was; none takes it away.
pub(crate) fn put(
    database: &Database,
    table: &str,
    column: &str,
    text: Option<&str>,
) -> Result<()> {
    let comments = match text {
        Some(_) => Some(made(database, definition()?)?),
        None => existing(database, COMMENTS)?,
    };
    let Some(comments) = comments else { return Ok(()) };
    let mut session = durable_session(database)?;
    match text {
        Some(text) => session.upsert(&comments, &[table.into(), column.into(), text.into()]),
        None => session.delete(&comments, &[table.into(), column.into()]).map(drop),
    }
}

/// A table or column is gone (`to` none) or has another name: its comments go with it. `is_of` tells
/// them by table and column.
pub(crate) fn follow(
    database: &Database,
    is_of: impl Fn(&str, &str) -> bool,
    to: Option<&Elsewhere<'_>>,
) -> Result<()> {
    for (table, column, text) in all(database)? {
        if !is_of(&table, &column) {
            continue;
        }
        put(database, &table, &column, None)?;
        if let Some(to) = to {
            let (table, column) = to(&column);
            put(database, &table, &column, Some(&text))?;
        }
    }
    Ok(())
}
