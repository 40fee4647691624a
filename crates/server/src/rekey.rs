//! ALTER TABLE ... ADD PRIMARY KEY: the key orders the rows, so a table that was made without one is
//! copied into a table that has it.
//!
//! While it is copied the table stands under a name that no statement can give, so nobody writes to it,
//! and the copy under another. Steps: the copy is made, empty; the table takes its reserved name; rows
//! are copied; the copy takes the table's name; the table is dropped. Wherever a crash ends this, the
//! names tell how far it came, and [`finish`] ends it at the next start.
//!
//! Invariants
//! 1. Of a table [`before`] and its copy [`after`] the first is whole and the second may not be.
//! 2. Where there is only the first, the copy has taken the name and is whole.

use onrush::{
    ColumnDefinition, Database, DefaultValue, Error, KeyStrategy, Row, ScanOptions, Session, Table,
    TableBuilder, TableChange, TableDefinition,
};
use onrush_query::QueryEngine;

use crate::error::{Result, SqlError, state};
use crate::sql::NewCheck;

const BEFORE: &str = "onrush.before ";
const AFTER: &str = "onrush.after ";
const BATCH_ROWS: usize = 1_000;

/// What the table is called while it is copied.
fn before(table: &str) -> String {
    format!("{BEFORE}{table}")
}

/// What its copy is called meanwhile.
fn after(table: &str) -> String {
    format!("{AFTER}{table}")
}

/// Gives a table that was made without a key the key `columns`. `check` is called now and then, and may
/// refuse to go on.
///
/// # Errors
/// Two rows with one key, a NULL in it; then the table is as it was.
pub(crate) fn add_key(
    database: &Database,
    queries: &QueryEngine,
    table: &Table,
    columns: &[String],
    check: impl Fn() -> Result<()>,
) -> Result<()> {
    let name = table.name().to_owned();
    if table.definition().row_id().is_none() {
        return Err(has_key_already(&name));
    }
    let copy = database.create_table(definition(queries, table, columns)?)?;
    let change = || {
        rename(database, &name, before(&name))?;
        let whole = database.table(&before(&name))?;
        if !is_as_it_was(table.definition(), whole.definition()) {
            return Err(Error::TableChanged { name: name.clone() }.into());
        }
        copy_rows(database, &whole, &copy, check)?;
        Ok::<_, SqlError>(rename(database, &after(&name), name.clone())?)
    };
    let changed = change();
    finish_one(database, &name)?;
    changed
}

pub(crate) fn has_key_already(table: &str) -> SqlError {
    let message = format!("table {table} has a primary key already");
    SqlError::new(state::INVALID_TABLE_DEFINITION, message)
}

/// Somebody may have altered the table between the look at it and its new name.
fn is_as_it_was(seen: &TableDefinition, now: &TableDefinition) -> bool {
    seen.columns() == now.columns()
        && seen.primary_key() == now.primary_key()
        && seen.checks() == now.checks()
}

fn rename(database: &Database, from: &str, to: String) -> onrush::Result<()> {
    database.alter_table(from, &[TableChange::Rename { to }]).map(drop)
}

/// Ends what a crash left in the middle.
pub(crate) fn finish(database: &Database) -> onrush::Result<()> {
    for table in database.tables() {
        let name = table.name();
        if let Some(name) = name.strip_prefix(BEFORE).or_else(|| name.strip_prefix(AFTER)) {
            tracing::info!(table = name, "a primary key was being added to it");
            finish_one(database, name)?;
        }
    }
    Ok(())
}

fn finish_one(database: &Database, name: &str) -> onrush::Result<()> {
    let is_there = |name: &str| database.table(name).is_ok();
    match (is_there(&before(name)), is_there(&after(name))) {
        (true, true) => {
            rename(database, &before(name), free_name(database, name))?;
            database.drop_table(&after(name))
        }
        (true, false) => database.drop_table(&before(name)),
        (false, true) => database.drop_table(&after(name)),
        (false, false) => Ok(()),
    }
}

/// The name, or if somebody has made a table of that name meanwhile another one.
fn free_name(database: &Database, name: &str) -> String {
    let numbered = (1..).map(|number: u64| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| database.table(name).is_err()).unwrap_or_default()
}

/// Refuses the name of a table that is being copied.
pub(crate) fn check_not_copied(database: &Database, table: &str) -> Result<()> {
    if database.table(&before(table)).is_err() {
        return Ok(());
    }
    let message = format!("table {table} is being given a primary key");
    Err(SqlError::new(state::OBJECT_IN_USE, message).with_hint("Try again in a while."))
}

/// The same table with another key.
fn definition(queries: &QueryEngine, table: &Table, key: &[String]) -> Result<TableDefinition> {
    let old = table.definition();
    let mut builder = TableDefinition::builder(after(table.name())).primary_key(key);
    for column in old.shown_columns() {
        builder = builder.column(old.columns()[column].clone());
    }
    if !old.is_logged() {
        builder = builder.unlogged();
    }
    let bare = builder.clone().build()?;
    let mut checks = Vec::new();
    for check in old.checks() {
        checks.push(NewCheck::again(old, check)?.kept(queries, &bare, &checks)?);
    }
    Ok(checks.into_iter().fold(builder, TableBuilder::check).build()?)
}

fn copy_rows(
    database: &Database,
    from: &Table,
    to: &Table,
    check: impl Fn() -> Result<()>,
) -> Result<()> {
    let mut session = database.session()?;
    let shown: Vec<usize> = from.definition().shown_columns().collect();
    let mut last_numbers = LastNumbers::of(to.definition());
    let mut rows = session.scan(from, &ScanOptions::default())?.map(|row| {
        let mut row = row?;
        Ok::<Row, Error>(shown.iter().map(|at| std::mem::take(&mut row[*at])).collect())
    });
    loop {
        check()?;
        let batch: Vec<Row> = rows.by_ref().take(BATCH_ROWS).collect::<onrush::Result<_>>()?;
        if batch.is_empty() {
            break;
        }
        for row in &batch {
            check_no_null(to.definition(), row)?;
            last_numbers.note(row);
        }
        let copied = session.insert_many_token(to, batch.iter().map(Vec::as_slice));
        copied.map_err(|error| explained(error, from))?;
    }
    last_numbers.go_on(&mut session, to)?;
    Ok(database.barrier()?)
}

fn check_no_null(to: &TableDefinition, row: &Row) -> Result<()> {
    match to.primary_key().iter().find(|column| row[**column].is_null()) {
        None => Ok(()),
        Some(column) => {
            let column = &to.columns()[*column].name;
            let message = format!("column {column} contains null values");
            Err(SqlError::new(state::NOT_NULL_VIOLATION, message))
        }
    }
}

fn explained(error: Error, from: &Table) -> SqlError {
    let Error::DuplicateKey { key, .. } = error else { return error.into() };
    let table = from.name().strip_prefix(BEFORE).unwrap_or(from.name());
    let message = format!("could not give table {table} this primary key: {key} is there twice");
    SqlError::new(state::UNIQUE_VIOLATION, message)
}

/// The highest numbers in identity columns: the copy goes on behind them.
struct LastNumbers(Vec<(usize, i64, i64)>);

impl LastNumbers {
    fn of(table: &TableDefinition) -> LastNumbers {
        let start = |(at, column): (usize, &ColumnDefinition)| match column.default {
            DefaultValue::Key(KeyStrategy::Identity { start, .. }) => {
                Some((at, start, start.saturating_sub(1)))
            }
            _ => None,
        };
        LastNumbers(table.columns().iter().enumerate().filter_map(start).collect())
    }

    fn note(&mut self, row: &Row) {
        for (at, _, last) in &mut self.0 {
            *last = row[*at].as_i64().map_or(*last, |number| number.max(*last));
        }
    }

    fn go_on(&self, session: &mut Session, table: &Table) -> onrush::Result<()> {
        for (at, start, last) in &self.0 {
            let next = last.saturating_add(1).saturating_sub(*start);
            let column = &table.definition().columns()[*at].name;
            session.skip_numbers(table, column, u64::try_from(next).unwrap_or(0))?;
        }
        Ok(())
    }
}
