//! Columns that are computed of others of their row, as a table's definition keeps them: `GENERATED ALWAYS AS
//! (expression) STORED`.
//!
//! Invariant: the expression looks at columns of the row that are not computed so, and at nothing else.

use super::{CHECK_BYTES_MAX, DefaultValue, RowExpression, TableDefinition};
use crate::TypeError;
use crate::expression::PreparedExpression;

impl TableDefinition {
    /// The columns that are computed of others, by position.
    pub fn generated_columns(&self) -> impl Iterator<Item = (usize, &RowExpression)> {
        self.columns.iter().enumerate().filter_map(|(at, column)| match &column.default {
            DefaultValue::Generated(generated) => Some((at, generated)),
            _ => None,
        })
    }

    pub(super) fn check_generated(&self) -> Result<(), TypeError> {
        let damaged = |reason| TypeError::DefinitionDamaged { at: 0, reason };
        for (at, generated) in self.generated_columns() {
            if self.primary_key.contains(&at) {
                return Err(TypeError::GeneratedKey(self.column_name(at)));
            }
            if generated.expression.len() > CHECK_BYTES_MAX {
                return Err(damaged("the expression of a column is too long"));
            }
            let is_computed = |(number, _): (u16, _)| {
                let column = self.column_with_number(number).map(|at| &self.columns[at]);
                column.is_some_and(|it| matches!(it.default, DefaultValue::Generated(_)))
            };
            if !generated.suits(self) || generated.form.columns().into_iter().any(is_computed) {
                return Err(damaged("a column is computed of one that it cannot look at"));
            }
            PreparedExpression::assigned(self, &generated.form, self.columns[at].data_type)?;
        }
        Ok(())
    }

    /// The column that is computed of this one, if there is one.
    pub(super) fn generated_of(&self, number: u16) -> Option<usize> {
        let mut all = self.generated_columns();
        all.find(|(_, generated)| generated.columns.contains(&number)).map(|(at, _)| at)
    }
}
