//! ALTER TABLE ... ADD PRIMARY KEY and ALTER COLUMN: the key orders the rows, and what a column is tells how they are
//! written, so the table is copied into another one. The transaction drops the first and creates the second under its
//! name: a crash leaves the one or the other, and nobody else sees both.
//!
//! Invariant: what was granted on the table and said of it goes with its rows.

use onrush::{
    ColumnDefinition, Database, DefaultValue, Error, KeyStrategy, Row, ScanOptions, Table,
    TableBuilder, TableDefinition, Transaction, Value,
};
use onrush_query::QueryEngine;

use crate::error::{Result, SqlError, state};
use crate::sql::{ColumnChange, NewCheck};
use crate::{access, column_change, comments, values};

/// After how many rows it is looked whether to go on.
const BATCH_ROWS: u64 = 1_000;

/// What it takes to copy a table into one of another form.
pub(crate) struct Rewrite<'r> {
    pub(crate) database: &'r Database,
    pub(crate) queries: &'r QueryEngine,
}

impl Rewrite<'_> {
    /// Gives a table that was made without a key, and that the transaction has locked, the key `columns`.
    /// `check` is called now and then, and may refuse to go on.
    ///
    /// # Errors
    /// Two rows with one key, a NULL in it.
    pub(crate) fn add_key(
        &self,
        transaction: &mut Transaction<'_>,
        table: &Table,
        columns: &[String],
        check: impl Fn() -> Result<()>,
    ) -> Result<()> {
        if table.definition().row_id().is_none() {
            return Err(has_key_already(table.name()));
        }
        let shown = shown_columns(table.definition());
        let copy = self.definition(table, shown, Some(columns))?;
        self.copy(transaction, table, copy, check)
    }

    /// Makes columns of a table that the transaction has locked others.
    ///
    /// # Errors
    /// A value that does not fit.
    pub(crate) fn change_columns(
        &self,
        transaction: &mut Transaction<'_>,
        table: &Table,
        changes: &[(&str, &ColumnChange)],
        check: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let definition = table.definition();
        let mut columns = shown_columns(definition);
        for (name, change) in changes {
            let at = definition.shown_column_index(name)?;
            let name = &definition.columns()[at].name;
            let is_key = definition.primary_key().contains(&at);
            if let Some(column) = columns.iter_mut().find(|column| column.name == *name) {
                column_change::apply(column, change, is_key)?;
            }
        }
        let copy = self.definition(table, columns, None)?;
        self.copy(transaction, table, copy, check)
    }

    /// The same table with these columns, and with another key if one is given.
    fn definition(
        &self,
        table: &Table,
        columns: Vec<ColumnDefinition>,
        key: Option<&[String]>,
    ) -> Result<TableDefinition> {
        let old = table.definition();
        let builder = TableDefinition::builder(table.name());
        let old_key = old.primary_key().iter().map(|at| old.columns()[*at].name.clone());
        let mut builder = match (key, old.row_id()) {
            (Some(key), _) => builder.primary_key(key),
            (None, None) => builder.primary_key(old_key),
            (None, Some(_)) => builder.keyed_by_row_id(),
        };
        builder = columns.into_iter().fold(builder, TableBuilder::column);
        if !old.is_logged() {
            builder = builder.unlogged();
        }
        let bare = builder.clone().build()?;
        let mut checks = Vec::new();
        for check in old.checks() {
            checks.push(NewCheck::again(old, check)?.kept(self.queries, &bare, &checks)?);
        }
        Ok(checks.into_iter().fold(builder, TableBuilder::check).build()?)
    }

    /// Puts a table of this definition, which has the columns of the old one by name, in its place.
    fn copy(
        &self,
        transaction: &mut Transaction<'_>,
        table: &Table,
        copy: TableDefinition,
        check: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let rows = transaction.newest_snapshot().scan(table, &ScanOptions::default())?;
        transaction.drop_table(table.name())?;
        let copy = transaction.create_table(copy)?;
        let columns = copy.definition().columns();
        let from = columns.iter().map(|column| table.definition().column_index(&column.name));
        let from: Vec<usize> = from.collect::<std::result::Result<_, _>>()?;
        let mut last_numbers = LastNumbers::of(copy.definition());
        for (number, row) in (1..).zip(rows) {
            let row = row?;
            let value = |(at, column): (&usize, &ColumnDefinition)| {
                Ok(values::coerce(row[*at].borrowed(), column.data_type)?.into_owned())
            };
            let row: Row = from.iter().zip(columns).map(value).collect::<Result<_>>()?;
            check_no_null(copy.definition(), &row)?;
            last_numbers.note(&row);
            transaction.insert(&copy, &row).map_err(|error| explained(error, table))?;
            if u64::is_multiple_of(number, BATCH_ROWS) {
                check()?;
            }
        }
        last_numbers.go_on(transaction, &copy)?;
        access::move_table(self.database, transaction, (table, &copy))?;
        Ok(comments::move_table(self.database, transaction, (table, &copy))?)
    }
}

pub(crate) fn has_key_already(table: &str) -> SqlError {
    let message = format!("table {table} has a primary key already");
    SqlError::new(state::INVALID_TABLE_DEFINITION, message)
}

/// The columns that SQL shows.
fn shown_columns(table: &TableDefinition) -> Vec<ColumnDefinition> {
    table.shown_columns().map(|at| table.columns()[at].clone()).collect()
}

fn check_no_null(to: &TableDefinition, row: &Row) -> Result<()> {
    let is_null =
        |(column, value): &(&ColumnDefinition, &Value<'_>)| !column.nullable && value.is_null();
    match to.columns().iter().zip(row).find(is_null) {
        None => Ok(()),
        Some((ColumnDefinition { name: column, .. }, _)) => {
            let message = format!("column {column} contains null values");
            Err(SqlError::new(state::NOT_NULL_VIOLATION, message))
        }
    }
}

fn explained(error: Error, from: &Table) -> SqlError {
    let Error::DuplicateKey { key, .. } = error else { return error.into() };
    let table = from.name();
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

    fn go_on(&self, transaction: &mut Transaction<'_>, table: &Table) -> onrush::Result<()> {
        for (at, start, last) in &self.0 {
            let next = last.saturating_add(1).saturating_sub(*start);
            let column = &table.definition().columns()[*at].name;
            transaction.skip_numbers(table, column, u64::try_from(next).unwrap_or(0))?;
        }
        Ok(())
    }
}
