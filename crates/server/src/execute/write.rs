//! UPDATE and DELETE of the row with a key.

use onrush::{Row, Value};

use super::transaction::Work;
use super::{Answer, Backend, RowStream, tag};
use crate::error::Result;
use crate::sql::{Bound, DeletePlan, NewValue, Operand, OutputColumn, UpdatePlan};

impl Backend {
    pub(super) fn update(&mut self, plan: &UpdatePlan, bound: &Bound) -> Result<Answer> {
        let Some(key) = key(&plan.key, bound)? else {
            return Ok(nothing("UPDATE", &plan.returning));
        };
        let columns = plan.table.definition().columns();
        let mut changes = Vec::with_capacity(plan.assignments.len());
        for assignment in &plan.assignments {
            if let NewValue::Given(operand) = &assignment.value {
                changes.push((columns[assignment.column].name.as_str(), operand.value(bound)?));
            }
        }
        if let (Work::Idle(session), None) = (&mut self.work, &plan.returning) {
            let is_there = session.update(&plan.table, &key, &changes)?;
            self.rest_on_commits();
            return Ok(Answer::Done(tag("UPDATE", u64::from(is_there))));
        }
        let changed = self.in_transaction(|transaction| {
            if !transaction.update(&plan.table, &key, &changes)? {
                return Ok(None);
            }
            let (key, value) = transaction.last_row();
            Ok(Some(plan.table.schema().decode_row(key, value)?))
        })?;
        Ok(answer("UPDATE", &plan.returning, changed))
    }

    pub(super) fn delete(&mut self, plan: &DeletePlan, bound: &Bound) -> Result<Answer> {
        let Some(key) = key(&plan.key, bound)? else {
            return Ok(nothing("DELETE", &plan.returning));
        };
        if let (Work::Idle(session), None) = (&mut self.work, &plan.returning) {
            let was_there = session.delete(&plan.table, &key)?;
            self.rest_on_commits();
            return Ok(Answer::Done(tag("DELETE", u64::from(was_there))));
        }
        let removed = self.in_transaction(|transaction| {
            let row = transaction.get(&plan.table, &key)?;
            if row.is_some() {
                transaction.delete(&plan.table, &key)?;
            }
            Ok(row)
        })?;
        Ok(answer("DELETE", &plan.returning, removed))
    }
}

/// The key, or none if it compares with NULL, which nothing equals.
fn key<'b>(operands: &'b [Operand], bound: &'b Bound) -> Result<Option<Vec<Value<'b>>>> {
    let mut key = Vec::with_capacity(operands.len());
    for operand in operands {
        key.push(operand.value(bound)?);
    }
    Ok(if key.iter().any(Value::is_null) { None } else { Some(key) })
}

fn nothing(verb: &'static str, returning: &Option<Vec<OutputColumn>>) -> Answer {
    answer(verb, returning, None)
}

fn answer(verb: &'static str, returning: &Option<Vec<OutputColumn>>, row: Option<Row>) -> Answer {
    match returning {
        None => Answer::Done(tag(verb, u64::from(row.is_some()))),
        Some(columns) => {
            let rows = row.into_iter().collect();
            Answer::Rows(RowStream::of_rows(columns.as_slice().into(), rows, verb))
        }
    }
}
