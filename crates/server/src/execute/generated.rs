//! ALTER TABLE ... ADD COLUMN ... GENERATED ALWAYS AS (...) STORED: the rows are copied, and the column is computed for
//! each of them.

use onrush::{DefaultValue, TableDefinition};

use super::Backend;
use crate::error::{Result, SqlError, state};
use crate::rewrite::Form;
use crate::schemas;
use crate::sql::{AlterPlan, Change, PlannedChange};

impl Backend {
    /// Adds the column that the plan says, if it says one that is computed of others.
    pub(super) fn adds_generated(&mut self, plan: &AlterPlan) -> Result<bool> {
        let is_it = |planned: &&PlannedChange| matches!(planned.change, Change::AddGenerated(..));
        let Some(added) = plan.changes.iter().find(is_it) else { return Ok(false) };
        let (Change::AddGenerated(column, generated), [_]) = (&added.change, &plan.changes[..])
        else {
            return Err(SqlError::not_supported(
                "a new generated column beside other changes",
                "Give it a statement of its own.",
            ));
        };
        let known = self.seen.table(&plan.table);
        let is_there =
            known.is_ok_and(|known| known.definition().shown_column_index(&column.name).is_ok());
        if !is_there {
            self.rewrite_table(plan, &Form::Generated(column, generated))?;
            return Ok(true);
        }
        let relation = schemas::own_name(&plan.table);
        let exists = format!("column {:?} of relation {relation:?} already exists", column.name);
        if !added.if_needed {
            return Err(SqlError::new(state::DUPLICATE_COLUMN, exists));
        }
        let skipping = SqlError::new(state::DUPLICATE_COLUMN, format!("{exists}, skipping"));
        self.notices.push(skipping.notice());
        Ok(true)
    }
}

/// The columns that are computed of one.
pub(super) fn computed_of(table: &TableDefinition, column: &str) -> Vec<String> {
    let Ok(at) = table.shown_column_index(column) else { return Vec::new() };
    let number = table.column_number(at);
    let is_of = |column: &&onrush::ColumnDefinition| match &column.default {
        DefaultValue::Generated(generated) => {
            generated.columns.iter().any(|used| usize::from(*used) == number)
        }
        _ => false,
    };
    table.columns().iter().filter(is_of).map(|column| column.name.clone()).collect()
}
