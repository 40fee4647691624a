//! Which types of values a column takes: those that PostgreSQL casts in an assignment.
//!
//! A text is taken for each type: it may be a constant whose type is told by where it stands.

use onrush::{ColumnDefinition, DataType, TableDefinition};
use onrush_query::ColumnType;
use sqlparser::ast::{self, Expr, Spanned, UnaryOperator};

use super::functions::{self, Function};
use super::write::{Assignment, NewValue};
use crate::error::{Result, SqlError, state};
use crate::values;

/// Refuses a constant, or a cast of one, of a type that the column does not take.
pub(super) fn check_value(column: &ColumnDefinition, value: &Expr) -> Result<()> {
    match type_of(value) {
        Some(given) => check(column, given).map_err(|error| error.at(value.span())),
        None => Ok(()),
    }
}

/// Refuses a column of a query whose values the column does not take.
pub(super) fn check(column: &ColumnDefinition, given: ColumnType) -> Result<()> {
    if is_taken(given, column.data_type) {
        return Ok(());
    }
    let (name, own) = (&column.name, values::plain_name_of(column.data_type));
    let given = values::plain_name_of(given);
    let message = format!("column \"{name}\" is of type {own} but expression is of type {given}");
    Err(SqlError::new(state::DATATYPE_MISMATCH, message)
        .with_hint("You will need to rewrite or cast the expression."))
}

/// Refuses computed values that their columns do not take. `computed` has them by position.
pub(super) fn check_assignments(
    definition: &TableDefinition,
    assignments: &[Assignment],
    computed: &[ColumnType],
) -> Result<()> {
    for assignment in assignments {
        let given = match assignment.value {
            NewValue::Found(at) => computed.get(at).copied(),
            NewValue::Excluded(other) => {
                Some(ColumnType::Stored(definition.columns()[other].data_type))
            }
            NewValue::Given(_) => None,
        };
        if let Some(given) = given {
            check(&definition.columns()[assignment.column], given)?;
        }
    }
    Ok(())
}

/// The type of a constant that has one of its own.
fn type_of(value: &Expr) -> Option<ColumnType> {
    let data_type = match value {
        Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => type_of_number(digits),
            ast::Value::Boolean(_) => DataType::Boolean,
            _ => return None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => {
            return type_of(expr).filter(|given| Kind::of(*given) == Some(Kind::Number));
        }
        Expr::Nested(inner) => return type_of(inner),
        Expr::Cast { data_type, .. } => super::create::data_type("the cast", data_type).ok()?,
        Expr::TypedString(typed) => {
            super::create::data_type("the constant", &typed.data_type).ok()?
        }
        Expr::Function(call) => match functions::of(call).ok()? {
            Function::Now | Function::Clock => DataType::TimestampTz,
            Function::RandomUuid => DataType::Uuid,
            _ => return None,
        },
        _ => return None,
    };
    Some(ColumnType::Stored(data_type))
}

fn type_of_number(digits: &str) -> DataType {
    match (digits.parse::<i32>(), digits.parse::<i64>()) {
        (Ok(_), _) => DataType::Int32,
        (_, Ok(_)) => DataType::Int64,
        _ => DataType::Numeric(None),
    }
}

/// Types that are cast into each other, or into others, together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Boolean,
    Number,
    Oid,
    Bytes,
    Uuid,
    Date,
    Time,
    TimeTz,
    Timestamp,
    TimestampTz,
    Interval,
    Json,
    Network,
    MacAddress,
    Array,
    Enum,
    Composite,
}

impl Kind {
    /// None for texts.
    fn of(column_type: ColumnType) -> Option<Kind> {
        let data_type = match column_type {
            ColumnType::Stored(data_type) => data_type.unrounded(),
            ColumnType::Char => return None,
            ColumnType::Array(_) | ColumnType::Vector(_) => return Some(Kind::Array),
        };
        Some(match data_type {
            DataType::Boolean => Kind::Boolean,
            DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Float32
            | DataType::Float64
            | DataType::Decimal { .. }
            | DataType::Numeric(_) => Kind::Number,
            DataType::Oid => Kind::Oid,
            DataType::Bytes => Kind::Bytes,
            DataType::Uuid => Kind::Uuid,
            DataType::Date => Kind::Date,
            DataType::Time => Kind::Time,
            DataType::TimeTz => Kind::TimeTz,
            DataType::Timestamp => Kind::Timestamp,
            DataType::TimestampTz => Kind::TimestampTz,
            DataType::Interval => Kind::Interval,
            DataType::Json | DataType::Jsonb => Kind::Json,
            DataType::Inet | DataType::Cidr => Kind::Network,
            DataType::MacAddress => Kind::MacAddress,
            DataType::Array(_) => Kind::Array,
            DataType::Enum(_) => Kind::Enum,
            DataType::Composite(_) => Kind::Composite,
            DataType::Char(_)
            | DataType::Varchar(_)
            | DataType::Text
            | DataType::Name
            | DataType::Rounded(..) => return None,
        })
    }
}

fn is_taken(given: ColumnType, column: DataType) -> bool {
    // Of the numbers, oids go with some whole ones alone.
    if matches!(
        (given, column),
        (ColumnType::Stored(DataType::Oid), DataType::Int32 | DataType::Int64)
            | (
                ColumnType::Stored(DataType::Int16 | DataType::Int32 | DataType::Int64),
                DataType::Oid
            )
    ) {
        return true;
    }
    let (Some(given), Some(own)) = (Kind::of(given), Kind::of(ColumnType::Stored(column))) else {
        return true;
    };
    given == own
        || matches!(
            (given, own),
            (Kind::Date, Kind::Timestamp | Kind::TimestampTz)
                | (Kind::Timestamp, Kind::Date | Kind::Time | Kind::TimestampTz)
                | (Kind::TimestampTz, Kind::Date | Kind::Time | Kind::TimeTz | Kind::Timestamp)
                | (Kind::Time, Kind::TimeTz | Kind::Interval)
                | (Kind::TimeTz, Kind::Time)
                | (Kind::Interval, Kind::Time)
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_types_that_are_cast_are_taken() {
        let is = |given, column| is_taken(ColumnType::Stored(given), column);
        assert!(
            is(DataType::Int32, DataType::Float64) && is(DataType::Numeric(None), DataType::Int16)
        );
        assert!(is(DataType::TimestampTz, DataType::Date) && !is(DataType::Date, DataType::Time));
        assert!(!is(DataType::Int32, DataType::Date) && !is(DataType::Boolean, DataType::Int32));
        assert!(!is(DataType::Int32, DataType::Boolean) && !is(DataType::Uuid, DataType::Bytes));
        // Each is written as a text, and a text may be a constant of any type.
        assert!(is(DataType::Boolean, DataType::Varchar(5)) && is(DataType::Text, DataType::Date));
    }
}
