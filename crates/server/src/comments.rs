//! What COMMENT ON says of tables, columns, indexes and constraints. Kept in tables of the database itself, so that a
//! backup has it too.
//!
//! Invariants
//! 1. The tables cannot be named in SQL, as those of roles.
//! 2. A comment of a CHECK constraint or a foreign key, which have no number, may outlive it, and is not shown then:
//!    whoever gives a table a constraint first forgets the comments of those that it has not.

use onrush::{
    ColumnDefinition, DataType, Database, IndexDefinition, Result, Row, ScanOptions, Table,
    TableDefinition, Transaction, Value,
};

use crate::kept::{self, Reads, existing, made};

const COMMENTS: &str = "onrush.comments";
const CONSTRAINT_COMMENTS: &str = "onrush.constraint_comments";

/// What a comment is of: the number of a table or of an index's entries, and that of a column counted from 1, 0 for the
/// table or the index itself, [`KEY`] or [`KEY_CONSTRAINT`].
pub(crate) type Place = (i64, i64);

/// The index of a table's primary key.
const KEY: i64 = -1;
/// The constraint that a primary key or a UNIQUE index is.
const KEY_CONSTRAINT: i64 = -2;

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

/// The place of an index, or with none that of the table's primary key.
pub(crate) fn index_place(table: &Table, index: Option<&IndexDefinition>) -> Place {
    index.map_or((table.id().into(), KEY), |index| (index.entries.into(), 0))
}

/// The place of the constraint that an index, or with none the table's primary key, is there for.
pub(crate) fn key_constraint_place(table: &Table, index: Option<&IndexDefinition>) -> Place {
    (index.map_or(table.id(), |index| index.entries).into(), KEY_CONSTRAINT)
}

/// A comment of a CHECK constraint or a foreign key.
#[derive(Clone, Debug)]
pub(crate) struct ConstraintComment {
    pub(crate) table: i64,
    pub(crate) name: String,
    pub(crate) text: String,
}

fn constraint_definition() -> Result<TableDefinition> {
    let table = ColumnDefinition::new("table", DataType::Int64).not_null();
    let text = |name: &str| ColumnDefinition::new(name, DataType::Text).not_null();
    let kept = TableDefinition::builder(CONSTRAINT_COMMENTS).column(table);
    let kept = kept.column(text("constraint")).column(text("text"));
    Ok(kept.primary_key(["table", "constraint"]).build()?)
}

/// Every comment of a CHECK constraint or a foreign key.
pub(crate) fn of_constraints(
    database: &Database,
    reads: &mut impl Reads,
) -> Result<Vec<ConstraintComment>> {
    let rows = kept::rows(database, reads, CONSTRAINT_COMMENTS)?;
    Ok(rows.iter().filter_map(constraint_comment).collect())
}

fn constraint_comment(row: &Row) -> Option<ConstraintComment> {
    let text = |at: usize| row[at].as_str().map(str::to_owned);
    Some(ConstraintComment { table: row[0].as_i64()?, name: text(1)?, text: text(2)? })
}

/// Puts a comment of a CHECK constraint or a foreign key in place of what there was; none takes it away.
pub(crate) fn put_of_constraint(
    database: &Database,
    transaction: &mut Transaction<'_>,
    (table, name): (i64, &str),
    text: Option<&str>,
) -> Result<()> {
    match text {
        Some(text) => {
            let comments = made(database, constraint_definition()?)?;
            transaction.upsert(&comments, &[table.into(), name.into(), text.into()])
        }
        None => match existing(database, CONSTRAINT_COMMENTS)? {
            Some(comments) => transaction.delete(&comments, &[table.into(), name.into()]).map(drop),
            None => Ok(()),
        },
    }
}

/// The transaction drops, or has dropped, constraints of a table.
pub(crate) fn forget_constraints(
    database: &Database,
    transaction: &mut Transaction<'_>,
    table: u32,
    is_meant: impl Fn(&str) -> bool,
) -> Result<()> {
    let is_meant = |row: &Row| {
        let comment = constraint_comment(row);
        comment.is_some_and(|it| it.table == i64::from(table) && is_meant(&it.name))
    };
    kept::remove(database, transaction, CONSTRAINT_COMMENTS, is_meant)
}

/// What is said of the constraints of one table is said of those of another, by other names.
fn move_constraints(
    database: &Database,
    transaction: &mut Transaction<'_>,
    (from, to): (u32, u32),
    renamed: impl Fn(&str) -> String,
) -> Result<()> {
    let Some(comments) = existing(database, CONSTRAINT_COMMENTS)? else { return Ok(()) };
    let rows = transaction.newest_snapshot().scan(&comments, &ScanOptions::default())?;
    let rows: Vec<Row> = rows.collect::<Result<_>>()?;
    let said = rows.iter().filter_map(constraint_comment);
    let said: Vec<_> = said.filter(|comment| comment.table == i64::from(from)).collect();
    forget_constraints(database, transaction, from, |_| true)?;
    for comment in said {
        let place = (i64::from(to), renamed(&comment.name));
        put_of_constraint(database, transaction, (place.0, &place.1), Some(&comment.text))?;
    }
    Ok(())
}

/// A constraint of a table gets another name.
pub(crate) fn rename_constraint(
    database: &Database,
    transaction: &mut Transaction<'_>,
    table: u32,
    (from, to): (&str, &str),
) -> Result<()> {
    let renamed = |name: &str| if name == from { to } else { name }.to_owned();
    move_constraints(database, transaction, (table, table), renamed)
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

/// The rows of a table go into another one: what is said of it and of what it has goes with them.
pub(crate) fn move_table(
    database: &Database,
    transaction: &mut Transaction<'_>,
    (from, to): (&Table, &Table),
) -> Result<()> {
    copy(database, transaction, &places_of_both(from, to))?;
    forget_relation(database, transaction, from)?;
    move_constraints(database, transaction, (from.id(), to.id()), str::to_owned)
}

/// Indexes of a table were built anew and have other entries: what is said of them stays.
pub(crate) fn follow_indexes(
    database: &Database,
    transaction: &mut Transaction<'_>,
    (from, to): (&Table, &Table),
) -> Result<()> {
    let mut moved = places_of_both(from, to);
    moved.retain(|(old, new)| old != new);
    copy(database, transaction, &moved)?;
    forget(database, transaction, |place| moved.iter().any(|(old, _)| *old == place))
}

/// What is said of the one place is said of the other, too.
fn copy(
    database: &Database,
    transaction: &mut Transaction<'_>,
    places: &[(Place, Place)],
) -> Result<()> {
    let Some(comments) = existing(database, COMMENTS)? else { return Ok(()) };
    let rows = transaction.newest_snapshot().scan(&comments, &ScanOptions::default())?;
    let rows: Vec<Row> = rows.collect::<Result<_>>()?;
    for (old, new) in places {
        let said = rows.iter().filter_map(comment).find(|comment| comment.place == *old);
        if let Some(said) = said {
            put(database, transaction, *new, Some(&said.text))?;
        }
    }
    Ok(())
}

/// The places of what two tables have of the same names, in each of them.
fn places_of_both(from: &Table, to: &Table) -> Vec<(Place, Place)> {
    let (old, new) = (from.definition(), to.definition());
    let columns = (0..old.columns().len()).filter_map(|column| {
        let found = new.column_index(&old.columns()[column].name).ok()?;
        Some((place(from, Some(column)), place(to, Some(found))))
    });
    let indexes = old.indexes().iter().filter_map(|index| {
        Some((Some(index), Some(new.indexes().get(new.index_position(&index.name).ok()?)?)))
    });
    let indexes = indexes.chain([(None, None)]).flat_map(|(old, new)| {
        [
            (index_place(from, old), index_place(to, new)),
            (key_constraint_place(from, old), key_constraint_place(to, new)),
        ]
    });
    columns.chain([(place(from, None), place(to, None))]).chain(indexes).collect()
}

/// The transaction drops a table: what is said of it, its columns, its indexes and its constraints goes.
pub(crate) fn forget_table(
    database: &Database,
    transaction: &mut Transaction<'_>,
    table: &Table,
) -> Result<()> {
    forget_relation(database, transaction, table)?;
    forget_constraints(database, transaction, table.id(), |_| true)
}

fn forget_relation(
    database: &Database,
    transaction: &mut Transaction<'_>,
    table: &Table,
) -> Result<()> {
    let entries = table.definition().indexes().iter().map(|index| index.entries);
    let numbers: Vec<i64> = entries.chain([table.id()]).map(i64::from).collect();
    forget(database, transaction, |(number, _)| numbers.contains(&number))
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
