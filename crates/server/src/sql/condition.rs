//! WHERE, where it names one row by its whole key.

use onrush::{DataType, TableDefinition, Value};
use sqlparser::ast::{BinaryOperator, CastKind, Expr, Ident, UnaryOperator, Value as Literal};

use super::names;
use super::operand::{Operand, Parameters};
use crate::error::{Result, SqlError, state};
use crate::values;

/// The value of each column of the key, in key order, if `selection` is nothing but
/// `key = value AND ...`. `relation` is what stands in front of a column's name.
pub(super) fn whole_key(
    definition: &TableDefinition,
    relation: &str,
    selection: &Expr,
    parameters: &mut Parameters,
) -> Result<Option<Vec<Operand>>> {
    let mut equal: Vec<(usize, Operand)> = Vec::new();
    let mut left = vec![selection];
    while let Some(expression) = left.pop() {
        match expression {
            Expr::Nested(inner) => left.push(inner),
            Expr::BinaryOp { left: first, op: BinaryOperator::And, right: second } => {
                left.push(first);
                left.push(second);
            }
            Expr::BinaryOp { left: first, op: BinaryOperator::Eq, right: second } => {
                let (name, value) = match (column_name(first, relation), second) {
                    (Some(name), value) => (name, value),
                    (None, _) => match column_name(second, relation) {
                        Some(name) => (name, first),
                        None => return Ok(None),
                    },
                };
                let Ok(column) = definition.shown_column_index(&name) else { return Ok(None) };
                if !definition.primary_key().contains(&column) {
                    return Ok(None);
                }
                let data_type = definition.columns()[column].data_type;
                let Some(value) = to_compare(value, data_type, parameters)? else {
                    return Ok(None);
                };
                if value == Operand::Default {
                    let message = "DEFAULT is not a value to compare with";
                    return Err(SqlError::new(state::SYNTAX_ERROR, message));
                }
                equal.push((column, value));
            }
            _ => return Ok(None),
        }
    }
    let key = definition.primary_key();
    if equal.len() != key.len() {
        return Ok(None);
    }
    let mut operands = Vec::with_capacity(key.len());
    for column in key {
        let Some(at) = equal.iter().position(|(own, _)| own == column) else { return Ok(None) };
        operands.push(equal.swap_remove(at).1);
    }
    Ok(Some(operands))
}

/// A value to compare a column of type `target` with; none for what only the query engine can
/// compare, which finds no row that equals 1.5 among whole numbers.
pub(super) fn to_compare(
    expression: &Expr,
    target: DataType,
    parameters: &mut Parameters,
) -> Result<Option<Operand>> {
    let constant =
        |value: Option<Value<'_>>| value.map(|value| Operand::Constant(value.into_owned()));
    match expression {
        Expr::Nested(inner) => to_compare(inner, target, parameters),
        Expr::Value(value) => match &value.value {
            Literal::Number(digits, _) => Ok(constant(number(digits, target)?)),
            Literal::SingleQuotedString(written) | Literal::EscapedStringLiteral(written) => {
                Ok(constant(values::constant_key(written, target)?))
            }
            _ => Operand::if_simple(expression, target, parameters),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
            Expr::Value(value) => match &value.value {
                Literal::Number(digits, _) => Ok(constant(number(&format!("-{digits}"), target)?)),
                _ => Ok(None),
            },
            _ => Ok(None),
        },
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } => {
            let through = match super::create::data_type("the cast", data_type) {
                Ok(through) => through,
                Err(_) => return Ok(None),
            };
            Ok(match Operand::if_simple(expr, through, parameters)? {
                Some(Operand::Constant(value)) => constant(values::key(value, target)?),
                Some(Operand::Parameter(index, _)) => Some(Operand::Parameter(index, target)),
                other => other,
            })
        }
        Expr::TypedString(typed) => {
            let Ok(through) = super::create::data_type("the constant", &typed.data_type) else {
                return Ok(None);
            };
            Ok(match Operand::if_simple(expression, through, parameters)? {
                Some(Operand::Constant(value)) => constant(values::key(value, target)?),
                _ => None,
            })
        }
        _ => Operand::if_simple(expression, target, parameters),
    }
}

/// A number as a column of this type has it.
fn number(written: &str, target: DataType) -> Result<Option<Value<'static>>> {
    let widest = DataType::Numeric(None);
    let is_whole = matches!(target, DataType::Int16 | DataType::Int32 | DataType::Int64);
    Ok(match target {
        DataType::Decimal { .. } | DataType::Numeric(_) => values::constant_key(written, target)?,
        _ if is_whole => match values::constant_key(written, widest) {
            Ok(Some(value)) => values::key(value, target)?,
            Ok(None) | Err(_) => None,
        },
        _ => Some(values::read(target, written)?),
    }
    .map(Value::into_owned))
}

/// `column`, or `relation.column`.
pub(super) fn column_name(expression: &Expr, relation: &str) -> Option<String> {
    let is_default =
        |name: &Ident| name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default");
    match expression {
        Expr::Nested(inner) => column_name(inner, relation),
        Expr::Identifier(name) if !is_default(name) => Some(names::identifier(name)),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [front, column] if names::identifier(front) == relation => {
                Some(names::identifier(column))
            }
            _ => None,
        },
        _ => None,
    }
}
