//! Functions of bytes: those that DataFusion has of texts only, and those that it does not have.

use std::sync::Arc;

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine};
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::{Result, plan_err};
use datafusion::functions::{core, unicode};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use onrush::{DataType, Value};

use super::SystemFunction;
use super::bytes_text::{of_digits, of_escapes};
use crate::error::QueryError;
use crate::text::read_text;

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let bytes = DataType::Bytes;
    let functions = [
        SystemFunction::fallible("get_byte", DataType::Int32.into(), |given| match given {
            [Value::Bytes(bytes), at] => {
                let Some(at) = at.as_i64() else { return Ok(Value::Null) };
                Ok(Value::Int32(bytes[index(at, bytes.len())?].into()))
            }
            _ => Ok(Value::Null),
        }),
        SystemFunction::fallible("set_byte", bytes.into(), |given| match given {
            [Value::Bytes(bytes), at, to] => {
                let (Some(at), Some(to)) = (at.as_i64(), to.as_i64()) else {
                    return Ok(Value::Null);
                };
                let mut bytes = bytes.to_vec();
                let at = index(at, bytes.len())?;
                bytes[at] = to.to_le_bytes()[0];
                Ok(Value::from(bytes.as_slice()).into_owned())
            }
            _ => Ok(Value::Null),
        }),
        SystemFunction::fallible("get_bit", DataType::Int32.into(), |given| match given {
            [Value::Bytes(bytes), at] => {
                let Some(at) = at.as_i64() else { return Ok(Value::Null) };
                let at = index(at, bytes.len() * 8)?;
                Ok(Value::Int32((bytes[at / 8] >> (at % 8) & 1).into()))
            }
            _ => Ok(Value::Null),
        }),
        SystemFunction::fallible("set_bit", bytes.into(), |given| match given {
            [Value::Bytes(bytes), at, to] => {
                let (Some(at), Some(to)) = (at.as_i64(), to.as_i64()) else {
                    return Ok(Value::Null);
                };
                let mut bytes = bytes.to_vec();
                let at = index(at, bytes.len() * 8)?;
                let bit = 1 << (at % 8);
                match to {
                    0 => bytes[at / 8] &= !bit,
                    1 => bytes[at / 8] |= bit,
                    _ => return Err(QueryError::refused("22023", "new bit must be 0 or 1")),
                }
                Ok(Value::from(bytes.as_slice()).into_owned())
            }
            _ => Ok(Value::Null),
        }),
        SystemFunction::new("bit_count", DataType::Int64.into(), |given| match given {
            [Value::Bytes(bytes)] => {
                Value::Int64(bytes.iter().map(|byte| i64::from(byte.count_ones())).sum())
            }
            _ => Value::Null,
        }),
        SystemFunction::new("float4send", bytes.into(), |given| match given {
            [Value::Float32(number)] => Value::from(&number.to_be_bytes()[..]).into_owned(),
            _ => Value::Null,
        }),
        SystemFunction::new("float8send", bytes.into(), |given| match given {
            [Value::Float64(number)] => Value::from(&number.to_be_bytes()[..]).into_owned(),
            _ => Value::Null,
        }),
        SystemFunction::fallible("chr", DataType::Text.into(), |given| {
            let Some(code) = given.first().and_then(Value::as_i64) else { return Ok(Value::Null) };
            if code == 0 {
                return Err(QueryError::refused("54000", "null character not permitted"));
            }
            let found = u32::try_from(code).ok().and_then(char::from_u32);
            let message = || format!("requested character not valid for encoding: {code}");
            let found = found.ok_or_else(|| QueryError::refused("54000", message()))?;
            Ok(found.to_string().into())
        }),
        SystemFunction::fallible("encode", DataType::Text.into(), |given| {
            let (bytes, form) = match given {
                [Value::Bytes(bytes), Value::Text(form)] => (bytes.to_vec(), form),
                // A constant in quotes.
                [Value::Text(text), Value::Text(form)] => match read_text(DataType::Bytes, text)? {
                    Value::Bytes(bytes) => (bytes.into_owned(), form),
                    _ => return Ok(Value::Null),
                },
                _ => return Ok(Value::Null),
            };
            Ok(match form.to_lowercase().as_str() {
                "hex" => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
                "base64" => base64(&bytes),
                "escape" => escaped(&bytes),
                _ => {
                    let message = format!("unrecognized encoding: \"{form}\"");
                    return Err(QueryError::refused("22023", message));
                }
            }
            .into())
        }),
        SystemFunction::fallible("decode", bytes.into(), |given| match given {
            [Value::Text(text), Value::Text(form)] => Ok(Value::from(decoded(text, form)?)),
            _ => Ok(Value::Null),
        }),
        SystemFunction::fallible("convert_to", bytes.into(), |given| match given {
            [Value::Text(text), Value::Text(encoding)] => {
                check_encoding(encoding)?;
                Ok(Value::from(text.as_bytes()).into_owned())
            }
            _ => Ok(Value::Null),
        }),
        SystemFunction::fallible("convert_from", DataType::Text.into(), |given| match given {
            [Value::Bytes(bytes), Value::Text(encoding)] => {
                check_encoding(encoding)?;
                match std::str::from_utf8(bytes) {
                    Ok(text) if !text.contains('\0') => Ok(text.to_owned().into()),
                    _ => {
                        let message = "invalid byte sequence for encoding \"UTF8\"";
                        Err(QueryError::refused("22021", message))
                    }
                }
            }
            _ => Ok(Value::Null),
        }),
    ];
    let mut all: Vec<_> =
        functions.into_iter().map(|function| function.immutable().into_udf()).collect();
    let integers = [ArrowType::Int64, ArrowType::Int64];
    all.extend([
        of_both(unicode::substr(), DataType::Bytes, part, {
            let [from, count] = integers.clone();
            vec![None, Some(from), Some(count)]
        }),
        of_both(unicode::strpos(), DataType::Int32, position, vec![None, None]),
        of_both(core::overlay(), DataType::Bytes, replaced, {
            let [from, count] = integers;
            vec![None, None, Some(from), Some(count)]
        }),
    ]);
    all
}

/// Characters of a line of base64.
const LINE: usize = 76;

/// Base64 in lines, the last four characters filled up.
fn base64(bytes: &[u8]) -> String {
    let digits = STANDARD.encode(bytes).into_bytes();
    let lines: Vec<&[u8]> = digits.chunks(LINE).collect();
    lines.join(&b'\n').into_iter().map(char::from).collect()
}

/// The bytes that a text stands for in one of the forms of `encode`.
fn decoded(text: &str, form: &str) -> crate::Result<Vec<u8>> {
    match form.to_lowercase().as_str() {
        "hex" => of_digits(text),
        "escape" => of_escapes(text),
        "base64" => {
            let is_space = |character: char| matches!(character, ' ' | '\t' | '\n' | '\r');
            let digits: String = text.chars().filter(|letter| !is_space(*letter)).collect();
            STANDARD.decode(&digits).map_err(|error| {
                let message = match error {
                    DecodeError::InvalidByte(at, _) if !digits[at..].starts_with('=') => {
                        let letter = digits[at..].chars().next().unwrap_or_default();
                        format!("invalid symbol \"{letter}\" found while decoding base64 sequence")
                    }
                    _ => "invalid base64 end sequence".to_owned(),
                };
                QueryError::refused("22023", message)
            })
        }
        _ => {
            let message = format!("unrecognized encoding: \"{form}\"");
            Err(QueryError::refused("22023", message))
        }
    }
}

/// Bytes that are no character of ASCII by their octal numbers.
pub(super) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            0 | 128.. => text.push_str(&format!("\\{byte:03o}")),
            other => text.push(char::from(*other)),
        }
    }
    text
}

/// The same as values are shown: what is not seen on paper by its number, too.
pub(crate) fn shown_escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            32..=126 => text.push(char::from(*byte)),
            other => text.push_str(&format!("\\{other:03o}")),
        }
    }
    text
}

fn index(at: i64, length: usize) -> crate::Result<usize> {
    let found = usize::try_from(at).ok().filter(|at| *at < length);
    found.ok_or_else(|| {
        let last = i64::try_from(length).unwrap_or(i64::MAX) - 1;
        QueryError::refused("2202E", format!("index {at} out of valid range, 0..{last}"))
    })
}

/// All texts are of one encoding.
fn check_encoding(name: &str) -> crate::Result<()> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    if matches!(plain.to_lowercase().as_str(), "utf8" | "unicode") {
        return Ok(());
    }
    let message = format!("the encoding {name} is not supported");
    Err(QueryError::NotSupported { message })
}

/// A function of texts that DataFusion has, and of bytes.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextOrBytes {
    of_text: Arc<ScalarUDF>,
    of_bytes: SystemFunction,
    /// The types of its arguments; none for what is text or bytes.
    arguments: Vec<Option<ArrowType>>,
    signature: Signature,
}

fn of_both(
    of_text: Arc<ScalarUDF>,
    returns: DataType,
    of_bytes: fn(&[Value<'_>]) -> crate::Result<Value<'static>>,
    arguments: Vec<Option<ArrowType>>,
) -> Arc<ScalarUDF> {
    let of_bytes = SystemFunction::fallible("of_bytes", returns.into(), of_bytes);
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(TextOrBytes { of_text, of_bytes, arguments, signature }))
}

impl ScalarUDFImpl for TextOrBytes {
    fn name(&self) -> &str {
        self.of_text.name()
    }

    fn aliases(&self) -> &[String] {
        self.of_text.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[ArrowType]) -> Result<Vec<ArrowType>> {
        if given.len() < 2 || given.len() > self.arguments.len() {
            return plan_err!("No function matches {} of {given:?}", self.name());
        }
        let are_bytes = given.contains(&ArrowType::Binary);
        let own = |(given, wanted): (&ArrowType, &Option<ArrowType>)| match (given, wanted) {
            (ArrowType::Binary, None) => Ok(ArrowType::Binary),
            (ArrowType::Null, None) if are_bytes => Ok(ArrowType::Binary),
            (ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View, None) if !are_bytes => {
                Ok(given.clone())
            }
            (ArrowType::Null, None) => Ok(ArrowType::Utf8),
            (given, Some(wanted)) if given.is_integer() || given.is_null() => Ok(wanted.clone()),
            _ => plan_err!("No function matches {} of {given}", self.name()),
        };
        given.iter().zip(&self.arguments).map(own).collect()
    }

    fn return_type(&self, given: &[ArrowType]) -> Result<ArrowType> {
        match given.first() {
            Some(ArrowType::Binary) => self.of_bytes.return_type(given),
            _ => self.of_text.return_type(given),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match args.arg_fields.first().map(|field| field.data_type()) {
            Some(ArrowType::Binary) => self.of_bytes.return_field_from_args(args),
            _ => self.of_text.return_field_from_args(args),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.first().map(ColumnarValue::data_type) {
            Some(ArrowType::Binary) => self.of_bytes.invoke_with_args(args),
            _ => self.of_text.invoke_with_args(args),
        }
    }
}

/// The bytes from a place on, counted from 1; `count` of them.
fn range(length: usize, from: i64, count: Option<i64>) -> crate::Result<(usize, usize)> {
    if count.is_some_and(|count| count < 0) {
        return Err(QueryError::refused("22011", "negative substring length not allowed"));
    }
    let end = count.map_or(i64::MAX, |count| from.saturating_add(count));
    let clamp = |at: i64| usize::try_from(at.saturating_sub(1)).unwrap_or(0).min(length);
    Ok((clamp(from), clamp(end).max(clamp(from))))
}

fn part(given: &[Value<'_>]) -> crate::Result<Value<'static>> {
    let [Value::Bytes(bytes), numbers @ ..] = given else { return Ok(Value::Null) };
    let numbers: Option<Vec<i64>> = numbers.iter().map(Value::as_i64).collect();
    let Some([from, count @ ..]) = numbers.as_deref() else { return Ok(Value::Null) };
    let (from, end) = range(bytes.len(), *from, count.first().copied())?;
    Ok(Value::from(&bytes[from..end]).into_owned())
}

fn position(given: &[Value<'_>]) -> crate::Result<Value<'static>> {
    let [Value::Bytes(whole), Value::Bytes(part)] = given else { return Ok(Value::Null) };
    let found = match part.is_empty() {
        true => Some(0),
        false => whole.windows(part.len()).position(|window| *window == **part),
    };
    let found = found.map_or(0, |at| at + 1);
    Ok(i32::try_from(found).map_or(Value::Null, Value::Int32))
}

/// `overlay(bytes PLACING others FROM place FOR count)`.
fn replaced(given: &[Value<'_>]) -> crate::Result<Value<'static>> {
    let [Value::Bytes(bytes), Value::Bytes(new), numbers @ ..] = given else {
        return Ok(Value::Null);
    };
    let numbers: Option<Vec<i64>> = numbers.iter().map(Value::as_i64).collect();
    let Some([from, count @ ..]) = numbers.as_deref() else { return Ok(Value::Null) };
    if *from < 1 {
        return Err(QueryError::refused("22011", "negative substring length not allowed"));
    }
    let length = i64::try_from(new.len()).unwrap_or(i64::MAX);
    let end = from.saturating_add(count.first().copied().unwrap_or(length));
    let (before, _) = range(bytes.len(), *from, Some(0))?;
    let (after, _) = range(bytes.len(), end, Some(0))?;
    let parts = [&bytes[..before], new.as_ref(), &bytes[after..]];
    Ok(Value::from(parts.concat().as_slice()).into_owned())
}
