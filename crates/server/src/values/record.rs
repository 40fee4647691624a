//! Records in PostgreSQL's binary form; everywhere else here they are text.

use bytes::{BufMut, BytesMut};
use onrush::{CompositeType, DataType, Value};
use onrush_query::style::{ClientEncoding, by_default};
use onrush_types::write_record;
use postgres_types::{Field, Kind, Type};

use super::decode::{Rest, Wire, decode as decode_value};
use super::{binary, oid_of, read, type_of as wire_type_of, written_plainly};
use crate::catalog::oid_of as oid_of_table;
use crate::error::{Result, SqlError, state};
use crate::schemas;

/// A composite type as clients are told it.
pub(super) fn type_of(of: CompositeType) -> Type {
    if of.is_anonymous() {
        return Type::RECORD;
    }
    let (schema, own) = schemas::parts(of.name());
    let field = |(name, data_type): &(Box<str>, DataType)| {
        Field::new(name.to_string(), wire_type_of(*data_type))
    };
    let kind = Kind::Composite(of.fields().iter().map(field).collect());
    Type::new(own.to_owned(), oid_of_table(of.id()), kind, schema.to_owned())
}

/// The type of arrays of it.
pub(super) fn array_of(of: CompositeType) -> Type {
    if of.is_anonymous() {
        return Type::RECORD_ARRAY;
    }
    let (schema, own) = schemas::parts(of.name());
    let number = oid_of_table(of.id()) + 1;
    Type::new(format!("_{own}"), number, Kind::Array(type_of(of)), schema.to_owned())
}

/// Appends the binary form of a record that is written as text.
pub(super) fn encode(written: &str, of: CompositeType, out: &mut BytesMut) -> Result<()> {
    let too_long = || SqlError::new(state::LIMIT_EXCEEDED, "a record is too long to be sent");
    let none = |_| SqlError::new(state::INTERNAL, "a record is none of its type");
    let fields = of.read(written).map_err(none)?;
    out.put_i32(i32::try_from(fields.len()).map_err(|_| too_long())?);
    for ((_, data_type), field) in of.fields().iter().zip(&fields) {
        out.put_u32(oid_of(*data_type));
        let at = out.len();
        out.put_i32(-1);
        let Some(field) = field else { continue };
        let value = by_default(|| read(*data_type, field).map(Value::into_owned))?;
        binary(&value, (*data_type).into(), out)?;
        let length = i32::try_from(out.len() - at - 4).map_err(|_| too_long())?;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// The text of a record in binary form. Each field says of which type it is.
pub(super) fn decode(bytes: &[u8], of: CompositeType, encoding: ClientEncoding) -> Result<String> {
    let malformed = || SqlError::new(state::INVALID_BINARY, "a record parameter is malformed");
    let mut rest = Rest::of(bytes, "a record parameter is malformed");
    if usize::try_from(rest.number()?) != Ok(of.fields().len()) {
        let message = "a record parameter has another number of columns than its type";
        return Err(SqlError::new(state::DATATYPE_MISMATCH, message));
    }
    let mut fields: Vec<Option<String>> = Vec::new();
    for (_, data_type) in of.fields() {
        let oid = rest.number()?.cast_unsigned();
        let Ok(length) = usize::try_from(rest.number()?) else {
            fields.push(None);
            continue;
        };
        let wire = Wire { bytes: rest.take(length)?, is_binary: true, oid, encoding };
        fields.push(Some(written_plainly(&decode_value(wire, *data_type)?)));
    }
    match rest.is_empty() {
        true => Ok(write_record(fields.iter().map(Option::as_deref))),
        false => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTF8: ClientEncoding = ClientEncoding::Utf8;

    fn pair() -> CompositeType {
        let inner = vec![("flag".into(), DataType::Boolean)];
        let inner = DataType::Composite(CompositeType::new(900_001, "inner", inner));
        let types = [DataType::Int32, DataType::Text, DataType::TimestampTz, inner];
        let fields = types.into_iter().enumerate().map(|(at, of)| (format!("f{at}").into(), of));
        CompositeType::new(900_002, "pair", fields.collect())
    }

    #[test]
    fn a_record_comes_back_from_its_binary_form() {
        for written in
            ["(1,\"a b\",\"2026-02-28 12:30:00+00\",\"(t)\")", "(,,,)", "(-7,\"\",,\"(f)\")"]
        {
            let mut out = BytesMut::new();
            encode(written, pair(), &mut out).expect("encoded");
            assert_eq!(decode(&out, pair(), UTF8).expect("decoded"), written);
        }
    }

    #[test]
    fn malformed_records_are_errors() {
        let mut out = BytesMut::new();
        encode("(1,a,,\"(t)\")", pair(), &mut out).expect("encoded");
        for length in 0..out.len() {
            assert!(decode(&out[..length], pair(), UTF8).is_err(), "{length} bytes");
        }
        out.put_u8(0);
        assert!(decode(&out, pair(), UTF8).is_err());
    }
}
