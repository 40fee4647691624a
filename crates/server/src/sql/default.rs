//! DEFAULT of a column: a constant, which may be computed when the column is defined, the moment, a
//! generator of keys, or an expression that is computed for each row.

use std::sync::Arc;

use onrush::expression::{PreparedDefault, TypedExpression};
use onrush::{ComputedDefault, DataType, DefaultValue, KeyStrategy};
use onrush_query::TO_DOMAIN;
use onrush_types::CHECK_BYTES_MAX;
use sqlparser::ast::{Expr, Value as Literal};
use sqlparser::parser::Parser;

use super::dialect::OnrushDialect;
use super::form;
use super::functions::{self, Function};
use super::of_session::check_constants;
use super::operand::{Operand, Parameters};
use super::{Planner, sequence};
use crate::error::{Result, SqlError, state};
use crate::values;

/// Reads the default of a column.
pub(super) fn default_of(
    planner: &Planner<'_>,
    value: &Expr,
    data_type: DataType,
    is_strict: bool,
) -> Result<DefaultValue> {
    if let Some(bound) = sequence::bound(planner, value)? {
        return sequence::default_of(planner, bound, data_type);
    }
    match value {
        Expr::Nested(inner) => return default_of(planner, inner, data_type, is_strict),
        Expr::Function(call) => match functions::of(call) {
            // As text, say.
            Ok(Function::Now | Function::Clock) if !has_clock(data_type) => {}
            Ok(function) => return generated(planner, value, function, is_strict),
            Err(error) if error.is_beyond_the_short_way() => {}
            Err(error) => return Err(error),
        },
        // Timestamps without time zone are those of UTC.
        Expr::AtTimeZone { timestamp, time_zone }
            if data_type.unrounded() == DataType::Timestamp
                && is_now(timestamp)
                && is_utc(time_zone) =>
        {
            return Ok(DefaultValue::Now);
        }
        _ => {}
    }
    match Operand::new(value, data_type, &mut Parameters::none()) {
        Ok(Operand::Constant(constant)) => Ok(DefaultValue::Constant(constant)),
        // A moment cast to the column's own type.
        Ok(Operand::Now(own) | Operand::Clock(own)) if own == data_type && has_clock(own) => {
            Ok(DefaultValue::Now)
        }
        Ok(_) => computed(planner, value, data_type),
        Err(error) if error.is_beyond_the_short_way() => computed(planner, value, data_type),
        Err(error) => Err(error),
    }
}

/// Whether a column can have the moment as it is.
fn has_clock(data_type: DataType) -> bool {
    matches!(
        data_type.unrounded(),
        DataType::Date | DataType::Time | DataType::Timestamp | DataType::TimestampTz
    )
}

fn generated(
    planner: &Planner<'_>,
    value: &Expr,
    function: Function,
    is_strict: bool,
) -> Result<DefaultValue> {
    match function {
        Function::OwnNodeOffset => match planner.node {
            Some(node) => Ok(DefaultValue::Key(KeyStrategy::NodeOffset { node })),
            None => Err(SqlError::new(
                state::NOT_IN_PREREQUISITE_STATE,
                "node_offset() takes the number of this node, which has none",
            )
            .with_hint("Start the server with --node N once, or write node_offset(N).")),
        },
        Function::Now | Function::Clock => Ok(DefaultValue::Now),
        Function::RandomUuid => Ok(DefaultValue::Key(KeyStrategy::UuidV4)),
        Function::Key(KeyStrategy::Identity { start, strict }) => {
            Ok(DefaultValue::Key(KeyStrategy::Identity { start, strict: strict || is_strict }))
        }
        Function::Key(strategy) => Ok(DefaultValue::Key(strategy)),
        _ => Err(refused(value)),
    }
}

/// An expression that always comes to the same is a constant, any other is computed for each row.
fn computed(planner: &Planner<'_>, value: &Expr, data_type: DataType) -> Result<DefaultValue> {
    match planner.queries.constant(value.clone()).map_err(SqlError::from) {
        Ok(constant) => {
            Ok(DefaultValue::Constant(values::coerce(constant, data_type)?.into_owned()))
        }
        Err(error) if error.state == state::FEATURE_NOT_SUPPORTED => {
            per_row(planner, value, data_type)
        }
        Err(error) => Err(error),
    }
}

fn per_row(planner: &Planner<'_>, value: &Expr, data_type: DataType) -> Result<DefaultValue> {
    let written = value.to_string();
    check_constants("a default", &written)?;
    if written.contains(TO_DOMAIN) {
        return Err(SqlError::not_supported(
            "a cast to a domain in a default that is computed for each row",
            "Cast to the type that the domain is over.",
        ));
    }
    if written.len() > CHECK_BYTES_MAX {
        let message = format!("a default of more than {CHECK_BYTES_MAX} bytes");
        return Err(SqlError::new(state::LIMIT_EXCEEDED, message));
    }
    if let Some(form) = form_of(value, data_type) {
        let computed = ComputedDefault { expression: written, form: Some(form) };
        return Ok(DefaultValue::Expression(computed));
    }
    let compiled = planner.queries.rowless_value(value.clone()).map_err(SqlError::from);
    let compiled = compiled.map_err(|error| match error.state {
        state::FEATURE_NOT_SUPPORTED => refused(value),
        _ => error,
    })?;
    // What can be no value of the column is told when it is defined; another moment, or other chance,
    // may bring one that can where this does not.
    if let Ok(now) = compiled.at(0)
        && let Err(error) = values::coerce(now, data_type)
        && error.state != state::NUMERIC_OUT_OF_RANGE
    {
        return Err(error);
    }
    Ok(DefaultValue::Expression(ComputedDefault { expression: written, form: None }))
}

/// The expression in the form that the engine evaluates, if it has it all and values of the column come out.
fn form_of(value: &Expr, data_type: DataType) -> Option<Arc<TypedExpression>> {
    // A default is of no table.
    let form = form::read(value, "")?.bound_to_no_row().ok()?;
    PreparedDefault::new(&form, data_type).is_ok().then(|| Arc::new(form))
}

/// A default as a table keeps it, back as an expression.
pub(crate) fn as_written(expression: &str) -> Result<Expr> {
    let dialect = OnrushDialect::new(expression.len());
    let read = Parser::new(&dialect).try_with_sql(expression);
    read.and_then(|mut parser| parser.parse_expr()).map_err(|_| {
        SqlError::new(state::DATA_CORRUPTED, format!("the default {expression} is not read"))
    })
}

fn refused(value: &Expr) -> SqlError {
    SqlError::not_supported(
        format!("the default {value}"),
        "Use what is of no row and does not depend on who asks, or one of the key generators alone; \
         give other values in INSERT.",
    )
}

fn is_now(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) => is_now(inner),
        Expr::Function(call) => {
            matches!(functions::of(call), Ok(Function::Now | Function::Clock))
        }
        _ => false,
    }
}

fn is_utc(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) => is_utc(inner),
        Expr::Value(value) => matches!(&value.value, Literal::SingleQuotedString(zone)
            if zone.eq_ignore_ascii_case("utc")),
        _ => false,
    }
}
