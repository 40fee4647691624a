//! Expressions as they are written, by a program or by whoever reads SQL: columns by name, texts that become
//! what stands beside them. How they look in SQL is said in `written`.

use super::bind;
use super::field::Field;
use super::function::Function;
use super::pattern::Pattern;
use super::tree::{Arithmetic, Comparison, Kind, Operation, Truth, TypedExpression};
use crate::{DataType, Interval, TableDefinition, TypeError, Value};

/// An expression over the columns of a table, for a CHECK constraint or a default.
///
/// A text stands for a value of whatever type it is compared with, as in SQL: `'2024-05-01'` beside a date is
/// a date.
///
/// ```
/// use onrush_types::{ColumnDefinition, DataType, TableDefinition};
/// use onrush_types::expression::{Expression, Function};
///
/// let name_bytes = Expression::call(Function::Length, [Expression::column("name")]);
/// let table = TableDefinition::builder("payments")
///     .column(ColumnDefinition::new("id", DataType::Int64).not_null())
///     .column(ColumnDefinition::new("amount", DataType::Int64))
///     .column(ColumnDefinition::new("name", DataType::Text))
///     .primary_key(["id"])
///     .check("positive", Expression::column("amount").greater_than(0i64))
///     .check("short", name_bytes.less_than(20))
///     .build()?;
/// assert_eq!(table.checks()[0].expression, "$2 > 0");
/// # Ok::<(), onrush_types::TypeError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Expression(pub(super) Syntax);

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Syntax {
    Column(String),
    /// A text has no type yet.
    Value(Value<'static>),
    Apply(Operation, Vec<Expression>),
}

/// What is no expression yet: a value, as it is.
impl<T: Into<Value<'static>>> From<T> for Expression {
    fn from(value: T) -> Expression {
        Expression(Syntax::Value(value.into()))
    }
}

impl Expression {
    /// The column of this name.
    pub fn column(name: impl Into<String>) -> Expression {
        Expression(Syntax::Column(name.into()))
    }

    /// This value.
    pub fn value(value: impl Into<Value<'static>>) -> Expression {
        Expression(Syntax::Value(value.into()))
    }

    /// The text that it is, if it is one and nothing else.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.0 {
            Syntax::Value(value) => value.as_str(),
            _ => None,
        }
    }

    /// NULL.
    #[must_use]
    pub fn null() -> Expression {
        Expression(Syntax::Value(Value::Null))
    }

    /// The moment of the row; for defaults only.
    #[must_use]
    pub fn now() -> Expression {
        Expression::call(Function::Now, [])
    }

    /// A function of these arguments.
    pub fn call(function: Function, arguments: impl IntoIterator<Item = Expression>) -> Expression {
        apply(Operation::Call(function), arguments)
    }

    /// A comparison.
    pub fn compare(self, comparison: Comparison, other: impl Into<Expression>) -> Expression {
        apply(Operation::Compare(comparison), [self, other.into()])
    }

    /// `=`
    pub fn equal_to(self, other: impl Into<Expression>) -> Expression {
        self.compare(Comparison::Equal, other)
    }

    /// `<>`
    pub fn not_equal_to(self, other: impl Into<Expression>) -> Expression {
        self.compare(Comparison::NotEqual, other)
    }

    /// `<`
    pub fn less_than(self, other: impl Into<Expression>) -> Expression {
        self.compare(Comparison::Less, other)
    }

    /// `<=`
    pub fn at_most(self, other: impl Into<Expression>) -> Expression {
        self.compare(Comparison::LessOrEqual, other)
    }

    /// `>`
    pub fn greater_than(self, other: impl Into<Expression>) -> Expression {
        self.compare(Comparison::Greater, other)
    }

    /// `>=`
    pub fn at_least(self, other: impl Into<Expression>) -> Expression {
        self.compare(Comparison::GreaterOrEqual, other)
    }

    /// Whether it is one of these: `IN`.
    pub fn one_of(self, others: impl IntoIterator<Item = Expression>) -> Expression {
        let equal = |other: Expression| self.clone().equal_to(other);
        apply(Operation::Or, others.into_iter().map(equal))
    }

    /// `BETWEEN`
    pub fn between(self, low: impl Into<Expression>, high: impl Into<Expression>) -> Expression {
        self.clone().at_least(low).and(self.at_most(high))
    }

    /// `IS [NOT] DISTINCT FROM`
    pub fn distinct_from(self, other: impl Into<Expression>, is_distinct: bool) -> Expression {
        let operation = if is_distinct { Operation::Distinct } else { Operation::NotDistinct };
        apply(operation, [self, other.into()])
    }

    /// `AND`
    pub fn and(self, other: Expression) -> Expression {
        self.joined(Operation::And, other)
    }

    /// `OR`
    pub fn or(self, other: Expression) -> Expression {
        self.joined(Operation::Or, other)
    }

    /// A chain of one operation is one node, so that it may be long.
    fn joined(self, operation: Operation, other: Expression) -> Expression {
        match self.0 {
            Syntax::Apply(own, mut operands) if own == operation => {
                operands.push(other);
                apply(operation, operands)
            }
            syntax => apply(operation, [Expression(syntax), other]),
        }
    }

    /// `NOT`
    #[must_use]
    #[allow(clippy::should_implement_trait)]
    pub fn not(self) -> Expression {
        apply(Operation::Not, [self])
    }

    /// Whether it is that, which is never NULL.
    #[must_use]
    pub fn is(self, truth: Truth) -> Expression {
        apply(Operation::Is(truth), [self])
    }

    /// `+`, `-`, `*`, `/`, `%`
    pub fn arithmetic(self, arithmetic: Arithmetic, other: impl Into<Expression>) -> Expression {
        apply(Operation::Arithmetic(arithmetic), [self, other.into()])
    }

    /// The number below zero that it is above.
    #[must_use]
    pub fn negated(self) -> Expression {
        apply(Operation::Negate, [self])
    }

    /// Whether a text matches a regular expression: `~`, `~*`.
    #[must_use]
    pub fn matches(self, pattern: Pattern) -> Expression {
        apply(Operation::Matches(pattern), [self])
    }

    /// `extract(field FROM ...)`: a decimal out of a timestamp or a day.
    #[must_use]
    pub fn extract(self, field: Field) -> Expression {
        apply(Operation::Extract(field), [self])
    }

    /// `date_trunc`: a timestamp, cut off behind the field.
    #[must_use]
    pub fn truncated_to(self, field: Field) -> Expression {
        apply(Operation::Truncate(field), [self])
    }

    /// A timestamp, or a day, that much later.
    #[must_use]
    pub fn plus(self, interval: Interval) -> Expression {
        apply(Operation::Shift(interval), [self])
    }

    /// `CASE WHEN`: the value behind the first condition that is met.
    pub fn case(
        branches: impl IntoIterator<Item = (Expression, Expression)>,
        otherwise: Option<Expression>,
    ) -> Expression {
        let branches = branches.into_iter().flat_map(|(condition, value)| [condition, value]);
        apply(Operation::Case, branches.chain(otherwise))
    }

    /// `COALESCE`
    pub fn coalesce(values: impl IntoIterator<Item = Expression>) -> Expression {
        apply(Operation::Coalesce, values)
    }

    /// `NULLIF`
    pub fn null_if(self, other: impl Into<Expression>) -> Expression {
        apply(Operation::NullIf, [self, other.into()])
    }

    /// `GREATEST`
    pub fn greatest(values: impl IntoIterator<Item = Expression>) -> Expression {
        apply(Operation::Greatest, values)
    }

    /// `LEAST`
    pub fn least(values: impl IntoIterator<Item = Expression>) -> Expression {
        apply(Operation::Least, values)
    }

    /// `CAST`, not to a text of limited length, nor to a numeric of more than 28 digits.
    #[must_use]
    pub fn cast(self, data_type: DataType) -> Expression {
        let (kind, digits) = match data_type {
            DataType::Decimal { precision, scale } => (Kind::Decimal, Some((precision, scale))),
            // What cuts off or rounds is refused.
            DataType::Varchar(_)
            | DataType::Name
            | DataType::Oid
            | DataType::Rounded(..)
            | DataType::Numeric(Some(_)) => (Kind::Char, None),
            other => (Kind::of(other), None),
        };
        apply(Operation::Cast(kind, digits), [self])
    }

    /// `CAST(... AS numeric)`, with as many digits as it has.
    #[must_use]
    pub fn cast_to_decimal(self) -> Expression {
        apply(Operation::Cast(Kind::Decimal, None), [self])
    }

    /// Gives every part its type, as PostgreSQL does, and columns their numbers.
    ///
    /// # Errors
    /// [`TypeError::Expression`]; [`TypeError::UnknownColumn`].
    pub fn bound(&self, table: &TableDefinition) -> Result<TypedExpression, TypeError> {
        bind::bound(self, Some(table))
    }

    /// As [`bound`](Self::bound), for a default: it is of no row.
    ///
    /// # Errors
    /// As [`bound`](Self::bound).
    pub fn bound_to_no_row(&self) -> Result<TypedExpression, TypeError> {
        bind::bound(self, None)
    }
}

fn apply(operation: Operation, operands: impl IntoIterator<Item = Expression>) -> Expression {
    Expression(Syntax::Apply(operation, operands.into_iter().collect()))
}
