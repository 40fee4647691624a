//! Functions that make rows, each of the array that another function makes.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, ObjectName, Query, SelectItem, Value, VisitMut, VisitorMut,
};

use super::call;
use crate::functions::{
    ALL_BY_PATTERN, JSON_ITEMS, JSON_ITEMS_TEXT, JSON_KEYS, JSON_PATH_ITEMS, JSONB_ITEMS,
    JSONB_ITEMS_TEXT, SPLIT_BY_PATTERN,
};

/// The function whose array has the rows of this one, and what the column is called in FROM.
pub(crate) fn array_of(function: &str) -> Option<(&'static str, &str)> {
    Some(match function {
        "regexp_split_to_table" => (SPLIT_BY_PATTERN, function),
        "regexp_matches" => (ALL_BY_PATTERN, function),
        "string_to_table" => ("string_to_array", function),
        "json_array_elements" => (JSON_ITEMS, "value"),
        "jsonb_array_elements" => (JSONB_ITEMS, "value"),
        "json_array_elements_text" => (JSON_ITEMS_TEXT, "value"),
        "jsonb_array_elements_text" => (JSONB_ITEMS_TEXT, "value"),
        "jsonb_path_query" => (JSON_PATH_ITEMS, function),
        "jsonb_object_keys" => (JSON_KEYS, function),
        _ => return None,
    })
}

/// Writes functions that make rows among the columns of an answer as DataFusion knows them.
pub(super) fn in_columns(items: &mut [SelectItem]) {
    let mut unfolder = Unfolder { depth: 0, unfolded: HashMap::new() };
    for item in items {
        let _: ControlFlow<()> = item.visit(&mut unfolder);
    }
}

struct Unfolder {
    /// How many queries inside of the answer's.
    depth: usize,
    /// How often each array stands there.
    unfolded: HashMap<String, usize>,
}

impl Unfolder {
    /// The rows of an array. One that comes again is written so that it differs: DataFusion takes equal ones for
    /// a name that stands twice.
    fn rows(&mut self, array: Expr) -> Expr {
        let count = self.unfolded.entry(without_casts(&array).to_string()).or_default();
        let apart = in_other_words(array, *count);
        *count += 1;
        call("unnest", apart)
    }
}

impl VisitorMut for Unfolder {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let (0, Expr::Function(function)) = (self.depth, &*expression) {
            let name = function.name.to_string().to_lowercase();
            let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
            if let ("unnest", Some(array)) = (name, only_argument(function)) {
                *expression = self.rows(array.clone());
                return ControlFlow::Continue(());
            }
            let array = match array_of(name) {
                Some((array, _)) => array,
                None if name == "generate_series" && has_numeric(function) => NUMERIC_SERIES,
                None if name == "generate_series" => "generate_series",
                None => return ControlFlow::Continue(()),
            };
            let mut function = function.clone();
            function.name = ObjectName::from(vec![Ident::new(array)]);
            let is_wide = name == "generate_series" && has_bigint(&function);
            let array = Expr::Function(function);
            let rows = self.rows(if is_wide { of_bigints(array) } else { array });
            *expression = match name {
                "json_array_elements" => cast(rows, DataType::JSON),
                "jsonb_array_elements" | "jsonb_path_query" => cast(rows, DataType::JSONB),
                _ => rows,
            };
        }
        ControlFlow::Continue(())
    }
}

/// The function of a series of numerics.
pub(super) const NUMERIC_SERIES: &str = "numeric_series";

fn has_numeric(call: &Function) -> bool {
    let FunctionArguments::List(list) = &call.args else { return false };
    list.args.iter().any(|given| match given {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(given)) => is_numeric(given),
        _ => false,
    })
}

fn has_bigint(call: &Function) -> bool {
    let FunctionArguments::List(list) = &call.args else { return false };
    list.args.iter().any(|given| match given {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(given)) => is_bigint(given),
        _ => false,
    })
}

/// Whether it is a `bigint` as it is written: of a constant the plan does not tell it.
pub(super) fn is_bigint(written: &Expr) -> bool {
    match written {
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) => is_bigint(expr),
        Expr::Cast { data_type, .. } => {
            matches!(data_type, DataType::BigInt(_) | DataType::Int8(_))
        }
        _ => false,
    }
}

/// A series as one of `bigint`.
pub(super) fn of_bigints(series: Expr) -> Expr {
    let element = Box::new(DataType::BigInt(None));
    cast(series, DataType::Array(ArrayElemTypeDef::SquareBracket(element, None)))
}

/// Whether it is a `numeric` as it is written.
pub(super) fn is_numeric(written: &Expr) -> bool {
    match written {
        Expr::Value(value) => {
            matches!(&value.value, Value::Number(digits, _) if digits.contains(['.', 'e', 'E']))
        }
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) => is_numeric(expr),
        Expr::Cast { data_type, .. } => {
            matches!(data_type, DataType::Numeric(_) | DataType::Decimal(_))
        }
        _ => false,
    }
}

/// The argument of a call that has nothing else.
fn only_argument(call: &Function) -> Option<&Expr> {
    let FunctionArguments::List(list) = &call.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] => Some(argument),
        _ => None,
    }
}

/// What is cast: DataFusion calls a cast as that.
pub(super) fn without_casts(expression: &Expr) -> &Expr {
    match expression {
        Expr::Cast { expr: inner, .. } | Expr::Nested(inner) => without_casts(inner),
        other => other,
    }
}

/// The same value, called otherwise for each count.
pub(super) fn in_other_words(expression: Expr, count: usize) -> Expr {
    (0..count).fold(expression, |inner, _| call("coalesce", inner))
}

/// `expression::data_type`.
pub(super) fn cast(expression: Expr, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(expression),
        data_type,
        array: false,
        format: None,
    }
}
