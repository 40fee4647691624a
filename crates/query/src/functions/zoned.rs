//! What depends on the session's time zone: timestamps with a zone as clocks show them, and back, and intervals added
//! by the calendar. Analyzed plans call these functions; in a session of UTC [`plain`] puts others in their place that
//! no setting has a say in, so that what they make of constants is compared with the keys of tables.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::kernels::arity::{try_binary, try_unary};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, FieldRef, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    TimeUnit, TimestampMicrosecondType,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use onrush::{DataType, Interval};

use super::timestamp_arithmetic::{
    date_as_timestamp, date_back, date_difference, date_forth, timestamp_as_date,
    timestamp_as_nanos, timestamp_as_time, timestamp_minus, timestamp_plus,
};
use super::{parse_function, rewrite_typed, text_function};
use crate::error::QueryError;
use crate::interval::{of_arrow, out_of_range};
use crate::style::{Zone, current};
use crate::timestamp::{is_infinite_timestamp, plus_calendar, timestamp, timestamp_out_of_range};
use crate::types::{ColumnType, UTC, arrow_type, plain_type};

const LOCAL: ArrowType = ArrowType::Timestamp(TimeUnit::Microsecond, None);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// What the clocks show.
    Local,
    /// When they show it.
    Utc,
    /// With an interval.
    Plus,
    /// Less an interval.
    Minus,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Zoned {
    kind: Kind,
    name: &'static str,
    signature: Signature,
}

impl Kind {
    fn function(self) -> Arc<ScalarUDF> {
        static ALL: LazyLock<[Arc<ScalarUDF>; 4]> = LazyLock::new(|| {
            let all = [
                (Kind::Local, "session_local"),
                (Kind::Utc, "session_utc"),
                (Kind::Plus, "session_plus"),
                (Kind::Minus, "session_minus"),
            ];
            all.map(|(kind, name)| {
                let arguments = if matches!(kind, Kind::Plus | Kind::Minus) { 2 } else { 1 };
                let signature = Signature::any(arguments, Volatility::Stable);
                Arc::new(ScalarUDF::new_from_impl(Zoned { kind, name, signature }))
            })
        });
        let [local, utc, plus, minus] = &*ALL;
        Arc::clone(match self {
            Kind::Local => local,
            Kind::Utc => utc,
            Kind::Plus => plus,
            Kind::Minus => minus,
        })
    }

    fn call(self, arguments: Vec<Expr>) -> Expr {
        Expr::ScalarFunction(ScalarFunction::new_udf(self.function(), arguments))
    }
}

/// A timestamp with a zone as the session's clocks show it.
pub(super) fn local(timestamp: Expr) -> Expr {
    Kind::Local.call(vec![timestamp])
}

/// Whether a function is one of these, so that it is told the zone where it is called.
pub(super) fn is_zoned(function: &ScalarUDF) -> bool {
    let inner: &dyn std::any::Any = function.inner().as_ref();
    inner.is::<Zoned>()
}

impl ScalarUDFImpl for Zoned {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(match self.kind {
            Kind::Local => LOCAL,
            _ => arrow_type(ColumnType::Stored(DataType::TimestampTz)),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given: Result<Vec<ArrayRef>> =
            args.args.iter().map(|given| given.to_array(args.number_rows)).collect();
        let (given, style) = (given?, current());
        let zone = &style.zone;
        let made = match (self.kind, given.as_slice()) {
            (Kind::Local, [timestamp]) => {
                local_of(timestamp.as_primitive(), zone).map(|local| Arc::new(local) as ArrayRef)?
            }
            (Kind::Utc, [local]) => {
                utc_of(local.as_primitive(), zone).map(|made| Arc::new(made) as ArrayRef)?
            }
            (kind, [timestamp, interval]) => {
                let timestamp = timestamp.as_primitive::<TimestampMicrosecondType>();
                let interval = interval.as_primitive::<IntervalMonthDayNanoType>();
                let sum = |timestamp, interval: IntervalMonthDayNano| {
                    let interval = of_arrow(interval);
                    let interval = match kind {
                        Kind::Minus => {
                            interval.negated().ok_or_else(|| external(out_of_range()))?
                        }
                        _ => interval,
                    };
                    plus(timestamp, interval, zone).map_err(external)
                };
                let sum: PrimitiveArray<TimestampMicrosecondType> =
                    try_binary(timestamp, interval, sum)?;
                Arc::new(sum.with_timezone(UTC))
            }
            _ => return internal_err!("{} of another number of arguments", self.name),
        };
        Ok(ColumnarValue::Array(made))
    }
}

/// Timestamps with a zone as its clocks show them.
pub(super) fn local_of(
    timestamps: &PrimitiveArray<TimestampMicrosecondType>,
    zone: &Zone,
) -> Result<PrimitiveArray<TimestampMicrosecondType>, ArrowError> {
    try_unary(timestamps, |micros| zone.local(micros).map_err(external))
}

/// When the clocks of a zone show these.
pub(super) fn utc_of(
    local: &PrimitiveArray<TimestampMicrosecondType>,
    zone: &Zone,
) -> Result<PrimitiveArray<TimestampMicrosecondType>, ArrowError> {
    let made: PrimitiveArray<TimestampMicrosecondType> =
        try_unary(local, |micros| zone.utc_of(micros).map_err(external))?;
    Ok(made.with_timezone(UTC))
}

/// Months and days are those of the zone's calendar, all else is time that passes.
pub(super) fn plus(micros: i64, interval: Interval, zone: &Zone) -> crate::Result<i64> {
    if is_infinite_timestamp(micros) {
        return Ok(micros);
    }
    let moved = match (interval.months, interval.days) {
        (0, 0) => micros,
        _ => zone.utc_of(plus_calendar(zone.local(micros)?, interval)?)?,
    };
    let moved = moved.checked_add(interval.micros).and_then(timestamp);
    moved.ok_or_else(timestamp_out_of_range)
}

fn external(error: QueryError) -> ArrowError {
    ArrowError::ExternalError(Box::new(error))
}

/// Puts the functions in the place of casts and sums that depend on the zone, and of casts to text that depend on other
/// settings, once all types are known.
#[derive(Debug)]
pub(crate) struct ZonedCasts;

impl AnalyzerRule for ZonedCasts {
    fn name(&self) -> &str {
        "zoned_casts"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_typed(plan, zoned)
    }
}

pub(super) fn zoned(expression: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expression {
        Expr::Cast(cast) => {
            let to = cast.field.data_type();
            let Ok(from) = cast.expr.get_type(schema) else {
                return Transformed::no(Expr::Cast(cast));
            };
            if *to == ArrowType::Utf8 && is_written(&from) {
                let text = ScalarFunction::new_udf(text_function(), vec![*cast.expr]);
                return Transformed::yes(Expr::ScalarFunction(text));
            }
            if from == ArrowType::Utf8 && has_zone(to).is_some() {
                let target = plain_type(to);
                if *to == arrow_type(ColumnType::Stored(target)) {
                    let read = ScalarFunction::new_udf(parse_function(target), vec![*cast.expr]);
                    return Transformed::yes(Expr::ScalarFunction(read));
                }
            }
            match (has_zone(&from), has_zone(to)) {
                (Some(true), Some(false)) => {
                    Transformed::yes(cast_local(local(*cast.expr), cast.field))
                }
                (Some(false), Some(true)) if !matches!(from, ArrowType::Time64(_)) => {
                    let local = match from {
                        LOCAL => *cast.expr,
                        ArrowType::Date32 => calling(date_as_timestamp(), vec![*cast.expr]),
                        _ => Expr::Cast(Cast::new(cast.expr, LOCAL)),
                    };
                    Transformed::yes(Kind::Utc.call(vec![local]))
                }
                (Some(true), Some(true)) if is_of_nanos(to) && !is_of_nanos(&from) => {
                    let local = Expr::Cast(Cast::new(cast.expr, LOCAL));
                    let nanos = calling(timestamp_as_nanos(), vec![local]);
                    Transformed::yes(Expr::Cast(Cast { expr: Box::new(nanos), field: cast.field }))
                }
                (Some(false), Some(false)) if from == LOCAL && *to != LOCAL => {
                    Transformed::yes(cast_local(*cast.expr, cast.field))
                }
                (Some(false), Some(false)) if from == ArrowType::Date32 && *to != from => {
                    let local = calling(date_as_timestamp(), vec![*cast.expr]);
                    Transformed::yes(cast_local(local, cast.field))
                }
                _ => Transformed::no(Expr::Cast(cast)),
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let of = |side: &Expr| side.get_type(schema).ok();
            let is_interval =
                |own: &ArrowType| *own == ArrowType::Interval(IntervalUnit::MonthDayNano);
            let (one, other) = (of(&left), of(&right));
            if let (Some(one), Some(other)) = (&one, &other)
                && let Some(function) = unzoned(one, op, other)
            {
                let is_turned = is_interval(one);
                let given = if is_turned { vec![*right, *left] } else { vec![*left, *right] };
                return Transformed::yes(calling(function, given));
            }
            let has_zone = |own: &Option<ArrowType>| own.as_ref().and_then(has_zone) == Some(true);
            if one == Some(ArrowType::Date32) && other == one && op == Operator::Minus {
                let days = Box::new(calling(date_difference(), vec![*left, *right]));
                return Transformed::yes(Expr::Cast(Cast::new(days, ArrowType::Int64)));
            }
            let kind = match op {
                Operator::Plus => Kind::Plus,
                Operator::Minus => Kind::Minus,
                _ => return Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            };
            if has_zone(&one) && other.as_ref().is_some_and(is_interval) {
                Transformed::yes(kind.call(vec![*left, *right]))
            } else if kind == Kind::Plus
                && has_zone(&other)
                && one.as_ref().is_some_and(is_interval)
            {
                Transformed::yes(kind.call(vec![*right, *left]))
            } else {
                Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))
            }
        }
        other => Transformed::no(other),
    }
}

/// The function in the place of an operator of dates and timestamps without a zone.
fn unzoned(one: &ArrowType, operator: Operator, other: &ArrowType) -> Option<Arc<ScalarUDF>> {
    use ArrowType::{Date32, Interval};
    Some(match (one, operator, other) {
        (&LOCAL, Operator::Plus, Interval(_)) | (Interval(_), Operator::Plus, &LOCAL) => {
            timestamp_plus()
        }
        (&LOCAL, Operator::Minus, Interval(_)) => timestamp_minus(),
        (Date32, Operator::Plus, Interval(_)) | (Interval(_), Operator::Plus, Date32) => {
            date_forth()
        }
        (Date32, Operator::Minus, Interval(_)) => date_back(),
        _ => return None,
    })
}

/// A cast of a timestamp without a zone to another type without one.
fn cast_local(local: Expr, field: FieldRef) -> Expr {
    match field.data_type() {
        &LOCAL => local,
        ArrowType::Date32 => calling(timestamp_as_date(), vec![local]),
        ArrowType::Time64(TimeUnit::Microsecond) => calling(timestamp_as_time(), vec![local]),
        to if is_of_nanos(to) => calling(timestamp_as_nanos(), vec![local]),
        _ => Expr::Cast(Cast { expr: Box::new(local), field }),
    }
}

fn is_of_nanos(arrow: &ArrowType) -> bool {
    matches!(arrow, ArrowType::Timestamp(TimeUnit::Nanosecond, _))
}

fn calling(function: Arc<ScalarUDF>, given: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(function, given))
}

/// Whether a session has a say in how values of a type are written.
fn is_written(arrow: &ArrowType) -> bool {
    arrow.is_floating()
        || matches!(arrow, ArrowType::Date32 | ArrowType::Timestamp(TimeUnit::Microsecond, _))
        || matches!(arrow, ArrowType::Interval(_) | ArrowType::Binary)
}

/// Whether a date or time has a zone; none for what is neither.
fn has_zone(arrow: &ArrowType) -> Option<bool> {
    match arrow {
        ArrowType::Timestamp(_, zone) => Some(zone.is_some()),
        ArrowType::Date32 | ArrowType::Time64(_) => Some(false),
        _ => None,
    }
}

/// What stands for one of these functions where the zone is UTC.
pub(super) fn plain(call: &ScalarFunction) -> Option<Expr> {
    let inner: &dyn std::any::Any = call.func.inner().as_ref();
    let kind = inner.downcast_ref::<Zoned>()?.kind;
    let with_zone = arrow_type(ColumnType::Stored(DataType::TimestampTz));
    let mut arguments = call.args.iter().cloned().map(Box::new);
    let first = arguments.next()?;
    Some(match (kind, arguments.next()) {
        (Kind::Local, _) => Expr::Cast(Cast::new(first, LOCAL)),
        (Kind::Utc, _) => Expr::Cast(Cast::new(first, with_zone)),
        (kind, other) => {
            let moved = if kind == Kind::Plus { timestamp_plus() } else { timestamp_minus() };
            let local = Expr::Cast(Cast::new(first, LOCAL));
            let moved = calling(moved, vec![local, *other?]);
            Expr::Cast(Cast::new(Box::new(moved), with_zone))
        }
    })
}
