//! From a tree and a row to a value. Recursive, no deeper than the tree is; texts are borrowed from the row
//! and from the tree as long as nothing is made of them.

use std::borrow::Cow;
use std::cmp::Ordering;

use thiserror::Error;

use super::function::Function;
use super::number::{self, Rounding};
use super::tree::{Comparison, Kind, Node, Operation, Truth};
use super::{field, random, strings, timestamp};
use crate::convert::length_without_blanks;
use crate::{RowView, TypeError, Value};

/// Why an expression comes to nothing, in PostgreSQL's words.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// A division by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A number that its type does not hold.
    #[error("{0}")]
    OutOfRange(&'static str),
    /// A date or timestamp that there is none, or that nothing can be subtracted from.
    #[error("{0}")]
    TimestampOutOfRange(&'static str),
    /// A part of a text with fewer than no characters.
    #[error("negative substring length not allowed: {0}")]
    NegativeLength(i32),
    /// A pattern of LIKE that ends in the middle.
    #[error("LIKE pattern must not end with escape character")]
    BadPattern,
    /// The row, or the expression, is not what it should be.
    #[error(transparent)]
    Type(#[from] TypeError),
}

/// A value of another kind than its node says; see invariant 1 of the module.
#[cold]
pub(super) fn mismatch() -> EvaluationError {
    let reason = "an expression came to a value of another type";
    EvaluationError::Type(TypeError::DefinitionDamaged { at: 0, reason })
}

/// What an expression is evaluated over.
#[derive(Clone, Copy)]
pub(super) struct Input<'r> {
    /// None for a default, which is of no row.
    pub(super) row: Option<RowView<'r>>,
    pub(super) now_micros: i64,
}

type Outcome<'r> = Result<Value<'r>, EvaluationError>;

impl Node {
    pub(super) fn value<'r>(&'r self, input: &Input<'r>) -> Outcome<'r> {
        let operands = &*self.operands;
        match (&self.operation, operands) {
            (Operation::Column(_, position), _) => match &input.row {
                Some(row) => Ok(row.column(usize::from(*position))?),
                None => Err(mismatch()),
            },
            (Operation::Constant(_, value), _) => Ok(value.borrowed()),
            (Operation::Compare(comparison), [left, right]) => {
                let (kind, left, right) = (left.kind, left.value(input)?, right.value(input)?);
                if left.is_null() || right.is_null() {
                    return Ok(Value::Null);
                }
                Ok(Value::Boolean(comparison.holds(compare(kind, &left, &right))))
            }
            (Operation::Distinct, _) => self.is_distinct(input).map(Value::Boolean),
            (Operation::NotDistinct, _) => self.is_distinct(input).map(|is| Value::Boolean(!is)),
            (Operation::Arithmetic(arithmetic), [left, right]) => {
                let (left, right) = (left.value(input)?, right.value(input)?);
                if left.is_null() || right.is_null() {
                    return Ok(Value::Null);
                }
                number::arithmetic(*arithmetic, self.kind, &left, &right)
            }
            (Operation::Negate, [operand]) => match operand.value(input)? {
                Value::Null => Ok(Value::Null),
                value => number::negate(self.kind, &value),
            },
            (Operation::And, _) => all(operands, input, true),
            (Operation::Or, _) => all(operands, input, false),
            (Operation::Not, [operand]) => match operand.value(input)? {
                Value::Boolean(value) => Ok(Value::Boolean(!value)),
                _ => Ok(Value::Null),
            },
            (Operation::Is(truth), [operand]) => {
                Ok(Value::Boolean(truth.holds(&operand.value(input)?)))
            }
            (Operation::Case, _) => self.case(input),
            (Operation::Coalesce, _) => {
                for operand in operands {
                    let value = operand.value(input)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(Value::Null)
            }
            (Operation::NullIf, [left, right]) => {
                let (kind, left, right) = (left.kind, left.value(input)?, right.value(input)?);
                let is_equal = !left.is_null() && !right.is_null();
                match is_equal && compare(kind, &left, &right).is_eq() {
                    true => Ok(Value::Null),
                    false => Ok(left),
                }
            }
            (Operation::Greatest, _) => self.extreme(input, Ordering::Greater),
            (Operation::Least, _) => self.extreme(input, Ordering::Less),
            (Operation::Cast(to, digits), [operand]) => {
                cast(operand.kind, *to, *digits, operand.value(input)?)
            }
            (Operation::Shift(by), [operand]) => match operand.value(input)? {
                Value::Null => Ok(Value::Null),
                value => timestamp::shifted(&value, *by),
            },
            (Operation::Matches(pattern), [operand]) => match operand.value(input)? {
                Value::Null => Ok(Value::Null),
                Value::Text(text) => Ok(Value::Boolean(pattern.is_match(&text))),
                _ => Err(mismatch()),
            },
            (Operation::Extract(wanted), [operand]) => match operand.value(input)? {
                Value::Null => Ok(Value::Null),
                value => field::extracted(*wanted, &value),
            },
            (Operation::Truncate(wanted), [operand]) => match operand.value(input)? {
                Value::Null => Ok(Value::Null),
                value => field::truncated(*wanted, &value),
            },
            (Operation::Call(function), _) => self.call(*function, input),
            _ => Err(mismatch()),
        }
    }

    fn is_distinct(&self, input: &Input<'_>) -> Result<bool, EvaluationError> {
        let [left, right] = &*self.operands else { return Err(mismatch()) };
        let (kind, left, right) = (left.kind, left.value(input)?, right.value(input)?);
        Ok(match (left.is_null(), right.is_null()) {
            (false, false) => compare(kind, &left, &right).is_ne(),
            (left, right) => left != right,
        })
    }

    fn case<'r>(&'r self, input: &Input<'r>) -> Outcome<'r> {
        let (pairs, otherwise) = self.operands.as_chunks::<2>();
        for [condition, value] in pairs {
            if condition.value(input)? == Value::Boolean(true) {
                return value.value(input);
            }
        }
        otherwise.first().map_or(Ok(Value::Null), |otherwise| otherwise.value(input))
    }

    /// The greatest or the least of the operands that are not NULL.
    fn extreme<'r>(&'r self, input: &Input<'r>, wanted: Ordering) -> Outcome<'r> {
        let mut found = Value::Null;
        for operand in &*self.operands {
            let value = operand.value(input)?;
            if found.is_null() || (!value.is_null() && compare(self.kind, &value, &found) == wanted)
            {
                found = value;
            }
        }
        Ok(found)
    }

    fn call<'r>(&'r self, function: Function, input: &Input<'r>) -> Outcome<'r> {
        match function {
            Function::Now => return Ok(Value::TimestampTz(input.now_micros)),
            Function::Random => {
                // As many bits as a float has digits for.
                let bits = (random::bits()? >> (128 - 53)) as f64;
                return Ok(Value::Float64(bits / (1u64 << 53) as f64));
            }
            Function::RandomUuid => {
                let uuid = uuid::Builder::from_random_bytes(random::bits()?.to_ne_bytes());
                return Ok(Value::Uuid(uuid.into_uuid()));
            }
            _ => {}
        }
        let mut operands = self.operands.iter();
        let mut next = || match operands.next() {
            Some(operand) => operand.value(input).map(Some),
            None => Ok(None),
        };
        // Of no function are there more.
        let arguments = [next()?, next()?, next()?];
        if arguments.contains(&Some(Value::Null)) {
            return Ok(Value::Null);
        }
        let [Some(first), second, third] = arguments else { return Err(mismatch()) };
        match first {
            Value::Text(text) => of_text(function, text, (second, third)),
            Value::Bytes(bytes) => length(bytes.len()),
            number => of_number(function, self.kind, &number, second),
        }
    }
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl Truth {
    fn holds(self, value: &Value<'_>) -> bool {
        match self {
            Truth::Null => value.is_null(),
            Truth::NotNull => !value.is_null(),
            Truth::True => *value == Value::Boolean(true),
            Truth::NotTrue => *value != Value::Boolean(true),
            Truth::False => *value == Value::Boolean(false),
            Truth::NotFalse => *value != Value::Boolean(false),
        }
    }
}

/// Two values of one kind, or two exact numbers.
fn compare(kind: Kind, left: &Value<'_>, right: &Value<'_>) -> Ordering {
    match (kind, left, right) {
        (Kind::Char, Value::Text(left), Value::Text(right)) => {
            without_blanks(left).as_bytes().cmp(without_blanks(right).as_bytes())
        }
        _ => left.total_cmp(right),
    }
}

fn without_blanks(text: &str) -> &str {
    &text[..length_without_blanks(text.as_bytes())]
}

/// AND where `neutral` is true, else OR: the first that is not `neutral` decides, and NULL only where none does.
fn all<'r>(operands: &'r [Node], input: &Input<'r>, neutral: bool) -> Outcome<'r> {
    let mut outcome = Value::Boolean(neutral);
    for operand in operands {
        match operand.value(input)? {
            Value::Boolean(value) if value != neutral => return Ok(Value::Boolean(value)),
            Value::Boolean(_) => {}
            _ => outcome = Value::Null,
        }
    }
    Ok(outcome)
}

fn cast(from: Kind, to: Kind, digits: Option<(u8, u8)>, value: Value<'_>) -> Outcome<'_> {
    Ok(match (value, to) {
        (Value::Null, _) => Value::Null,
        (Value::Text(Cow::Borrowed(text)), Kind::Text) if from == Kind::Char => {
            Value::Text(Cow::Borrowed(without_blanks(text)))
        }
        (Value::Text(Cow::Owned(text)), Kind::Text) if from == Kind::Char => {
            Value::from(without_blanks(&text).to_owned())
        }
        (value, _) if from == to && digits.is_none() => value,
        (Value::Boolean(value), Kind::Int32) => Value::Int32(i32::from(value)),
        (Value::Int32(value), Kind::Boolean) => Value::Boolean(value != 0),
        (value, Kind::Text) => Value::from(value.to_string()),
        (value, _) if to.is_any_number() => number::cast(&value, to, digits)?,
        (value, _) => timestamp::cast(&value, to)?,
    })
}

/// Lengths in rows are far below what the type holds.
fn length(length: usize) -> Outcome<'static> {
    let too_long = EvaluationError::OutOfRange("integer out of range");
    i32::try_from(length).map(Value::Int32).map_err(|_| too_long)
}

fn of_text<'r>(
    function: Function,
    text: Cow<'r, str>,
    (second, third): (Option<Value<'r>>, Option<Value<'r>>),
) -> Outcome<'r> {
    let other = || second.as_ref().and_then(Value::as_str).ok_or_else(mismatch);
    let trimmed = |text, at_start, at_end| {
        let of = match &second {
            Some(of) => of.as_str().ok_or_else(mismatch)?,
            None => " ",
        };
        Ok(Value::Text(strings::trimmed(text, of, at_start, at_end)))
    };
    let count = || match &second {
        Some(Value::Int32(count)) => Ok(*count),
        _ => Err(mismatch()),
    };
    match function {
        Function::Length => length(text.chars().count()),
        Function::OctetLength => length(text.len()),
        Function::Lower => Ok(Value::from(text.to_lowercase())),
        Function::Upper => Ok(Value::from(text.to_uppercase())),
        Function::Trim => trimmed(text, true, true),
        Function::TrimStart => trimmed(text, true, false),
        Function::TrimEnd => trimmed(text, false, true),
        Function::Left => Ok(Value::Text(strings::left(text, count()?))),
        Function::Right => Ok(Value::Text(strings::right(text, count()?))),
        Function::Substring => {
            let length = match third {
                None => None,
                Some(Value::Int32(length)) => Some(length),
                Some(_) => return Err(mismatch()),
            };
            Ok(Value::Text(strings::substring(text, count()?, length)?))
        }
        Function::Position => Ok(Value::Int32(strings::position(&text, other()?))),
        Function::StartsWith => Ok(Value::Boolean(text.starts_with(other()?))),
        Function::Concatenate => Ok(Value::from(text.into_owned() + other()?)),
        Function::Like => Ok(Value::Boolean(strings::is_like(&text, other()?)?)),
        Function::LikeIgnoringCase => {
            let (text, pattern) = (text.to_lowercase(), other()?.to_lowercase());
            Ok(Value::Boolean(strings::is_like(&text, &pattern)?))
        }
        _ => Err(mismatch()),
    }
}

fn of_number<'r>(
    function: Function,
    kind: Kind,
    number: &Value<'_>,
    digits: Option<Value<'_>>,
) -> Outcome<'r> {
    let digits = match digits {
        None => 0,
        Some(Value::Int32(digits)) => digits,
        Some(_) => return Err(mismatch()),
    };
    match function {
        Function::Absolute => number::absolute(kind, number),
        Function::Sign => number::sign(number),
        Function::Round => number::round(Rounding::Nearest, number, digits),
        Function::Truncate => number::round(Rounding::TowardsZero, number, digits),
        Function::Ceiling => number::round(Rounding::Up, number, digits),
        Function::Floor => number::round(Rounding::Down, number, digits),
        _ => Err(mismatch()),
    }
}
