//! What two arrays have in common. NULL is no element that another array has, too; DataFusion's functions take it for
//! one.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Scalar};
use datafusion::arrow::compute::kernels::cmp::eq;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// `a @> b`: each element of the second array is one of the first.
pub(crate) const ARRAY_CONTAINS: &str = "array_contains_all";
/// `a && b`: some element of the second array is one of the first.
pub(crate) const ARRAYS_OVERLAP: &str = "array_overlaps";

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    [ARRAY_CONTAINS, ARRAYS_OVERLAP]
        .map(|name| {
            let signature = Signature::user_defined(Volatility::Immutable);
            Arc::new(ScalarUDF::new_from_impl(Common { name, signature }))
        })
        .into()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Common {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for Common {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[ArrowType]) -> Result<Vec<ArrowType>> {
        let common = match given {
            [ArrowType::Null, other] | [other, ArrowType::Null] => Some(other.clone()),
            [ArrowType::List(one), ArrowType::List(other)] => {
                let element = match (one.data_type(), other.data_type()) {
                    (ArrowType::Null, own) | (own, ArrowType::Null) => Some(own.clone()),
                    (one, other) => comparison_coercion(one, other),
                };
                element
                    .filter(|element| !element.is_nested())
                    .map(|element| ArrowType::List(Arc::new(Field::new_list_field(element, true))))
            }
            _ => None,
        };
        match common {
            Some(common) => Ok(vec![common.clone(), common]),
            None => plan_err!("{} takes two arrays of one dimension, not {given:?}", self.name),
        }
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [one, other] = [0, 1].map(|at| args.args[at].to_array(args.number_rows));
        let (one, other) = (one?, other?);
        if one.data_type().is_null() {
            return Ok(ColumnarValue::Array(Arc::new(BooleanArray::new_null(one.len()))));
        }
        let rows = one.as_list::<i32>().iter().zip(other.as_list::<i32>().iter());
        let answers = rows.map(|row| match row {
            (Some(one), Some(other)) => self.answer(&one, &other).map(Some),
            _ => Ok(None),
        });
        let answers: BooleanArray = answers.collect::<Result<_>>()?;
        Ok(ColumnarValue::Array(Arc::new(answers)))
    }
}

impl Common {
    fn answer(&self, one: &ArrayRef, other: &ArrayRef) -> Result<bool> {
        let is_wanted = self.name == ARRAYS_OVERLAP;
        for at in 0..other.len() {
            let element = Scalar::new(other.slice(at, 1));
            let is_there = other.is_valid(at) && eq(one, &element)?.true_count() > 0;
            if is_there == is_wanted {
                return Ok(is_wanted);
            }
        }
        Ok(!is_wanted)
    }
}
