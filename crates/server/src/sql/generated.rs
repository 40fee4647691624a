//! `GENERATED ALWAYS AS (expression) STORED`: from SQL to what a table's definition keeps.
//!
//! What such a column is computed of is in the form that the engine evaluates, so that it is computed for whoever
//! writes a row; what the form does not have is refused.

use std::ops::ControlFlow;

use onrush::{DefaultValue, RowExpression, TableDefinition, TypeError};
use sqlparser::ast::{Expr, Ident, Visit, Visitor};

use super::{check, form, names};
use crate::error::{Result, SqlError, state};

/// A column that is computed of others, as it was written.
#[derive(Clone, Debug)]
pub(crate) struct NewGenerated {
    pub(crate) column: String,
    expression: Box<Expr>,
}

impl NewGenerated {
    pub(super) fn new(column: &str, expression: &Expr) -> NewGenerated {
        NewGenerated { column: column.to_owned(), expression: Box::new(expression.clone()) }
    }

    /// Those that a table has, for another table.
    pub(crate) fn again(table: &TableDefinition) -> Result<Vec<NewGenerated>> {
        let mut all = Vec::new();
        for (at, generated) in table.generated_columns() {
            let expression = Box::new(check::with_quoted_names(table, &generated.expression)?);
            all.push(NewGenerated { column: table.columns()[at].name.clone(), expression });
        }
        Ok(all)
    }

    /// The table with these columns computed.
    ///
    /// # Errors
    /// PostgreSQL's, of expressions that are not always the same for a row, look at columns that are computed
    /// themselves, or are of another type; what the engine does not evaluate.
    pub(crate) fn applied(
        all: &[NewGenerated],
        mut table: TableDefinition,
    ) -> Result<TableDefinition> {
        for generated in all {
            generated.check_columns(all, &table)?;
        }
        for generated in all {
            let kept = generated.kept(&table)?;
            let applied = table.clone().with_generated(&generated.column, kept);
            table = applied.map_err(|error| generated.refused(error))?;
        }
        Ok(table)
    }

    fn kept(&self, table: &TableDefinition) -> Result<RowExpression> {
        let read = form::read(&self.expression, table.name());
        let Some(expression) = read else {
            return Err(SqlError::not_supported(
                format!("GENERATED ALWAYS AS ({}) on column {}", self.expression, self.column),
                "Expressions of CHECK constraints that the engine evaluates itself can be used: see docs/sql.md.",
            ));
        };
        RowExpression::new(&expression, table).map_err(|error| self.refused(error))
    }

    /// Refuses columns that are computed themselves, and those that there are none of.
    fn check_columns(&self, all: &[NewGenerated], table: &TableDefinition) -> Result<()> {
        let mut columns = Columns(Vec::new());
        let _: ControlFlow<()> = self.expression.visit(&mut columns);
        for name in columns.0 {
            let at = table.shown_column_index(&name);
            let is_generated = at
                .as_ref()
                .is_ok_and(|at| matches!(table.columns()[*at].default, DefaultValue::Generated(_)));
            if is_generated || all.iter().any(|other| other.column == name) {
                let message =
                    format!("cannot use generated column {name:?} in column generation expression");
                let detail = "A generated column cannot reference another generated column.";
                return Err(
                    SqlError::new(state::INVALID_OBJECT_DEFINITION, message).with_detail(detail)
                );
            }
            if at.is_err() {
                let message = format!("column {name:?} does not exist");
                return Err(SqlError::new(state::UNDEFINED_COLUMN, message));
            }
        }
        Ok(())
    }

    fn refused(&self, error: TypeError) -> SqlError {
        match error {
            TypeError::Expression { reason } if reason.contains("always the same") => {
                let message = "generation expression is not immutable";
                SqlError::new(state::INVALID_OBJECT_DEFINITION, message)
            }
            TypeError::Expression { .. } => {
                let message = format!(
                    "column {:?} is of another type than the expression that it is generated of",
                    self.column
                );
                SqlError::new(state::DATATYPE_MISMATCH, message)
                    .with_hint("You will need to rewrite or cast the expression.")
            }
            other => other.into(),
        }
    }
}

/// The columns that an expression names.
struct Columns(Vec<String>);

impl Visitor for Columns {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        let name = match expression {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        };
        self.0.extend(name.map(|name: &Ident| names::identifier(name)));
        ControlFlow::Continue(())
    }
}
