//! INSERT: the short way of one row first.

use std::borrow::Cow;

use onrush::{Row, Table, Transaction, Value};

use super::transaction::Work;
use super::{Answer, Backend, RowStream, in_failed_transaction, tag};
use crate::error::{Result, SqlError};
use crate::sql::{Bound, Conflict, InsertPlan, InsertRows, NewValue, Operand, QueryPlan};
use crate::values;

impl Backend {
    pub(super) fn insert(&mut self, plan: &InsertPlan, bound: &Bound) -> Result<Answer> {
        Ok(self.write_rows(plan, bound)?.answer(plan))
    }

    /// As [`execute`](Backend::execute), and gives the tag of the answer. Nothing is waited for.
    pub(crate) fn execute_insert(
        &mut self,
        plan: &InsertPlan,
        bound: &Bound,
    ) -> Result<Cow<'static, str>> {
        if matches!(self.work, Work::Failed(_)) {
            return Err(in_failed_transaction());
        }
        let allowed = self.check_may_write("INSERT").and_then(|()| self.check_insert(plan));
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
            InsertRows::Found { columns, query } => {
                return self.insert_found(plan, columns, query, bound);
            }
        };
        match (rows, &plan.conflict, &plan.returning) {
            ([row], Conflict::Fail, None) => {
                let values = row_values(row, bound)?;
                self.insert_row(&plan.table, &values)?;
                Ok(Written::counted(1))
            }
            (rows, Conflict::Fail, None) => {
                let rows: Vec<_> =
                    rows.iter().map(|row| row_values(row, bound)).collect::<Result<_>>()?;
                self.insert_rows(&plan.table, rows.iter().map(Vec::as_slice))?;
                Ok(Written::counted(rows.len() as u64))
            }
            (rows, ..) => self.insert_the_long_way(plan, rows, bound),
        }
    }

    fn insert_row(&mut self, table: &Table, values: &[Value<'_>]) -> Result<()> {
        match &mut self.work {
            Work::Idle(session) if self.settings.is_durable => {
                let token = session.insert_token(table, values)?;
                if table.definition().is_logged() {
                    self.newest = Some(token);
                }
                Ok(())
            }
            Work::Idle(session) => Ok(session.insert(table, values)?),
            Work::Open(open) => open.with_dependent_mut(|_, slot| match slot {
                Some(transaction) => Ok(transaction.insert(table, values)?),
                None => Err(in_failed_transaction()),
            }),
            _ => Err(in_failed_transaction()),
        }
    }

    /// All or none.
    pub(crate) fn insert_rows<'v>(
        &mut self,
        table: &Table,
        rows: impl IntoIterator<Item = &'v [Value<'v>]>,
    ) -> Result<()> {
        match &mut self.work {
            Work::Idle(session) if self.settings.is_durable => {
                let token = session.insert_many_token(table, rows)?;
                if table.definition().is_logged() {
                    self.newest = Some(token);
                }
                Ok(())
            }
            Work::Idle(session) => Ok(session.insert_many(table, rows)?),
            Work::Open(open) => open.with_dependent_mut(|_, slot| {
                let transaction = slot.as_mut().ok_or_else(in_failed_transaction)?;
                rows.into_iter().try_for_each(|row| Ok(transaction.insert(table, row)?))
            }),
            _ => Err(in_failed_transaction()),
        }
    }

    /// With ON CONFLICT or RETURNING: row after row, in one transaction.
    fn insert_the_long_way(
        &mut self,
        plan: &InsertPlan,
        rows: &[Vec<Operand>],
        bound: &Bound,
    ) -> Result<Written> {
        let rows: Vec<_> = rows.iter().map(|row| row_values(row, bound)).collect::<Result<_>>()?;
        self.in_transaction(|transaction| {
            let mut written = Written::default();
            for row in &rows {
                written.place(transaction, plan, row, bound)?;
            }
            Ok(written)
        })
    }

    /// The rows of a query, in one transaction. The query does not see them.
    fn insert_found(
        &mut self,
        plan: &InsertPlan,
        columns: &[usize],
        query: &QueryPlan,
        bound: &Bound,
    ) -> Result<Written> {
        let finder = self.finder();
        let all = plan.table.definition().columns();
        self.in_transaction(|transaction| {
            let mut written = Written::default();
            let snapshot = transaction.snapshot();
            finder.for_each(query, bound, snapshot, |found| {
                let mut row = vec![Value::Default; all.len()];
                for (value, column) in found.into_iter().zip(columns) {
                    row[*column] = values::coerce(value, all[*column].data_type)?;
                }
                written.place(transaction, plan, &row, bound)
            })?;
            Ok(written)
        })
    }
}

/// What a statement has written so far.
#[derive(Default)]
struct Written {
    count: u64,
    /// The rows, if they are to be returned.
    rows: Vec<Row>,
}

impl Written {
    fn counted(count: u64) -> Written {
        Written { count, rows: Vec::new() }
    }

    fn place(
        &mut self,
        transaction: &mut Transaction<'_>,
        plan: &InsertPlan,
        row: &[Value<'_>],
        bound: &Bound,
    ) -> Result<()> {
        if place(transaction, plan, row, bound)? {
            self.count += 1;
            if plan.returning.is_some() {
                let (key, value) = transaction.last_row();
                self.rows.push(plan.table.schema().decode_row(key, value)?);
            }
        }
        Ok(())
    }

    fn answer(self, plan: &InsertPlan) -> Answer {
        match &plan.returning {
            None => Answer::Done(tag("INSERT", self.count)),
            Some(columns) => {
                Answer::rows(RowStream::of_rows(columns.as_slice().into(), self.rows, "INSERT"))
            }
        }
    }
}

/// Inserts the row, or does what is to be done with a taken key. False if nothing was written.
fn place(
    transaction: &mut Transaction<'_>,
    plan: &InsertPlan,
    row: &[Value<'_>],
    bound: &Bound,
) -> Result<bool> {
    let error = match transaction.insert(&plan.table, row) {
        Ok(()) => return Ok(true),
        Err(error) => SqlError::from(error),
    };
    if !error.is_duplicate_key() {
        return Err(error);
    }
    match &plan.conflict {
        Conflict::Fail => Err(error),
        Conflict::Nothing => Ok(false),
        Conflict::Update(assignments) => {
            let (key, _) = transaction.last_row();
            let key = plan.table.schema().decode_key(key)?;
            let columns = plan.table.definition().columns();
            let mut changes = Vec::with_capacity(assignments.len());
            for assignment in assignments {
                let value = match &assignment.value {
                    NewValue::Given(operand) => operand.value(bound)?,
                    NewValue::Excluded(column) => row[*column].borrowed(),
                    // Only an UPDATE finds values.
                    NewValue::Found(_) => Value::Null,
                };
                changes.push((columns[assignment.column].name.as_str(), value));
            }
            Ok(transaction.update(&plan.table, &key, &changes)?)
        }
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
