//! Quotients of `numeric`. DataFusion cuts them off four digits behind those of the dividend; here they
//! are rounded to sixteen behind the point, about as many as PostgreSQL gives.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::kernels::arity::try_binary;
use datafusion::arrow::datatypes::{DataType as ArrowType, Decimal128Type, i256};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::QueryError;

const SCALE: i8 = 16;
/// As many digits as a value can have; more are rounded away.
const DIGITS_MAX: u32 = 28;

/// The function of two decimals.
pub(crate) fn quotient() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Quotient { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Quotient {
    signature: Signature,
}

impl ScalarUDFImpl for Quotient {
    fn name(&self) -> &str {
        "quotient"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[ArrowType]) -> Result<ArrowType> {
        let [ArrowType::Decimal128(_, of), ArrowType::Decimal128(_, by)] = arguments else {
            return internal_err!("a quotient of {arguments:?}");
        };
        Ok(ArrowType::Decimal128(38, SCALE.max(*of).max(*by)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [of, by] = args.args.as_slice() else {
            return internal_err!("a quotient has two arguments");
        };
        let (of, by) = (of.to_array(args.number_rows)?, by.to_array(args.number_rows)?);
        let (ArrowType::Decimal128(_, of_scale), ArrowType::Decimal128(_, by_scale)) =
            (of.data_type(), by.data_type())
        else {
            return internal_err!("a quotient of other than decimals");
        };
        let scale = SCALE.max(*of_scale).max(*by_scale);
        let shift = i32::from(scale) + i32::from(*by_scale) - i32::from(*of_scale);
        let divide = |of, by| {
            divided(of, by, shift).map_err(|error| ArrowError::ExternalError(Box::new(error)))
        };
        let (of, by) = (of.as_primitive::<Decimal128Type>(), by.as_primitive::<Decimal128Type>());
        let made = try_binary::<_, _, _, Decimal128Type>(of, by, divide)?;
        Ok(ColumnarValue::Array(Arc::new(made.with_precision_and_scale(38, scale)?)))
    }
}

/// `of` by `by`, with the point moved, rounded half away from zero.
fn divided(of: i128, by: i128, shift: i32) -> std::result::Result<i128, QueryError> {
    let out_of_range =
        || QueryError::OutOfRange { message: "numeric field overflow in a quotient".to_owned() };
    if by == 0 {
        return Err(QueryError::DivisionByZero);
    }
    let power = i256::from_i128(10).checked_pow(shift.unsigned_abs()).ok_or_else(out_of_range)?;
    let (of, by) = (i256::from_i128(of), i256::from_i128(by));
    let (of, by) = match shift < 0 {
        false => (of.checked_mul(power).ok_or_else(out_of_range)?, by),
        true => (of, by.checked_mul(power).ok_or_else(out_of_range)?),
    };
    let quotient = rounded(of, by).and_then(i256::to_i128).ok_or_else(out_of_range)?;
    let digits = quotient.checked_abs().and_then(|size| size.checked_ilog10()).map_or(0, |n| n + 1);
    if digits <= DIGITS_MAX {
        return Ok(quotient);
    }
    let unit = 10i128.pow(digits - DIGITS_MAX);
    let kept = rounded(i256::from_i128(quotient), i256::from_i128(unit)).and_then(i256::to_i128);
    kept.and_then(|kept| kept.checked_mul(unit)).ok_or_else(out_of_range)
}

fn rounded(of: i256, by: i256) -> Option<i256> {
    let (whole, rest) = (of.checked_div(by)?, of.checked_rem(by)?);
    let is_half = rest.wrapping_abs() >= by.wrapping_abs().checked_sub(rest.wrapping_abs())?;
    match (is_half, of.is_negative() == by.is_negative()) {
        (false, _) => Some(whole),
        (true, true) => whole.checked_add(i256::ONE),
        (true, false) => whole.checked_sub(i256::ONE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotient_is_rounded_and_not_cut_off() {
        for (of, by, shift, quotient) in [
            (10, 3, 4, 33_333),
            (20, 3, 4, 66_667),
            (-20, 3, 4, -66_667),
            (1, 2, 0, 1),
            (-1, 2, 0, -1),
            (12_345, 10, -2, 12),
            (10_i128.pow(37), 3, 0, 3_333_333_333_333_333_333_333_333_333_000_000_000),
        ] {
            assert_eq!(divided(of, by, shift).expect("a quotient"), quotient, "{of} by {by}");
        }
        assert!(matches!(divided(1, 0, 0), Err(QueryError::DivisionByZero)));
        assert!(matches!(divided(i128::MAX, 1, 16), Err(QueryError::OutOfRange { .. })));
    }
}
