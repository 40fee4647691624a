//! The types of expressions as PostgreSQL sees them, as far as a statement tells them before it is planned.

use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{AggregateUDF, ReturnFieldArgs, ScalarUDF};
use datafusion::sql::sqlparser::ast::{BinaryOperator, DataType as SqlType, Value};
use onrush::DataType;

use crate::functions::type_name;
use crate::types::{ColumnType, column_type, planned_field};
use crate::typing::Types;

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Type {
    Known(ColumnType),
    /// A constant in quotes, NULL or a parameter: it takes the type that is wanted.
    Constant,
    /// Only the plan tells it.
    Untold,
}

/// Whatever a type is written as, its digits left out: `numeric` is one type in PostgreSQL.
const NUMERIC: DataType = DataType::Numeric(None);

impl Type {
    pub(super) const BOOLEAN: Type = Type::Known(ColumnType::Stored(DataType::Boolean));
    pub(super) const INTEGER: Type = Type::Known(ColumnType::Stored(DataType::Int32));
    pub(super) const BIGINT: Type = Type::Known(ColumnType::Stored(DataType::Int64));
    pub(super) const TEXT: Type = Type::Known(ColumnType::Stored(DataType::Text));
    pub(super) const INTERVAL: Type = Type::Known(ColumnType::Stored(DataType::Interval));

    /// The type of a cast.
    pub(super) fn written(written: &SqlType) -> Type {
        if let Ok(Some(field)) = Types.plan_type_field(written) {
            return Type::Known(column_type(&field));
        }
        match written {
            SqlType::Numeric(_) | SqlType::Decimal(_) => Type::Known(NUMERIC.into()),
            other => other
                .to_string()
                .parse::<DataType>()
                .map_or(Type::Untold, |own| Type::Known(own.into())),
        }
    }

    pub(super) fn of_constant(constant: &Value) -> Type {
        match constant {
            Value::Number(digits, _) if digits.parse::<i32>().is_ok() => Type::INTEGER,
            Value::Number(digits, _) if digits.parse::<i64>().is_ok() => Type::BIGINT,
            Value::Number(..) => Type::Known(NUMERIC.into()),
            Value::Boolean(_) => Type::BOOLEAN,
            _ => Type::Constant,
        }
    }

    /// The type of `left operator right`.
    pub(super) fn of_two(left: Type, operator: &BinaryOperator, right: Type) -> Type {
        use BinaryOperator as Op;
        match operator {
            Op::Plus | Op::Minus | Op::Multiply | Op::Divide | Op::Modulo => {
                match (left.width(), right.width()) {
                    (Some(one), Some(other)) if one >= other => left,
                    (Some(_), Some(_)) => right,
                    (Some(_), None) if right == Type::Constant => left,
                    (None, Some(_)) if left == Type::Constant => right,
                    _ => Type::Untold,
                }
            }
            Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq | Op::And | Op::Or => {
                Type::BOOLEAN
            }
            Op::StringConcat if left.is_text() || right.is_text() => Type::TEXT,
            Op::LongArrow | Op::HashLongArrow => Type::TEXT,
            _ => Type::Untold,
        }
    }

    /// Whether there may be such an operator: what is known of both sides is of one kind.
    pub(super) fn go_together(left: Type, operator: &BinaryOperator, right: Type) -> bool {
        use BinaryOperator as Op;
        let is_of_one_kind = matches!(
            operator,
            Op::Plus
                | Op::Minus
                | Op::Multiply
                | Op::Divide
                | Op::Modulo
                | Op::Eq
                | Op::NotEq
                | Op::Lt
                | Op::LtEq
                | Op::Gt
                | Op::GtEq
        );
        match (left, right) {
            (Type::Known(left), Type::Known(right)) if is_of_one_kind => {
                kind(left) == kind(right) || is_scaled(left, operator, right)
            }
            _ => true,
        }
    }

    fn is_text(self) -> bool {
        matches!(self, Type::Known(ColumnType::Stored(own)) if own.is_text())
    }

    /// How wide a type of numbers is, among those.
    pub(super) fn width(self) -> Option<u8> {
        let Type::Known(ColumnType::Stored(own)) = self else { return None };
        Some(match own {
            DataType::Int16 => 0,
            DataType::Int32 => 1,
            DataType::Int64 => 2,
            DataType::Decimal { .. } | DataType::Numeric(_) => 3,
            DataType::Float32 => 4,
            DataType::Float64 => 5,
            _ => return None,
        })
    }

    /// As PostgreSQL writes it.
    pub(super) fn name(self) -> String {
        match self {
            Type::Known(own) => type_name(own),
            Type::Constant | Type::Untold => "unknown".to_owned(),
        }
    }
}

/// Whether an interval is multiplied or divided by a number.
fn is_scaled(left: ColumnType, operator: &BinaryOperator, right: ColumnType) -> bool {
    let is_interval = |own| own == ColumnType::Stored(DataType::Interval);
    let is_number = |own| matches!(own, ColumnType::Stored(own) if own.is_number());
    match operator {
        BinaryOperator::Multiply => {
            is_interval(left) && is_number(right) || is_number(left) && is_interval(right)
        }
        BinaryOperator::Divide => is_interval(left) && is_number(right),
        _ => false,
    }
}

/// Types of one kind are compared and combined with each other.
fn kind(own: ColumnType) -> u8 {
    match own {
        ColumnType::Stored(own) => match own.unrounded() {
            DataType::Boolean => 0,
            own if own.is_text() => 1,
            DataType::Bytes => 2,
            DataType::Uuid => 3,
            DataType::Date | DataType::Time | DataType::Timestamp | DataType::TimestampTz => 4,
            DataType::Interval | DataType::TimeTz => 4,
            DataType::Json | DataType::Jsonb => 5,
            DataType::Inet | DataType::Cidr => 9,
            DataType::MacAddress => 10,
            DataType::Enum(_) => 8,
            DataType::Array(_) => 7,
            DataType::Composite(_) => 11,
            _ => 6,
        },
        ColumnType::Char => 1,
        ColumnType::Array(_) | ColumnType::Vector(_) => 7,
    }
}

/// What a call of a function gives.
pub(super) enum Given {
    Type(Type),
    /// The function is there, but not for values of these types.
    NoMatch,
}

fn fields(arguments: &[Type]) -> Option<Vec<FieldRef>> {
    let field = |argument: &Type| match argument {
        Type::Known(own) => Some(Arc::new(planned_field("", *own, true))),
        Type::Constant | Type::Untold => None,
    };
    arguments.iter().map(field).collect()
}

/// Of a function of one row.
pub(super) fn of_scalar(function: &ScalarUDF, arguments: &[Type]) -> Given {
    let Some(fields) = fields(arguments) else { return Given::Type(Type::Untold) };
    let Ok(fields) = fields_with_udf(&fields, function) else { return Given::NoMatch };
    let scalar_arguments = vec![None; fields.len()];
    let given = ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &scalar_arguments };
    let made = function.return_field_from_args(given);
    Given::Type(made.map_or(Type::Untold, |field| Type::Known(column_type(&field))))
}

/// Of an aggregate.
pub(super) fn of_aggregate(function: &AggregateUDF, arguments: &[Type]) -> Given {
    let Some(fields) = fields(arguments) else { return Given::Type(Type::Untold) };
    let Ok(fields) = fields_with_udf(&fields, function) else { return Given::NoMatch };
    let made = function.return_field(&fields);
    Given::Type(made.map_or(Type::Untold, |field| Type::Known(column_type(&field))))
}
