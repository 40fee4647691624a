//! `numeric` inside a query: Arrow's large binaries, each the bytes of a [`Numeric`] as a row has them. No other type
//! is a large binary here. Columns of up to 28 digits, constants and what is certain to have space are decimals of
//! Arrow.

use datafusion::arrow::array::{Array, AsArray, LargeBinaryBuilder};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type,
};
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::ExactNumberInfo;
use onrush::{DataType, Numeric, NumericFault};
use onrush_types::numeric::{Divided, NUMERIC_PRECISION_MAX};

use crate::error::{QueryError, Result};

/// The type of any `numeric`.
pub(crate) const ANY: ArrowType = ArrowType::LargeBinary;

/// Digits behind the point of a quotient and of what functions make, at most.
pub(crate) const DISPLAY_SCALE_MAX: i32 = 1000;

/// Whether it is a type of exact numbers that are not whole.
pub(crate) fn is_numeric(arrow: &ArrowType) -> bool {
    matches!(arrow, ArrowType::LargeBinary | ArrowType::Decimal128(..))
}

impl From<NumericFault> for QueryError {
    fn from(fault: NumericFault) -> QueryError {
        let state = match fault {
            NumericFault::Syntax => "22P02",
            NumericFault::Overflow | NumericFault::Field { .. } => "22003",
        };
        let refused = QueryError::refused(state, fault.message());
        match fault.detail() {
            Some(detail) => refused.detail(detail),
            None => refused,
        }
    }
}

/// Bytes that the query has made itself.
pub(crate) fn of_bytes(bytes: &[u8]) -> Result<Numeric> {
    let internal = |message: &str| QueryError::Internal { message: message.to_owned() };
    Numeric::read(bytes).map_err(internal)
}

/// Text as a number.
pub(crate) fn of_text(written: &str) -> Result<Numeric> {
    written.parse().map_err(|fault| match fault {
        NumericFault::Syntax => {
            let message = format!("invalid input syntax for type numeric: \"{written}\"");
            QueryError::refused("22P02", message)
        }
        other => other.into(),
    })
}

/// The number in a row of a column of any numbers, or of text; none where it is NULL.
pub(crate) fn number_at(array: &dyn Array, row: usize) -> Result<Option<Numeric>> {
    if array.is_null(row) {
        return Ok(None);
    }
    Ok(Some(match array.data_type() {
        ArrowType::LargeBinary => of_bytes(array.as_binary::<i64>().value(row))?,
        ArrowType::Decimal128(_, scale) => {
            Numeric::new(array.as_primitive::<Decimal128Type>().value(row), i32::from(*scale))?
        }
        ArrowType::Int16 => i64::from(array.as_primitive::<Int16Type>().value(row)).into(),
        ArrowType::Int32 => i64::from(array.as_primitive::<Int32Type>().value(row)).into(),
        ArrowType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        ArrowType::Float32 => Numeric::from_f32(array.as_primitive::<Float32Type>().value(row)),
        ArrowType::Float64 => Numeric::from_f64(array.as_primitive::<Float64Type>().value(row)),
        ArrowType::Utf8 => of_text(array.as_string::<i32>().value(row))?,
        ArrowType::Null => return Ok(None),
        other => {
            let message = format!("a value of type {other} is no number");
            return Err(QueryError::Internal { message });
        }
    }))
}

/// A constant.
pub(crate) fn scalar(number: &Numeric) -> ScalarValue {
    ScalarValue::LargeBinary(Some(number.to_bytes()))
}

/// Appends a number, or NULL.
pub(crate) fn append(to: &mut LargeBinaryBuilder, number: Option<&Numeric>, buffer: &mut Vec<u8>) {
    match number {
        None => to.append_null(),
        Some(number) => {
            buffer.clear();
            number.write(buffer);
            to.append_value(buffer);
        }
    }
}

/// The number that a division comes to.
pub(crate) fn quotient(divided: Divided) -> Result<Numeric> {
    match divided {
        Divided::Number(number) => Ok(number),
        Divided::ByZero => Err(QueryError::DivisionByZero),
    }
}

/// The type that `numeric` with these digits is.
///
/// # Errors
/// More of them than there may be (`22023`).
pub fn declared_numeric(digits: &ExactNumberInfo) -> Result<DataType> {
    let (precision, scale) = match digits {
        ExactNumberInfo::None => return Ok(DataType::Numeric(None)),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let most = NUMERIC_PRECISION_MAX;
    let refused = |message| Err(QueryError::refused("22023", message));
    match (u16::try_from(precision), i16::try_from(scale)) {
        (Ok(precision), Ok(scale)) if (1..=most).contains(&precision) => {
            if scale.unsigned_abs() <= most {
                return Ok(DataType::numeric(precision, scale));
            }
            refused(format!("NUMERIC scale {scale} must be between -{most} and {most}"))
        }
        (Ok(1..), _) if precision <= u64::from(most) => {
            refused(format!("NUMERIC scale {scale} must be between -{most} and {most}"))
        }
        _ => refused(format!("NUMERIC precision {precision} must be between 1 and {most}")),
    }
}
