//! INSERT: the short way of one row first.

use std::borrow::Cow;
use std::sync::Arc;

use onrush::{ColumnDefinition, DataType, DefaultValue, Row, Snapshot, Table, Transaction, Value};
use onrush_query::RowValues;
use onrush_query::style::is_in_utc;

use super::changed_rows::ChangedRows;
use super::query::Finder;
use super::returning::{Returner, answer};
use super::transaction::Work;
use super::{Answer, Backend, in_failed_transaction, tag};
use crate::error::{Result, SqlError, state};
use crate::sequences::as_caller;
use crate::sql::{
    Arbiter, Bound, Conflict, ConflictUpdate, InsertPlan, InsertRows, NewValue, Operand, QueryPlan,
};
use crate::values;

impl Backend {
    pub(super) fn insert(&mut self, plan: &InsertPlan, bound: &Bound) -> Result<Answer> {
        let written = self.write_rows(plan, bound)?;
        Ok(answer("INSERT", &plan.returning, written.rows, written.count))
    }

    /// As [`execute`](Backend::execute), and gives the tag of the answer. Nothing is waited for.
    pub(crate) fn execute_insert(
        &mut self,
        plan: &InsertPlan,
        bound: &Bound,
    ) -> Result<Cow<'static, str>> {
        self.follow_setting();
        if matches!(self.work, Work::Failed(_)) {
            return Err(in_failed_transaction());
        }
        let allowed = self.check_may_write("INSERT").and_then(|()| self.check_insert(plan));
        let allowed = allowed.and_then(|()| self.look_at_others());
        let written = match allowed {
            Ok(()) => self.write_rows(plan, bound),
            Err(refused) => Err(refused),
        };
        if written.is_err() {
            self.fail();
        }
        Ok(tag("INSERT", written?.count))
    }

    fn write_rows(&mut self, plan: &InsertPlan, bound: &Bound) -> Result<Written> {
        let rows = match &plan.rows {
            InsertRows::Given(rows) => rows.as_slice(),
            InsertRows::Found { columns, defaulted, query } => {
                return self.insert_found(plan, (columns, defaulted), query, bound);
            }
        };
        match (rows, &plan.conflict, &plan.returning) {
            ([row], Conflict::Fail, None) => {
                self.insert_values(&plan.table, &[&row_values(row, bound)?])?;
                Ok(Written::counted(1))
            }
            (rows, Conflict::Fail, None) => {
                let rows: Vec<_> =
                    rows.iter().map(|row| row_values(row, bound)).collect::<Result<_>>()?;
                let slices: Vec<_> = rows.iter().map(Vec::as_slice).collect();
                self.insert_values(&plan.table, &slices)?;
                Ok(Written::counted(rows.len() as u64))
            }
            (rows, ..) => self.insert_the_long_way(plan, rows, bound),
        }
    }

    /// All or none. In a transaction others that insert the same keys wait for its end, and this one for theirs.
    fn insert_values<'v>(&mut self, table: &Table, rows: &[&'v [Value<'v>]]) -> Result<()> {
        rows.iter().try_for_each(|row| check_clock(table, row))?;
        if let Work::Idle(session) = &mut self.work {
            let inserted = as_caller(&self.sequences, || match rows {
                [row] => Ok(session.insert(table, row)?),
                rows => Ok(session.insert_many(table, rows.iter().copied())?),
            });
            match inserted {
                // A transaction that has not ended yet has the key.
                Err(error) if SqlError::is_conflict(&error) => {}
                inserted => return inserted,
            }
        }
        self.change_rows(|transaction| {
            rows.iter().try_for_each(|row| Ok(transaction.insert(table, row)?))
        })
    }

    /// All or none.
    pub(crate) fn insert_rows<'v>(
        &mut self,
        table: &Table,
        rows: impl IntoIterator<Item = &'v [Value<'v>]> + Clone,
    ) -> Result<()> {
        rows.clone().into_iter().try_for_each(|row| check_clock(table, row))?;
        as_caller(&self.sequences, || match &mut self.work {
            Work::Idle(session) => Ok(session.insert_many(table, rows)?),
            Work::Open(open) => open.with_dependent_mut(|_, transaction| {
                let transaction = transaction.as_mut().ok_or_else(in_failed_transaction)?;
                rows.into_iter().try_for_each(|row| Ok(transaction.insert(table, row)?))
            }),
            _ => Err(in_failed_transaction()),
        })
    }

    /// With ON CONFLICT or RETURNING: row after row, in one transaction.
    fn insert_the_long_way(
        &mut self,
        plan: &InsertPlan,
        rows: &[Vec<Operand>],
        bound: &Bound,
    ) -> Result<Written> {
        let rows: Vec<_> = rows.iter().map(|row| row_values(row, bound)).collect::<Result<_>>()?;
        let way = self.way(plan, bound)?;
        self.change_rows(|transaction| {
            let mut written = Written::default();
            rows.iter().try_for_each(|row| written.place(transaction, &way, row))?;
            Ok(written)
        })
    }

    /// The rows of a query, in one transaction. The query does not see them. Behind the values of columns it says of
    /// others whether they take their default.
    fn insert_found(
        &mut self,
        plan: &InsertPlan,
        (columns, defaulted): (&[Option<usize>], &[usize]),
        query: &QueryPlan,
        bound: &Bound,
    ) -> Result<Written> {
        let (finder, way) = (self.finder(), self.way(plan, bound)?);
        self.change_rows(|transaction| {
            let mut written = Written::default();
            let seen = (&finder, transaction.snapshot());
            written.place_found(transaction, &way, (columns, defaulted, query), seen)?;
            Ok(written)
        })
    }

    pub(super) fn way<'p>(&self, plan: &'p InsertPlan, bound: &'p Bound) -> Result<Way<'p>> {
        let computed = match &plan.conflict {
            Conflict::Update(_, ConflictUpdate { computed: Some(computed), .. }) => {
                Some(self.finder().row_values(computed, bound)?)
            }
            _ => None,
        };
        Ok(Way { plan, bound, computed, returner: self.returner(&plan.returning, bound)? })
    }
}

/// How one execution of a statement writes its rows.
pub(super) struct Way<'p> {
    plan: &'p InsertPlan,
    bound: &'p Bound,
    /// What is computed where a key is taken.
    computed: Option<Arc<RowValues>>,
    returner: Returner,
}

/// The engine tells defaults by the clock of UTC, whatever the session's zone is.
///
/// # Errors
/// A default in the row that would be another one by the session's clock.
pub(super) fn check_clock(table: &Table, row: &[Value<'_>]) -> Result<()> {
    if is_in_utc() {
        return Ok(());
    }
    let of_clock = |column: &ColumnDefinition| match &column.default {
        DefaultValue::Now => column.data_type.unrounded() != DataType::TimestampTz,
        // What it is made of is not known here, only that the engine evaluates it.
        DefaultValue::Expression(computed) => {
            let lower = computed.expression.to_lowercase();
            let words = ["now(", "current_", "local", "timestamp", "date"];
            computed.form.is_some() && words.iter().any(|word| lower.contains(word))
        }
        _ => false,
    };
    let columns = table.definition().columns().iter().zip(row);
    let mut left_out = columns.filter(|(_, value)| matches!(value, Value::Default));
    match left_out.find(|(column, _)| of_clock(column)) {
        None => Ok(()),
        Some((column, _)) => Err(SqlError::not_supported(
            format!("the default of column {:?} in a session of another time zone", column.name),
            "Give a value, or SET timezone = 'UTC'.",
        )),
    }
}

/// What a statement has written so far.
#[derive(Default)]
pub(super) struct Written {
    pub(super) count: u64,
    /// What is sent of the rows, if they are to be returned.
    pub(super) rows: Vec<Row>,
    /// The rows, where one that is there may be changed, or other parts of the statement change rows.
    pub(super) changed: ChangedRows,
    /// Whether there are such other parts.
    pub(super) is_one_of_several: bool,
}

impl Written {
    fn counted(count: u64) -> Written {
        Written { count, ..Written::default() }
    }

    /// All rows of an INSERT, in the transaction of other parts of the statement.
    pub(super) fn place_all(
        &mut self,
        transaction: &mut Transaction<'_>,
        way: &Way<'_>,
        seen: (&Finder, Snapshot),
    ) -> Result<()> {
        match &way.plan.rows {
            InsertRows::Given(rows) => rows
                .iter()
                .try_for_each(|row| self.place(transaction, way, &row_values(row, way.bound)?)),
            InsertRows::Found { columns, defaulted, query } => {
                self.place_found(transaction, way, (columns, defaulted, query), seen)
            }
        }
    }

    /// The rows that a query finds in the snapshot.
    fn place_found(
        &mut self,
        transaction: &mut Transaction<'_>,
        way: &Way<'_>,
        (columns, defaulted, query): (&[Option<usize>], &[usize], &QueryPlan),
        (finder, snapshot): (&Finder, Snapshot),
    ) -> Result<()> {
        let all = way.plan.table.definition().columns();
        finder.for_each(query, way.bound, snapshot, |found| {
            let mut row = vec![Value::Default; all.len()];
            let mut found = found.into_iter();
            for (column, value) in columns.iter().zip(&mut found) {
                if let Some(column) = column {
                    row[*column] = values::coerce(value, all[*column].data_type)?;
                }
            }
            for (column, is_default) in defaulted.iter().zip(found) {
                if is_default == Value::Boolean(true) {
                    row[*column] = Value::Default;
                }
            }
            self.place(transaction, way, &row)
        })
    }

    fn place(
        &mut self,
        transaction: &mut Transaction<'_>,
        way: &Way<'_>,
        row: &[Value<'_>],
    ) -> Result<()> {
        check_clock(&way.plan.table, row)?;
        if self.is_placed(transaction, way, row)? {
            self.count += 1;
            let (key, value) = transaction.last_row();
            if self.is_one_of_several || matches!(way.plan.conflict, Conflict::Update(..)) {
                self.changed.add_bytes(&way.plan.table, key);
            }
            if way.returner.is_wanted {
                let row = way.plan.table.schema().decode_row(key, value)?;
                self.rows.push(way.returner.row(row)?);
            }
        }
        Ok(())
    }

    /// Inserts the row, or does what is to be done with a taken key. False if nothing was written.
    fn is_placed(
        &self,
        transaction: &mut Transaction<'_>,
        way: &Way<'_>,
        row: &[Value<'_>],
    ) -> Result<bool> {
        let error = match transaction.insert(&way.plan.table, row) {
            Ok(()) => return Ok(true),
            Err(error) => SqlError::from(error),
        };
        if !error.is_duplicate_key() {
            return Err(error);
        }
        let (arbiter, update) = match &way.plan.conflict {
            Conflict::Fail => return Err(error),
            Conflict::Nothing(arbiter) => (*arbiter, None),
            Conflict::Update(arbiter, update) => (*arbiter, Some(update)),
        };
        let table = &way.plan.table;
        let in_the_way = match arbiter {
            Arbiter::Any => return Ok(false),
            Arbiter::Key if error.is_of_primary_key() => {
                Some(table.schema().decode_key(transaction.last_row().0)?)
            }
            Arbiter::Key => None,
            Arbiter::Index(index) => transaction.row_in_the_way(table, index)?,
        };
        let Some(key) = in_the_way else { return Err(error) };
        let Some(update) = update else { return Ok(false) };
        if self.changed.contains(table, &key)? {
            let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
            return Err(SqlError::new(state::SEVERAL_ROWS, message)
                .with_hint("Give each key once in a statement."));
        }
        way.update(transaction, update, &key)
    }
}

impl Way<'_> {
    /// Changes the row with this key, which is in the way of the one that was to be inserted just now. False if
    /// it is to stay as it is.
    fn update(
        &self,
        transaction: &mut Transaction<'_>,
        update: &ConflictUpdate,
        key: &[Value<'_>],
    ) -> Result<bool> {
        let table = &self.plan.table;
        let (excluded_key, value) = transaction.last_row();
        // Defaults are in it, as they would have been written.
        let excluded = table.schema().decode_row(excluded_key, value)?;
        let computed = match &self.computed {
            None => Row::new(),
            Some(values) => {
                let Some(old) = transaction.get(table, key)? else { return Ok(false) };
                values.of(&[&old, &excluded])?
            }
        };
        if let Some(view) = &update.seen_by {
            let at = computed.len().checked_sub(1 + usize::from(update.has_condition));
            if at.and_then(|at| computed.get(at)) != Some(&Value::Boolean(true)) {
                let message = format!("conflicting row is not visible through view {view:?}");
                return Err(SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message));
            }
        }
        if update.has_condition && computed.last() != Some(&Value::Boolean(true)) {
            return Ok(false);
        }
        let columns = table.definition().columns();
        let mut changes = Vec::with_capacity(update.assignments.len());
        for assignment in &update.assignments {
            let column = &columns[assignment.column];
            let value = match &assignment.value {
                NewValue::Given(operand) => operand.value(self.bound)?,
                NewValue::Excluded(other) => {
                    values::coerce(excluded[*other].borrowed(), column.data_type)?
                }
                NewValue::Found(at) => values::coerce(computed[*at].borrowed(), column.data_type)?,
            };
            changes.push((column.name.as_str(), value));
        }
        Ok(transaction.update(table, key, &changes)?)
    }
}

/// The values of a row, for one execution.
fn row_values<'b>(row: &'b [Operand], bound: &'b Bound) -> Result<Vec<Value<'b>>> {
    let mut values = Vec::with_capacity(row.len());
    for operand in row {
        values.push(operand.value(bound)?);
    }
    Ok(values)
}
