//! The tree: operations, and which operands each takes.

use super::field::Field;
use super::function::Function;
use super::pattern::Pattern;
use crate::{DataType, Interval, Value};

/// What an expression comes to. As [`DataType`], without lengths and digits: those belong to columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean,
    Int16,
    Int32,
    Int64,
    Float32,
    Float64,
    Decimal,
    /// Text of which blanks at the end do not count.
    Char,
    Text,
    Bytes,
    Uuid,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    /// Whether it is there is all that can be asked of it.
    Json,
    Interval,
    /// Of any size.
    Numeric,
    TimeTz,
    /// Of labels, arrays and addresses: as of JSON.
    Opaque,
}

impl Kind {
    pub(super) const ALL: [Kind; 20] = [
        Kind::Boolean,
        Kind::Int16,
        Kind::Int32,
        Kind::Int64,
        Kind::Float32,
        Kind::Float64,
        Kind::Decimal,
        Kind::Char,
        Kind::Text,
        Kind::Bytes,
        Kind::Uuid,
        Kind::Date,
        Kind::Time,
        Kind::Timestamp,
        Kind::TimestampTz,
        Kind::Json,
        Kind::Interval,
        Kind::Numeric,
        Kind::TimeTz,
        Kind::Opaque,
    ];

    /// The type whose values are of this kind, where that needs no length or digits.
    fn data_type(self) -> Option<DataType> {
        Some(match self {
            Kind::Boolean => DataType::Boolean,
            Kind::Int16 => DataType::Int16,
            Kind::Int32 => DataType::Int32,
            Kind::Int64 => DataType::Int64,
            Kind::Float32 => DataType::Float32,
            Kind::Float64 => DataType::Float64,
            Kind::Text => DataType::Text,
            Kind::Bytes => DataType::Bytes,
            Kind::Uuid => DataType::Uuid,
            Kind::Date => DataType::Date,
            Kind::Time => DataType::Time,
            Kind::Timestamp => DataType::Timestamp,
            Kind::TimestampTz => DataType::TimestampTz,
            Kind::Numeric => DataType::Numeric(None),
            Kind::TimeTz => DataType::TimeTz,
            Kind::Decimal | Kind::Char | Kind::Interval | Kind::Json | Kind::Opaque => return None,
        })
    }

    pub(crate) fn of(data_type: DataType) -> Kind {
        match data_type {
            DataType::Boolean => Kind::Boolean,
            DataType::Int16 => Kind::Int16,
            DataType::Int32 => Kind::Int32,
            DataType::Int64 | DataType::Oid => Kind::Int64,
            DataType::Float32 => Kind::Float32,
            DataType::Float64 => Kind::Float64,
            DataType::Decimal { .. } => Kind::Decimal,
            DataType::Char(_) => Kind::Char,
            DataType::Varchar(_) | DataType::Text | DataType::Name => Kind::Text,
            DataType::Bytes => Kind::Bytes,
            DataType::Uuid => Kind::Uuid,
            DataType::Date => Kind::Date,
            DataType::Time => Kind::Time,
            DataType::Timestamp => Kind::Timestamp,
            DataType::TimestampTz => Kind::TimestampTz,
            DataType::Json | DataType::Jsonb => Kind::Json,
            DataType::Enum(_)
            | DataType::Array(_)
            | DataType::Composite(_)
            | DataType::Inet
            | DataType::Cidr
            | DataType::MacAddress => Kind::Opaque,
            DataType::Interval => Kind::Interval,
            DataType::TimeTz => Kind::TimeTz,
            DataType::Rounded(clock, _) => Kind::of(clock.data_type()),
            DataType::Numeric(_) => Kind::Numeric,
        }
    }

    pub(super) fn of_value(value: &Value<'_>) -> Option<Kind> {
        Some(match value {
            Value::Null | Value::Default => return None,
            Value::Boolean(_) => Kind::Boolean,
            Value::Int16(_) => Kind::Int16,
            Value::Int32(_) => Kind::Int32,
            Value::Int64(_) => Kind::Int64,
            Value::Float32(_) => Kind::Float32,
            Value::Float64(_) => Kind::Float64,
            Value::Decimal(_) => Kind::Decimal,
            Value::Numeric(_) => Kind::Numeric,
            Value::Text(_) => Kind::Text,
            Value::Bytes(_) => Kind::Bytes,
            Value::Uuid(_) => Kind::Uuid,
            Value::Date(_) => Kind::Date,
            Value::Time(_) => Kind::Time,
            Value::Timestamp(_) => Kind::Timestamp,
            Value::TimestampTz(_) => Kind::TimestampTz,
            Value::Interval(_) => Kind::Interval,
            Value::TimeTz(_) => Kind::TimeTz,
            Value::Inet(_) | Value::Cidr(_) | Value::MacAddress(_) => Kind::Opaque,
        })
    }

    pub(super) fn is_whole(self) -> bool {
        matches!(self, Kind::Int16 | Kind::Int32 | Kind::Int64)
    }

    pub(super) fn is_exact(self) -> bool {
        self.is_whole() || self == Kind::Decimal
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Kind::Float32 | Kind::Float64)
    }

    /// One whose values have a size that is known before.
    pub(super) fn is_number(self) -> bool {
        self.is_exact() || self.is_float()
    }

    pub(super) fn is_any_number(self) -> bool {
        self.is_number() || self == Kind::Numeric
    }

    fn is_compared(self) -> bool {
        !matches!(self, Kind::Json | Kind::Opaque)
    }

    /// Whether values of the two compare as they are.
    pub(super) fn compares_with(self, other: Kind) -> bool {
        (self == other && self.is_compared()) || (self.is_exact() && other.is_exact())
    }
}

/// A comparison of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// An operation on two numbers, or on a date and days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`, cut off for whole numbers.
    Divide,
    /// `%`, with the sign of the left one.
    Remainder,
}

/// What a value may be, where the answer is never NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// `IS NULL`, and of a boolean `IS UNKNOWN`
    Null,
    /// `IS NOT NULL`
    NotNull,
    /// `IS TRUE`
    True,
    /// `IS NOT TRUE`
    NotTrue,
    /// `IS FALSE`
    False,
    /// `IS NOT FALSE`
    NotFalse,
}

/// What a node does with its operands.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operation {
    /// The column with this number; once prepared, at this position.
    Column(Kind, u16),
    Constant(Kind, Value<'static>),
    Compare(Comparison),
    Distinct,
    NotDistinct,
    Arithmetic(Arithmetic),
    Negate,
    And,
    Or,
    Not,
    Is(Truth),
    /// Conditions and values by turns; an odd one at the end is the value where none is met.
    Case,
    Coalesce,
    NullIf,
    Greatest,
    Least,
    /// To another kind; to a decimal of so many digits, so many of them after the point.
    Cast(Kind, Option<(u8, u8)>),
    /// A timestamp that much later.
    Shift(Interval),
    /// Whether a text matches.
    Matches(Pattern),
    /// A number out of a timestamp or a day.
    Extract(Field),
    /// A timestamp cut off behind a field.
    Truncate(Field),
    Call(Function),
}

/// An operation with its operands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) operation: Operation,
    pub(super) operands: Box<[Node]>,
}

impl Node {
    /// # Errors
    /// Operands that the operation does not take.
    pub(super) fn new(operation: Operation, operands: Vec<Node>) -> Result<Node, &'static str> {
        let kind = kind_of(&operation, &operands)?;
        Ok(Node { kind, operation, operands: operands.into() })
    }

    pub(super) fn constant(kind: Kind, value: Value<'static>) -> Node {
        Node { kind, operation: Operation::Constant(kind, value), operands: Box::default() }
    }

    /// Calls `visit` for this node and all below.
    pub(super) fn visit(&self, visit: &mut impl FnMut(&Node)) {
        visit(self);
        self.operands.iter().for_each(|operand| operand.visit(visit));
    }

    fn renumber(&mut self, number: &impl Fn(u16) -> Option<u16>) -> Option<()> {
        if let Operation::Column(_, own) = &mut self.operation {
            *own = number(*own)?;
        }
        self.operands.iter_mut().try_for_each(|operand| operand.renumber(number))
    }

    pub(super) fn is_volatile(&self) -> bool {
        let mut is_volatile = false;
        self.visit(&mut |node| {
            is_volatile |=
                matches!(&node.operation, Operation::Call(function) if function.is_volatile());
        });
        is_volatile
    }
}

/// An expression of which every part has its type, as the catalogue keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct TypedExpression(pub(super) Node);

impl TypedExpression {
    /// The numbers of the columns that it looks at, each once, with their kinds.
    pub(crate) fn columns(&self) -> Vec<(u16, Kind)> {
        let mut columns = Vec::new();
        self.0.visit(&mut |node| {
            if let Operation::Column(kind, number) = node.operation
                && !columns.contains(&(number, kind))
            {
                columns.push((number, kind));
            }
        });
        columns.sort_unstable_by_key(|(number, _)| *number);
        columns
    }

    /// The same over columns of other numbers; none where a column has none.
    pub(crate) fn renumbered(
        &self,
        number: impl Fn(u16) -> Option<u16>,
    ) -> Option<TypedExpression> {
        let mut renumbered = self.clone();
        renumbered.0.renumber(&number)?;
        Some(renumbered)
    }

    /// The type of a column that holds what it comes to. None where that must be said.
    pub(crate) fn data_type(&self) -> Option<DataType> {
        match (self.0.kind, &self.0.operation) {
            (Kind::Decimal, Operation::Cast(_, Some((precision, scale)))) => {
                Some(DataType::Decimal { precision: *precision, scale: *scale })
            }
            (kind, _) => kind.data_type(),
        }
    }

    /// Whether it may come to another value when it is evaluated again.
    pub(crate) fn is_volatile(&self) -> bool {
        self.0.is_volatile()
    }

    /// Why it can be no condition on rows, if so.
    pub(crate) fn fault_of_condition(&self) -> Option<&'static str> {
        if self.0.kind != Kind::Boolean {
            return Some("a condition is true or false");
        }
        self.is_volatile().then_some("a condition always comes to the same for a row")
    }
}

fn kind_of(operation: &Operation, operands: &[Node]) -> Result<Kind, &'static str> {
    const WRONG: &str = "an operation does not take these operands";
    let all = |kind: Kind| !operands.is_empty() && operands.iter().all(|node| node.kind == kind);
    let alike = || match operands {
        [first, rest @ ..] if rest.iter().all(|node| node.kind == first.kind) => Ok(first.kind),
        _ => Err(WRONG),
    };
    let is = |holds: bool, kind: Kind| if holds { Ok(kind) } else { Err(WRONG) };
    match (operation, operands) {
        (Operation::Column(kind, _), []) => Ok(*kind),
        (Operation::Constant(kind, value), []) => match Kind::of_value(value) {
            None => is(*value == Value::Null, *kind),
            Some(Kind::Text) => is(matches!(kind, Kind::Text | Kind::Char), *kind),
            Some(own) => is(own == *kind, *kind),
        },
        (Operation::Compare(_) | Operation::Distinct | Operation::NotDistinct, [left, right]) => {
            is(left.kind.compares_with(right.kind), Kind::Boolean)
        }
        (Operation::Arithmetic(arithmetic), [left, right]) => {
            kind_of_arithmetic(*arithmetic, left.kind, right.kind).ok_or(WRONG)
        }
        (Operation::Negate, [operand]) => is(operand.kind.is_any_number(), operand.kind),
        (Operation::And | Operation::Or, _) => is(all(Kind::Boolean), Kind::Boolean),
        (Operation::Not, [_]) => is(all(Kind::Boolean), Kind::Boolean),
        (Operation::Is(Truth::Null | Truth::NotNull), [_]) => Ok(Kind::Boolean),
        (Operation::Is(_), [_]) => is(all(Kind::Boolean), Kind::Boolean),
        (Operation::Case, [_, value, ..]) => {
            let (pairs, otherwise) = operands.as_chunks::<2>();
            let mut values = pairs.iter().map(|pair| &pair[1]).chain(otherwise);
            let conditions = pairs.iter().all(|pair| pair[0].kind == Kind::Boolean);
            is(conditions && values.all(|other| other.kind == value.kind), value.kind)
        }
        (Operation::Coalesce, _) => alike(),
        (Operation::Greatest | Operation::Least, _) => {
            alike().and_then(|kind| is(kind.is_compared(), kind))
        }
        (Operation::NullIf, [left, right]) => is(left.kind.compares_with(right.kind), left.kind),
        (Operation::Cast(to, digits), [operand]) => {
            is(is_cast(operand.kind, *to) && is_sound(*to, *digits), *to)
        }
        (Operation::Shift(_), [timestamp]) => {
            is(matches!(timestamp.kind, Kind::Timestamp | Kind::TimestampTz), timestamp.kind)
        }
        (Operation::Matches(_), [text]) => is(text.kind == Kind::Text, Kind::Boolean),
        (Operation::Extract(field), [operand]) => {
            let has_time = matches!(operand.kind, Kind::Timestamp | Kind::TimestampTz);
            is(has_time || (operand.kind == Kind::Date && !field.is_of_time()), Kind::Decimal)
        }
        (Operation::Truncate(field), [timestamp]) => {
            let has_time = matches!(timestamp.kind, Kind::Timestamp | Kind::TimestampTz);
            is(has_time && field.is_unit(), timestamp.kind)
        }
        (Operation::Call(function), _) => {
            let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind).collect();
            function.result(&kinds).ok_or(WRONG)
        }
        _ => Err(WRONG),
    }
}

fn kind_of_arithmetic(arithmetic: Arithmetic, left: Kind, right: Kind) -> Option<Kind> {
    match (left, right) {
        _ if left.is_whole() && right.is_whole() => Some(match (left, right) {
            (Kind::Int64, _) | (_, Kind::Int64) => Kind::Int64,
            (Kind::Int32, _) | (_, Kind::Int32) => Kind::Int32,
            _ => Kind::Int16,
        }),
        (Kind::Decimal, Kind::Decimal) => Some(Kind::Decimal),
        // How many digits a quotient has is known elsewhere.
        (Kind::Numeric, Kind::Numeric) if arithmetic != Arithmetic::Divide => Some(Kind::Numeric),
        (Kind::Float32, Kind::Float32) | (Kind::Float64, Kind::Float64)
            if arithmetic != Arithmetic::Remainder =>
        {
            Some(left)
        }
        (Kind::Date, Kind::Int32)
            if matches!(arithmetic, Arithmetic::Add | Arithmetic::Subtract) =>
        {
            Some(Kind::Date)
        }
        (Kind::Date, Kind::Date) if arithmetic == Arithmetic::Subtract => Some(Kind::Int32),
        _ => None,
    }
}

/// The casts that there are. Those between timestamps with and without time zone take it to be UTC.
pub(super) fn is_cast(from: Kind, to: Kind) -> bool {
    let is_day_or_timestamp =
        |kind| matches!(kind, Kind::Date | Kind::Timestamp | Kind::TimestampTz);
    match (from, to) {
        (Kind::Float32 | Kind::Float64, Kind::Decimal) => false,
        (Kind::Int32, Kind::Boolean) | (Kind::Boolean, Kind::Int32) => true,
        (Kind::Char | Kind::Boolean | Kind::Uuid, Kind::Text) => true,
        (Kind::Timestamp | Kind::TimestampTz, Kind::Time) => true,
        (_, Kind::Text) if from.is_exact() => true,
        (Kind::Numeric, _) => to.is_any_number() || to == Kind::Text,
        (_, Kind::Numeric) => from.is_exact(),
        _ => {
            from == to
                || (from.is_number() && to.is_number())
                || (is_day_or_timestamp(from) && is_day_or_timestamp(to))
        }
    }
}

fn is_sound(kind: Kind, digits: Option<(u8, u8)>) -> bool {
    digits.is_none_or(|(precision, scale)| {
        kind == Kind::Decimal && DataType::Decimal { precision, scale }.fault().is_none()
    })
}
