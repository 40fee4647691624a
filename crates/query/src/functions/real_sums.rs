//! `sum(real)`, which is a `real` itself, and an error (`22003`) where it has no space for the sum.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Float32Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

use crate::error::QueryError;

/// `sum(real)`.
pub(crate) fn real_sum() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        let signature = Signature::exact(vec![ArrowType::Float32], Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(RealSum { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RealSum {
    signature: Signature,
}

impl AggregateUDFImpl for RealSum {
    fn name(&self) -> &str {
        "real_sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Float32)
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Sum(None)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let sum = Field::new(format!("{}[sum]", args.name), ArrowType::Float32, true);
        Ok(vec![Arc::new(sum)])
    }
}

/// None before the first number.
#[derive(Debug)]
struct Sum(Option<f32>);

impl Accumulator for Sum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("a sum is of one column") };
        for number in values.as_primitive::<Float32Type>().iter().flatten() {
            let before = self.0.unwrap_or(0.0);
            let sum = before + number;
            if sum.is_infinite() && before.is_finite() && number.is_finite() {
                let message = "value out of range: overflow".to_owned();
                return Err(QueryError::OutOfRange { message }.into());
            }
            self.0 = Some(sum);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float32(self.0))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Float32(self.0)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}
