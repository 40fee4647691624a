//! Functions in FROM that make rows of JSON: `json_each` and `json_to_recordset` with the list of its columns. Each
//! column is an array, and the arrays are unnested beside each other.

use datafusion::sql::sqlparser::ast::{
    DataType, Expr, FunctionArg, FunctionArgExpr, Ident, TableAlias, Value,
};

use super::call_of;
use crate::functions::{
    JSON_COLUMN, JSON_MEMBERS, JSON_MEMBERS_TEXT, JSON_NAMES, JSONB_MEMBERS, JSONB_MEMBERS_TEXT,
    JSONB_NAMES,
};

/// The arrays that a call stands for, and the names and types of the columns that their elements are.
pub(super) struct JsonRows {
    pub(super) arrays: Vec<Expr>,
    pub(super) columns: Vec<(Ident, String)>,
}

/// What a call of a function stands for; none of any other.
pub(super) fn of_call(
    function: &str,
    given: &[FunctionArg],
    alias: Option<&TableAlias>,
) -> Option<JsonRows> {
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(json))] = given else { return None };
    let (names, members, data_type) = match function {
        "json_each" => (JSON_NAMES, JSON_MEMBERS, "json"),
        "jsonb_each" => (JSONB_NAMES, JSONB_MEMBERS, "jsonb"),
        "json_each_text" => (JSON_NAMES, JSON_MEMBERS_TEXT, "text"),
        "jsonb_each_text" => (JSONB_NAMES, JSONB_MEMBERS_TEXT, "text"),
        "json_to_record" | "jsonb_to_record" => return of_list(json, false, alias?),
        "json_to_recordset" | "jsonb_to_recordset" => return of_list(json, true, alias?),
        _ => return None,
    };
    Some(JsonRows {
        arrays: [names, members].map(|function| call_of(function, [json.clone()])).into(),
        columns: vec![
            (Ident::new("key"), "text".to_owned()),
            (Ident::new("value"), data_type.to_owned()),
        ],
    })
}

/// Rows by the list of columns behind a call.
fn of_list(json: &Expr, is_set: bool, alias: &TableAlias) -> Option<JsonRows> {
    let column = |column: &Ident, data_type: &DataType| {
        use onrush::DataType::{Array, Json, Jsonb};
        let form = match (data_type.to_string().parse(), data_type) {
            (Ok(Json | Jsonb), _) => "json",
            (Ok(Array(Json | Jsonb)), _) => "json_array",
            (Ok(Array(_)), _) | (_, DataType::Array(_)) => "array",
            _ => "text",
        };
        let name = Value::SingleQuotedString(super::folded(column));
        let form = Value::SingleQuotedString(form.to_owned());
        let given = [name, Value::Boolean(is_set), form].map(Expr::value);
        call_of(JSON_COLUMN, std::iter::once(json.clone()).chain(given))
    };
    let list = alias.columns.iter();
    let list: Vec<(&Ident, &DataType)> = list
        .map(|column| Some((&column.name, column.data_type.as_ref()?)))
        .collect::<Option<_>>()?;
    Some(JsonRows {
        arrays: list.iter().map(|(name, data_type)| column(name, data_type)).collect(),
        columns: list
            .iter()
            .map(|(name, data_type)| ((*name).clone(), data_type.to_string()))
            .collect(),
    })
    .filter(|rows| !rows.arrays.is_empty())
}
