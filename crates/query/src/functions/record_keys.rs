//! What records are compared by: bytes that are ordered as PostgreSQL orders records, field by field, NULL behind all
//! else, and equal where it takes two for equal.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, BinaryBuilder};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use onrush::{CompositeType, DataType, Value};

use super::jsonb_keys::push_whole;
use super::type_name;
use crate::array::read_array;
use crate::error::QueryError;
use crate::style::by_default;
use crate::text::read_text;

/// In front of a value, and in the place of NULL. An array ends with the first.
const END: u8 = 0;
const VALUE: u8 = 1;
const NULL: u8 = 2;

/// The key of a record of a type.
pub(crate) fn record_key_of(value: Expr, of: CompositeType) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    let function = Arc::new(ScalarUDF::new_from_impl(RecordKey { of, signature }));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![value]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RecordKey {
    of: CompositeType,
    signature: Signature,
}

impl ScalarUDFImpl for RecordKey {
    fn name(&self) -> &str {
        "record_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Binary)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [given] = args.args.as_slice() else {
            return internal_err!("a key is of one value");
        };
        let given = given.to_array(args.number_rows)?;
        let mut keys = BinaryBuilder::with_capacity(given.len(), given.len() * 16);
        if *given.data_type() == ArrowType::Null {
            keys.append_nulls(given.len());
            return Ok(ColumnarValue::Array(Arc::new(keys.finish())));
        }
        let Some(records) = given.as_string_opt::<i32>() else {
            return internal_err!("a key of a record is of something else");
        };
        let mut key = Vec::new();
        for record in records {
            key.clear();
            record.map(|record| push_record(self.of, record, &mut key)).transpose()?;
            keys.append_option(record.map(|_| &key));
        }
        Ok(ColumnarValue::Array(Arc::new(keys.finish())))
    }
}

fn push_record(of: CompositeType, record: &str, key: &mut Vec<u8>) -> crate::Result<()> {
    let none = |_| QueryError::Internal { message: "a record is none of its type".to_owned() };
    let fields = of.read(record).map_err(none)?;
    for ((_, data_type), field) in of.fields().iter().zip(&fields) {
        push_field(*data_type, field.as_deref(), key)?;
    }
    Ok(())
}

fn push_field(data_type: DataType, text: Option<&str>, key: &mut Vec<u8>) -> crate::Result<()> {
    let Some(text) = text else {
        key.push(NULL);
        return Ok(());
    };
    key.push(VALUE);
    match data_type {
        DataType::Composite(of) => push_record(of, text, key),
        DataType::Array(element) => {
            for item in read_array(text)? {
                push_field(*element, item.as_deref(), key)?;
            }
            key.push(END);
            Ok(())
        }
        DataType::Json => {
            let own = type_name(data_type.into());
            let message = format!("could not identify an equality operator for type {own}");
            Err(QueryError::refused("42883", message))
        }
        DataType::Jsonb => {
            let mut own = Vec::new();
            push_whole(text, &mut own)?;
            push_bytes(&own, key);
            Ok(())
        }
        DataType::Enum(of) => {
            key.extend_from_slice(&of.code(text).unwrap_or_default().to_be_bytes());
            Ok(())
        }
        DataType::Char(_) => {
            push_bytes(text.trim_end_matches(' ').as_bytes(), key);
            Ok(())
        }
        other => {
            push_value(&by_default(|| read_text(other, text).map(Value::into_owned))?, key);
            Ok(())
        }
    }
}

fn push_value(value: &Value<'_>, key: &mut Vec<u8>) {
    match value {
        Value::Boolean(value) => key.push(u8::from(*value)),
        Value::Int16(number) => push_number(i64::from(*number), key),
        Value::Int32(number) => push_number(i64::from(*number), key),
        Value::Int64(number) => push_number(*number, key),
        Value::Date(days) => push_number(i64::from(*days), key),
        Value::Time(micros) | Value::Timestamp(micros) | Value::TimestampTz(micros) => {
            push_number(*micros, key);
        }
        Value::Float32(number) => push_float(f64::from(*number), key),
        Value::Float64(number) => push_float(*number, key),
        Value::Interval(interval) => {
            let span = interval.span_micros().cast_unsigned() ^ (1 << 127);
            key.extend_from_slice(&span.to_be_bytes());
        }
        Value::Bytes(bytes) => push_bytes(bytes, key),
        Value::Uuid(uuid) => key.extend_from_slice(uuid.as_bytes()),
        Value::TimeTz(time) => key.extend_from_slice(&time.to_ordered_bytes()),
        Value::Inet(address) | Value::Cidr(address) => {
            key.extend_from_slice(&address.to_ordered_bytes());
        }
        Value::MacAddress(address) => key.extend_from_slice(&address.0),
        Value::Text(text) => push_bytes(text.as_bytes(), key),
        other => {
            if let Some(number) = other.as_numeric() {
                number.write_key(key);
            }
        }
    }
}

fn push_number(number: i64, key: &mut Vec<u8>) {
    key.extend_from_slice(&(number.cast_unsigned() ^ (1 << 63)).to_be_bytes());
}

/// In the order of PostgreSQL: NaN is above all numbers and equal to itself, and both zeros are one.
fn push_float(number: f64, key: &mut Vec<u8>) {
    let bits = match number {
        _ if number.is_nan() => u64::MAX,
        0.0 => 1 << 63,
        _ if number.is_sign_negative() => !number.to_bits(),
        _ => number.to_bits() | 1 << 63,
    };
    key.extend_from_slice(&bits.to_be_bytes());
}

/// Bytes of any length and their end, which is below every byte.
fn push_bytes(bytes: &[u8], key: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            0 => key.extend_from_slice(&[0, 1]),
            other => key.push(*other),
        }
    }
    key.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(of: CompositeType, record: &str) -> Vec<u8> {
        let mut key = Vec::new();
        push_record(of, record, &mut key).expect(record);
        key
    }

    #[test]
    fn records_are_ordered_field_by_field() {
        let numbers = DataType::Int32.array().expect("a type");
        let types = [DataType::Int32, DataType::Text, DataType::Float64, numbers];
        let of = CompositeType::anonymous(types).expect("few");
        let ascending = [
            "(-2,b,1,{})",
            "(1,\"\",1,{})",
            "(1,a,-Infinity,{})",
            "(1,a,-1,{})",
            "(1,a,0,{})",
            "(1,a,0,{1})",
            "(1,a,0,\"{1,2}\")",
            "(1,a,0,{2})",
            "(1,a,0,{NULL})",
            "(1,a,2,{})",
            "(1,a,NaN,{})",
            "(1,a,,{})",
            "(1,ab,1,{})",
            "(1,,1,{})",
            "(2,a,1,{})",
            "(,a,1,{})",
        ];
        let keys: Vec<Vec<u8>> = ascending.iter().map(|record| key(of, record)).collect();
        assert!(keys.is_sorted_by(|one, next| one < next));
    }

    #[test]
    fn what_is_equal_has_one_key() {
        let of =
            CompositeType::anonymous([DataType::Numeric(None), DataType::Float64, DataType::Jsonb])
                .expect("few");
        assert_eq!(
            key(of, "(1.0,0,\"{\"\"a\"\": 1.0}\")"),
            key(of, "(1.00,-0,\"{\"\"a\"\": 1}\")")
        );
    }
}
