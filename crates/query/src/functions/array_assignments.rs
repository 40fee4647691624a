//! Arrays of which elements are set: what `SET column[subscript] = value` comes to.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, ListArray, MutableArrayData, make_array, new_empty_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, Int64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::QueryError;

/// `(array, element, subscript)`.
pub const SET_ELEMENT: &str = "array_set_element";

/// `(array, elements, first subscript, last subscript)`.
pub const SET_SLICE: &str = "array_set_slice";

/// In place of a subscript: where the array begins, or ends.
pub const OPEN_BOUND: &str = "open";

/// An array with more than that is larger than any row.
const ELEMENTS_MAX: usize = 10_000_000;

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let function = |name: &'static str, count: usize| {
        let signature = Signature::any(count, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Assignment { name, signature }))
    };
    vec![function(SET_ELEMENT, 3), function(SET_SLICE, 4)]
}

/// One of the two.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Assignment {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for Assignment {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[ArrowType]) -> Result<ArrowType> {
        match given {
            [list @ ArrowType::List(_), ..] => Ok(list.clone()),
            _ => plan_err!("{} takes an array", self.name),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given = |at: usize| -> Result<ArrayRef> { args.args[at].to_array(args.number_rows) };
        let (lists, last) = (given(0)?, args.args.len() - 1);
        let lists = lists.as_list::<i32>();
        let is_slice = self.name == SET_SLICE;
        let wanted = match is_slice {
            true => lists.data_type().clone(),
            false => lists.value_type(),
        };
        let new = cast(&given(1)?, &wanted)?;
        let (from, to) = (Subscripts::new(&given(2)?)?, Subscripts::new(&given(last)?)?);
        let mut elements = 0;
        let mut made = Vec::with_capacity(lists.len());
        for row in 0..lists.len() {
            let list = lists.is_valid(row).then(|| lists.value(row));
            let new = match is_slice {
                true if new.is_null(row) => {
                    made.push(list);
                    continue;
                }
                true => new.as_list::<i32>().value(row),
                false => new.slice(row, 1),
            };
            let count = list.as_ref().map_or(0, Array::len);
            let place = Slice { from: from.of(row, 1, count)?, to: to.of(row, count, count)? };
            let list = assigned(list, new, place, &lists.value_type())?;
            elements += list.len();
            if elements > ELEMENTS_MAX {
                return Err(too_many().into());
            }
            made.push(Some(list));
        }
        let ArrowType::List(field) = lists.data_type() else {
            return plan_err!("{} takes an array", self.name);
        };
        Ok(ColumnarValue::Array(list_of(made, field)?))
    }
}

/// One subscript for each row.
enum Subscripts {
    Numbers(Int64Array),
    /// Where the array begins, or ends.
    Open,
}

impl Subscripts {
    fn new(given: &ArrayRef) -> Result<Subscripts> {
        let text = given.as_string_opt::<i32>().filter(|texts| !texts.is_empty());
        if text.is_some_and(|texts| texts.is_valid(0) && texts.value(0) == OPEN_BOUND) {
            return Ok(Subscripts::Open);
        }
        let numbers = cast(given, &ArrowType::Int64)?;
        Ok(Subscripts::Numbers(numbers.as_primitive::<Int64Type>().clone()))
    }

    /// `open` is where an array of so many elements has the end that is left out.
    fn of(&self, row: usize, open: usize, count: usize) -> Result<i64> {
        match self {
            Subscripts::Numbers(numbers) if numbers.is_null(row) => {
                let message = "array subscript in assignment must not be null";
                Err(QueryError::refused("22004", message).into())
            }
            Subscripts::Numbers(numbers) => Ok(numbers.value(row)),
            Subscripts::Open if count == 0 => {
                let message = "array slice subscript must provide both boundaries";
                let hint = "When assigning to a slice of an empty array value, \
                            slice boundaries must be fully specified.";
                Err(QueryError::refused("2202E", message).hint(hint).into())
            }
            Subscripts::Open => Ok(i64::try_from(open).unwrap_or(i64::MAX)),
        }
    }
}

fn too_many() -> QueryError {
    let message = format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})");
    QueryError::refused("54000", message)
}

/// The subscripts of the elements that are set, both included.
struct Slice {
    from: i64,
    to: i64,
}

fn assigned(
    list: Option<ArrayRef>,
    new: ArrayRef,
    Slice { from, to }: Slice,
    element: &ArrowType,
) -> Result<ArrayRef> {
    let list = list.unwrap_or_else(|| new_empty_array(element));
    let first = usize::try_from(from).ok().and_then(|from| from.checked_sub(1));
    let Some(first) = first.filter(|first| *first == 0 || !list.is_empty()) else {
        let message = format!("an array whose first subscript is not 1 is not supported: {from}");
        let hint = "Assign to elements from 1 on.";
        return Err(QueryError::refused("0A000", message).hint(hint).into());
    };
    if to < from {
        let message = "upper bound cannot be less than lower bound";
        return Err(QueryError::refused("2202E", message).into());
    }
    let end = usize::try_from(to).unwrap_or(usize::MAX);
    if end > ELEMENTS_MAX {
        return Err(too_many().into());
    }
    let count = end - first;
    if new.len() < count {
        return Err(QueryError::refused("2202E", "source array too small").into());
    }
    let (list, new) = (list.to_data(), new.to_data());
    let mut made = MutableArrayData::new(vec![&list, &new], true, end.max(list.len()));
    made.try_extend(0, 0, first.min(list.len()))?;
    made.try_extend_nulls(first.saturating_sub(list.len()))?;
    made.try_extend(1, 0, count)?;
    made.try_extend(0, end.min(list.len()), list.len())?;
    Ok(make_array(made.freeze()))
}

fn list_of(lists: Vec<Option<ArrayRef>>, field: &FieldRef) -> Result<ArrayRef> {
    let ends = OffsetBuffer::from_lengths(lists.iter().map(|it| it.as_ref().map_or(0, Array::len)));
    let nulls = lists.iter().map(Option::is_some).collect::<Vec<bool>>().into();
    let elements: Vec<&dyn Array> = lists.iter().flatten().map(AsRef::as_ref).collect();
    let elements = match elements.is_empty() {
        true => new_empty_array(field.data_type()),
        false => concat(&elements)?,
    };
    Ok(Arc::new(ListArray::try_new(Arc::clone(field), ends, elements, Some(nulls))?))
}
