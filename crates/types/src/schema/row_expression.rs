//! Expressions over the columns of a row that a table's definition keeps: what a column is computed of, what an index
//! is ordered by, and which rows it has.
//!
//! Invariant: an expression names columns by number, as those of checks do, so that it is the same whatever is added,
//! dropped or renamed.

use std::sync::Arc;

use super::TableDefinition;
use crate::expression::{Expression, Kind, TypedExpression};
use crate::{DataType, TypeError};

/// An expression over the columns of a row, which always comes to the same for a row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowExpression {
    /// The numbers of the columns that it looks at; see [`TableDefinition::column_number`].
    pub columns: Vec<u16>,
    /// In SQL, with `$1` for the column of number 0 and so on.
    pub expression: String,
    /// The same in the form that is evaluated.
    pub form: Arc<TypedExpression>,
}

impl RowExpression {
    /// Over the columns of a table.
    ///
    /// # Errors
    /// [`TypeError::Expression`] for what is not always the same for a row; [`TypeError::UnknownColumn`].
    pub fn new(
        expression: &Expression,
        table: &TableDefinition,
    ) -> Result<RowExpression, TypeError> {
        let form = expression.bound(table)?;
        if form.is_volatile() {
            let reason = "what is computed of a row is always the same for it".into();
            return Err(TypeError::Expression { reason });
        }
        Ok(RowExpression {
            columns: form.columns().iter().map(|(number, _)| *number).collect(),
            expression: expression.written(Some(table))?,
            form: Arc::new(form),
        })
    }

    /// A condition on the rows of a table.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`TypeError::Expression`] for what is neither true nor false.
    pub fn condition(
        expression: &Expression,
        table: &TableDefinition,
    ) -> Result<RowExpression, TypeError> {
        let condition = RowExpression::new(expression, table)?;
        match condition.form.fault_of_condition() {
            Some(reason) => Err(TypeError::Expression { reason: reason.into() }),
            None => Ok(condition),
        }
    }

    /// The type of a column that holds what it comes to. None where lengths or digits must be said: cast it.
    #[must_use]
    pub fn data_type(&self) -> Option<DataType> {
        self.form.data_type()
    }

    /// The same expression over another table, whose columns have the same names. None where one is missing, or of
    /// another type.
    #[must_use]
    pub fn over(&self, from: &TableDefinition, to: &TableDefinition) -> Option<RowExpression> {
        let number = |number: u16| {
            let of = &from.columns()[from.column_with_number(number)?];
            u16::try_from(to.column_number(to.column_index(&of.name).ok()?)).ok()
        };
        let columns: Option<Vec<u16>> = self.columns.iter().map(|column| number(*column)).collect();
        let moved = RowExpression {
            columns: columns?,
            expression: renumbered(&self.expression, number)?,
            form: Arc::new(self.form.renumbered(number)?),
        };
        moved.suits(to).then_some(moved)
    }

    /// Whether all columns that it looks at are there and of the types that it was made for.
    pub(super) fn suits(&self, table: &TableDefinition) -> bool {
        self.form.columns().into_iter().all(|(number, kind)| {
            let column = table.column_with_number(number).map(|at| &table.columns()[at]);
            self.columns.contains(&number)
                && column.is_some_and(|column| Kind::of(column.data_type) == kind)
        })
    }
}

/// SQL with other numbers of columns; what is quoted stays.
pub(super) fn renumbered(expression: &str, number: impl Fn(u16) -> Option<u16>) -> Option<String> {
    let mut written = String::with_capacity(expression.len());
    let mut rest = expression.chars().peekable();
    let mut quote = None;
    while let Some(next) = rest.next() {
        written.push(next);
        match (quote, next) {
            (None, '\'' | '"') => quote = Some(next),
            (Some(open), _) if open == next => quote = None,
            (None, '$') => {
                let mut digits = String::new();
                while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                    digits.push(digit);
                }
                let old = digits.parse::<u16>().ok()?.checked_sub(1)?;
                written.push_str(&(u32::from(number(old)?) + 1).to_string());
            }
            _ => {}
        }
    }
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_columns_are_replaced_outside_of_quotes() {
        let moved = renumbered("$1 = 'it''s $1' AND \"$2\" < $12", |number| Some(number + 1));
        assert_eq!(moved.as_deref(), Some("$2 = 'it''s $1' AND \"$2\" < $13"));
        assert_eq!(renumbered("$1 < $2", |number| (number == 0).then_some(0)), None);
    }
}
