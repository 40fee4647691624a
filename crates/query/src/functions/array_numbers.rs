//! The numbers of an array's elements: from 1 on, those of a vector of the catalogue from 0.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Value};

use super::SystemFunction;
use crate::array::{read_array, write_array};
use crate::types::ColumnType;

/// What a function of arrays is called where it is given a vector.
pub(crate) const FROM_ZERO: [(&str, &str); 3] = [
    ("subscripts", "subscripts_from_zero"),
    ("array_lower", "vector_lower"),
    ("array_upper", "vector_upper"),
];

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let [of_arrays, of_vectors] =
        [FROM_ZERO.map(|(of_array, _)| of_array), FROM_ZERO.map(|(_, of_vector)| of_vector)];
    [numbered(of_arrays, 1), numbered(of_vectors, 0)].concat()
}

/// The functions by their names, of arrays whose first element has this number.
fn numbered([subscripts, lower, upper]: [&'static str; 3], first: i32) -> Vec<Arc<ScalarUDF>> {
    // The number behind that of the last element; none where there are no elements.
    let end = move |given: &[Value<'_>]| match given {
        // There is one dimension.
        [Value::Text(written), dimension] if dimension.as_i64() == Some(1) => {
            let count = read_array(written).ok()?.len();
            i32::try_from(count).ok().filter(|count| *count > 0).map(|count| first + count)
        }
        _ => None,
    };
    let number = |found: Option<i32>| found.map_or(Value::Null, Value::Int32);
    vec![
        SystemFunction::new(subscripts, ColumnType::Array(DataType::Int32), move |given| {
            if given.iter().any(Value::is_null) {
                return Value::Null;
            }
            let numbers = first..end(given).unwrap_or(first);
            let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
            write_array(numbers.iter().map(|number| Some(number.as_str()))).into()
        })
        .into_udf(),
        SystemFunction::new(lower, DataType::Int32.into(), move |given| {
            number(end(given).map(|_| first))
        })
        .into_udf(),
        SystemFunction::new(upper, DataType::Int32.into(), move |given| {
            number(end(given).map(|end| end - 1))
        })
        .into_udf(),
    ]
}
