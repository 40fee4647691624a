//! Casts to `numeric` and from it.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, Decimal128Builder, Float32Builder, Float64Builder, Int16Builder, Int32Builder,
    Int64Builder, LargeBinaryBuilder,
};
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use onrush::{DataType, Numeric};

use super::text_function;
use crate::error::QueryError;
use crate::numeric::{append, number_at};
use crate::types::{ColumnType, column_type};

/// A cast to the type of a field.
#[derive(Debug)]
struct NumericCast {
    to: FieldRef,
    signature: Signature,
}

impl PartialEq for NumericCast {
    fn eq(&self, other: &NumericCast) -> bool {
        self.to == other.to
    }
}

impl Eq for NumericCast {}

impl Hash for NumericCast {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.to.hash(hasher);
    }
}

/// The name of the cast in plans.
pub(crate) const NUMERIC_CAST: &str = "numeric_cast";

/// Whether the function is needed for a cast.
pub(crate) fn is_numeric_cast(from: &ArrowType, to: &ArrowType) -> bool {
    let is_other = matches!(from, ArrowType::Utf8 | ArrowType::Float32 | ArrowType::Float64);
    match (from, to) {
        (ArrowType::Null, _) => false,
        (ArrowType::LargeBinary, ArrowType::LargeBinary) => false,
        (ArrowType::LargeBinary, to) => is_target(to) || *to == ArrowType::Utf8,
        (from, ArrowType::LargeBinary) => {
            is_other || from.is_integer() || matches!(from, ArrowType::Decimal128(..))
        }
        (_, ArrowType::Decimal128(..)) => is_other,
        _ => false,
    }
}

fn is_target(to: &ArrowType) -> bool {
    matches!(
        to,
        ArrowType::Decimal128(..)
            | ArrowType::Int16
            | ArrowType::Int32
            | ArrowType::Int64
            | ArrowType::Float32
            | ArrowType::Float64
    )
}

/// The cast of a value to the type of a field.
pub(crate) fn numeric_cast(value: Expr, to: FieldRef) -> Expr {
    if *to.data_type() == ArrowType::Utf8 {
        return Expr::ScalarFunction(ScalarFunction::new_udf(text_function(), vec![value]));
    }
    let signature = Signature::any(1, Volatility::Immutable);
    let function = ScalarUDF::new_from_impl(NumericCast { to, signature });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![value]))
}

/// Whether a call is such a cast to any `numeric`.
pub(crate) fn is_cast_to_any(call: &ScalarFunction) -> bool {
    let to = (call.func.inner().as_ref() as &dyn std::any::Any).downcast_ref::<NumericCast>();
    to.is_some_and(|cast| column_type(&cast.to) == ColumnType::Stored(DataType::Numeric(None)))
}

impl ScalarUDFImpl for NumericCast {
    fn name(&self) -> &str {
        NUMERIC_CAST
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.to.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::clone(&self.to))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [given] = args.args.as_slice() else {
            return internal_err!("a cast has one argument");
        };
        let given = given.to_array(args.number_rows)?;
        Ok(ColumnarValue::Array(cast(&given, &self.to)?))
    }
}

fn cast(given: &ArrayRef, to: &FieldRef) -> Result<ArrayRef> {
    let rows = given.len();
    macro_rules! each {
        ($builder:expr, $value:expr) => {{
            let mut made = $builder;
            for row in 0..rows {
                let number = number_at(given, row)?;
                made.append_option(number.map($value).transpose()?);
            }
            Ok(Arc::new(made.finish()))
        }};
    }
    match (to.data_type(), column_type(to)) {
        (ArrowType::LargeBinary, ColumnType::Stored(DataType::Numeric(limits))) => {
            let mut made = LargeBinaryBuilder::with_capacity(rows, rows * 12);
            let mut buffer = Vec::new();
            for row in 0..rows {
                let number = number_at(given, row)?;
                let number = number.map(|number| limited(number, limits)).transpose()?;
                append(&mut made, number.as_ref(), &mut buffer);
            }
            Ok(Arc::new(made.finish()))
        }
        (ArrowType::Decimal128(precision, scale), _) => {
            let made = Decimal128Builder::with_capacity(rows)
                .with_precision_and_scale(*precision, *scale)?;
            each!(made, |number| decimal(number, *precision, *scale))
        }
        (ArrowType::Int16, _) => {
            each!(Int16Builder::with_capacity(rows), |number| whole(&number, "smallint"))
        }
        (ArrowType::Int32, _) => {
            each!(Int32Builder::with_capacity(rows), |number| whole(&number, "integer"))
        }
        (ArrowType::Int64, _) => {
            each!(Int64Builder::with_capacity(rows), |number| whole(&number, "bigint"))
        }
        (ArrowType::Float64, _) => {
            each!(Float64Builder::with_capacity(rows), |number| float(&number))
        }
        (ArrowType::Float32, _) => each!(Float32Builder::with_capacity(rows), |number| {
            let (wide, name) = (number.to_f64(), "real");
            let narrow = wide as f32;
            let is_lost = (narrow.is_infinite() && !is_infinite(&number))
                || (narrow == 0.0 && !number.is_zero());
            if is_lost { Err(too_large(&number, name)) } else { Ok(narrow) }
        }),
        (other, _) => internal_err!("a cast of a numeric to {other}"),
    }
}

/// A number as a type with so many digits has it.
pub(crate) fn limited(number: Numeric, limits: Option<(u16, i16)>) -> crate::Result<Numeric> {
    match limits {
        Some((precision, scale)) => Ok(number.fitted(precision, scale)?),
        None => Ok(number),
    }
}

/// A number as a whole number of units of the last digit of a type.
pub(crate) fn decimal(number: Numeric, precision: u8, scale: i8) -> crate::Result<i128> {
    let fitted = number.fitted(u16::from(precision), i16::from(scale))?;
    match fitted {
        Numeric::Finite(digits, _) => i128::try_from(digits)
            .map_err(|_| QueryError::refused("22003", "numeric field overflow")),
        _ => {
            let message = format!(
                "NaN as numeric({precision},{scale}) is not supported, which has digits alone; numeric has it"
            );
            Err(QueryError::NotSupported { message })
        }
    }
}

fn whole<T: TryFrom<i128>>(number: &Numeric, name: &str) -> crate::Result<T> {
    let refused =
        |what| Err(QueryError::refused("0A000", format!("cannot convert {what} to {name}")));
    match number {
        Numeric::NaN => refused("NaN"),
        Numeric::Infinity | Numeric::NegativeInfinity => refused("infinity"),
        finite => finite
            .to_i128()
            .and_then(|whole| T::try_from(whole).ok())
            .ok_or_else(|| QueryError::refused("22003", format!("{name} out of range"))),
    }
}

fn is_infinite(number: &Numeric) -> bool {
    matches!(number, Numeric::Infinity | Numeric::NegativeInfinity)
}

fn float(number: &Numeric) -> crate::Result<f64> {
    let made = number.to_f64();
    let is_lost =
        (made.is_infinite() && !is_infinite(number)) || (made == 0.0 && !number.is_zero());
    if is_lost { Err(too_large(number, "double precision")) } else { Ok(made) }
}

fn too_large(number: &Numeric, name: &str) -> QueryError {
    QueryError::refused("22003", format!("\"{number}\" is out of range for type {name}"))
}
