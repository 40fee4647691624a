//! INSERT: the short way of one row first.

use onrush::{Row, Table, Transaction, Value};

use super::transaction::Work;
use super::{Answer, Backend, RowStream, in_failed_transaction, tag};
use crate::error::{Result, SqlError};
use crate::sql::{Bound, Conflict, InsertPlan, NewValue, Operand};

impl Backend {
    pub(super) fn insert(&mut self, plan: &InsertPlan, bound: &Bound) -> Result<Answer> {
        match (plan.rows.as_slice(), &plan.conflict, &plan.returning) {
            ([row], Conflict::Fail, None) => {
                let values = values(row, bound)?;
                self.insert_row(&plan.table, &values)?;
                Ok(Answer::Done("INSERT 0 1".into()))
            }
            (rows, Conflict::Fail, None) => {
                let rows: Vec<_> =
                    rows.iter().map(|row| values(row, bound)).collect::<Result<_>>()?;
                self.insert_rows(&plan.table, &rows)?;
                Ok(Answer::Done(tag("INSERT", rows.len() as u64)))
            }
            _ => self.insert_the_long_way(plan, bound),
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
    pub(crate) fn insert_rows(&mut self, table: &Table, rows: &[Vec<Value<'_>>]) -> Result<()> {
        let rows = rows.iter().map(Vec::as_slice);
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
    fn insert_the_long_way(&mut self, plan: &InsertPlan, bound: &Bound) -> Result<Answer> {
        let rows: Vec<_> = plan.rows.iter().map(|row| values(row, bound)).collect::<Result<_>>()?;
        let written = self.in_transaction(|transaction| {
            let mut written: Vec<Row> = Vec::new();
            let mut count = 0;
            for row in &rows {
                if place(transaction, plan, row, bound)? {
                    count += 1;
                    if plan.returning.is_some() {
                        let (key, value) = transaction.last_row();
                        written.push(plan.table.schema().decode_row(key, value)?);
                    }
                }
            }
            Ok((count, written))
        });
        let (count, written) = written?;
        match &plan.returning {
            None => Ok(Answer::Done(tag("INSERT", count))),
            Some(columns) => {
                Ok(Answer::Rows(RowStream::of_rows(columns.as_slice().into(), written, "INSERT")))
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
                };
                changes.push((columns[assignment.column].name.as_str(), value));
            }
            Ok(transaction.update(&plan.table, &key, &changes)?)
        }
    }
}

/// The values of a row, for one execution.
fn values<'b>(row: &'b [Operand], bound: &'b Bound) -> Result<Vec<Value<'b>>> {
    let mut values = Vec::with_capacity(row.len());
    for operand in row {
        values.push(operand.value(bound)?);
    }
    Ok(values)
}
