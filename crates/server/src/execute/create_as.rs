//! CREATE TABLE ... AS and SELECT INTO.

use onrush::Value;

use super::definition::{Touched, new_table};
use super::{Answer, Backend, tag};
use crate::error::Result;
use crate::sql::{Bound, CreateAsPlan};
use crate::values;

impl Backend {
    /// Makes a table and puts the rows of a query into it, in one transaction.
    pub(super) fn create_as(&mut self, plan: &CreateAsPlan, bound: &Bound) -> Result<Answer> {
        let CreateAsPlan { definition, if_not_exists, on_commit, query } = plan;
        let finder = self.finder();
        let made = self.define_own(Touched::NOTHING, |transaction| {
            let snapshot = transaction.snapshot();
            let Some(table) = new_table(transaction, definition, *if_not_exists)? else {
                return Ok(None);
            };
            let all = table.definition().columns();
            let shown: Vec<usize> = table.definition().shown_columns().collect();
            let mut count = 0;
            finder.for_each(query, bound, snapshot, |found| {
                let mut row = vec![Value::Default; all.len()];
                for (value, column) in found.into_iter().zip(&shown) {
                    row[*column] = values::coerce(value, all[*column].data_type)?;
                }
                count += 1;
                Ok(transaction.insert(&table, &row)?)
            })?;
            Ok(Some((table.id(), count)))
        })?;
        self.note_made(made.map(|(number, _)| number), definition.name(), *on_commit);
        Ok(Answer::Done(match made {
            Some((_, count)) => tag("SELECT", count),
            None => "CREATE TABLE AS".into(),
        }))
    }
}
