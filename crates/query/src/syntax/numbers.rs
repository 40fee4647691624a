//! Constants of numbers.

use datafusion::sql::sqlparser::ast::{DataType, Expr, Value};

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
