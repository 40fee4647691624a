//! A `bigint` as `numeric`: what a sum of them is made of.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{DataType as ArrowType, Decimal128Type, Int64Type};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The digits of any `bigint`.
const DIGITS: u8 = 19;

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::exact(vec![ArrowType::Int64], Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(BigintAsNumeric { signature }))
});

/// `bigint` to `numeric` of 19 digits. A cast gives the same, but multiplies and counts the digits of
/// each number to see whether it fits: a third of the time of a sum.
pub(crate) fn bigint_as_numeric(bigint: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&FUNCTION), vec![bigint]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BigintAsNumeric {
    signature: Signature,
}

impl ScalarUDFImpl for BigintAsNumeric {
    fn name(&self) -> &str {
        "bigint_as_numeric"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Decimal128(DIGITS, 0))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [bigint] = args.args.as_slice() else {
            return internal_err!("bigint_as_numeric has one argument");
        };
        let bigint = bigint.to_array(args.number_rows)?;
        let wide = bigint.as_primitive::<Int64Type>().unary::<_, Decimal128Type>(i128::from);
        Ok(ColumnarValue::Array(Arc::new(wide.with_precision_and_scale(DIGITS, 0)?)))
    }
}
