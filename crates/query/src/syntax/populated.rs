//! `json_populate_record` and `json_populate_recordset` in FROM: the fields of the records that they make, as columns.

use datafusion::sql::sqlparser::ast::{DataType, Expr, FunctionArg, FunctionArgExpr};

use super::call_of;
use crate::functions::{JSON_RECORDS, makes_record};

/// An array of records, and the items of a query of its elements, which are called `r`.
pub(super) struct Populated {
    pub(super) array: Expr,
    pub(super) items: String,
}

/// What a call stands for; none of any other function, or where nothing says of which type the records are.
pub(super) fn of_call(function: &str, given: &[FunctionArg]) -> Option<Populated> {
    let is_set = matches!(function, "json_populate_recordset" | "jsonb_populate_recordset");
    if !is_set && !makes_record(function) {
        return None;
    }
    let given: Vec<Expr> = given
        .iter()
        .map(|given| match given {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(given)) => Some(given.clone()),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let Expr::Cast { data_type: DataType::Custom(name, _), .. } = given.first()? else {
        return None;
    };
    let note = name.to_string();
    let Ok(onrush::DataType::Composite(of)) = note.parse() else { return None };
    let item = |(name, _): &(Box<str>, onrush::DataType)| {
        let name = format!("\"{}\"", name.replace('"', "\"\""));
        format!("(r::{note}).{name} AS {name}")
    };
    let items: Vec<String> = of.fields().iter().map(item).collect();
    let array = match is_set {
        true => call_of(JSON_RECORDS, given),
        false => call_of("make_array", [call_of(function, given)]),
    };
    (!items.is_empty()).then(|| Populated { array, items: items.join(", ") })
}
