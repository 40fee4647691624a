//! A typed expression as bytes. All numbers little-endian.
//!
//! ```text
//! u8     version: 1
//! node   the outermost:
//!   u8   operation: 1 column, 2 constant, 3 comparison, 4 IS DISTINCT FROM, 5 IS NOT DISTINCT FROM,
//!        6 arithmetic, 7 unary minus, 8 AND, 9 OR, 10 NOT, 11 IS, 12 CASE, 13 COALESCE, 14 NULLIF,
//!        15 GREATEST, 16 LEAST, 17 cast, 18 cast to a decimal of so many digits, 19 interval added,
//!        20 function, 21 regular expression, 22 extract, 23 date_trunc
//!        column: u8 kind, u16 number
//!        constant: u8 kind, u8 1 and the value, or 0 for NULL
//!        comparison: u8 (1 =, 2 <>, 3 <, 4 <=, 5 >, 6 >=); arithmetic: u8 (1 +, 2 -, 3 *, 4 /, 5 %)
//!        IS: u8 (1 NULL, 2 NOT NULL, 3 TRUE, 4 NOT TRUE, 5 FALSE, 6 NOT FALSE)
//!        cast: u8 kind; to a decimal: u8 precision, u8 scale
//!        interval: i32 months, i32 days, i64 microseconds
//!        function: u8, its position in the list of functions, from 1
//!        regular expression: u8 (1 where case does not count, else 0), u16 length, its text
//!        extract, date_trunc: u8 field (1 year, 2 quarter, 3 month, 4 week, 5 day, 6 hour, 7 minute,
//!        8 second, 9 milliseconds, 10 microseconds, 11 dow, 12 isodow, 13 doy, 14 isoyear, 15 epoch)
//!   u16  number of operands (none for column and constant), then each: a node
//! ```
//!
//! Kinds have the numbers 1 boolean, 2 to 4 integers of 16, 32 and 64 bits, 5 and 6 floats of 32 and 64,
//! 7 decimal, 8 char, 9 text, 10 bytes, 11 uuid, 12 date, 13 time, 14 timestamp, 15 timestamptz, 16 JSON, 17 interval,
//! 18 timetz.
//! Values: a boolean as u8; numbers, days and microseconds in their width; a decimal as i128 and u8, the
//! digits after the point; texts and bytes with their u16 length in front; an interval and a timetz as in a row.

use rust_decimal::Decimal;
use uuid::Uuid;

use super::field::Field;
use super::function::Function;
use super::pattern::Pattern;
use super::tree::{Arithmetic, Comparison, Kind, Node, Operation, Truth, TypedExpression};
use super::{DEPTH_MAX, FORM_BYTES_MAX};
use crate::{Interval, Numeric, TimeTz, Value};

const VERSION: u8 = 1;

const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];
const ARITHMETICS: [Arithmetic; 5] = [
    Arithmetic::Add,
    Arithmetic::Subtract,
    Arithmetic::Multiply,
    Arithmetic::Divide,
    Arithmetic::Remainder,
];
const TRUTHS: [Truth; 6] =
    [Truth::Null, Truth::NotNull, Truth::True, Truth::NotTrue, Truth::False, Truth::NotFalse];

impl TypedExpression {
    /// The expression's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        push_node(&self.0, &mut out);
        out
    }

    /// Reads an expression back.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<TypedExpression, &'static str> {
        if bytes.len() > FORM_BYTES_MAX {
            return Err("an expression is too long");
        }
        let mut input = Bytes(bytes);
        if input.u8()? != VERSION {
            return Err("an expression is of a version that is not known");
        }
        let node = read_node(&mut input, 0)?;
        match input.0 {
            [] => Ok(TypedExpression(node)),
            _ => Err("bytes are left over behind an expression"),
        }
    }
}

/// The position of a thing in the list of its kind, from 1.
fn number_in<T: PartialEq>(all: &[T], one: &T) -> u8 {
    // The lists are short.
    all.iter().position(|other| other == one).map_or(0, |at| at as u8 + 1)
}

fn at_number<T: Copy>(all: &[T], number: u8) -> Result<T, &'static str> {
    let at = usize::from(number).checked_sub(1);
    at.and_then(|at| all.get(at)).copied().ok_or("a part of an expression is not known")
}

fn push_node(node: &Node, out: &mut Vec<u8>) {
    match &node.operation {
        Operation::Column(kind, number) => {
            out.extend_from_slice(&[1, number_in(&Kind::ALL, kind)]);
            out.extend_from_slice(&number.to_le_bytes());
            return;
        }
        Operation::Constant(kind, value) => {
            out.extend_from_slice(&[2, number_in(&Kind::ALL, kind)]);
            push_value(value, out);
            return;
        }
        Operation::Compare(comparison) => {
            out.extend_from_slice(&[3, number_in(&COMPARISONS, comparison)]);
        }
        Operation::Distinct => out.push(4),
        Operation::NotDistinct => out.push(5),
        Operation::Arithmetic(arithmetic) => {
            out.extend_from_slice(&[6, number_in(&ARITHMETICS, arithmetic)]);
        }
        Operation::Negate => out.push(7),
        Operation::And => out.push(8),
        Operation::Or => out.push(9),
        Operation::Not => out.push(10),
        Operation::Is(truth) => out.extend_from_slice(&[11, number_in(&TRUTHS, truth)]),
        Operation::Case => out.push(12),
        Operation::Coalesce => out.push(13),
        Operation::NullIf => out.push(14),
        Operation::Greatest => out.push(15),
        Operation::Least => out.push(16),
        Operation::Cast(kind, None) => {
            out.extend_from_slice(&[17, number_in(&Kind::ALL, kind)]);
        }
        Operation::Cast(_, Some((precision, scale))) => {
            out.extend_from_slice(&[18, *precision, *scale]);
        }
        Operation::Shift(interval) => {
            out.push(19);
            out.extend_from_slice(&interval.months.to_le_bytes());
            out.extend_from_slice(&interval.days.to_le_bytes());
            out.extend_from_slice(&interval.micros.to_le_bytes());
        }
        Operation::Call(function) => {
            out.extend_from_slice(&[20, number_in(&Function::ALL, function)]);
        }
        Operation::Matches(pattern) => {
            out.extend_from_slice(&[21, u8::from(pattern.is_ignoring_case())]);
            push_short(pattern.as_str().as_bytes(), out);
        }
        Operation::Extract(field) => {
            out.extend_from_slice(&[22, number_in(&Field::ALL, field)]);
        }
        Operation::Truncate(field) => {
            out.extend_from_slice(&[23, number_in(&Field::ALL, field)]);
        }
    }
    // Limited by the length of the whole.
    out.extend_from_slice(&(node.operands.len() as u16).to_le_bytes());
    node.operands.iter().for_each(|operand| push_node(operand, out));
}

fn push_value(value: &Value<'_>, out: &mut Vec<u8>) {
    out.push(u8::from(!value.is_null()));
    match value {
        Value::Null | Value::Default => {}
        Value::Boolean(value) => out.push(u8::from(*value)),
        Value::Int16(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::Int32(value) | Value::Date(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::Int64(value)
        | Value::Time(value)
        | Value::Timestamp(value)
        | Value::TimestampTz(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::TimeTz(value) => out.extend_from_slice(&value.to_ordered_bytes()),
        Value::Interval(value) => out.extend_from_slice(&value.to_bytes()),
        Value::Float32(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::Float64(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::Decimal(value) => {
            out.extend_from_slice(&value.mantissa().to_le_bytes());
            // At most 28.
            out.push(value.scale() as u8);
        }
        Value::Text(text) => push_short(text.as_bytes(), out),
        Value::Bytes(bytes) => push_short(bytes, out),
        // No expression has one.
        Value::Inet(_) | Value::Cidr(_) | Value::MacAddress(_) => {}
        Value::Numeric(value) => push_short(&value.to_bytes(), out),
        Value::Uuid(value) => out.extend_from_slice(value.as_bytes()),
    }
}

/// What is longer than the whole may be is refused by its length, whatever is written here.
fn push_short(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("an expression ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        self.take(N)?.try_into().map_err(|_| "an expression ends too early")
    }

    fn u8(&mut self) -> Result<u8, &'static str> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, &'static str> {
        self.array().map(u16::from_le_bytes)
    }

    fn flag(&mut self) -> Result<bool, &'static str> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err("a flag of an expression is neither 0 nor 1"),
        }
    }

    fn short(&mut self) -> Result<&'b [u8], &'static str> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }

    fn kind(&mut self) -> Result<Kind, &'static str> {
        at_number(&Kind::ALL, self.u8()?)
    }
}

fn read_node(input: &mut Bytes<'_>, depth: usize) -> Result<Node, &'static str> {
    if depth >= DEPTH_MAX {
        return Err("an expression is nested too deeply");
    }
    let operation = read_operation(input)?;
    let mut operands = Vec::new();
    if !matches!(operation, Operation::Column(..) | Operation::Constant(..)) {
        for _ in 0..input.u16()? {
            operands.push(read_node(input, depth + 1)?);
        }
    }
    Node::new(operation, operands)
}

fn read_operation(input: &mut Bytes<'_>) -> Result<Operation, &'static str> {
    Ok(match input.u8()? {
        1 => Operation::Column(input.kind()?, input.u16()?),
        2 => {
            let kind = input.kind()?;
            Operation::Constant(kind, read_value(kind, input)?)
        }
        3 => Operation::Compare(at_number(&COMPARISONS, input.u8()?)?),
        4 => Operation::Distinct,
        5 => Operation::NotDistinct,
        6 => Operation::Arithmetic(at_number(&ARITHMETICS, input.u8()?)?),
        7 => Operation::Negate,
        8 => Operation::And,
        9 => Operation::Or,
        10 => Operation::Not,
        11 => Operation::Is(at_number(&TRUTHS, input.u8()?)?),
        12 => Operation::Case,
        13 => Operation::Coalesce,
        14 => Operation::NullIf,
        15 => Operation::Greatest,
        16 => Operation::Least,
        17 => Operation::Cast(input.kind()?, None),
        18 => Operation::Cast(Kind::Decimal, Some((input.u8()?, input.u8()?))),
        19 => Operation::Shift(Interval {
            months: i32::from_le_bytes(input.array()?),
            days: i32::from_le_bytes(input.array()?),
            micros: i64::from_le_bytes(input.array()?),
        }),
        20 => Operation::Call(at_number(&Function::ALL, input.u8()?)?),
        21 => {
            let is_ignoring_case = input.flag()?;
            let written = std::str::from_utf8(input.short()?);
            let written = written.map_err(|_| "a regular expression is not UTF-8")?;
            Operation::Matches(Pattern::new(written, is_ignoring_case)?)
        }
        22 => Operation::Extract(at_number(&Field::ALL, input.u8()?)?),
        23 => Operation::Truncate(at_number(&Field::ALL, input.u8()?)?),
        _ => return Err("an operation of an expression is not known"),
    })
}

fn read_value(kind: Kind, input: &mut Bytes<'_>) -> Result<Value<'static>, &'static str> {
    if !input.flag()? {
        return Ok(Value::Null);
    }
    Ok(match kind {
        Kind::Boolean => Value::Boolean(input.flag()?),
        Kind::Int16 => Value::Int16(i16::from_le_bytes(input.array()?)),
        Kind::Int32 => Value::Int32(i32::from_le_bytes(input.array()?)),
        Kind::Int64 => Value::Int64(i64::from_le_bytes(input.array()?)),
        Kind::Float32 => Value::Float32(f32::from_le_bytes(input.array()?)),
        Kind::Float64 => Value::Float64(f64::from_le_bytes(input.array()?)),
        Kind::Decimal => {
            let (units, scale) = (i128::from_le_bytes(input.array()?), input.u8()?);
            let value = Decimal::try_from_i128_with_scale(units, u32::from(scale));
            Value::Decimal(value.map_err(|_| "a decimal of an expression has too many digits")?)
        }
        Kind::Char | Kind::Text => {
            let text = std::str::from_utf8(input.short()?);
            Value::from(text.map_err(|_| "a text of an expression is not UTF-8")?.to_owned())
        }
        Kind::Bytes => Value::from(input.short()?.to_vec()),
        Kind::Uuid => Value::Uuid(Uuid::from_bytes(input.array()?)),
        Kind::Date => Value::Date(i32::from_le_bytes(input.array()?)),
        Kind::Time => Value::Time(i64::from_le_bytes(input.array()?)),
        Kind::Timestamp => Value::Timestamp(i64::from_le_bytes(input.array()?)),
        Kind::TimestampTz => Value::TimestampTz(i64::from_le_bytes(input.array()?)),
        Kind::Json => return Err("an expression has a constant of JSON"),
        Kind::Opaque => {
            return Err("an expression has a constant of labels, an array or an address");
        }
        Kind::TimeTz => Value::TimeTz(TimeTz::from_ordered_bytes(input.array()?)),
        Kind::Interval => Value::Interval(Interval::from_bytes(input.array()?)),
        Kind::Numeric => Value::Numeric(Numeric::read(input.short()?)?),
    })
}
