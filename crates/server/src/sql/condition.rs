//! WHERE, where it names one row by its whole key.

use onrush::Table;
use sqlparser::ast::{BinaryOperator, Expr, Ident};

use super::names;
use super::operand::{Operand, Parameters};
use crate::error::{Result, SqlError, state};

/// The value of each column of the key, in key order, if `selection` is nothing but
/// `key = value AND ...`. `relation` is what stands in front of a column's name.
pub(super) fn whole_key(
    table: &Table,
    relation: &str,
    selection: &Expr,
    parameters: &mut Parameters,
) -> Result<Option<Vec<Operand>>> {
    let definition = table.definition();
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
                let column = definition.column_index(&name)?;
                if !definition.primary_key().contains(&column) {
                    return Ok(None);
                }
                let data_type = definition.columns()[column].data_type;
                let Some(value) = Operand::if_simple(value, data_type, parameters)? else {
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
