//! Arrays in PostgreSQL's binary form; everywhere else here they are text.

use bytes::{BufMut, BytesMut};
use onrush::{DataType, Value};
use onrush_query::style::by_default;
use onrush_query::{read_array, write_array};
use postgres_types::{Kind, Type};

use onrush_query::style::ClientEncoding;

use super::decode::{Rest, binary as from_binary};
use super::{binary, oid_of, read, record, written_plainly};
use crate::error::{Result, SqlError, state};
use crate::schemas;

const MALFORMED: &str = "an array parameter is malformed";

/// The type of arrays of a type.
pub(super) fn type_of(element: DataType) -> Type {
    match element {
        DataType::Boolean => Type::BOOL_ARRAY,
        DataType::Int16 => Type::INT2_ARRAY,
        DataType::Int32 => Type::INT4_ARRAY,
        DataType::Int64 => Type::INT8_ARRAY,
        DataType::Float32 => Type::FLOAT4_ARRAY,
        DataType::Float64 => Type::FLOAT8_ARRAY,
        DataType::Decimal { .. } | DataType::Numeric(_) => Type::NUMERIC_ARRAY,
        DataType::Char(_) => Type::BPCHAR_ARRAY,
        DataType::Varchar(_) => Type::VARCHAR_ARRAY,
        DataType::Text => Type::TEXT_ARRAY,
        DataType::Bytes => Type::BYTEA_ARRAY,
        DataType::Uuid => Type::UUID_ARRAY,
        DataType::Date => Type::DATE_ARRAY,
        DataType::Time => Type::TIME_ARRAY,
        DataType::Timestamp => Type::TIMESTAMP_ARRAY,
        DataType::TimestampTz => Type::TIMESTAMPTZ_ARRAY,
        DataType::Json => Type::JSON_ARRAY,
        DataType::Jsonb => Type::JSONB_ARRAY,
        DataType::Interval => Type::INTERVAL_ARRAY,
        DataType::TimeTz => Type::TIMETZ_ARRAY,
        DataType::Inet => Type::INET_ARRAY,
        DataType::Cidr => Type::CIDR_ARRAY,
        DataType::MacAddress => Type::MACADDR_ARRAY,
        DataType::Name => Type::NAME_ARRAY,
        DataType::Oid => Type::OID_ARRAY,
        DataType::Rounded(clock, _) => type_of(clock.data_type()),
        DataType::Array(element) => type_of(*element),
        DataType::Composite(of) => record::array_of(of),
        DataType::Enum(of) if of.id() == 0 => Type::TEXT_ARRAY,
        DataType::Enum(of) => {
            let (schema, own) = schemas::parts(of.name());
            let kind = Kind::Array(super::type_of(element));
            Type::new(format!("_{own}"), super::enum_oid(of) + 1, kind, schema.to_owned())
        }
    }
}

/// Appends the binary form of an array that is written as text.
pub(super) fn encode(written: &str, element: DataType, out: &mut BytesMut) -> Result<()> {
    let elements = read_array(written)?;
    out.put_i32(i32::from(!elements.is_empty()));
    out.put_i32(i32::from(elements.iter().any(Option::is_none)));
    out.put_u32(oid_of(element));
    if elements.is_empty() {
        return Ok(());
    }
    let too_long = || SqlError::new(state::LIMIT_EXCEEDED, "an array is too long to be sent");
    out.put_i32(i32::try_from(elements.len()).map_err(|_| too_long())?);
    out.put_i32(1); // the number of the first
    for written in elements {
        let at = out.len();
        out.put_i32(-1);
        let Some(written) = written else { continue };
        let value = by_default(|| read(element, &written).map(Value::into_owned))?;
        binary(&value, element.into(), out)?;
        let length = i32::try_from(out.len() - at - 4).map_err(|_| too_long())?;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// An array as it is written in the default style, with elements as a column has them.
pub(super) fn read_elements(written: &str, element: DataType) -> Result<String> {
    let mut elements = Vec::new();
    for text in read_array(written)? {
        elements.push(match text {
            Some(text) => Some(written_plainly(&read(element, &text)?)),
            None => None,
        });
    }
    Ok(write_array(elements.iter().map(Option::as_deref)))
}

/// The text of an array in binary form. `declared` is the type of the elements that the client has
/// told before; the array says it again.
pub(super) fn decode(bytes: &[u8], declared: &Type, encoding: ClientEncoding) -> Result<String> {
    let mut rest = Rest::of(bytes, MALFORMED);
    let dimensions = rest.number()?;
    let (_has_null, element) = (rest.number()?, rest.number()?);
    if element.cast_unsigned() != declared.oid() {
        return Err(malformed());
    }
    if dimensions > 1 {
        return Err(SqlError::not_supported(
            "an array of arrays",
            "Send several parameters, one for each array.",
        ));
    }
    let count = match dimensions {
        0 => 0,
        _ => {
            let (count, _first) = (rest.number()?, rest.number()?);
            usize::try_from(count).map_err(|_| malformed())?
        }
    };
    let mut elements: Vec<Option<String>> = Vec::new();
    for _ in 0..count {
        let Ok(length) = usize::try_from(rest.number()?) else {
            elements.push(None);
            continue;
        };
        let value = from_binary(rest.take(length)?, declared.oid(), encoding)?;
        elements.push(Some(written_plainly(&value)));
    }
    if !rest.is_empty() {
        return Err(malformed());
    }
    Ok(write_array(elements.iter().map(Option::as_deref)))
}

fn malformed() -> SqlError {
    SqlError::new(state::INVALID_BINARY, MALFORMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTF8: ClientEncoding = ClientEncoding::Utf8;

    #[test]
    fn an_array_comes_back_from_its_binary_form() {
        let cases = [
            (DataType::Int32, "{1,NULL,-3}"),
            (DataType::Text, "{a,NULL,\"a b\",\"NULL\",\"\"}"),
            (DataType::Boolean, "{t,f}"),
            (DataType::Uuid, "{01900000-0000-7000-8000-000000000000}"),
            (DataType::TimestampTz, "{\"2026-02-28 12:30:00+00\"}"),
            (DataType::Int64, "{}"),
        ];
        for (element, written) in cases {
            let mut out = BytesMut::new();
            encode(written, element, &mut out).expect("encoded");
            let again = decode(&out, &super::super::type_of(element), UTF8).expect("decoded");
            assert_eq!(again, written);
        }
    }

    #[test]
    fn malformed_arrays_are_errors() {
        let mut out = BytesMut::new();
        encode("{1,2,3}", DataType::Int32, &mut out).expect("encoded");
        for length in 0..out.len() {
            assert!(decode(&out[..length], &Type::INT4, UTF8).is_err(), "{length} bytes");
        }
        assert!(decode(&out, &Type::INT8, UTF8).is_err());
        out.put_u8(0);
        assert!(decode(&out, &Type::INT4, UTF8).is_err());
    }
}
