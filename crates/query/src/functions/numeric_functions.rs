//! [`numeric_math`](super::numeric_math) over columns.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Decimal128Array};
use datafusion::arrow::datatypes::{DataType as ArrowType, Decimal128Type};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::numeric_math::{Numeric, exponential, logarithm, natural_logarithm, power, square_root};

/// A function of one or two numerics that makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NumericFunction {
    Exponential,
    NaturalLogarithm,
    Logarithm,
    Power,
    SquareRoot,
}

impl NumericFunction {
    /// # Errors
    /// What it is not defined for, and results that there is no space for.
    pub(crate) fn of(self, given: &[Numeric]) -> crate::Result<Numeric> {
        match (self, given) {
            (NumericFunction::Exponential, [number]) => exponential(number),
            (NumericFunction::NaturalLogarithm, [number]) => natural_logarithm(number),
            (NumericFunction::Logarithm, [base, number]) => logarithm(base, number),
            (NumericFunction::Power, [base, exponent]) => power(base, exponent),
            (NumericFunction::SquareRoot, [number]) => square_root(number),
            _ => Err(crate::QueryError::UnknownFunction {
                message: format!("{} of {} arguments does not exist", self.name(), given.len()),
            }),
        }
    }

    fn name(self) -> &'static str {
        match self {
            NumericFunction::Exponential => "numeric_exp",
            NumericFunction::NaturalLogarithm => "numeric_ln",
            NumericFunction::Logarithm => "numeric_log",
            NumericFunction::Power => "numeric_power",
            NumericFunction::SquareRoot => "numeric_sqrt",
        }
    }

    /// The function of columns, whose results have so many digits behind the point.
    pub(crate) fn of_columns(self, scale: i8) -> Arc<ScalarUDF> {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(OfColumns { function: self, scale, signature }))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfColumns {
    function: NumericFunction,
    scale: i8,
    signature: Signature,
}

impl ScalarUDFImpl for OfColumns {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Decimal128(38, self.scale))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut columns = Vec::with_capacity(args.args.len());
        for given in &args.args {
            let array = given.to_array(args.number_rows)?;
            let ArrowType::Decimal128(_, scale) = *array.data_type() else {
                return internal_err!("{} of {}", self.name(), array.data_type());
            };
            columns.push((array, i32::from(scale)));
        }
        let number = |(array, scale): &(Arc<dyn Array>, i32), row| {
            Numeric::new(array.as_primitive::<Decimal128Type>().value(row), *scale)
        };
        let mut made = Vec::with_capacity(args.number_rows);
        for row in 0..args.number_rows {
            if columns.iter().any(|(array, _)| array.is_null(row)) {
                made.push(None);
                continue;
            }
            let given: Vec<Numeric> = columns.iter().map(|column| number(column, row)).collect();
            made.push(Some(self.function.of(&given)?.with_scale(self.scale)?));
        }
        let made = Decimal128Array::from(made).with_precision_and_scale(38, self.scale)?;
        Ok(ColumnarValue::Array(Arc::new(made)))
    }
}
