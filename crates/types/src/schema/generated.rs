//! Columns that are computed of others of their row, as a table's definition keeps them: `GENERATED ALWAYS AS
//! (expression) STORED`.
//!
//! Invariants
//! 1. The expression looks at columns of the row that are not computed so, and at nothing else.
//! 2. It names them by number, as those of checks do.

use std::sync::Arc;

use super::{CHECK_BYTES_MAX, DefaultValue, TableDefinition};
use crate::TypeError;
use crate::expression::{Expression, Kind, PreparedExpression, TypedExpression};

/// What a column is computed of.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedColumn {
    /// The numbers of the columns that it looks at; see [`TableDefinition::column_number`].
    pub columns: Vec<u16>,
    /// In SQL, with `$1` for the column of number 0 and so on.
    pub expression: String,
    /// The same in the form that is evaluated.
    pub form: Arc<TypedExpression>,
}

impl GeneratedColumn {
    /// Of the columns of a table.
    ///
    /// # Errors
    /// [`TypeError::Expression`] for what is not always the same for a row; [`TypeError::UnknownColumn`].
    pub fn new(
        expression: &Expression,
        table: &TableDefinition,
    ) -> Result<GeneratedColumn, TypeError> {
        let form = expression.bound(table)?;
        if form.is_volatile() {
            let reason = "a column is computed of what is always the same for a row".into();
            return Err(TypeError::Expression { reason });
        }
        Ok(GeneratedColumn {
            columns: form.columns().iter().map(|(number, _)| *number).collect(),
            expression: expression.written(Some(table))?,
            form: Arc::new(form),
        })
    }
}

impl TableDefinition {
    /// The columns that are computed of others, by position.
    pub fn generated_columns(&self) -> impl Iterator<Item = (usize, &GeneratedColumn)> {
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
            for (number, kind) in generated.form.columns() {
                let column = self.column_with_number(number).map(|at| &self.columns[at]);
                let is_sound = column.is_some_and(|column| {
                    !matches!(column.default, DefaultValue::Generated(_))
                        && Kind::of(column.data_type) == kind
                });
                if !is_sound || !generated.columns.contains(&number) {
                    return Err(damaged("a column is computed of one that it cannot look at"));
                }
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
