//! CREATE TABLE ... AS, SELECT INTO, and materialized views: tables of what a query gives.

use onrush::{Snapshot, Table, TableChange, Transaction, Value, ViewDefinition, ViewRows};

use super::definition::{Touched, new_table};
use super::query::Finder;
use super::{Answer, Backend, tag};
use crate::error::{Result, SqlError, state};
use crate::sql::{Bound, CreateAsPlan, QueryPlan, RefreshPlan};
use crate::values;

impl Backend {
    /// Makes a table and puts the rows of a query into it, in one transaction.
    pub(super) fn create_as(&mut self, plan: &CreateAsPlan, bound: &Bound) -> Result<Answer> {
        let CreateAsPlan { definition, if_not_exists, on_commit, query, has_data, types: _ } = plan;
        let finder = self.finder();
        let made = self.define_own(Touched::NOTHING, |transaction| {
            let snapshot = transaction.snapshot();
            if definition.materialized_view().is_some() {
                query.tables().try_for_each(|table| transaction.hold_table(table))?;
            }
            let Some(table) = new_table(transaction, definition, *if_not_exists)? else {
                return Ok(None);
            };
            let count = match has_data {
                true => Some(fill(transaction, &table, (&finder, snapshot), (query, bound))?),
                false => None,
            };
            Ok(Some((table.id(), count)))
        })?;
        self.note_made(made.map(|(number, _)| number), definition.name(), *on_commit);
        Ok(Answer::Done(match made {
            Some((_, Some(count))) => tag("SELECT", count),
            _ => plan.tag().into(),
        }))
    }

    /// Gives a materialized view the rows that its query has now, or none.
    pub(super) fn refresh(&mut self, plan: &RefreshPlan, bound: &Bound) -> Result<()> {
        let RefreshPlan { view, query } = plan;
        let Some(kept) = view.definition().materialized_view() else {
            return Err(SqlError::new(state::INTERNAL, "a table is no materialized view"));
        };
        let finder = self.finder();
        self.define(Touched::NOTHING, |transaction| {
            // Who comes to it now waits for this transaction, and this one has waited for others.
            let mut table = transaction.truncate_table(view.name())?;
            let rows = if query.is_some() { ViewRows::Kept } else { ViewRows::Missing };
            if rows != kept.rows {
                let change = TableChange::SetView(ViewDefinition { rows, ..kept.clone() });
                table = transaction.alter_table(view.name(), &[change])?;
            }
            let Some(query) = query else { return Ok(()) };
            transaction.refresh();
            let snapshot = transaction.snapshot();
            fill(transaction, &table, (&finder, snapshot), (query, bound))?;
            Ok(())
        })
    }
}

/// Puts the rows of a query into a table; how many.
fn fill(
    transaction: &mut Transaction<'_>,
    table: &Table,
    (finder, snapshot): (&Finder, Snapshot),
    (query, bound): (&QueryPlan, &Bound),
) -> Result<u64> {
    let all = table.definition().columns();
    let shown: Vec<usize> = table.definition().shown_columns().collect();
    let mut count = 0;
    finder.for_each(query, bound, snapshot, |found| {
        let mut row = vec![Value::Default; all.len()];
        for (value, column) in found.into_iter().zip(&shown) {
            row[*column] = values::coerce(value, all[*column].data_type)?;
        }
        count += 1;
        Ok(transaction.insert(table, &row)?)
    })?;
    Ok(count)
}
