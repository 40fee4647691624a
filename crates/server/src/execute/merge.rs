//! MERGE: what its two queries find is changed, or inserted.

use onrush::{Row, Snapshot, Transaction, Value};

use super::changed_rows::ChangedRows;
use super::insert::check_clock;
use super::query::Finder;
use super::write::changes;
use crate::error::{Result, SqlError, state};
use crate::sql::{Action, Bound, MergePlan, MergeRows};

/// Both queries see what the snapshot has. Gives the number of rows.
pub(super) fn run(
    transaction: &mut Transaction<'_>,
    (plan, bound): (&MergePlan, &Bound),
    (finder, snapshot): (&Finder, Snapshot),
    changed: &mut ChangedRows,
) -> Result<u64> {
    let mut count = 0;
    if let Some(rows) = &plan.matched {
        let key_columns = plan.table.definition().primary_key().len();
        finder.for_each(&rows.query, bound, snapshot.same(), |row| {
            let Some(action) = action(rows, &row) else { return Ok(()) };
            let (key, found) = row[1..].split_at(key_columns);
            if !changed.add(&plan.table, key)? {
                let message = "MERGE command cannot affect row a second time";
                return Err(SqlError::new(state::SEVERAL_ROWS, message).with_hint(
                    "Ensure that not more than one source row matches any one target row.",
                ));
            }
            let is_done = match action {
                Action::Update(assignments) => {
                    let changes = changes(&plan.table, assignments, bound, found)?;
                    let is_done = transaction.update(&plan.table, key, &changes)?;
                    changed.add_bytes(&plan.table, transaction.last_row().0);
                    is_done
                }
                _ => transaction.delete(&plan.table, key)?,
            };
            count += u64::from(is_done);
            Ok(())
        })?;
    }
    if let Some(rows) = &plan.not_matched {
        let all = plan.table.definition().columns();
        finder.for_each(&rows.query, bound, snapshot, |row| {
            let Some(Action::Insert(assignments)) = action(rows, &row) else { return Ok(()) };
            let mut new = vec![Value::Default; all.len()];
            let given = changes(&plan.table, assignments, bound, &row[1..])?;
            for (assignment, (_, value)) in assignments.iter().zip(given) {
                new[assignment.column] = value;
            }
            check_clock(&plan.table, &new)?;
            transaction.insert(&plan.table, &new)?;
            changed.add_bytes(&plan.table, transaction.last_row().0);
            count += 1;
            Ok(())
        })?;
    }
    Ok(count)
}

/// What is done with a row that was found; none if it is left alone.
fn action<'m>(rows: &'m MergeRows, row: &Row) -> Option<&'m Action> {
    let number = usize::try_from(row.first()?.as_i64()?).ok()?;
    rows.actions.get(number).filter(|action| !matches!(action, Action::Nothing))
}
