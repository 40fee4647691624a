//! Casts to types of the system's catalogue: `oid`, `"char"` and `name[]`.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Value};

use super::system::SystemFunction;
use crate::error::QueryError;
use crate::types::ColumnType;

/// A number as an `oid`.
pub(crate) const OID_OF: &str = "oid_of";
/// A text, or the number of a byte, as a `"char"`.
pub(crate) const CHAR_OF: &str = "char_of";
/// Texts as names.
pub(crate) const NAMES_OF: &str = "names_of";

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let functions = [
        SystemFunction::fallible(OID_OF, DataType::Oid.into(), |given| match given {
            // The same 32 bits.
            [Value::Int16(number)] => {
                Ok(Value::Int64(i64::from(i32::from(*number).cast_unsigned())))
            }
            [Value::Int32(number)] => Ok(Value::Int64(i64::from(number.cast_unsigned()))),
            [Value::Int64(number)] => match u32::try_from(*number) {
                Ok(_) => Ok(Value::Int64(*number)),
                Err(_) => Err(QueryError::refused("22003", "OID out of range")),
            },
            _ => Ok(Value::Null),
        }),
        SystemFunction::fallible(CHAR_OF, ColumnType::Char, |given| match given {
            [Value::Text(text)] => Ok(character(byte_of(text)).into()),
            [number] if let Some(number) = number.as_i64() => match i8::try_from(number) {
                Ok(byte) => Ok(character(byte.cast_unsigned()).into()),
                Err(_) => Err(QueryError::refused("22003", "\"char\" out of range")),
            },
            _ => Ok(Value::Null),
        }),
        // Elements that are too long are cut where the array is put together.
        SystemFunction::new(NAMES_OF, ColumnType::Array(DataType::Name), |given| match given {
            [Value::Text(array)] => array.clone().into_owned().into(),
            _ => Value::Null,
        }),
    ];
    functions.into_iter().map(|function| function.immutable().into_udf()).collect()
}

/// The byte that a text stands for: that of a backslash with three octal digits, or its first.
fn byte_of(text: &str) -> u8 {
    let octal = text.strip_prefix('\\').filter(|digits| digits.len() == 3);
    let byte = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
    byte.unwrap_or_else(|| text.bytes().next().unwrap_or_default())
}

/// A byte as it is shown; none of zero.
fn character(byte: u8) -> String {
    match byte {
        0 => String::new(),
        1..128 => char::from(byte).to_string(),
        128.. => format!("\\{byte:03o}"),
    }
}
