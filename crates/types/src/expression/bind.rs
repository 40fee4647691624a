//! Gives every part of an expression its type, by the rules of PostgreSQL: what stands beside a text or a
//! NULL gives it its type, numbers become the more general one, and a day becomes a timestamp. Every cast is
//! written down. What PostgreSQL would resolve in a way that is not known here is refused.

use std::borrow::Cow;

use rust_decimal::Decimal;

use super::DEPTH_MAX;
use super::function::Function;
use super::number;
use super::syntax::{Expression, Syntax};
use super::tree::{Arithmetic, Kind, Node, Operation, Truth, TypedExpression, is_cast};
use crate::{DataType, TableDefinition, TypeError, Value, text};

type Result<T> = std::result::Result<T, TypeError>;

#[cold]
pub(super) fn refused(reason: impl Into<Cow<'static, str>>) -> TypeError {
    TypeError::Expression { reason: reason.into().into() }
}

/// A part of which the type may not be known yet.
enum Operand<'e> {
    Typed(Node),
    Text(&'e str),
    Null,
}

pub(super) fn bound(
    expression: &Expression,
    table: Option<&TableDefinition>,
) -> Result<TypedExpression> {
    let node = match (Binder { table }).operand(expression, 0)? {
        Operand::Typed(node) => node,
        untyped => typed_as(untyped, Kind::Text)?,
    };
    let bound = TypedExpression(node);
    if bound.to_bytes().len() > super::FORM_BYTES_MAX {
        return Err(refused("it is too long"));
    }
    Ok(bound)
}

/// The value as one of a column of this type: what PostgreSQL casts by itself when it assigns.
pub(super) fn assigned(node: Node, data_type: DataType) -> Result<Node> {
    let to = Kind::of(data_type);
    let is_number = node.kind.is_any_number() && to.is_number();
    match (node.kind, to, data_type) {
        (Kind::Decimal, _, DataType::Decimal { precision, scale }) => {
            cast(node, Kind::Decimal, Some((precision, scale)))
        }
        (Kind::Text, Kind::Char, _) => Ok(node),
        (from, Kind::Numeric, _) if from.is_exact() => Ok(node),
        (from, Kind::Char, _) if from != Kind::Char => cast(node, Kind::Text, None),
        (Kind::Int32, Kind::Boolean, _) | (Kind::Boolean, Kind::Int32, _) => {
            Err(refused("it is cast only where a cast is written"))
        }
        (_, _, DataType::Decimal { precision, scale }) if is_number => {
            cast(node, Kind::Decimal, Some((precision, scale)))
        }
        _ => cast(node, to, None),
    }
}

fn node(operation: Operation, operands: Vec<Node>) -> Result<Node> {
    Node::new(operation, operands).map_err(refused)
}

fn cast(operand: Node, to: Kind, digits: Option<(u8, u8)>) -> Result<Node> {
    if operand.kind == to && digits.is_none() {
        return Ok(operand);
    }
    node(Operation::Cast(to, digits), vec![operand])
}

/// Only what loses nothing.
fn widened(operand: Node, to: Kind) -> Result<Node> {
    match operand.operation {
        Operation::Constant(_, Value::Null) => Ok(Node::constant(to, Value::Null)),
        _ => cast(operand, to, None),
    }
}

fn typed_as(operand: Operand<'_>, kind: Kind) -> Result<Node> {
    match operand {
        Operand::Typed(node) => Ok(node),
        Operand::Null => Ok(Node::constant(kind, Value::Null)),
        Operand::Text(written) => Ok(Node::constant(kind, read(written, kind)?)),
    }
}

fn read(written: &str, kind: Kind) -> Result<Value<'static>> {
    let data_type = match kind {
        Kind::Decimal => {
            let value = Decimal::from_str_exact(written.trim());
            return value.map(Value::Decimal).map_err(|error| refused(error.to_string()));
        }
        Kind::Char | Kind::Text => return Ok(Value::from(written.to_owned())),
        Kind::Boolean => DataType::Boolean,
        Kind::Int16 => DataType::Int16,
        Kind::Int32 => DataType::Int32,
        Kind::Int64 => DataType::Int64,
        Kind::Float32 => DataType::Float32,
        Kind::Float64 => DataType::Float64,
        Kind::Bytes => DataType::Bytes,
        Kind::Uuid => DataType::Uuid,
        Kind::Date => DataType::Date,
        Kind::Time => DataType::Time,
        Kind::Timestamp => DataType::Timestamp,
        Kind::TimestampTz => DataType::TimestampTz,
        Kind::Json => return Err(refused("JSON is not compared")),
        Kind::Opaque => return Err(refused("labels, arrays and addresses are not compared here")),
        Kind::Interval => DataType::Interval,
        Kind::Numeric => DataType::Numeric(None),
        Kind::TimeTz => DataType::TimeTz,
    };
    Ok(text::parse(data_type, written)?.into_owned())
}

struct Binder<'t> {
    table: Option<&'t TableDefinition>,
}

impl Binder<'_> {
    fn operand<'e>(&self, expression: &'e Expression, depth: usize) -> Result<Operand<'e>> {
        if depth >= DEPTH_MAX {
            return Err(refused("it is nested too deeply"));
        }
        let (operation, operands) = match &expression.0 {
            Syntax::Column(name) => return self.column(name).map(Operand::Typed),
            Syntax::Value(Value::Null) => return Ok(Operand::Null),
            Syntax::Value(Value::Text(text)) => return Ok(Operand::Text(text)),
            Syntax::Value(value) => {
                let kind = Kind::of_value(value).ok_or_else(|| refused("DEFAULT is no value"))?;
                return Ok(Operand::Typed(Node::constant(kind, value.clone())));
            }
            Syntax::Apply(operation, operands) => (operation, operands),
        };
        let operands = operands.iter().map(|operand| self.operand(operand, depth + 1));
        applied(operation, operands.collect::<Result<_>>()?).map(Operand::Typed)
    }

    fn column(&self, name: &str) -> Result<Node> {
        let table = self.table.ok_or_else(|| refused("a default looks at no column"))?;
        let column = table.shown_column_index(name)?;
        let number = table.column_number(column);
        let number = u16::try_from(number).map_err(|_| refused("there are too many columns"))?;
        let kind = Kind::of(table.columns()[column].data_type);
        node(Operation::Column(kind, number), Vec::new())
    }
}

fn wrong() -> TypeError {
    refused("an operation has more or fewer operands than it takes")
}

fn two(operands: Vec<Operand<'_>>) -> Result<(Operand<'_>, Operand<'_>)> {
    match <[Operand<'_>; 2]>::try_from(operands) {
        Ok([left, right]) => Ok((left, right)),
        Err(_) => Err(wrong()),
    }
}

fn applied(operation: &Operation, mut operands: Vec<Operand<'_>>) -> Result<Node> {
    let made = match operation {
        Operation::Compare(_) | Operation::Distinct | Operation::NotDistinct => {
            let (left, right) = two(operands)?;
            let (left, right) = comparable(left, right)?;
            vec![left, right]
        }
        Operation::NullIf => {
            let (left, right) = two(operands)?;
            let (left, right) = comparable(left, right)?;
            match (left.kind, right.kind) {
                // The operator compares decimals, so it comes to one.
                (from, Kind::Decimal) if from.is_whole() => {
                    vec![cast(left, Kind::Decimal, None)?, right]
                }
                _ => vec![left, right],
            }
        }
        Operation::Arithmetic(arithmetic) => {
            let (left, right) = two(operands)?;
            return arithmetic_of(*arithmetic, left, right);
        }
        Operation::Negate => match operands.pop() {
            Some(Operand::Typed(operand)) if operands.is_empty() => match &operand.operation {
                Operation::Constant(kind, value) if !value.is_null() && kind.is_any_number() => {
                    let value = number::negate(*kind, value);
                    let value = value.map_err(|error| refused(error.to_string()))?;
                    return Ok(Node::constant(*kind, value));
                }
                _ => vec![operand],
            },
            _ => return Err(wrong()),
        },
        Operation::And | Operation::Or | Operation::Not => all_as(operands, Kind::Boolean)?,
        Operation::Is(Truth::Null | Truth::NotNull) => all_as(operands, Kind::Text)?,
        Operation::Is(_) => all_as(operands, Kind::Boolean)?,
        Operation::Case => case(operands)?,
        Operation::Coalesce | Operation::Greatest | Operation::Least => common(operands)?,
        // Which would cut off, or fill up.
        Operation::Cast(Kind::Char, _) => {
            return Err(refused("a cast to a text of limited length, or to many digits"));
        }
        Operation::Cast(to, digits) => {
            let operand = operands.pop().ok_or_else(wrong)?;
            return match (kind_of(&operand), to, digits) {
                // To a number of any size, which it is.
                (Some(Kind::Numeric), Kind::Decimal, None) => typed_as(operand, Kind::Numeric),
                _ => cast(typed_as(operand, *to)?, *to, *digits),
            };
        }
        Operation::Shift(_) => match operands.pop() {
            Some(Operand::Typed(timestamp)) if timestamp.kind == Kind::Date => {
                vec![cast(timestamp, Kind::Timestamp, None)?]
            }
            Some(Operand::Typed(timestamp)) => vec![timestamp],
            _ => return Err(wrong()),
        },
        Operation::Matches(_) => match operands.pop() {
            Some(operand) if operands.is_empty() => {
                let text = typed_as(operand, Kind::Text)?;
                // PostgreSQL matches a char(n) with the blanks at its end.
                vec![text]
            }
            _ => return Err(wrong()),
        },
        // A day would become a timestamp with time zone, as PostgreSQL prefers that.
        Operation::Truncate(_) | Operation::Extract(_) => match operands.pop() {
            Some(Operand::Typed(timestamp)) => vec![timestamp],
            _ => return Err(refused("a timestamp whose type is not known")),
        },
        Operation::Call(function) => arguments(*function, operands)?,
        Operation::Column(..) | Operation::Constant(..) => return Err(wrong()),
    };
    node(operation.clone(), made)
}

fn all_as(operands: Vec<Operand<'_>>, kind: Kind) -> Result<Vec<Node>> {
    operands.into_iter().map(|operand| typed_as(operand, kind)).collect()
}

fn kind_of(operand: &Operand<'_>) -> Option<Kind> {
    match operand {
        Operand::Typed(node) => Some(node.kind),
        _ => None,
    }
}

fn comparable(left: Operand<'_>, right: Operand<'_>) -> Result<(Node, Node)> {
    let kind = kind_of(&left).or_else(|| kind_of(&right)).unwrap_or(Kind::Text);
    let (left, right) = (typed_as(left, kind)?, typed_as(right, kind)?);
    let both = |kind| -> Result<(Node, Node)> {
        Ok((widened(left.clone(), kind)?, widened(right.clone(), kind)?))
    };
    match (left.kind, right.kind) {
        (one, other) if one == other || (one.is_exact() && other.is_exact()) => Ok((left, right)),
        (Kind::Numeric, other) | (other, Kind::Numeric) if other.is_exact() => both(Kind::Numeric),
        (one, other) if one.is_any_number() && other.is_any_number() => both(Kind::Float64),
        (Kind::Char, Kind::Text) | (Kind::Text, Kind::Char) => both(Kind::Text),
        (Kind::Date, Kind::Timestamp) | (Kind::Timestamp, Kind::Date) => both(Kind::Timestamp),
        _ => Err(refused("values of two types that are not compared")),
    }
}

fn arithmetic_of(arithmetic: Arithmetic, left: Operand<'_>, right: Operand<'_>) -> Result<Node> {
    let known = kind_of(&left).or_else(|| kind_of(&right));
    let untyped = kind_of(&left).is_none() || kind_of(&right).is_none();
    let Some(kind) = known.filter(|kind| !untyped || kind.is_any_number()) else {
        return Err(refused("an operand whose type is not known"));
    };
    let (left, right) = (typed_as(left, kind)?, typed_as(right, kind)?);
    let operation = Operation::Arithmetic(arithmetic);
    let operands = match (left.kind, right.kind) {
        (one, other) if one.is_whole() && other.is_whole() => vec![left, right],
        (one, other) if one.is_exact() && other.is_exact() => {
            vec![widened(left, Kind::Decimal)?, widened(right, Kind::Decimal)?]
        }
        (Kind::Float32, Kind::Float32) => vec![left, right],
        (Kind::Numeric, other) | (other, Kind::Numeric) if !other.is_float() => {
            vec![widened(left, Kind::Numeric)?, widened(right, Kind::Numeric)?]
        }
        (one, other) if one.is_any_number() && other.is_any_number() => {
            vec![widened(left, Kind::Float64)?, widened(right, Kind::Float64)?]
        }
        (Kind::Date, Kind::Int16 | Kind::Int32) => vec![left, widened(right, Kind::Int32)?],
        (Kind::Int16 | Kind::Int32, Kind::Date) if arithmetic == Arithmetic::Add => {
            vec![right, widened(left, Kind::Int32)?]
        }
        _ => vec![left, right],
    };
    node(operation, operands)
}

/// The values of a CASE get one type, its conditions are booleans.
fn case(operands: Vec<Operand<'_>>) -> Result<Vec<Node>> {
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    let count = operands.len();
    for (position, operand) in operands.into_iter().enumerate() {
        if position % 2 == 0 && position + 1 < count {
            conditions.push(typed_as(operand, Kind::Boolean)?);
        } else {
            values.push(operand);
        }
    }
    let mut values = common(values)?.into_iter();
    let mut made = Vec::with_capacity(count);
    for condition in conditions {
        made.push(condition);
        made.extend(values.next());
    }
    made.extend(values);
    Ok(made)
}

/// All as the one type that they have in common.
fn common(operands: Vec<Operand<'_>>) -> Result<Vec<Node>> {
    const NUMBERS: [Kind; 7] = [
        Kind::Int16,
        Kind::Int32,
        Kind::Int64,
        Kind::Decimal,
        Kind::Numeric,
        Kind::Float32,
        Kind::Float64,
    ];
    let rank = |kind: Kind| NUMBERS.iter().position(|number| *number == kind);
    let mut found: Option<Kind> = None;
    for kind in operands.iter().filter_map(kind_of) {
        found = Some(match found {
            None => kind,
            Some(found) if found == kind => kind,
            Some(found) if found.is_any_number() && kind.is_any_number() => {
                if rank(found) < rank(kind) { kind } else { found }
            }
            Some(Kind::Date | Kind::Timestamp) if matches!(kind, Kind::Date | Kind::Timestamp) => {
                Kind::Timestamp
            }
            Some(_) => return Err(refused("values of types that have none in common")),
        });
    }
    let kind = found.unwrap_or(Kind::Text);
    operands.into_iter().map(|operand| widened(typed_as(operand, kind)?, kind)).collect()
}

fn arguments(function: Function, operands: Vec<Operand<'_>>) -> Result<Vec<Node>> {
    let Some(parameters) = function.parameters() else {
        return numbers(function, operands);
    };
    if operands.len() > parameters.len() {
        return Err(refused("a function has more arguments than it takes"));
    }
    let is_like = matches!(function, Function::Like | Function::LikeIgnoringCase);
    let is_text =
        |operand: &Operand<'_>| matches!(kind_of(operand), None | Some(Kind::Text | Kind::Char));
    let is_joined = function == Function::Concatenate && operands.iter().any(is_text);
    let mut made = Vec::with_capacity(operands.len());
    for (operand, parameter) in operands.into_iter().zip(parameters) {
        let operand = typed_as(operand, *parameter)?;
        made.push(match (operand.kind, parameter) {
            (Kind::Char, Kind::Text) if is_like => {
                return Err(refused("LIKE over a text whose blanks at the end do not count"));
            }
            (Kind::Char, Kind::Text) if function != Function::OctetLength => {
                cast(operand, Kind::Text, None)?
            }
            (kind, Kind::Text) if is_joined && kind.is_exact() => cast(operand, Kind::Text, None)?,
            (Kind::Int16, Kind::Int32) => widened(operand, Kind::Int32)?,
            _ => operand,
        });
    }
    Ok(made)
}

/// Functions of numbers are those of decimals and of floats; whole ones are cast to floats, but where so many
/// digits are wanted to decimals.
fn numbers(function: Function, operands: Vec<Operand<'_>>) -> Result<Vec<Node>> {
    let count = operands.len();
    let mut made = Vec::with_capacity(count);
    for (position, operand) in operands.into_iter().enumerate() {
        let Operand::Typed(operand) = operand else {
            return Err(refused("an argument whose type is not known"));
        };
        made.push(match operand.kind {
            _ if function == Function::Absolute || operand.kind == Kind::Numeric => operand,
            Kind::Int16 if position == 1 => widened(operand, Kind::Int32)?,
            _ if position == 1 => operand,
            kind if kind.is_whole() && count == 2 => widened(operand, Kind::Decimal)?,
            kind if kind.is_whole() || kind == Kind::Float32 => widened(operand, Kind::Float64)?,
            _ => operand,
        });
    }
    if !made.iter().take(1).all(|operand| is_cast(operand.kind, Kind::Float64)) {
        return Err(refused("an argument that is no number"));
    }
    Ok(made)
}
