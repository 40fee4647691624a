//! What values of jsonb are compared by: bytes that are ordered as PostgreSQL orders jsonb, and equal where it takes
//! two for equal, `1.0` and `1`.
//!
//! An empty array comes first, then what is no array and no object, then arrays and objects, the shorter ones before
//! the longer; inside of them null, texts, numbers, booleans, arrays, objects.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, AsArray, BinaryBuilder};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use onrush::Numeric;
use serde_json::value::RawValue;

use super::json_rows::{Members, check_depth, not_json, read};
use crate::error::QueryError;

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(JsonbKey { signature }))
});

/// The key of a value of jsonb.
pub(crate) fn jsonb_key_of(value: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&FUNCTION), vec![value]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonbKey {
    signature: Signature,
}

impl ScalarUDFImpl for JsonbKey {
    fn name(&self) -> &str {
        "jsonb_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[ArrowType]) -> Result<ArrowType> {
        match given {
            [ArrowType::Utf8 | ArrowType::Null] => Ok(ArrowType::Binary),
            _ => {
                let message = "operator does not exist: jsonb beside another type".to_owned();
                Err(QueryError::UnknownFunction { message }.into())
            }
        }
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
        let Some(texts) = given.as_string_opt::<i32>() else {
            return internal_err!("a key of jsonb is of something else");
        };
        let mut key = Vec::new();
        for text in texts {
            key.clear();
            text.map(|text| push_whole(text, &mut key)).transpose()?;
            keys.append_option(text.map(|_| &key));
        }
        Ok(ColumnarValue::Array(Arc::new(keys.finish())))
    }
}

const NULL: u8 = 1;
const TEXT: u8 = 2;
const NUMBER: u8 = 3;
const FALSE: u8 = 4;
const TRUE: u8 = 5;
const ARRAY: u8 = 6;
const OBJECT: u8 = 7;

/// What is neither an array nor an object is one element, in front of the arrays of one.
pub(super) fn push_whole(json: &str, key: &mut Vec<u8>) -> Result<(), QueryError> {
    check_depth(json)?;
    let json: &RawValue = read(json)?;
    if json.get().starts_with(['[', '{']) {
        return push(json, key, 1);
    }
    key.push(ARRAY);
    push_count(1, key);
    key.push(0);
    push(json, key, 0)
}

/// `mark` stands behind the number of elements of a whole array, and is 1.
fn push(json: &RawValue, key: &mut Vec<u8>, mark: u8) -> Result<(), QueryError> {
    let written = json.get();
    match written.as_bytes().first() {
        Some(b'{') => {
            let Members(members) = read(written)?;
            key.push(OBJECT);
            push_count(members.len(), key);
            for (name, member) in &members {
                push_text(name, key);
                push(member, key, 0)?;
            }
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = read(written)?;
            key.push(ARRAY);
            push_count(items.len(), key);
            key.extend((mark > 0).then_some(mark));
            for item in items {
                push(item, key, 0)?;
            }
        }
        Some(b'"') => {
            let text: String = read(written)?;
            key.push(TEXT);
            push_text(&text, key);
        }
        Some(b't') => key.push(TRUE),
        Some(b'f') => key.push(FALSE),
        Some(b'n') => key.push(NULL),
        _ => {
            key.push(NUMBER);
            let number: Numeric = written.parse().map_err(|_| not_json())?;
            number.write_key(key);
        }
    }
    Ok(())
}

fn push_count(count: usize, key: &mut Vec<u8>) {
    key.extend_from_slice(&(count as u64).to_be_bytes());
}

/// No text is the beginning of another one: a zero byte ends it. Jsonb has none of its own in texts.
fn push_text(text: &str, key: &mut Vec<u8>) {
    key.extend_from_slice(text.as_bytes());
    key.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(json: &str) -> Vec<u8> {
        let mut key = Vec::new();
        push_whole(json, &mut key).expect("jsonb");
        key
    }

    #[test]
    fn keys_are_ordered_as_postgresql_orders_jsonb() {
        let ordered = [
            "[]",
            "null",
            r#""a""#,
            r#""a\tb""#,
            r#""ab""#,
            "-1.5",
            "9",
            "10",
            "false",
            "true",
            "[null]",
            r#"["b"]"#,
            "[2]",
            "[true]",
            "[[]]",
            "[[1]]",
            "[{}]",
            "[1, 2]",
            "[1, 3]",
            "{}",
            r#"{"a": 1}"#,
            r#"{"a": "x", "b": 1}"#,
            r#"{"a": 2, "b": 1}"#,
            r#"{"b": 0, "aa": 1}"#,
        ];
        for pair in ordered.windows(2) {
            assert!(key(pair[0]) < key(pair[1]), "{} < {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn numbers_are_equal_whatever_their_digits() {
        assert_eq!(key(r#"{"a": [1.0, 1e2]}"#), key(r#"{"a": [1, 100]}"#));
        assert_ne!(key("1"), key("[1]"));
    }
}
