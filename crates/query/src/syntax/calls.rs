//! Functions and operators that are there under other names, or as others.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, ObjectName, SelectItem, SetExpr, TimezoneInfo, UnaryOperator, Value, ValueWithSpan,
};

use super::call_of;
use super::sets::cast;
use crate::functions::{
    JSON_AT_PATH, JSON_AT_PATH_TEXT, JSON_HAS_ALL, JSON_HAS_ANY, JSON_HAS_KEY, JSON_OF_ELEMENTS,
    JSON_OF_PAIRS, JSON_OF_ROWS, JSON_PAIR, JSON_PART, JSON_PART_TEXT, JSON_PATH_FINDS,
    JSON_PATH_HOLDS, JSON_ROW, JSON_WITHOUT_PATH, JSONB_OF_ELEMENTS, JSONB_OF_PAIRS, JSONB_ROW,
    PART_BY_PATTERN, SIMILAR_PART, SIMILAR_PATTERN, TYPE_OF,
};

/// What a call stands for; none where it stands for itself.
pub(super) fn other(call: &mut Function) -> Option<Expr> {
    let name = call.name.to_string().to_lowercase();
    if let Some(known) = same_as(&name) {
        rename(call, known);
        return None;
    }
    match (name.as_str(), arguments(call)?.as_slice()) {
        ("mod", [number, by]) => {
            let nested = |expression: &Expr| Box::new(Expr::Nested(Box::new(expression.clone())));
            let (left, right) = (nested(number), nested(by));
            let rest = Expr::BinaryOp { left, op: BinaryOperator::Modulo, right };
            Some(Expr::Nested(Box::new(rest)))
        }
        // A constant in quotes has no type of its own.
        (
            TYPE_OF,
            [
                Expr::Value(ValueWithSpan {
                    value: Value::SingleQuotedString(_) | Value::Null,
                    ..
                }),
            ],
        ) => Some(Expr::value(Value::SingleQuotedString("unknown".to_owned()))),
        (of_type, [value]) if let Some(data_type) = cast_by_call(of_type) => {
            Some(cast(value.clone(), data_type))
        }
        ("row_to_json", [Expr::Function(row)]) if is_row(row) => Some(Expr::Function(row.clone())),
        ("row_to_json", [Expr::Function(row)]) if row.name.to_string() == "row" => {
            let values = arguments(row)?.into_iter().enumerate();
            let name = |number: usize| Value::SingleQuotedString(format!("f{}", number + 1));
            let pairs = values.flat_map(|(number, value)| [Expr::value(name(number)), value]);
            Some(call_of(JSON_ROW, pairs))
        }
        ("json_agg", [value]) => {
            let whole = if is_row_call(value) { JSON_OF_ROWS } else { JSON_OF_ELEMENTS };
            Some(gathered(call, whole, call_of("to_json", [value.clone()])))
        }
        ("jsonb_agg", [value]) => {
            Some(gathered(call, JSONB_OF_ELEMENTS, call_of("to_json", [value.clone()])))
        }
        ("json_object_agg", [key, value]) => {
            Some(gathered(call, JSON_OF_PAIRS, call_of(JSON_PAIR, [key.clone(), value.clone()])))
        }
        ("jsonb_object_agg", [key, value]) => {
            Some(gathered(call, JSONB_OF_PAIRS, call_of(JSON_PAIR, [key.clone(), value.clone()])))
        }
        _ => None,
    }
}

/// Whether it is an aggregate that DataFusion has under another name, or as a call of another one.
pub(crate) fn is_aggregate(name: &str) -> bool {
    matches!(
        name,
        "json_agg" | "jsonb_agg" | "json_object_agg" | "jsonb_object_agg" | "variance" | "every"
    )
}

/// Whether it is a function of one row that DataFusion has otherwise, or that is refused with a reason.
pub(crate) fn is_other(name: &str) -> bool {
    same_as(name).is_some()
        || cast_by_call(name).is_some()
        || matches!(
            name,
            "mod"
                | "row"
                | "row_to_json"
                | "array"
                | "age"
                | "_pg_expandarray"
                | "generate_subscripts"
                | "nextval"
                | "currval"
                | "setval"
                | "lastval"
        )
}

/// The type of a cast that is written as a call of a function: `text(x)`, `int4(x)`.
pub(crate) fn cast_by_call(name: &str) -> Option<DataType> {
    Some(match name {
        "text" => DataType::Text,
        "bool" => DataType::Boolean,
        "int2" => DataType::SmallInt(None),
        "int4" => DataType::Integer(None),
        "int8" => DataType::BigInt(None),
        "float4" => DataType::Real,
        "float8" => DataType::DoublePrecision,
        "date" => DataType::Date,
        "timestamptz" => DataType::Timestamp(None, TimezoneInfo::WithTimeZone),
        "uuid" => DataType::Uuid,
        "json" => DataType::JSON,
        "jsonb" => DataType::JSONB,
        "name" | "oid" | "cidr" | "macaddr" => {
            DataType::Custom(ObjectName::from(vec![Ident::new(name)]), Vec::new())
        }
        _ => return None,
    })
}

/// DataFusion's name of a function.
fn same_as(name: &str) -> Option<&'static str> {
    Some(match name {
        "variance" => "var",
        "every" => "bool_and",
        "ceiling" => "ceil",
        // DataFusion's of this name replaces the first alone.
        "array_replace" => "array_replace_all",
        _ => return None,
    })
}

fn rename(call: &mut Function, name: &str) {
    call.name = ObjectName::from(vec![Ident::new(name)]);
}

fn arguments(call: &Function) -> Option<Vec<Expr>> {
    let FunctionArguments::List(list) = &call.args else { return None };
    let plain = |given: &FunctionArg| match given {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(given)) => Some(given.clone()),
        _ => None,
    };
    list.args.iter().map(plain).collect()
}

fn is_row(call: &Function) -> bool {
    matches!(call.name.to_string().as_str(), JSON_ROW | JSONB_ROW)
}

fn is_row_call(value: &Expr) -> bool {
    matches!(value, Expr::Function(call) if is_row(call))
}

/// An aggregate as a function of the array of `item`, which keeps its order, its condition and the
/// rows that it is over.
fn gathered(aggregate: &Function, whole: &str, item: Expr) -> Expr {
    let mut array = aggregate.clone();
    rename(&mut array, "array_agg");
    if let FunctionArguments::List(list) = &mut array.args {
        list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(item))];
    }
    call_of(whole, [Expr::Function(array)])
}

/// An operator before its operand.
pub(super) fn of_one(operator: UnaryOperator, operand: &Expr) -> Option<Expr> {
    let function = match operator {
        UnaryOperator::PGAbs => "abs",
        UnaryOperator::PGSquareRoot | UnaryOperator::PGCubeRoot => {
            let name = if operator == UnaryOperator::PGSquareRoot { "sqrt" } else { "cbrt" };
            // The operators are of `double precision` alone.
            return Some(call_of(name, [cast(operand.clone(), DataType::DoublePrecision)]));
        }
        UnaryOperator::BitwiseNot => {
            // All bits of -1 are set.
            let rest = Expr::BinaryOp {
                left: Box::new(Expr::value(Value::Number("-1".to_owned(), false))),
                op: BinaryOperator::Minus,
                right: Box::new(Expr::Nested(Box::new(operand.clone()))),
            };
            return Some(Expr::Nested(Box::new(rest)));
        }
        _ => return None,
    };
    Some(call_of(function, [operand.clone()]))
}

/// `-2 ^ 2` is the square of -2; none of what is no power.
pub(super) fn negated_base(power: &Expr) -> Option<Expr> {
    let Expr::BinaryOp { left, op: op @ BinaryOperator::PGExp, right } = power else { return None };
    let base = negated_base(left).unwrap_or_else(|| {
        let negative = Expr::UnaryOp { op: UnaryOperator::Minus, expr: left.clone() };
        Expr::Nested(Box::new(negative))
    });
    Some(Expr::BinaryOp { left: Box::new(base), op: op.clone(), right: right.clone() })
}

/// An operator that is a function here.
pub(super) fn of_two(left: &Expr, operator: &BinaryOperator, right: &Expr) -> Option<Expr> {
    let function = match operator {
        BinaryOperator::Arrow => JSON_PART,
        BinaryOperator::LongArrow => JSON_PART_TEXT,
        BinaryOperator::HashArrow => JSON_AT_PATH,
        BinaryOperator::HashLongArrow => JSON_AT_PATH_TEXT,
        BinaryOperator::Question => JSON_HAS_KEY,
        BinaryOperator::AtQuestion => JSON_PATH_FINDS,
        BinaryOperator::AtAt => JSON_PATH_HOLDS,
        BinaryOperator::QuestionPipe => JSON_HAS_ANY,
        BinaryOperator::QuestionAnd => JSON_HAS_ALL,
        BinaryOperator::HashMinus => JSON_WITHOUT_PATH,
        _ => return None,
    };
    Some(call_of(function, [left.clone(), right.clone()]))
}

/// `substring(x FROM 2 FOR 3)` and `position(x IN y)`, which are of bytes, too.
pub(super) fn spelled_out(expression: &Expr) -> Option<Expr> {
    let word = |word: &str| Expr::value(Value::Number(word.to_owned(), false));
    Some(match expression {
        Expr::Substring { expr, substring_from: Some(pattern), substring_for: None, .. }
            if is_text(pattern) =>
        {
            call_of(PART_BY_PATTERN, [(**expr).clone(), (**pattern).clone()])
        }
        Expr::Substring {
            expr,
            substring_from: Some(pattern),
            substring_for: Some(escape),
            ..
        } if is_text(pattern) && (is_text(escape) || is_null(escape)) => {
            call_of(SIMILAR_PART, [expr, pattern, escape].map(|given| (**given).clone()))
        }
        Expr::Substring { expr, substring_from, substring_for, .. } => {
            let from = substring_from.as_ref().map_or_else(|| word("1"), |from| (**from).clone());
            let count = substring_for.as_ref().map(|count| (**count).clone());
            call_of("substr", [(**expr).clone(), from].into_iter().chain(count))
        }
        Expr::Position { expr, r#in } => call_of("strpos", [(**r#in).clone(), (**expr).clone()]),
        Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
            let given = [expr, overlay_what, overlay_from].into_iter().chain(overlay_for);
            call_of("overlay", given.map(|given| (**given).clone()))
        }
        _ => return None,
    })
}

fn is_null(expression: &Expr) -> bool {
    matches!(expression, Expr::Value(ValueWithSpan { value: Value::Null, .. }))
}

fn is_text(expression: &Expr) -> bool {
    matches!(expression, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. }))
}

/// The type of JSON that an expression makes, as far as its words tell: in a subquery and in coalesce
/// DataFusion forgets that a text is JSON.
pub(super) fn json_type(expression: &Expr) -> Option<DataType> {
    match expression {
        Expr::Nested(inner) => json_type(inner),
        Expr::Cast { data_type: json @ (DataType::JSON | DataType::JSONB), .. } => {
            Some(json.clone())
        }
        Expr::Function(call) => match call.name.to_string().as_str() {
            "to_json" | "array_to_json" | "json_build_object" | "json_build_array" | JSON_ROW
            | JSON_OF_ELEMENTS | JSON_OF_ROWS | JSON_OF_PAIRS => Some(DataType::JSON),
            "to_jsonb" | "jsonb_build_object" | "jsonb_build_array" | JSONB_ROW
            | JSONB_OF_ELEMENTS | JSONB_OF_PAIRS => Some(DataType::JSONB),
            "coalesce" => json_type(arguments(call)?.first()?),
            _ => None,
        },
        Expr::Subquery(query) => {
            let SetExpr::Select(select) = &*query.body else { return None };
            match select.projection.as_slice() {
                [
                    SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. },
                ] => json_type(value),
                _ => None,
            }
        }
        _ => None,
    }
}

/// SIMILAR TO as a regular expression.
pub(super) fn similar(
    text: &Expr,
    pattern: &Expr,
    escape: Option<&ValueWithSpan>,
    is_negated: bool,
) -> Expr {
    let given = [pattern.clone()].into_iter().chain(escape.cloned().map(Expr::Value));
    let op = match is_negated {
        true => BinaryOperator::PGRegexNotMatch,
        false => BinaryOperator::PGRegexMatch,
    };
    let right = Box::new(call_of(SIMILAR_PATTERN, given));
    Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(text.clone()), op, right }))
}
