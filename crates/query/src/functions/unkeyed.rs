//! Values as they are, of which DataFusion does not know any more that no two rows have the same.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Unkeyed { signature }))
});

/// The value of an expression.
pub(crate) fn unkeyed(value: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&FUNCTION), vec![value]))
}

/// The expression whose value it is.
pub(crate) fn kept_by_unkeyed(value: &Expr) -> Option<&Expr> {
    match value {
        Expr::ScalarFunction(call) if Arc::ptr_eq(&call.func, &FUNCTION) => call.args.first(),
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Unkeyed {
    signature: Signature,
}

impl ScalarUDFImpl for Unkeyed {
    fn name(&self) -> &str {
        "unkeyed"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        match types {
            [own] => Ok(own.clone()),
            _ => internal_err!("unkeyed takes one value"),
        }
    }

    fn return_field_from_args(&self, given: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match given.arg_fields {
            [own] => Ok(Arc::clone(own)),
            _ => internal_err!("unkeyed takes one value"),
        }
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match <[ColumnarValue; 1]>::try_from(given.args) {
            Ok([value]) => Ok(value),
            Err(_) => internal_err!("unkeyed takes one value"),
        }
    }
}
