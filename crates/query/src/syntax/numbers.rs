//! Constants of numbers.

use datafusion::sql::sqlparser::ast::{
    DataType, ExactNumberInfo, Expr, SetExpr, UnaryOperator, Value, ValueWithSpan,
};

use super::sets::cast;

/// Whether a cast to this type makes a floating-point number.
pub(super) fn is_float(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Real
            | DataType::Float4
            | DataType::Float8
            | DataType::Float(_)
            | DataType::DoublePrecision
    )
}

/// Has the digits of a constant read by the type that it is cast to, so that no digit is lost on a way
/// through `numeric`.
pub(super) fn read_digits(constant: &mut Expr) {
    if let Expr::Value(value) = constant
        && let Value::Number(digits, _) = &value.value
    {
        *constant = Expr::value(Value::SingleQuotedString(digits.clone()));
    }
}

/// Digits that DataFusion reads of a constant.
const DIGITS_MAX: usize = 38;

/// A constant of more digits than DataFusion reads, or with an exponent, as a text that is cast.
pub(super) fn of_many_digits(constant: &Expr) -> Option<Expr> {
    let digits = digits_of(constant)?;
    let count = digits.bytes().filter(u8::is_ascii_digit).count();
    (count > DIGITS_MAX || digits.contains(['e', 'E'])).then(|| as_numeric(digits))
}

fn digits_of(constant: &Expr) -> Option<&str> {
    match constant {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => Some(digits),
        _ => None,
    }
}

fn as_numeric(digits: &str) -> Expr {
    let written = Expr::value(Value::SingleQuotedString(digits.to_owned()));
    cast(written, DataType::Numeric(ExactNumberInfo::None))
}

/// Columns of VALUES that have constants with a point: each keeps the digits that it is written with.
pub(super) fn with_own_digits(body: &mut SetExpr) {
    let SetExpr::Values(values) = body else { return };
    let columns = values.rows.first().map_or(0, |row| row.content.len());
    for at in 0..columns {
        let cells = || values.rows.iter().filter_map(|row| row.content.get(at));
        let has_point = |cell: &Expr| number_in(cell).is_some_and(|digits| digits.contains('.'));
        if values.rows.len() == 1 || !cells().any(has_point) {
            continue;
        }
        for cell in values.rows.iter_mut().filter_map(|row| row.content.get_mut(at)) {
            if let Some(digits) = number_in(cell) {
                *cell = as_numeric(&digits);
            }
        }
    }
}

/// The digits of a constant and its sign.
fn number_in(cell: &Expr) -> Option<String> {
    match cell {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            digits_of(expr).map(|digits| format!("-{digits}"))
        }
        other => digits_of(other).map(str::to_owned),
    }
}
