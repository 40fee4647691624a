//! UPDATE and DELETE: of the row with a key, or of the rows that a query finds.

use onrush::{Row, Snapshot, Table, Transaction, Value};

use super::changed_rows::ChangedRows;
use super::query::Finder;
use super::returning::{Returner, answer};
use super::transaction::Work;
use super::{Answer, Backend, tag};
use crate::error::{Result, SqlError, state};
use crate::sql::{
    Assignment, Bound, DeletePlan, NewValue, QueryPlan, RowsToChange, UpdatePlan, WantedKey, key_of,
};
use crate::values;

/// A column, by name, and its new value.
type Change<'v> = (&'v str, Value<'v>);

impl Backend {
    pub(super) fn update(&mut self, plan: &UpdatePlan, bound: &Bound) -> Result<Answer> {
        let (wanted, computed) = match &plan.rows {
            RowsToChange::WithKey { key, computed } => (key, computed),
            RowsToChange::Found(query) => return self.update_found(plan, query, bound),
        };
        let Some(key) = self.wanted_key(&plan.table, wanted, bound)? else {
            return Ok(answer("UPDATE", &plan.returning, Vec::new(), 0));
        };
        if let (Work::Idle(session), None, None) = (&mut self.work, &plan.returning, computed) {
            let changes = changes(&plan.table, &plan.assignments, bound, &[])?;
            let is_there = session.update(&plan.table, &key, &changes)?;
            return Ok(Answer::Done(tag("UPDATE", u64::from(is_there))));
        }
        let returner = self.returner(&plan.returning, bound)?;
        let computed = match computed {
            Some(computed) => Some(self.finder().row_values(computed, bound)?),
            None => None,
        };
        let mut row_now = None;
        let changed = self.change_rows(|transaction| {
            let found = match &computed {
                None => Row::new(),
                Some(values) => {
                    let Some(old) = transaction.get(&plan.table, &key)? else { return Ok(None) };
                    values.of(&[&old])?
                }
            };
            let changes = changes(&plan.table, &plan.assignments, bound, &found)?;
            if !transaction.update(&plan.table, &key, &changes)? {
                return Ok(None);
            }
            let row = last_row(transaction, &plan.table)?;
            if let WantedKey::OfCursor(_) = wanted {
                row_now = Some(row.clone());
            }
            returner.row(row).map(Some)
        })?;
        if let (WantedKey::OfCursor(name), Some(row)) = (wanted, row_now)
            && let Some(cursor) = self.control.objects.cursors.lock().get_mut(name)
        {
            cursor.follow(&plan.table, &row);
        }
        let count = u64::from(changed.is_some());
        Ok(answer("UPDATE", &plan.returning, changed.into_iter().collect(), count))
    }

    /// The key of the row that is to be changed; none where there is no such row.
    fn wanted_key<'v>(
        &self,
        table: &Table,
        wanted: &'v WantedKey,
        bound: &'v Bound,
    ) -> Result<Option<Vec<Value<'v>>>> {
        match wanted {
            WantedKey::Given(operands) => key_of(operands, bound),
            WantedKey::OfCursor(name) => {
                let cursors = self.control.objects.cursors.lock();
                let cursor = cursors.get(name).ok_or_else(|| {
                    let message = format!("cursor {name:?} does not exist");
                    SqlError::new(state::UNKNOWN_PORTAL, message)
                })?;
                cursor.key(name, table).map(Some)
            }
        }
    }

    fn update_found(
        &mut self,
        plan: &UpdatePlan,
        query: &QueryPlan,
        bound: &Bound,
    ) -> Result<Answer> {
        let way =
            FoundWay { finder: self.finder(), returner: self.returner(&plan.returning, bound)? };
        let (count, changed) = self.change_rows(|transaction| {
            let snapshot = transaction.snapshot();
            // One that is found with several others is changed with the first of them.
            let mut done = plan.is_joined.then(ChangedRows::default);
            way.update(transaction, (plan, query, bound), snapshot, done.as_mut())
        })?;
        Ok(answer("UPDATE", &plan.returning, changed, count))
    }

    pub(super) fn delete(&mut self, plan: &DeletePlan, bound: &Bound) -> Result<Answer> {
        let key = match &plan.rows {
            RowsToChange::WithKey { key, .. } => key,
            RowsToChange::Found(query) => return self.delete_found(plan, query, bound),
        };
        let Some(key) = self.wanted_key(&plan.table, key, bound)? else {
            return Ok(answer("DELETE", &plan.returning, Vec::new(), 0));
        };
        if let (Work::Idle(session), None) = (&mut self.work, &plan.returning) {
            let was_there = session.delete(&plan.table, &key)?;
            return Ok(Answer::Done(tag("DELETE", u64::from(was_there))));
        }
        let returner = self.returner(&plan.returning, bound)?;
        let removed = self.change_rows(|transaction| {
            let Some(row) = transaction.get(&plan.table, &key)? else { return Ok(None) };
            transaction.delete(&plan.table, &key)?;
            returner.row(row).map(Some)
        })?;
        let count = u64::from(removed.is_some());
        Ok(answer("DELETE", &plan.returning, removed.into_iter().collect(), count))
    }

    fn delete_found(
        &mut self,
        plan: &DeletePlan,
        query: &QueryPlan,
        bound: &Bound,
    ) -> Result<Answer> {
        let way =
            FoundWay { finder: self.finder(), returner: self.returner(&plan.returning, bound)? };
        let (count, removed) = self.change_rows(|transaction| {
            let snapshot = transaction.snapshot();
            way.delete(transaction, (plan, query, bound), snapshot, None)
        })?;
        Ok(answer("DELETE", &plan.returning, removed, count))
    }
}

/// How one execution of a statement changes the rows that a query finds. The query sees what the snapshot has: a row
/// that is changed is not found again. `done` are those that the statement has changed: none is changed twice.
pub(super) struct FoundWay {
    pub(super) finder: Finder,
    pub(super) returner: Returner,
}

impl FoundWay {
    /// Gives the number of rows, and what is sent of them.
    pub(super) fn update(
        &self,
        transaction: &mut Transaction<'_>,
        (plan, query, bound): (&UpdatePlan, &QueryPlan, &Bound),
        snapshot: Snapshot,
        mut done: Option<&mut ChangedRows>,
    ) -> Result<(u64, Vec<Row>)> {
        let key_columns = plan.table.definition().primary_key().len();
        let (mut count, mut changed) = (0, Vec::new());
        self.finder.for_each(query, bound, snapshot, |row| {
            let (key, found) = row.split_at(key_columns);
            if let Some(done) = &mut done
                && !done.add(&plan.table, key)?
            {
                return Ok(());
            }
            let changes = changes(&plan.table, &plan.assignments, bound, found)?;
            if transaction.update(&plan.table, key, &changes)? {
                count += 1;
                if let Some(done) = &mut done {
                    done.add_bytes(&plan.table, transaction.last_row().0);
                }
                if self.returner.is_wanted {
                    let new = last_row(transaction, &plan.table)?;
                    changed.push(self.returner.row_found(new, &row)?);
                }
            }
            Ok(())
        })?;
        Ok((count, changed))
    }

    /// Gives the number of rows, and what is sent of them.
    pub(super) fn delete(
        &self,
        transaction: &mut Transaction<'_>,
        (plan, query, bound): (&DeletePlan, &QueryPlan, &Bound),
        snapshot: Snapshot,
        mut done: Option<&mut ChangedRows>,
    ) -> Result<(u64, Vec<Row>)> {
        let key_columns = plan.table.definition().primary_key().len();
        let (mut count, mut removed) = (0, Vec::new());
        self.finder.for_each(query, bound, snapshot, |found| {
            let key = &found[..key_columns];
            if let Some(done) = &mut done
                && !done.add(&plan.table, key)?
            {
                return Ok(());
            }
            if self.returner.is_wanted
                && let Some(row) = transaction.get(&plan.table, key)?
            {
                removed.push(self.returner.row_found(row, &found)?);
            }
            count += u64::from(transaction.delete(&plan.table, key)?);
            Ok(())
        })?;
        Ok((count, removed))
    }
}

/// The new values of a row of which `found` was found beside the key, or computed.
pub(super) fn changes<'v>(
    table: &'v Table,
    assignments: &'v [Assignment],
    bound: &'v Bound,
    found: &'v [Value<'static>],
) -> Result<Vec<Change<'v>>> {
    let columns = table.definition().columns();
    let mut changes = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        let column = &columns[assignment.column];
        let value = match &assignment.value {
            NewValue::Given(operand) => operand.value(bound)?,
            NewValue::Found(at) => values::coerce(found[*at].borrowed(), column.data_type)?,
            // There is no such row beside an INSERT.
            NewValue::Excluded(_) => Value::Null,
        };
        changes.push((column.name.as_str(), value));
    }
    Ok(changes)
}

fn last_row(transaction: &Transaction<'_>, table: &Table) -> Result<Row> {
    let (key, value) = transaction.last_row();
    Ok(table.schema().decode_row(key, value)?)
}
