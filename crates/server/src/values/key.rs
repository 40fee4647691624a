//! Values that rows are looked for by. Nothing is rounded or cut off: what the column of a key cannot
//! have equals no row, and is no error.

use onrush::{DataType, Value};
use onrush_query::ColumnType;
use onrush_types::has_more_characters;

use super::decode::{Wire, binary, decode};
use super::{coerce, column_type_of, numeric, oid_of, read};
use crate::error::Result;

/// The value as a column of `data_type` has it; none if no row equals it.
pub(crate) fn key(value: Value<'_>, data_type: DataType) -> Result<Option<Value<'_>>> {
    if let Some(equal) = numeric::equal(&value, data_type) {
        return Ok(equal);
    }
    if let DataType::Rounded(clock, _) = data_type {
        return Ok(key(value, clock.data_type())?.filter(|value| is_rounded(value, data_type)));
    }
    Ok(match (&value, data_type) {
        (Value::Null, _) => None,
        (Value::Text(text), DataType::Varchar(limit)) if has_more_characters(text, limit) => None,
        // What has bits behind its network is no network.
        (Value::Inet(address), DataType::Cidr) => {
            Some(Value::Cidr(*address)).filter(|_| address.is_network())
        }
        // Blanks at the end do not count.
        (Value::Text(text), DataType::Char(bytes))
            if text.trim_end_matches(' ').len() > usize::from(bytes) =>
        {
            None
        }
        _ => Some(coerce(value, data_type)?),
    })
}

/// As [`key`], of text that has the type of what it is compared with.
pub(crate) fn constant_key(written: &str, data_type: DataType) -> Result<Option<Value<'_>>> {
    match data_type {
        DataType::Decimal { .. } | DataType::Numeric(Some(_)) => {
            key(read(DataType::Numeric(None), written)?, data_type)
        }
        DataType::Char(_) | DataType::Varchar(_) => key(Value::from(written), data_type),
        DataType::Cidr => key(read(DataType::Inet, written)?, data_type),
        DataType::Rounded(clock, _) => {
            let read = read(clock.data_type(), written)?;
            Ok(Some(read).filter(|value| is_rounded(value, data_type)))
        }
        _ => read(data_type, written).map(Some),
    }
}

/// Whether the value has no more digits than the type.
fn is_rounded(value: &Value<'_>, data_type: DataType) -> bool {
    data_type.rounded(value.borrowed()) == *value
}

/// A parameter as a column of type `target` has it; none if no row equals it.
pub(crate) fn decode_key(wire: Wire<'_>, target: DataType) -> Result<Option<Value<'_>>> {
    let own = oid_of(target);
    let oid = if wire.oid == 0 { own } else { wire.oid };
    if matches!(target, DataType::Enum(_) | DataType::Composite(_)) {
        return Ok(Some(decode(wire, target)?));
    }
    if wire.is_binary {
        return key(binary(wire.bytes, oid, wire.encoding)?, target);
    }
    let written = wire.encoding.decode(wire.bytes)?;
    match column_type_of(oid) {
        Some(ColumnType::Stored(declared)) if oid != own => {
            Ok(key(read(declared, &written)?, target)?.map(Value::into_owned))
        }
        _ => Ok(constant_key(&written, target)?.map(Value::into_owned)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_column_cannot_have_equals_no_row() {
        let numeric = DataType::Decimal { precision: 5, scale: 2 };
        let read = |written, data_type| constant_key(written, data_type).expect("no error");
        assert_eq!(read("1.230", numeric), read("1.23", numeric));
        assert_eq!(read("1.235", numeric), None);
        assert_eq!(read("1000", numeric), None);
        assert_eq!(read("abc  ", DataType::Char(3)).map(|key| key.is_null()), Some(false));
        assert_eq!(read("abcd", DataType::Char(3)), None);
        assert_eq!(read("abcd", DataType::Varchar(3)), None);
        assert_eq!(read("äöü", DataType::Varchar(3)).map(|key| key.is_null()), Some(false));
        assert_eq!(key(Value::Int64(1 << 40), DataType::Int32).expect("no error"), None);
        assert_eq!(key(Value::Float64(1.5), DataType::Int32).expect("no error"), None);
        let two = key(Value::Float64(2.0), DataType::Int16).expect("no error");
        assert_eq!(two, Some(Value::Int16(2)));
        assert!(constant_key("2147483648", DataType::Int32).is_err());
    }
}
