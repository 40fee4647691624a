//! `SET column.field = value` and `SET column[subscript] = value` as assignments to whole columns: what is left of the
//! column stands beside the value.

use std::borrow::Cow;

use onrush::{CompositeType, DataType, TableDefinition};
use onrush_query::{SET_ELEMENT, SET_SLICE};
use sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, Value,
};

use super::calls::{call, cast};
use super::subscript_words::{SET_PART, SET_PARTS};
use super::view::stored::quoted;
use super::{names, plan};
use crate::error::{Result, SqlError, state};

/// A column, or a part of one, and its value.
pub(super) type Given<'s> = (Cow<'s, ObjectName>, Cow<'s, Expr>);

/// A field of a field, from the outside to the inside, and its value.
type Field<'s> = (Vec<String>, Cow<'s, Expr>);

/// Writes assignments to parts as those of their columns. `relation` is what stands in front of the columns.
///
/// # Errors
/// A field that is not there; a subscript of what has none.
pub(super) fn of_columns<'s>(
    table: &TableDefinition,
    relation: &str,
    given: Vec<Given<'s>>,
) -> Result<Vec<Given<'s>>> {
    let mut whole: Vec<Given<'s>> = Vec::with_capacity(given.len());
    let mut parts: Vec<(CompositeType, String, Vec<Field<'s>>)> = Vec::new();
    for (name, value) in given {
        match field_of(table, &name)? {
            Some((of, column, path)) => {
                let known = parts.iter_mut().find(|(_, other, _)| *other == column);
                match known {
                    Some((_, _, fields)) => fields.push((path, value)),
                    None => parts.push((of, column, vec![(path, value)])),
                }
            }
            None => {
                let value = with_elements(table, &name, value)?;
                whole.push((name, value));
            }
        }
    }
    for (of, column, fields) in parts {
        let now = Expr::CompoundIdentifier(vec![quoted(relation), quoted(&column)]);
        let name = ObjectName::from(vec![quoted(&column)]);
        whole.push((Cow::Owned(name), Cow::Owned(with_fields(of, &now, fields)?)));
    }
    Ok(whole)
}

/// The composite type of a column, the column, and the field of it that is named.
fn field_of(
    table: &TableDefinition,
    name: &ObjectName,
) -> Result<Option<(CompositeType, String, Vec<String>)>> {
    let mut parts = names::parts(name)?;
    if parts.len() < 2 {
        return Ok(None);
    }
    let column = parts.remove(0);
    let Ok(position) = table.shown_column_index(&column) else {
        // By the table's name, as PostgreSQL says.
        plan::target_column(table, &ObjectName::from(vec![quoted(&column)]))?;
        return Ok(None);
    };
    match table.columns()[position].data_type {
        DataType::Composite(of) => Ok(Some((of, column, parts))),
        other => {
            let message = format!(
                "cannot assign to field {:?} of column {column:?} because its type {other} is not a composite type",
                parts[0]
            );
            Err(SqlError::new(state::DATATYPE_MISMATCH, message).at(names::span(name)))
        }
    }
}

/// The record `now` with other values in some fields.
fn with_fields(of: CompositeType, now: &Expr, given: Vec<Field<'_>>) -> Result<Expr> {
    if let Some((path, _)) =
        given.iter().find(|(path, _)| !of.fields().iter().any(|(name, _)| **name == *path[0]))
    {
        let message = format!(
            "cannot assign to field {:?} of column: there is no such field in {}",
            path[0],
            of.name()
        );
        return Err(SqlError::new(state::UNDEFINED_COLUMN, message));
    }
    if given.iter().any(|(_, value)| is_default(value)) {
        let message = "cannot set a subfield to DEFAULT";
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message));
    }
    let mut given = given;
    let mut fields = Vec::with_capacity(of.fields().len());
    for (name, data_type) in of.fields() {
        let own: Vec<Field<'_>>;
        (own, given) = given.into_iter().partition(|(path, _)| *path[0] == **name);
        let now = Expr::CompoundFieldAccess {
            root: Box::new(Expr::Nested(Box::new(now.clone()))),
            access_chain: vec![AccessExpr::Dot(Expr::Identifier(quoted(name)))],
        };
        let (whole, inside): (Vec<_>, Vec<_>) =
            own.into_iter().partition(|(path, _)| path.len() == 1);
        fields.push(match (whole.into_iter().next_back(), inside.is_empty()) {
            (Some((_, value)), true) => value.into_owned(),
            (None, true) => now,
            (None, false) => match data_type {
                DataType::Composite(of) => {
                    let inside =
                        inside.into_iter().map(|(path, value)| (path[1..].to_vec(), value));
                    with_fields(*of, &now, inside.collect())?
                }
                other => {
                    let message = format!("field {name:?} is of {other}, not of a composite type");
                    return Err(SqlError::new(state::DATATYPE_MISMATCH, message));
                }
            },
            (Some(_), false) => {
                let message = format!("multiple assignments to same column {name:?}");
                return Err(SqlError::new(state::SYNTAX_ERROR, message));
            }
        });
    }
    let row = call("row", fields);
    cast(row, DataType::Composite(of))
}

/// Calls that set parts of JSON, where the column is of arrays, as those that set elements.
fn with_elements<'s>(
    table: &TableDefinition,
    name: &ObjectName,
    value: Cow<'s, Expr>,
) -> Result<Cow<'s, Expr>> {
    if !matches!(&*value, Expr::Function(call) if is_of_part(call)) {
        return Ok(value);
    }
    let data_type = table.columns()[plan::target_column(table, name)?].data_type;
    match data_type {
        DataType::Jsonb => Ok(value),
        DataType::Array(_) => elements(data_type, value.into_owned()).map(Cow::Owned),
        other => {
            let message =
                format!("cannot subscript type {other} because it does not support subscripting");
            Err(SqlError::new(state::DATATYPE_MISMATCH, message).at(names::span(name)))
        }
    }
}

fn is_of_part(call: &Function) -> bool {
    matches!(call.name.to_string().as_str(), SET_PART | SET_PARTS)
}

fn elements(array: DataType, value: Expr) -> Result<Expr> {
    let Expr::Function(call_of_part) = value else { return Ok(value) };
    if !is_of_part(&call_of_part) {
        return Ok(Expr::Function(call_of_part));
    }
    let is_slice = call_of_part.name.to_string() == SET_PARTS;
    let FunctionArguments::List(list) = call_of_part.args else { return Ok(null()) };
    let mut given = list.args.into_iter().filter_map(|given| match given {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(given)) => Some(given),
        _ => None,
    });
    let (now, new) = (given.next().unwrap_or_else(null), given.next());
    let (new, subscripts) = (new.unwrap_or_else(null), given.collect::<Vec<Expr>>());
    if is_default(&new) {
        let message = "cannot set an array element to DEFAULT";
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message));
    }
    let now = elements(array, now)?;
    // The column looks how long its elements are, as for any assignment.
    let assigned = |data_type| match data_type {
        DataType::Varchar(_) | DataType::Char(_) => DataType::Text,
        other => other,
    };
    let (function, new) = match (array, is_slice) {
        (DataType::Array(element), false) => (SET_ELEMENT, cast(new, assigned(*element))?),
        (DataType::Array(element), true) => {
            let array = assigned(*element).array().unwrap_or(array);
            (SET_SLICE, cast(new, array)?)
        }
        _ => (SET_SLICE, cast(new, array)?),
    };
    if subscripts.len() != 1 + usize::from(is_slice) {
        return Err(SqlError::not_supported(
            "an assignment to an element of an array of several dimensions",
            "Assign the whole array.",
        ));
    }
    Ok(call(function, [now, new].into_iter().chain(subscripts).collect()))
}

fn is_default(value: &Expr) -> bool {
    match value {
        Expr::Nested(inner) => is_default(inner),
        Expr::Identifier(name) => {
            name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default")
        }
        _ => false,
    }
}

fn null() -> Expr {
    Expr::value(Value::Null)
}
