//! WHERE: comparisons of columns with values, joined by AND.

use onrush::{DataType, TableDefinition};
use sqlparser::ast::{BinaryOperator, Expr, Ident};

use super::names;
use super::operand::{Operand, Parameters};
use crate::error::{Result, SqlError, state};

/// How a column is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    IsNull,
    IsNotNull,
}

/// One condition: the column, by position, stands on the left.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) column: usize,
    pub(crate) operator: Operator,
    /// NULL for IS \[NOT\] NULL.
    pub(crate) operand: Operand,
}

/// Something with named columns.
pub(crate) trait Columns {
    /// Position and type of a column.
    fn find(&self, name: &str) -> Result<(usize, DataType)>;
}

/// The columns of a table.
pub(super) struct TableColumns<'t>(pub(super) &'t TableDefinition);

impl Columns for TableColumns<'_> {
    fn find(&self, name: &str) -> Result<(usize, DataType)> {
        let column = self.0.column_index(name)?;
        Ok((column, self.0.columns()[column].data_type))
    }
}

/// The conditions that all must hold.
pub(super) fn conjunction(
    columns: &dyn Columns,
    expression: &Expr,
    parameters: &mut Parameters,
) -> Result<Vec<Comparison>> {
    let mut found = Vec::new();
    let mut left = vec![expression];
    while let Some(expression) = left.pop() {
        match expression {
            Expr::Nested(inner) => left.push(inner),
            Expr::BinaryOp { left: first, op: BinaryOperator::And, right: second } => {
                left.push(first);
                left.push(second);
            }
            Expr::BinaryOp { left: first, op, right: second } => {
                found.push(comparison(columns, expression, (first, op, second), parameters)?);
            }
            Expr::Between { expr, negated: false, low, high } => {
                let (column, data_type) = column_of(columns, expr, expression)?;
                let mut bound = |operator, value: &Expr| {
                    let operand = Operand::new(value, data_type, parameters)?;
                    found.push(Comparison { column, operator, operand });
                    Ok::<_, SqlError>(())
                };
                bound(Operator::GreaterOrEqual, low)?;
                bound(Operator::LessOrEqual, high)?;
            }
            Expr::IsNull(inner) => {
                let (column, _) = column_of(columns, inner, expression)?;
                let operand = Operand::Constant(onrush::Value::Null);
                found.push(Comparison { column, operator: Operator::IsNull, operand });
            }
            Expr::IsNotNull(inner) => {
                let (column, _) = column_of(columns, inner, expression)?;
                let operand = Operand::Constant(onrush::Value::Null);
                found.push(Comparison { column, operator: Operator::IsNotNull, operand });
            }
            other => return Err(too_much(other)),
        }
    }
    Ok(found)
}

fn comparison(
    columns: &dyn Columns,
    whole: &Expr,
    (left, operator, right): (&Expr, &BinaryOperator, &Expr),
    parameters: &mut Parameters,
) -> Result<Comparison> {
    let operator = match operator {
        BinaryOperator::Eq => Operator::Equal,
        BinaryOperator::NotEq => Operator::NotEqual,
        BinaryOperator::Lt => Operator::Less,
        BinaryOperator::LtEq => Operator::LessOrEqual,
        BinaryOperator::Gt => Operator::Greater,
        BinaryOperator::GtEq => Operator::GreaterOrEqual,
        _ => return Err(too_much(whole)),
    };
    if let Some(name) = column_name(left) {
        let (column, data_type) = columns.find(&name)?;
        let operand = Operand::new(right, data_type, parameters)?;
        if operand == Operand::Default {
            return Err(SqlError::new(
                state::SYNTAX_ERROR,
                "DEFAULT is not a value to compare with",
            ));
        }
        return Ok(Comparison { column, operator, operand });
    }
    let (column, data_type) = column_of(columns, right, whole)?;
    let turned = match operator {
        Operator::Less => Operator::Greater,
        Operator::LessOrEqual => Operator::GreaterOrEqual,
        Operator::Greater => Operator::Less,
        Operator::GreaterOrEqual => Operator::LessOrEqual,
        same => same,
    };
    let operand = Operand::new(left, data_type, parameters)?;
    Ok(Comparison { column, operator: turned, operand })
}

fn column_of(columns: &dyn Columns, expression: &Expr, whole: &Expr) -> Result<(usize, DataType)> {
    columns.find(&column_name(expression).ok_or_else(|| too_much(whole))?)
}

/// `column`, or `table.column`: only one table is ever there.
pub(super) fn column_name(expression: &Expr) -> Option<String> {
    let is_default =
        |name: &Ident| name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default");
    match expression {
        Expr::Nested(inner) => column_name(inner),
        Expr::Identifier(name) if !is_default(name) => Some(names::identifier(name)),
        Expr::CompoundIdentifier(parts) => parts.last().map(names::identifier),
        _ => None,
    }
}

fn too_much(expression: &Expr) -> SqlError {
    let what: String = expression.to_string().chars().take(80).collect();
    SqlError::not_supported(
        format!("the condition {what}"),
        "Compare columns with constants or parameters by = <> < <= > >= BETWEEN or IS NULL, \
         joined by AND.",
    )
}

/// No such column, with those there are.
pub(super) fn unknown_column<'n>(
    relation: &str,
    name: &str,
    known: impl Iterator<Item = &'n str>,
) -> SqlError {
    let known: Vec<&str> = known.collect();
    SqlError::new(state::UNDEFINED_COLUMN, format!("{relation} has no column {name}"))
        .with_hint(format!("Its columns are: {}.", known.join(", ")))
}
