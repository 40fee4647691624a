//! Expressions of a table, ready to be evaluated: columns by their positions.

use super::bind;
use super::evaluate::{EvaluationError, Input};
use super::number;
use super::tree::{Node, Operation, TypedExpression};
use crate::{DataType, RowView, TableDefinition, TypeError, Value};

/// An expression over the rows of one definition of a table; of what is assigned the type of its column.
#[derive(Debug)]
pub struct PreparedExpression(Node, Option<DataType>);

/// A default of a column, and that one's type.
#[derive(Debug)]
pub struct PreparedDefault(Node, DataType);

impl PreparedExpression {
    /// # Errors
    /// A column that the table does not have.
    pub fn new(
        table: &TableDefinition,
        expression: &TypedExpression,
    ) -> Result<PreparedExpression, TypeError> {
        let mut node = expression.0.clone();
        place(table, &mut node)?;
        Ok(PreparedExpression(node, None))
    }

    /// What a column of this type is given.
    ///
    /// # Errors
    /// A column that the table does not have; a value that the type does not take.
    pub fn assigned(
        table: &TableDefinition,
        expression: &TypedExpression,
        data_type: DataType,
    ) -> Result<PreparedExpression, TypeError> {
        let mut node = bind::assigned(expression.0.clone(), data_type)?;
        place(table, &mut node)?;
        Ok(PreparedExpression(node, Some(data_type)))
    }

    /// What it comes to for a row, of which texts may be borrowed.
    ///
    /// # Errors
    /// It comes to nothing; a damaged row.
    #[inline]
    pub fn value<'r>(&'r self, row: &RowView<'r>) -> Result<Value<'r>, EvaluationError> {
        let value = self.0.value(&Input { row: Some(*row), now_micros: 0 })?;
        match self.1 {
            Some(assigned) => fitted(value, assigned),
            None => Ok(value),
        }
    }

    /// Whether it is true for a row, if it is a condition.
    ///
    /// # Errors
    /// It comes to nothing; a damaged row.
    #[inline]
    pub fn is_true(&self, row: &RowView<'_>) -> Result<bool, EvaluationError> {
        Ok(self.value(row)? == Value::Boolean(true))
    }

    /// Whether a row meets it, if it is a condition: whether it is not false.
    ///
    /// # Errors
    /// It comes to nothing; a damaged row.
    #[inline]
    pub fn is_met(&self, row: &RowView<'_>) -> Result<bool, EvaluationError> {
        Ok(self.value(row)? != Value::Boolean(false))
    }
}

impl PreparedDefault {
    /// # Errors
    /// A value that a column of this type does not take; an expression of a row.
    pub fn new(
        expression: &TypedExpression,
        data_type: DataType,
    ) -> Result<PreparedDefault, TypeError> {
        if !expression.columns().is_empty() {
            return Err(bind::refused("a default looks at no column"));
        }
        Ok(PreparedDefault(bind::assigned(expression.0.clone(), data_type)?, data_type))
    }

    /// The next value, for a row of the moment `now_micros`: microseconds since 1970-01-01 00:00:00 UTC.
    ///
    /// # Errors
    /// It comes to nothing.
    pub fn value(&self, now_micros: i64) -> Result<Value<'static>, EvaluationError> {
        let value = self.0.value(&Input { row: None, now_micros })?.into_owned();
        fitted(value, self.1)
    }
}

/// As a column of the type has it: with as many digits.
fn fitted(value: Value<'_>, data_type: DataType) -> Result<Value<'_>, EvaluationError> {
    match (data_type, value.as_numeric()) {
        (DataType::Numeric(Some((precision, scale))), Some(exact)) => {
            let fitted = exact.fitted(precision, scale);
            fitted.map(Value::Numeric).map_err(number::too_many_digits)
        }
        _ => Ok(data_type.rounded(value)),
    }
}

/// Puts positions in the place of numbers.
fn place(table: &TableDefinition, node: &mut Node) -> Result<(), TypeError> {
    if let Operation::Column(_, number) = &mut node.operation {
        let position = table.column_with_number(*number);
        let Some(position) = position.and_then(|position| u16::try_from(position).ok()) else {
            let reason = "an expression looks at a column that does not exist";
            return Err(TypeError::DefinitionDamaged { at: 0, reason });
        };
        *number = position;
    }
    node.operands.iter_mut().try_for_each(|operand| place(table, operand))
}
