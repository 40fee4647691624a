//! Casts that can fail, each error with PostgreSQL's SQLSTATE and text (`22P02`, `22003`, `22007`): text that is no
//! value of the wanted type, and numbers that do not fit it.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use onrush::DataType;

use super::{is_numeric_cast, numeric_cast, rewrite_typed};
use crate::error::QueryError;
use crate::types::plain_type;

/// A cast to the type of a field.
#[derive(Debug)]
struct CheckedCast {
    to: FieldRef,
    signature: Signature,
}

impl PartialEq for CheckedCast {
    fn eq(&self, other: &CheckedCast) -> bool {
        self.to == other.to
    }
}

impl Eq for CheckedCast {}

impl Hash for CheckedCast {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.to.hash(hasher);
    }
}

impl ScalarUDFImpl for CheckedCast {
    fn name(&self) -> &str {
        "checked_cast"
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
        // What cannot be cast becomes NULL, and is looked for only where there is such a one.
        let lenient = CastOptions { safe: true, ..CastOptions::default() };
        let made = cast_with_options(&given, self.to.data_type(), &lenient)?;
        if made.null_count() > given.null_count() {
            let failed = (0..made.len()).find(|row| made.is_null(*row) && !given.is_null(*row));
            if let Some(row) = failed {
                return Err(error(&given, row, plain_type(self.to.data_type()))?.into());
            }
        }
        Ok(ColumnarValue::Array(made))
    }
}

/// Why the value of a row is none of the wanted type.
fn error(given: &ArrayRef, row: usize, wanted: DataType) -> Result<QueryError> {
    let name = match wanted {
        DataType::Decimal { .. } => "numeric".to_owned(),
        DataType::Float32 => "real".to_owned(),
        DataType::Float64 => "double precision".to_owned(),
        other => other.to_string(),
    };
    if !is_text(given.data_type()) {
        return Ok(match wanted {
            DataType::Decimal { .. } => QueryError::refused("22003", "numeric field overflow"),
            _ => QueryError::refused("22003", format!("{name} out of range")),
        });
    }
    let text = cast(&given.slice(row, 1), &ArrowType::Utf8)?;
    let text = text.as_string::<i32>().value(0);
    let digits = text.trim().trim_start_matches(['+', '-']);
    let is_whole = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    Ok(match wanted {
        DataType::Int16 | DataType::Int32 | DataType::Int64 if is_whole => {
            let message = format!("value \"{text}\" is out of range for type {name}");
            QueryError::refused("22003", message)
        }
        DataType::Decimal { .. } if text.trim().parse::<f64>().is_ok_and(f64::is_finite) => {
            QueryError::refused("22003", "numeric field overflow")
        }
        DataType::Date
        | DataType::Time
        | DataType::TimeTz
        | DataType::Timestamp
        | DataType::TimestampTz => QueryError::refused(
            "22007",
            format!("invalid input syntax for type {name}: \"{text}\""),
        ),
        _ => QueryError::refused(
            "22P02",
            format!("invalid input syntax for type {name}: \"{text}\""),
        ),
    })
}

/// Puts the function in the place of casts that can fail, once all types are known.
#[derive(Debug)]
pub(crate) struct CheckedCasts;

impl AnalyzerRule for CheckedCasts {
    fn name(&self) -> &str {
        "checked_casts"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_typed(plan, checked)
    }
}

pub(super) fn checked(expression: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expression {
        Expr::Cast(Cast { expr, field })
            if expr
                .get_type(schema)
                .is_ok_and(|from| is_numeric_cast(&from, field.data_type())) =>
        {
            Transformed::yes(numeric_cast(*expr, field))
        }
        Expr::Cast(Cast { expr, field })
            if expr.get_type(schema).is_ok_and(|from| can_fail(&from, field.data_type())) =>
        {
            let signature = Signature::any(1, Volatility::Immutable);
            let function = ScalarUDF::new_from_impl(CheckedCast { to: field, signature });
            let call = ScalarFunction::new_udf(Arc::new(function), vec![*expr]);
            Transformed::yes(Expr::ScalarFunction(call))
        }
        other => Transformed::no(other),
    }
}

fn is_text(arrow: &ArrowType) -> bool {
    matches!(arrow, ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View)
}

fn can_fail(from: &ArrowType, to: &ArrowType) -> bool {
    if is_text(from) {
        return to.is_numeric() || to.is_temporal() || *to == ArrowType::Boolean;
    }
    match (decimal_digits(from), decimal_digits(to)) {
        (Some((digits, scale)), Some((wanted, wanted_scale))) => {
            // Not all numbers of as many digits as the largest whole number are whole numbers, and what is rounded
            // may get another digit in front.
            let is_less = to.is_integer() && !from.is_integer();
            digits + i16::from(is_less) + i16::from(wanted_scale < scale) > wanted
        }
        // Of floats; all numbers have a place among them.
        (None, Some(_)) => from.is_floating(),
        _ => false,
    }
}

/// Digits in front of the point that values of a type can have, and behind it.
fn decimal_digits(arrow: &ArrowType) -> Option<(i16, i8)> {
    Some(match arrow {
        ArrowType::Int8 => (3, 0),
        ArrowType::Int16 | ArrowType::UInt8 => (5, 0),
        ArrowType::Int32 | ArrowType::UInt16 => (10, 0),
        ArrowType::Int64 | ArrowType::UInt32 => (19, 0),
        ArrowType::UInt64 => (20, 0),
        ArrowType::Decimal32(precision, scale)
        | ArrowType::Decimal64(precision, scale)
        | ArrowType::Decimal128(precision, scale)
        | ArrowType::Decimal256(precision, scale) => {
            (i16::from(*precision) - i16::from(*scale), *scale)
        }
        _ => return None,
    })
}
