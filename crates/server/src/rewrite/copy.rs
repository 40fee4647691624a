//! The rows of a table, brought into another form: those that a snapshot sees, and then what has changed from one
//! snapshot to the next.
//!
//! Invariant: between two calls the copy holds exactly the rows of the snapshot that the last one was given.

use std::sync::Arc;

use onrush::{
    ColumnDefinition, DefaultValue, Direction, Error, KeyStrategy, ROW_ID, Row, RowChange,
    ScanOptions, Snapshot, Table, TableDefinition, Transaction, Value,
};
use onrush_query::clock::now_micros;
use onrush_query::{NamedRow, Place, RowValues};
use sqlparser::ast::{Expr, SelectItem};

use super::{Form, Rewrite};
use crate::column_change::is_cast_when_assigned;
use crate::error::{Result, SqlError, key_and_values, state};
use crate::sql::ColumnChange;
use crate::{schemas, values};

/// After how many rows it is looked whether to go on, and told how far it is.
const BATCH_ROWS: u64 = 1_000;

/// Into how many parts a table is cut, to tell from some of them how many rows there are in all.
const PARTS: usize = 100;

/// See the module.
pub(super) struct Copy<'c> {
    rewrite: &'c Rewrite<'c>,
    table: &'c Table,
    copy: &'c Table,
    /// What each column of the copy is made of.
    from: Vec<From>,
    /// Whether every row has the same key in both.
    keeps_keys: bool,
    last_numbers: LastNumbers,
    /// Rows looked at since it was last looked whether to go on.
    unchecked: u64,
}

/// What a column of the copy is made of.
enum From {
    /// The column at a position.
    Column(usize),
    /// Nothing that the table has: the engine makes it.
    Generated,
    /// What USING says.
    Row(Arc<RowValues>),
}

/// Which half of a round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Old rows go.
    Old,
    /// New rows come.
    New,
    /// Both, row by row: no new row can want the key of an old one of another key.
    Both,
}

impl<'c> Copy<'c> {
    /// # Errors
    /// What USING says is not understood, or of a type that the column does not take.
    pub(super) fn new(
        rewrite: &'c Rewrite<'c>,
        (table, copy): (&'c Table, &'c Table),
        form: &Form<'_>,
    ) -> Result<Copy<'c>> {
        let columns = copy.definition().columns();
        let from =
            columns.iter().map(|column| match (&column.default, using(form, &column.name)) {
                (DefaultValue::Generated(_), _) => Ok(From::Generated),
                _ if column.name == ROW_ID && matches!(form, Form::NoKey) => Ok(From::Generated),
                (_, Some(expression)) => {
                    computed(rewrite, table, column, expression).map(From::Row)
                }
                _ => Ok(From::Column(table.definition().column_index(&column.name)?)),
            });
        let from: Vec<From> = from.collect::<Result<_>>()?;
        let keeps_keys = keys_alike(table.definition(), copy.definition(), &from);
        let last_numbers = LastNumbers::of(copy.definition());
        Ok(Copy { rewrite, table, copy, from, keeps_keys, last_numbers, unchecked: 0 })
    }

    /// Copies all rows that the snapshot sees.
    ///
    /// # Errors
    /// Two rows with one key, a NULL where none may be, a value that does not fit.
    pub(super) fn fill(
        &mut self,
        transaction: &mut Transaction<'_>,
        snapshot: &Snapshot,
    ) -> Result<()> {
        let parts = snapshot.key_ranges(self.table, &ScanOptions::default(), PARTS)?;
        for (number, part) in (1..).zip(&parts) {
            for row in snapshot.scan_range(self.table, part, Direction::Forward)? {
                let row = self.converted(&row?)?;
                self.insert(transaction, &row)?;
                self.one_more()?;
            }
            self.rewrite.progress.parts_are_done(number, parts.len() as u64);
        }
        self.rewrite.progress.add_rows(std::mem::take(&mut self.unchecked));
        Ok(())
    }

    /// Brings the copy from the first snapshot to the second, and tells how many rows were others.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    pub(super) fn catch_up(
        &mut self,
        transaction: &mut Transaction<'_>,
        (seen, now): (&Snapshot, &Snapshot),
    ) -> Result<u64> {
        let passes: &[Pass] = if self.keeps_keys { &[Pass::Both] } else { &[Pass::Old, Pass::New] };
        let mut changed = 0;
        for pass in passes {
            changed = 0;
            for change in now.changes_since(seen, self.table)? {
                self.apply(transaction, *pass, change?)?;
                changed += 1;
                self.one_more()?;
            }
        }
        self.unchecked = 0;
        self.rewrite.progress.round_is_done(changed);
        Ok(changed)
    }

    /// Lets identity columns go on behind the highest numbers that were copied.
    ///
    /// # Errors
    /// Those of the engine.
    pub(super) fn go_on_with_numbers(&self, transaction: &mut Transaction<'_>) -> Result<()> {
        Ok(self.last_numbers.go_on(transaction, self.copy)?)
    }

    fn apply(
        &mut self,
        transaction: &mut Transaction<'_>,
        pass: Pass,
        change: RowChange,
    ) -> Result<()> {
        let RowChange { before, after } = change;
        let before = before.filter(|_| pass != Pass::New);
        let after = after.filter(|_| pass != Pass::Old);
        let after = after.map(|row| self.converted(&row)).transpose()?;
        match (before, after) {
            (Some(_), Some(after)) => {
                self.last_numbers.note(&after);
                Ok(transaction.upsert(self.copy, &after)?)
            }
            (Some(before), None) => self.remove(transaction, &self.converted(&before)?),
            (None, Some(after)) => self.insert(transaction, &after),
            (None, None) => Ok(()),
        }
    }

    fn insert(&mut self, transaction: &mut Transaction<'_>, row: &Row) -> Result<()> {
        self.last_numbers.note(row);
        transaction.insert(self.copy, row).map_err(|error| explained(error, self.table))
    }

    fn remove(&self, transaction: &mut Transaction<'_>, row: &Row) -> Result<()> {
        let key = self.copy.definition().primary_key();
        let key: Vec<Value<'_>> = key.iter().map(|at| row[*at].borrowed()).collect();
        match transaction.delete(self.copy, &key)? {
            true => Ok(()),
            false => {
                let message =
                    format!("a row of table {} is missing in its copy", self.table.name());
                Err(SqlError::new(state::INTERNAL, message))
            }
        }
    }

    /// A row of the table as one of the copy.
    fn converted(&self, row: &Row) -> Result<Row> {
        let columns = self.copy.definition().columns();
        let value = |(from, column): (&From, &ColumnDefinition)| {
            let value = match from {
                From::Generated => return Ok(Value::Default),
                From::Column(at) => row[*at].borrowed(),
                From::Row(values) => values.of(&[row])?.pop().unwrap_or(Value::Null),
            };
            let value = values::coerce(value, column.data_type)?.into_owned();
            check_null(column, &value)?;
            Ok(value)
        };
        self.from.iter().zip(columns).map(value).collect()
    }

    fn one_more(&mut self) -> Result<()> {
        self.unchecked += 1;
        if self.unchecked < BATCH_ROWS {
            return Ok(());
        }
        self.rewrite.progress.add_rows(std::mem::take(&mut self.unchecked));
        (self.rewrite.check)()
    }
}

/// What USING says of a column.
fn using<'f>(form: &Form<'f>, column: &str) -> Option<&'f Expr> {
    let Form::Columns(changes) = form else { return None };
    changes.iter().find_map(|(name, change)| match change {
        ColumnChange::Type { using, .. } if *name == column => using.as_deref(),
        _ => None,
    })
}

fn computed(
    rewrite: &Rewrite<'_>,
    table: &Table,
    column: &ColumnDefinition,
    expression: &Expr,
) -> Result<Arc<RowValues>> {
    let place = Place { one: "transform expression", many: "transform expressions" };
    let items = vec![SelectItem::UnnamedExpr(expression.clone())];
    let (queries, relation) = (rewrite.queries, schemas::own_name(table.name()));
    let rows = [NamedRow::of_table(relation, table.definition())];
    let made = queries.row_expressions(&rows, items, place, &[])?;
    let is_cast = made.columns().iter().all(|it| {
        let found = it.column_type.in_table();
        found.is_some_and(|found| is_cast_when_assigned(found, column.data_type))
    });
    if !is_cast {
        let (name, data_type) = (&column.name, values::type_name(column.data_type));
        let message = format!(
            "result of USING clause for column {name:?} cannot be cast automatically to type {data_type}"
        );
        return Err(SqlError::new(state::DATATYPE_MISMATCH, message)
            .with_hint("You might need to add an explicit cast."));
    }
    Ok(made.bind(queries, rewrite.client, now_micros(), &[])?)
}

/// Whether the keys of two tables have the same columns of the same types.
fn keys_alike(old: &TableDefinition, new: &TableDefinition, from: &[From]) -> bool {
    let types = |table: &TableDefinition| -> Vec<_> {
        let key = table.primary_key().iter();
        key.map(|at| table.columns()[*at].data_type).collect()
    };
    let place = |at: &usize| match from[*at] {
        From::Column(place) => Some(place),
        From::Generated | From::Row(_) => None,
    };
    let places: Vec<Option<usize>> = new.primary_key().iter().map(place).collect();
    let old_places: Vec<Option<usize>> = old.primary_key().iter().copied().map(Some).collect();
    places == old_places && types(old) == types(new)
}

fn check_null(column: &ColumnDefinition, value: &Value<'_>) -> Result<()> {
    if column.nullable || !value.is_null() {
        return Ok(());
    }
    let message = format!("column {} contains null values", column.name);
    Err(SqlError::new(state::NOT_NULL_VIOLATION, message))
}

fn explained(error: Error, from: &Table) -> SqlError {
    let Error::DuplicateKey { constraint, key, .. } = error else { return error.into() };
    let made_up = || schemas::made_up_key_name(from.name());
    let constraint = constraint.map_or_else(made_up, String::from);
    let message = format!("could not create unique index {:?}", constraint);
    SqlError::new(state::UNIQUE_VIOLATION, message)
        .with_detail(format!("Key {} is duplicated.", key_and_values(&key)))
}

/// The highest numbers in identity columns: a program may have brought them along, or the column may get its
/// counter just now.
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
