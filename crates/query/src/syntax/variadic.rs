//! `VARIADIC array` as the last argument of a call: the elements of an array that is written out as arguments of their
//! own. The server writes it as a call, `variadic(array)`.

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Query, Value, ValueWithSpan, visit_expressions_mut,
};
use std::ops::ControlFlow;

use super::sets::cast;
use crate::array::read_array;
use crate::error::{QueryError, Result};

/// Writes the elements of all such arrays as arguments.
///
/// # Errors
/// What is no array, and one that is not written out.
pub(super) fn expand(query: &mut Query) -> Result<()> {
    let found = visit_expressions_mut(query, |expression| match expanded(expression) {
        Ok(Some(other)) => {
            *expression = other;
            ControlFlow::Continue(())
        }
        Ok(None) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    });
    match found {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// The call with the elements; none of what has no such array.
fn expanded(expression: &Expr) -> Result<Option<Expr>> {
    let Expr::Function(call) = expression else { return Ok(None) };
    let FunctionArguments::List(list) = &call.args else { return Ok(None) };
    let Some((FunctionArg::Unnamed(FunctionArgExpr::Expr(last)), others)) = list.args.split_last()
    else {
        return Ok(None);
    };
    let Some(array) = variadic(last) else { return Ok(None) };
    let mut arguments = others.to_vec();
    match elements(array)? {
        Some(elements) => {
            let argument = |element| FunctionArg::Unnamed(FunctionArgExpr::Expr(element));
            arguments.extend(elements.into_iter().map(argument));
        }
        // Of no array a text is made as of none of its elements, and nothing else.
        None if call.name.to_string().eq_ignore_ascii_case("format") => {}
        None => return Ok(Some(Expr::value(Value::Null))),
    }
    let mut list = list.clone();
    list.args = arguments;
    let call = Function { args: FunctionArguments::List(list), ..call.clone() };
    Ok(Some(Expr::Function(call)))
}

/// What stands behind the word.
fn variadic(argument: &Expr) -> Option<&Expr> {
    let Expr::Function(call) = argument else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))]
            if call.name.to_string().eq_ignore_ascii_case("variadic") =>
        {
            Some(array)
        }
        _ => None,
    }
}

/// The elements of an array that is written out; none of NULL.
fn elements(array: &Expr) -> Result<Option<Vec<Expr>>> {
    let unsupported = || QueryError::NotSupported {
        message: "VARIADIC of an array that is not written out is not supported".to_owned(),
    };
    match array {
        Expr::Nested(inner) => elements(inner),
        Expr::Array(array)
            if array.elem.iter().any(|element| matches!(element, Expr::Array(_))) =>
        {
            Err(unsupported())
        }
        Expr::Array(array) => Ok(Some(array.elem.clone())),
        Expr::Cast {
            expr,
            data_type: DataType::Array(ArrayElemTypeDef::SquareBracket(of, _)),
            ..
        } => {
            let typed = |element| cast(element, (**of).clone());
            match &**expr {
                Expr::Value(ValueWithSpan { value: Value::Null, .. }) => Ok(None),
                Expr::Value(ValueWithSpan {
                    value: Value::SingleQuotedString(written), ..
                }) => {
                    let read = read_array(written).map_err(|_| unsupported())?;
                    let value = |element: Option<_>| match element {
                        Some(text) => Value::SingleQuotedString(text),
                        None => Value::Null,
                    };
                    let read = read.into_iter().map(|text| text.map(|text| text.into_owned()));
                    Ok(Some(read.map(|text| typed(Expr::value(value(text)))).collect()))
                }
                inner => {
                    let read = elements(inner)?;
                    Ok(read.map(|elements| elements.into_iter().map(typed).collect()))
                }
            }
        }
        Expr::Value(ValueWithSpan { value: Value::Number(..) | Value::Boolean(_), .. }) => {
            Err(QueryError::refused("42804", "VARIADIC argument must be an array"))
        }
        _ => Err(unsupported()),
    }
}
