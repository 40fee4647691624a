//! Functions that take arrays apart.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, ListArray, Scalar, StringArray, StructArray,
    new_empty_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::kernels::cmp::distinct;
use datafusion::arrow::compute::{concat, filter};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Fields};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use onrush::{DataType, Value};

use super::SystemFunction;
use crate::array::{read_array, write_array};
use crate::types::ColumnType;

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let signature = Signature::any(1, Volatility::Immutable);
    vec![
        Arc::new(ScalarUDF::new_from_impl(NumberedElements { signature })),
        Arc::new(ScalarUDF::new_from_impl(WithoutElement {
            signature: Signature::array_and_element(Volatility::Immutable),
        })),
        Arc::new(ScalarUDF::new_from_impl(Dimensions {
            signature: Signature::any(1, Volatility::Immutable),
        })),
        // Each element with a text before it; of NULL an array without elements.
        SystemFunction::new("with_prefix", ColumnType::Array(DataType::Text), |given| {
            let [Value::Text(prefix), Value::Text(written)] = given else { return "{}".into() };
            let Ok(elements) = read_array(written) else { return "{}".into() };
            let prefixed: Vec<Option<String>> = elements
                .into_iter()
                .map(|element| element.map(|element| format!("{prefix}{element}")))
                .collect();
            write_array(prefixed.iter().map(Option::as_deref)).into()
        })
        .into_udf(),
    ]
}

/// The elements of an array as an array of `(x, n)`: the element and its number, from 1.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NumberedElements {
    signature: Signature,
}

fn fields(element: &ArrowType) -> Fields {
    let number = Field::new("n", ArrowType::Int32, true);
    Fields::from(vec![Field::new("x", element.clone(), true), number])
}

impl ScalarUDFImpl for NumberedElements {
    fn name(&self) -> &str {
        "numbered_elements"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[ArrowType]) -> Result<ArrowType> {
        match given {
            [ArrowType::List(element)] => {
                let pair = ArrowType::Struct(fields(element.data_type()));
                Ok(ArrowType::List(Arc::new(Field::new_list_field(pair, true))))
            }
            _ => plan_err!("_pg_expandarray takes an array, not {given:?}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given = args.args[0].to_array(args.number_rows)?;
        let lists = given.as_list::<i32>();
        let parts: Vec<ArrayRef> = (0..lists.len())
            .map(|row| match lists.is_null(row) {
                true => new_empty_array(&lists.value_type()),
                false => lists.value(row),
            })
            .collect();
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        let elements = match parts.is_empty() {
            true => new_empty_array(&lists.value_type()),
            false => concat(&parts)?,
        };
        let count = |part: &&dyn Array| i32::try_from(part.len()).unwrap_or(i32::MAX);
        let numbers: Int32Array = parts.iter().flat_map(|part| 1..=count(part)).collect();
        let fields = fields(&lists.value_type());
        let pair = Field::new_list_field(ArrowType::Struct(fields.clone()), true);
        let pairs = StructArray::new(fields, vec![elements, Arc::new(numbers)], None);
        let ends = OffsetBuffer::from_lengths(parts.iter().map(|part| part.len()));
        let list = ListArray::new(Arc::new(pair), ends, Arc::new(pairs), lists.nulls().cloned());
        Ok(ColumnarValue::Array(Arc::new(list)))
    }
}

/// `array_dims`: the bounds of each dimension.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Dimensions {
    signature: Signature,
}

impl ScalarUDFImpl for Dimensions {
    fn name(&self) -> &str {
        "array_dims"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[ArrowType]) -> Result<ArrowType> {
        match given {
            [ArrowType::List(_)] => Ok(ArrowType::Utf8),
            _ => plan_err!("array_dims takes an array"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given = args.args[0].to_array(args.number_rows)?;
        let bounds: StringArray = given.as_list::<i32>().iter().map(bounds_of).collect();
        Ok(ColumnarValue::Array(Arc::new(bounds)))
    }
}

/// `[1:2][1:3]`; nothing of an array without elements.
fn bounds_of(list: Option<ArrayRef>) -> Option<String> {
    let mut elements = list.filter(|list| !list.is_empty())?;
    let mut bounds = String::new();
    loop {
        bounds.push_str(&format!("[1:{}]", elements.len()));
        elements = match elements.as_list_opt::<i32>() {
            Some(inner) if inner.is_valid(0) => inner.value(0),
            _ => return Some(bounds),
        };
    }
}

/// `array_remove`: an array without all the elements that are this one, or NULL as it is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WithoutElement {
    signature: Signature,
}

impl ScalarUDFImpl for WithoutElement {
    fn name(&self) -> &str {
        "array_remove"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[ArrowType]) -> Result<ArrowType> {
        match given {
            [array @ ArrowType::List(element), _] if !element.data_type().is_nested() => {
                Ok(array.clone())
            }
            _ => plan_err!("array_remove takes an array of one dimension and an element"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given = args.args[0].to_array(args.number_rows)?;
        let removed = args.args[1].to_array(args.number_rows)?;
        let lists = given.as_list::<i32>();
        let ArrowType::List(field) = given.data_type() else {
            return plan_err!("array_remove takes an array");
        };
        let mut parts: Vec<ArrayRef> = Vec::with_capacity(lists.len());
        for row in 0..lists.len() {
            if lists.is_null(row) {
                parts.push(new_empty_array(&lists.value_type()));
                continue;
            }
            let elements = lists.value(row);
            let kept = distinct(&elements, &Scalar::new(removed.slice(row, 1)))?;
            parts.push(filter(&elements, &kept)?);
        }
        let ends = OffsetBuffer::from_lengths(parts.iter().map(|part| part.len()));
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        let elements = match parts.is_empty() {
            true => new_empty_array(&lists.value_type()),
            false => concat(&parts)?,
        };
        let list = ListArray::new(Arc::clone(field), ends, elements, lists.nulls().cloned());
        Ok(ColumnarValue::Array(Arc::new(list)))
    }
}
