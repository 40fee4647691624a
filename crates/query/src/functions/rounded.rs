//! Quotients and products of `numeric`, rounded to digits that fit. DataFusion cuts quotients off four
//! digits behind those of the dividend, and has no space for products of many digits.

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

/// Digits behind the point, about as many as PostgreSQL gives quotients.
const SCALE: i8 = 16;
/// As many digits as a value can have; more are rounded away.
const DIGITS_MAX: u32 = 28;

/// The quotient of two decimals.
pub(crate) fn quotient() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Rounded::function("quotient", Operation::Quotient));
    Arc::clone(&FUNCTION)
}

/// The quotient of two decimals with so many digits behind the point.
pub(crate) fn quotient_of_scale(scale: i8) -> Arc<ScalarUDF> {
    let signature = Signature::any(2, Volatility::Immutable);
    let (name, operation) = ("quotient", Operation::Quotient);
    Arc::new(ScalarUDF::new_from_impl(Rounded { name, operation, scale: Some(scale), signature }))
}

/// The product of two decimals.
pub(crate) fn product() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Rounded::function("product", Operation::Product));
    Arc::clone(&FUNCTION)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    Quotient,
    Product,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Rounded {
    name: &'static str,
    operation: Operation,
    /// None: as many digits behind the point as are usual.
    scale: Option<i8>,
    signature: Signature,
}

impl Rounded {
    fn function(name: &'static str, operation: Operation) -> Arc<ScalarUDF> {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Rounded { name, operation, scale: None, signature }))
    }
}

impl ScalarUDFImpl for Rounded {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[ArrowType]) -> Result<ArrowType> {
        let [ArrowType::Decimal128(_, of), ArrowType::Decimal128(_, by)] = arguments else {
            return internal_err!("a {} of {arguments:?}", self.name);
        };
        Ok(ArrowType::Decimal128(38, self.scale.unwrap_or_else(|| scale_of(*of, *by))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [of, by] = args.args.as_slice() else {
            return internal_err!("a {} has two arguments", self.name);
        };
        let (of, by) = (of.to_array(args.number_rows)?, by.to_array(args.number_rows)?);
        let (ArrowType::Decimal128(_, of_scale), ArrowType::Decimal128(_, by_scale)) =
            (of.data_type(), by.data_type())
        else {
            return internal_err!("a {} of other than decimals", self.name);
        };
        let scale = self.scale.unwrap_or_else(|| scale_of(*of_scale, *by_scale));
        let (of_scale, by_scale) = (i32::from(*of_scale), i32::from(*by_scale));
        let operation = self.operation;
        let compute = |of, by| {
            let made = match operation {
                Operation::Quotient => divided(of, by, i32::from(scale) + by_scale - of_scale),
                Operation::Product => multiplied(of, by, of_scale + by_scale - i32::from(scale)),
            };
            made.map_err(|error| ArrowError::ExternalError(Box::new(error)))
        };
        let (of, by) = (of.as_primitive::<Decimal128Type>(), by.as_primitive::<Decimal128Type>());
        let made = try_binary::<_, _, _, Decimal128Type>(of, by, compute)?;
        Ok(ColumnarValue::Array(Arc::new(made.with_precision_and_scale(38, scale)?)))
    }
}

fn scale_of(of: i8, by: i8) -> i8 {
    SCALE.max(of).max(by)
}

/// `of` by `by`, with the point moved, rounded half away from zero.
pub(super) fn divided(of: i128, by: i128, shift: i32) -> std::result::Result<i128, QueryError> {
    if by == 0 {
        return Err(QueryError::DivisionByZero);
    }
    let power = power_of_ten(shift)?;
    let (of, by) = (i256::from_i128(of), i256::from_i128(by));
    let (of, by) = match shift < 0 {
        false => (of.checked_mul(power).ok_or_else(out_of_range)?, by),
        true => (of, by.checked_mul(power).ok_or_else(out_of_range)?),
    };
    fitting(rounded(of, by))
}

/// `of` times `by`, without the last `digits_less` digits, rounded half away from zero.
fn multiplied(of: i128, by: i128, digits_less: i32) -> std::result::Result<i128, QueryError> {
    let product = i256::from_i128(of).checked_mul(i256::from_i128(by)).ok_or_else(out_of_range)?;
    fitting(rounded(product, power_of_ten(digits_less.max(0))?))
}

fn power_of_ten(digits: i32) -> std::result::Result<i256, QueryError> {
    i256::from_i128(10).checked_pow(digits.unsigned_abs()).ok_or_else(out_of_range)
}

pub(super) fn out_of_range() -> QueryError {
    QueryError::OutOfRange { message: "numeric value out of range".to_owned() }
}

/// With zeros in the place of digits that a value has no space for.
fn fitting(number: Option<i256>) -> std::result::Result<i128, QueryError> {
    let number = number.and_then(i256::to_i128).ok_or_else(out_of_range)?;
    let digits = number.checked_abs().and_then(i128::checked_ilog10).map_or(0, |digits| digits + 1);
    if digits <= DIGITS_MAX {
        return Ok(number);
    }
    let unit = 10i128.pow(digits - DIGITS_MAX);
    let kept = rounded(i256::from_i128(number), i256::from_i128(unit)).and_then(i256::to_i128);
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

    #[test]
    fn a_product_loses_its_last_digits() {
        let third = 3_333_333_333_333_333;
        for (of, by, digits_less, product) in [
            (12, 12, 0, 144),
            (12, 12, 1, 14),
            (-15, 1, 1, -2),
            (third, third, 16, 1_111_111_111_111_111),
        ] {
            assert_eq!(multiplied(of, by, digits_less).expect("a product"), product, "{of} * {by}");
        }
        assert!(matches!(multiplied(i128::MAX, 10, 0), Err(QueryError::OutOfRange { .. })));
    }
}
