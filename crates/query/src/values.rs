//! Single values: out of Arrow's arrays for clients, and into them for parameters and constants.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes as arrow;
use datafusion::arrow::datatypes::{DataType as ArrowType, IntervalUnit, TimeUnit};
use datafusion::arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};
use datafusion::scalar::ScalarValue;
use onrush::{DataType, Decimal, MacAddress, Network, Numeric, TimeTz, Uuid, Value};
use onrush_types::calendar::{is_date, is_timestamp};

use crate::array::write_array;
use crate::columns::ColumnBuilder;
use crate::enumeration;
use crate::error::{QueryError, Result};
use crate::interval::of_arrow;
use crate::numeric::of_bytes;
use crate::text::{is_styled, write_text_of, written_plainly};
use crate::timestamp::timestamp_out_of_range;
use crate::types::{ColumnType, arrow_type, column_type, plain_type};

/// An array in the form that [`value_at`] reads.
pub(crate) fn readable(column: &ArrayRef) -> Result<ArrayRef> {
    match column.data_type() {
        ArrowType::Dictionary(_, values) => Ok(cast(column, values)?),
        ArrowType::Date64 => Ok(cast(column, &ArrowType::Date32)?),
        ArrowType::Time32(_) | ArrowType::Time64(TimeUnit::Nanosecond) => {
            Ok(cast(column, &ArrowType::Time64(TimeUnit::Microsecond))?)
        }
        ArrowType::Timestamp(
            TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Nanosecond,
            zone,
        ) => Ok(cast(column, &ArrowType::Timestamp(TimeUnit::Microsecond, zone.clone()))?),
        ArrowType::Decimal32(precision, scale) | ArrowType::Decimal64(precision, scale) => {
            Ok(cast(column, &ArrowType::Decimal128(*precision, *scale))?)
        }
        ArrowType::Decimal256(_, scale) => Ok(cast(column, &ArrowType::Decimal128(38, *scale))?),
        ArrowType::Int8 | ArrowType::UInt8 => Ok(cast(column, &ArrowType::Int16)?),
        ArrowType::UInt16 => Ok(cast(column, &ArrowType::Int32)?),
        ArrowType::UInt32 | ArrowType::UInt64 => Ok(cast(column, &ArrowType::Int64)?),
        ArrowType::Interval(_) | ArrowType::Duration(_) => {
            Ok(cast(column, &ArrowType::Interval(IntervalUnit::MonthDayNano))?)
        }
        ArrowType::Float16 => Ok(cast(column, &ArrowType::Float32)?),
        ArrowType::LargeUtf8 | ArrowType::Utf8View => Ok(cast(column, &ArrowType::Utf8)?),
        ArrowType::BinaryView => Ok(cast(column, &ArrowType::Binary)?),
        _ => Ok(Arc::clone(column)),
    }
}

/// The value at `row` of an array, as a client's column of `wanted` has it.
pub(crate) fn value_at<'a>(
    array: &'a dyn Array,
    row: usize,
    wanted: ColumnType,
) -> Result<Value<'a>> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match array.data_type() {
        ArrowType::Null => Value::Null,
        ArrowType::Boolean => Value::Boolean(array.as_boolean().value(row)),
        ArrowType::Int16 => Value::Int16(array.as_primitive::<arrow::Int16Type>().value(row)),
        ArrowType::Int32 => Value::Int32(array.as_primitive::<arrow::Int32Type>().value(row)),
        ArrowType::Int64 => Value::Int64(array.as_primitive::<arrow::Int64Type>().value(row)),
        ArrowType::Float32 => Value::Float32(array.as_primitive::<arrow::Float32Type>().value(row)),
        ArrowType::Float64 => Value::Float64(array.as_primitive::<arrow::Float64Type>().value(row)),
        ArrowType::Decimal128(_, scale) => {
            decimal(array.as_primitive::<arrow::Decimal128Type>().value(row), *scale)?
        }
        ArrowType::LargeBinary => Value::Numeric(of_bytes(array.as_binary::<i64>().value(row))?),
        ArrowType::Utf8 => text(array.as_string::<i32>().value(row), wanted),
        ArrowType::Binary => Value::from(array.as_binary::<i32>().value(row)),
        ArrowType::FixedSizeBinary(_) => {
            let bytes = array.as_fixed_size_binary().value(row);
            if let Some(address) = address(bytes) {
                address
            } else if let Ok(bytes) = <[u8; 16]>::try_from(bytes) {
                Value::Uuid(Uuid::from_bytes(bytes))
            } else if let Some((_, label)) = enumeration::of_bytes(bytes) {
                Value::from(label)
            } else if let Ok(bytes) = bytes.try_into() {
                Value::TimeTz(TimeTz::from_ordered_bytes(bytes))
            } else {
                Value::from(bytes)
            }
        }
        ArrowType::Date32 => {
            let days = array.as_primitive::<arrow::Date32Type>().value(row);
            if !is_date(days) {
                return Err(QueryError::refused("22008", "date out of range"));
            }
            Value::Date(days)
        }
        ArrowType::Time64(_) => {
            Value::Time(array.as_primitive::<arrow::Time64MicrosecondType>().value(row))
        }
        ArrowType::Timestamp(_, zone) => {
            let micros = array.as_primitive::<arrow::TimestampMicrosecondType>().value(row);
            if !is_timestamp(micros) {
                return Err(timestamp_out_of_range());
            }
            if zone.is_some() { Value::TimestampTz(micros) } else { Value::Timestamp(micros) }
        }
        ArrowType::List(_) | ArrowType::LargeList(_) | ArrowType::FixedSizeList(_, _) => {
            let written = list(array, row)?;
            match wanted {
                // No value of one has a comma or stands in quotes.
                ColumnType::Vector(_) => {
                    Value::from(written.trim_matches(['{', '}']).replace(',', " "))
                }
                _ => Value::from(written),
            }
        }
        ArrowType::Struct(_) => Value::from(fields_at(array, row)?),
        ArrowType::Interval(IntervalUnit::MonthDayNano) => {
            let value = array.as_primitive::<arrow::IntervalMonthDayNanoType>().value(row);
            Value::Interval(of_arrow(value))
        }
        _ => Value::from(displayed(array, row)?),
    })
}

/// An address of a host, a network or a network card.
fn address(bytes: &[u8]) -> Option<Value<'static>> {
    if let Ok(bytes) = bytes.try_into() {
        return Network::from_ordered_bytes(bytes).map(Value::Inet);
    }
    if let Ok(bytes) = bytes.try_into() {
        return Network::from_bytes(bytes).map(Value::Cidr);
    }
    bytes.try_into().ok().map(|bytes| Value::MacAddress(MacAddress(bytes)))
}

fn text(text: &str, wanted: ColumnType) -> Value<'_> {
    match wanted {
        ColumnType::Stored(DataType::Char(bytes)) if text.len() < usize::from(bytes) => {
            Value::from(format!("{text}{}", " ".repeat(usize::from(bytes) - text.len())))
        }
        _ => Value::from(text),
    }
}

fn decimal(unscaled: i128, scale: i8) -> Result<Value<'static>> {
    let small = u32::try_from(scale)
        .ok()
        .and_then(|scale| Decimal::try_from_i128_with_scale(unscaled, scale).ok());
    Ok(match small {
        Some(small) => Value::Decimal(small),
        None => Value::Numeric(Numeric::new(unscaled, i32::from(scale))?),
    })
}

/// An array as PostgreSQL writes it.
fn list(array: &dyn Array, row: usize) -> Result<String> {
    let items = match array.data_type() {
        ArrowType::List(_) => array.as_list::<i32>().value(row),
        ArrowType::LargeList(_) => array.as_list::<i64>().value(row),
        _ => array.as_fixed_size_list().value(row),
    };
    if is_list(items.data_type()) {
        return of_lists(&items);
    }
    let items = readable(&items)?;
    let element = ColumnType::Stored(plain_type(items.data_type()));
    let mut elements = Vec::with_capacity(items.len());
    for index in 0..items.len() {
        elements.push(match value_at(&items, index, element)? {
            Value::Null => None,
            value => Some(written_plainly(&value)),
        });
    }
    Ok(write_array(elements.iter().map(Option::as_deref)))
}

fn is_list(arrow: &ArrowType) -> bool {
    matches!(arrow, ArrowType::List(_) | ArrowType::LargeList(_) | ArrowType::FixedSizeList(_, _))
}

/// An array of arrays, which all have to have as many elements.
fn of_lists(items: &dyn Array) -> Result<String> {
    if let ColumnType::Array(element) = own_type(items.data_type())
        && is_styled(element)
    {
        let message = "an array of arrays in another style of output is not supported";
        return Err(QueryError::refused("0A000", message));
    }
    let mut inside = Vec::with_capacity(items.len());
    for index in 0..items.len() {
        if items.is_null(index) {
            return Err(QueryError::refused("22004", "cannot accumulate null arrays"));
        }
        inside.push(list(items, index)?);
    }
    let shape = |text: &String| shape(text);
    if inside.iter().any(|text| text == "{}") {
        return Err(QueryError::refused("2202E", "cannot accumulate empty arrays"));
    }
    if !inside.windows(2).all(|two| shape(&two[0]) == shape(&two[1])) {
        let message = "cannot accumulate arrays of different dimensionality";
        return Err(QueryError::refused("2202E", message));
    }
    Ok(format!("{{{}}}", inside.join(",")))
}

/// The brackets and commas of an array that are not in its elements.
fn shape(array: &str) -> String {
    let mut shape = String::new();
    let (mut is_quoted, mut is_escaped) = (false, false);
    for character in array.chars() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '{' | '}' | ',' if !is_quoted => shape.push(character),
            _ => {}
        }
    }
    shape
}

/// What the type of an array stands for; of an array of arrays the innermost elements count.
pub(crate) fn own_type(arrow: &ArrowType) -> ColumnType {
    match arrow {
        ArrowType::List(inner)
        | ArrowType::LargeList(inner)
        | ArrowType::FixedSizeList(inner, _) => match own_type(inner.data_type()) {
            ColumnType::Stored(element) | ColumnType::Array(element) => ColumnType::Array(element),
            other => other,
        },
        other => ColumnType::Stored(plain_type(other)),
    }
}

/// A row as PostgreSQL writes it: `(1,,"a b")`.
fn fields_at(array: &dyn Array, row: usize) -> Result<String> {
    let mut text = String::from("(");
    for (number, column) in array.as_struct().columns().iter().enumerate() {
        if number > 0 {
            text.push(',');
        }
        let column = readable(column)?;
        let own = own_type(column.data_type());
        let value = value_at(&column, row, own)?;
        if value.is_null() {
            continue;
        }
        let mut field = String::new();
        write_text_of(&value, own, &mut field)?;
        let is_special = |character: char| {
            matches!(character, '(' | ')' | ',' | '"' | '\\') || character.is_whitespace()
        };
        if field.is_empty() || field.contains(is_special) {
            let field = field.replace('\\', "\\\\").replace('"', "\"\"");
            text.push_str(&format!("\"{field}\""));
        } else {
            text.push_str(&field);
        }
    }
    text.push(')');
    Ok(text)
}

fn displayed(array: &dyn Array, row: usize) -> Result<String> {
    let options = FormatOptions::new().with_duration_format(DurationFormat::Pretty);
    Ok(ArrayFormatter::try_new(array, &options)?.value(row).try_to_string()?)
}

/// A value for Arrow's column of this type; none if it is of another kind.
pub(crate) fn scalar(value: &Value<'_>, column: ColumnType) -> Result<ScalarValue> {
    let field_type = arrow_type(column);
    if value.is_null() {
        return Ok(ScalarValue::try_from(&field_type)?);
    }
    let mut builder = ColumnBuilder::new(column, 1)?;
    builder.append(value)?;
    Ok(ScalarValue::try_from_array(&builder.finish(), 0)?)
}

/// A constant as a value of the engine.
pub(crate) fn of_scalar(scalar: &ScalarValue) -> Result<Value<'static>> {
    let array = scalar.to_array()?;
    let field = arrow::Field::new("constant", array.data_type().clone(), true);
    Ok(value_at(&array, 0, column_type(&field))?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_keeps_all_of_its_digits() {
        let written = |unscaled, scale| decimal(unscaled, scale).map(|value| value.to_string());
        let same = |unscaled, scale, text: &str| {
            assert_eq!(written(unscaled, scale).expect("a numeric"), text);
        };
        same(12_345, 2, "123.45");
        same(-5, -2, "-500");
        same(444_444_444_444_444_444_444_444_444_445, 30, "0.444444444444444444444444444445");
        same(i128::MAX, 0, "170141183460469231731687303715884105727");
    }
}
