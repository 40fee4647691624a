//! Functions whose value one execution of a statement has from beginning to end: the clock, who asks,
//! what is set. A plan that is kept calls them; before each execution [`bind`] puts their values in
//! their place.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use onrush::{DataType, Value};

use super::array_casts::is_of_elements;
use super::fields::is_of_fields;
use super::times_tz::time_as;
use super::zoned::{is_zoned, local, plain};
use super::{SystemFunction, rewrite};
use crate::error::QueryError;
use crate::statement::Client;
use crate::style::{coerce_timestamp, current};
use crate::types::{ColumnType, arrow_type};
use crate::values::scalar;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fact {
    /// `now()`, as a type.
    Timestamp(DataType),
    /// The time of day, the same wherever the statement asks, whenever its transaction began.
    Clock,
    Version,
    Database,
    Schema,
    User,
    SessionUser,
    Number,
}

const FACTS: [(&str, Fact); 18] = [
    ("now", Fact::Timestamp(DataType::TimestampTz)),
    ("current_timestamp", Fact::Timestamp(DataType::TimestampTz)),
    ("transaction_timestamp", Fact::Timestamp(DataType::TimestampTz)),
    ("statement_timestamp", Fact::Clock),
    ("clock_timestamp", Fact::Clock),
    ("localtimestamp", Fact::Timestamp(DataType::Timestamp)),
    ("current_date", Fact::Timestamp(DataType::Date)),
    ("current_time", Fact::Timestamp(DataType::TimeTz)),
    ("localtime", Fact::Timestamp(DataType::Time)),
    ("version", Fact::Version),
    ("current_database", Fact::Database),
    ("current_catalog", Fact::Database),
    ("current_schema", Fact::Schema),
    ("current_user", Fact::User),
    ("session_user", Fact::SessionUser),
    ("user", Fact::User),
    ("current_role", Fact::User),
    ("pg_backend_pid", Fact::Number),
];

/// One of these functions.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SessionFunction {
    name: &'static str,
    fact: Fact,
    signature: Signature,
}

/// All of them.
pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let function = |(name, fact)| {
        let signature = Signature::nullary(Volatility::Stable);
        Arc::new(ScalarUDF::new_from_impl(SessionFunction { name, fact, signature }))
    };
    let facts = FACTS.into_iter().map(function);
    facts.chain([current_setting()]).collect()
}

/// What a setting is in this session; NULL if there is none of this name, and there need be none.
fn current_setting() -> Arc<ScalarUDF> {
    let function = SystemFunction::fallible_of_client(
        "current_setting",
        DataType::Text.into(),
        |client, given| match (given, &client.settings) {
            ([Value::Text(name)] | [Value::Text(name), Value::Boolean(false)], Some(settings)) => {
                let unknown = || {
                    let message = format!("unrecognized configuration parameter \"{name}\"");
                    QueryError::refused("42704", message)
                };
                Ok(settings.setting(name).ok_or_else(unknown)?.into())
            }
            ([Value::Text(name), Value::Boolean(true)], Some(settings)) => {
                Ok(settings.setting(name).map_or(Value::Null, Value::from))
            }
            _ => Ok(Value::Null),
        },
    );
    function.into_udf()
}

impl Fact {
    fn data_type(self) -> DataType {
        match self {
            Fact::Timestamp(data_type) => data_type,
            Fact::Clock => DataType::TimestampTz,
            Fact::Number => DataType::Int32,
            _ => DataType::Text,
        }
    }

    fn value(self, client: &Client, Times { now: micros, clock }: Times) -> Value<'_> {
        match self {
            Fact::Timestamp(DataType::TimestampTz) => Value::TimestampTz(micros),
            Fact::Clock => Value::TimestampTz(clock),
            Fact::Timestamp(of @ DataType::TimeTz) => {
                let told = coerce_timestamp(&Value::TimestampTz(micros), of);
                told.ok().flatten().unwrap_or(Value::Null)
            }
            // The clocks of the session tell what has no zone.
            Fact::Timestamp(of) => {
                let local = current().zone.local(micros).unwrap_or(micros);
                of.timestamp(local).unwrap_or(Value::Null)
            }
            Fact::Version => Value::from(&*client.version),
            Fact::Database => Value::from(&*client.database),
            Fact::Schema => {
                let settings = client.settings.as_ref();
                let schema = settings.and_then(|settings| settings.current_schema());
                schema.map_or(Value::Null, Value::from)
            }
            Fact::User => Value::from(&*client.user),
            Fact::SessionUser => Value::from(&*client.session_user),
            Fact::Number => Value::Int32(client.number),
        }
    }
}

impl ScalarUDFImpl for SessionFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(arrow_type(ColumnType::Stored(self.fact.data_type())))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("{}() has no value outside of a statement", self.name)
    }
}

/// Puts `timestamp`, a `timestamptz`, in the place of those that tell the moment, for an expression that
/// outlives its statement.
///
/// # Errors
/// One that tells who asks.
pub(crate) fn bind_to_column(plan: LogicalPlan, timestamp: &Expr) -> Result<LogicalPlan> {
    let bound = |inner: Expr| {
        let Expr::ScalarFunction(call) = &inner else { return Ok(Transformed::no(inner)) };
        let function: &dyn std::any::Any = call.func.inner().as_ref();
        match function.downcast_ref::<SessionFunction>().map(|function| function.fact) {
            Some(fact @ (Fact::Timestamp(_) | Fact::Clock)) => {
                let of = fact.data_type();
                if of == DataType::TimeTz {
                    let time = ScalarFunction::new_udf(time_as(of), vec![timestamp.clone()]);
                    return Ok(Transformed::yes(Expr::ScalarFunction(time)));
                }
                let wanted = arrow_type(ColumnType::Stored(of));
                let told = match of {
                    DataType::TimestampTz => timestamp.clone(),
                    _ => local(timestamp.clone()),
                };
                Ok(Transformed::yes(Expr::Cast(Cast::new(Box::new(told), wanted))))
            }
            None if call.func.signature().volatility != Volatility::Stable
                || is_told_where_called(&call.func) =>
            {
                Ok(Transformed::no(inner))
            }
            _ => {
                let name = call.func.name();
                let message = format!("the function {name} in such an expression is not supported");
                Err(QueryError::NotSupported { message }.into())
            }
        }
    };
    rewrite(plan, bound).data()
}

/// Whether a function asks for the session's zone when it is called, and not before.
pub(crate) fn is_told_where_called(function: &ScalarUDF) -> bool {
    is_zoned(function) || is_of_fields(function) || is_of_elements(function)
}

/// In microseconds since 1970.
#[derive(Clone, Copy)]
struct Times {
    /// `now()`.
    now: i64,
    /// The time of day.
    clock: i64,
}

/// Puts the values that these functions have in this statement in their place.
pub(crate) fn bind(plan: LogicalPlan, client: &Client, now_micros: i64) -> Result<LogicalPlan> {
    let times = Times { now: now_micros, clock: jiff::Timestamp::now().as_microsecond() };
    plan.transform_up_with_subqueries(|plan| rewrite(plan, |inner| constant(inner, client, times)))
        .data()
}

fn constant(expression: Expr, client: &Client, times: Times) -> Result<Transformed<Expr>> {
    let fact = match &expression {
        // Of those that are told who asks the arguments may differ from row to row.
        Expr::ScalarFunction(call) => {
            let inner: &dyn std::any::Any = call.func.inner().as_ref();
            let function = inner.downcast_ref::<SystemFunction>();
            if let Some(bound) = function.and_then(|own| own.bound_to(client)) {
                let call = ScalarFunction::new_udf(bound.into_udf(), call.args.clone());
                return Ok(Transformed::yes(Expr::ScalarFunction(call)));
            }
            if let Some(plain) = plain(call).filter(|_| current().zone.is_utc()) {
                return Ok(Transformed::yes(plain));
            }
            inner.downcast_ref::<SessionFunction>().map(|function| function.fact)
        }
        _ => None,
    };
    let Some(fact) = fact else { return Ok(Transformed::no(expression)) };
    let column = ColumnType::Stored(fact.data_type());
    let value: ScalarValue = scalar(&fact.value(client, times), column)?;
    Ok(Transformed::yes(Expr::Literal(value, None)))
}
