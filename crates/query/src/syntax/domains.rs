//! Casts to domains, which the server writes as calls.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
};

use super::own_name;
use crate::functions::{TO_DOMAIN, domain_name};

/// Whether a call is a cast to a domain.
pub(super) fn is_cast(call: &Function) -> bool {
    call.name.to_string() == TO_DOMAIN
}

/// The name of a column that is such a cast: that of what is cast, or else of the domain.
pub(super) fn name_of_cast(call: &Function) -> Option<String> {
    let FunctionArguments::List(given) = &call.args else { return None };
    let [number, value] = given.args.as_slice() else { return None };
    let number = match expression(number)? {
        Expr::Value(number) => match &number.value {
            Value::Number(number, _) => number.to_string().parse().ok()?,
            _ => return None,
        },
        _ => return None,
    };
    expression(value).and_then(own_name).or_else(|| domain_name(number))
}

fn expression(given: &FunctionArg) -> Option<&Expr> {
    match given {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(given)) => Some(given),
        _ => None,
    }
}
