//! Distances in the frames of windows.

use datafusion::sql::sqlparser::ast::{
    DataType, Expr, Value, ValueWithSpan, WindowFrameBound, WindowSpec,
};

/// Writes distances that are numbers with a type, `2::bigint`, as the numbers alone: DataFusion reads nothing else.
pub(super) fn in_plain_numbers(window: &mut WindowSpec) {
    let Some(frame) = &mut window.window_frame else { return };
    for bound in std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound) {
        let (WindowFrameBound::Preceding(Some(distance))
        | WindowFrameBound::Following(Some(distance))) = bound
        else {
            continue;
        };
        if let Some(number) = number(distance) {
            **distance = number;
        }
    }
}

fn number(distance: &Expr) -> Option<Expr> {
    match distance {
        Expr::Nested(inner) => number(inner),
        Expr::Value(ValueWithSpan { value: Value::Number(..), .. }) => Some(distance.clone()),
        Expr::Cast { expr, data_type, .. } => {
            let digits = number(expr)?;
            let is_whole = matches!(&digits, Expr::Value(constant)
                if constant.value.to_string().bytes().all(|digit| digit.is_ascii_digit()));
            let is_integer = matches!(
                data_type,
                DataType::SmallInt(_)
                    | DataType::Int2(_)
                    | DataType::Int(_)
                    | DataType::Int4(_)
                    | DataType::Integer(_)
                    | DataType::BigInt(_)
                    | DataType::Int8(_)
            );
            let is_float = matches!(
                data_type,
                DataType::Float4 | DataType::Float8 | DataType::DoublePrecision
            );
            (is_float || is_integer && is_whole).then_some(digits)
        }
        _ => None,
    }
}
