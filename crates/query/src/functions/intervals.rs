//! Arithmetic of intervals as PostgreSQL has it, a column at a time.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray, StringArray};
use datafusion::arrow::compute::kernels::arity::{try_binary, try_unary, unary};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, Decimal128Type, Float64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use onrush::{DataType, Interval, Value};

use super::typed::{Call, TypedFunction};
use crate::error::QueryError;
use crate::interval::{MICROS_PER_DAY, of_arrow, out_of_range, parse_interval, to_arrow};

const INTERVAL: ArrowType = ArrowType::Interval(IntervalUnit::MonthDayNano);
const TIMESTAMP: ArrowType = ArrowType::Timestamp(TimeUnit::Microsecond, None);
/// The name of the function that reads intervals.
pub(crate) const READ_INTERVAL: &str = "to_interval";
/// Any number of microseconds that an interval can count.
const SPAN_DIGITS: u8 = 38;

/// A function of one or two columns, and the types that it wants of them.
#[derive(Debug)]
pub(super) struct Vectored {
    name: &'static str,
    takes: &'static [ArrowType],
    returns: ArrowType,
    call: fn(&[ArrayRef]) -> Result<ArrayRef>,
    signature: Signature,
}

impl Vectored {
    pub(super) fn function(
        name: &'static str,
        takes: &'static [ArrowType],
        returns: ArrowType,
        call: fn(&[ArrayRef]) -> Result<ArrayRef>,
    ) -> Arc<ScalarUDF> {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Vectored { name, takes, returns, call, signature }))
    }
}

impl PartialEq for Vectored {
    fn eq(&self, other: &Vectored) -> bool {
        self.name == other.name
    }
}

impl Eq for Vectored {}

impl Hash for Vectored {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.name.hash(hasher);
    }
}

impl ScalarUDFImpl for Vectored {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Dates become moments, moments with a zone those without, numbers those that are wanted.
    fn coerce_types(&self, given: &[ArrowType]) -> Result<Vec<ArrowType>> {
        if given.len() != self.takes.len() {
            return plan_err!("{} takes {} arguments", self.name, self.takes.len());
        }
        Ok(self.takes.to_vec())
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns: Result<Vec<ArrayRef>> =
            args.args.iter().map(|given| given.to_array(args.number_rows)).collect();
        Ok(ColumnarValue::Array((self.call)(&columns?)?))
    }
}

macro_rules! function {
    ($(#[$doc:meta])* $of:ident, $name:expr, $takes:expr, $returns:expr, $call:expr) => {
        $(#[$doc])*
        pub(crate) fn $of() -> Arc<ScalarUDF> {
            static FUNCTION: std::sync::LazyLock<Arc<ScalarUDF>> =
                std::sync::LazyLock::new(|| Vectored::function($name, $takes, $returns, $call));
            Arc::clone(&FUNCTION)
        }
    };
}

pub(super) use function;

function!(
    /// What `moment - moment` is.
    between, "interval_between", &[TIMESTAMP, TIMESTAMP], INTERVAL, |given| {
        let [later, earlier] = given else { return wrong_number() };
        let (later, earlier) = (timestamps(later), timestamps(earlier));
        let between =
            |later, earlier| native(crate::interval::between(earlier, later).map_err(external)?);
        try_made(try_binary::<_, _, _, IntervalMonthDayNanoType>(later, earlier, between))
    }
);

function!(
    /// What `interval * number` is.
    times, "interval_times", &[INTERVAL, ArrowType::Float64], INTERVAL, |given| {
        let [interval, factor] = given else { return wrong_number() };
        let factor = factor.as_primitive::<Float64Type>();
        let times = |interval, factor| {
            native(crate::interval::times(of_arrow(interval), factor).map_err(external)?)
        };
        try_made(try_binary::<_, _, _, IntervalMonthDayNanoType>(intervals(interval), factor, times))
    }
);

function!(
    /// What `interval / number` is.
    divided, "interval_divided", &[INTERVAL, ArrowType::Float64], INTERVAL, |given| {
        let [interval, divisor] = given else { return wrong_number() };
        let divisor = divisor.as_primitive::<Float64Type>();
        let divide = |interval, divisor| {
            native(crate::interval::divided(of_arrow(interval), divisor).map_err(external)?)
        };
        let interval = intervals(interval);
        try_made(try_binary::<_, _, _, IntervalMonthDayNanoType>(interval, divisor, divide))
    }
);

function!(
    /// What intervals are compared by: a month has thirty days then, a day 24 hours.
    span, "interval_span", &[INTERVAL], ArrowType::Decimal128(SPAN_DIGITS, 0), |given| {
        let [interval] = given else { return wrong_number() };
        let span = unary::<_, _, Decimal128Type>(intervals(interval), |interval| {
            of_arrow(interval).span_micros()
        });
        Ok(Arc::new(span.with_precision_and_scale(SPAN_DIGITS, 0)?))
    }
);

function!(
    /// Text as an interval.
    read_interval, READ_INTERVAL, &[ArrowType::Utf8], INTERVAL, |given| {
        let [written] = given else { return wrong_number() };
        let written: &StringArray = written.as_string::<i32>();
        let read = written.iter().map(|written| {
            written.map(|text| native(parse_interval(text).map_err(external)?)).transpose()
        });
        let read: Result<Vec<Option<IntervalMonthDayNano>>, ArrowError> = read.collect();
        made(read?.into_iter().collect::<PrimitiveArray<IntervalMonthDayNanoType>>())
    }
);

function!(
    /// The part of an interval that is less than a day, from midnight on.
    time_of_interval, "interval_time", &[INTERVAL], ArrowType::Time64(TimeUnit::Microsecond), |given| {
        let [interval] = given else { return wrong_number() };
        made(unary::<_, _, Time64MicrosecondType>(intervals(interval), |interval| {
            of_arrow(interval).micros.rem_euclid(MICROS_PER_DAY)
        }))
    }
);

function!(
    /// A time of day as an interval.
    interval_of_time, "time_interval", &[ArrowType::Time64(TimeUnit::Microsecond)], INTERVAL, |given| {
        let [time] = given else { return wrong_number() };
        let time = time.as_primitive::<Time64MicrosecondType>();
        made(unary::<_, _, IntervalMonthDayNanoType>(time, |micros| {
            IntervalMonthDayNano::new(0, 0, micros * 1000)
        }))
    }
);

function!(
    /// Years, months and days between two moments, as calendars count them.
    age, "age", &[TIMESTAMP, TIMESTAMP], INTERVAL, |given| {
        let [later, earlier] = given else { return wrong_number() };
        let age = |later, earlier| native(crate::timestamp::age(later, earlier).map_err(external)?);
        let (later, earlier) = (timestamps(later), timestamps(earlier));
        try_made(try_binary::<_, _, _, IntervalMonthDayNanoType>(later, earlier, age))
    }
);

function!(justify_hours, "justify_hours", &[INTERVAL], INTERVAL, |given| {
    justified(given, |interval| Some(interval.with_days()?.with_time_of_days_sign()))
});

function!(justify_days, "justify_days", &[INTERVAL], INTERVAL, |given| {
    justified(given, |interval| Some(interval.with_months()?.with_days_of_months_sign()))
});

function!(justify_interval, "justify_interval", &[INTERVAL], INTERVAL, |given| {
    justified(given, |interval| Some(interval.with_days()?.with_months()?.with_one_sign()))
});

/// The greatest or the least of some intervals; NULL counts for nothing.
pub(crate) fn extreme_interval(is_greatest: bool) -> Arc<ScalarUDF> {
    let (name, call): (_, Call) = match is_greatest {
        true => ("interval_greatest", |given| Ok(extreme(given.values, Ordering::Greater))),
        false => ("interval_least", |given| Ok(extreme(given.values, Ordering::Less))),
    };
    TypedFunction::new(name, |_| DataType::Interval.into(), call).into_udf()
}

/// Of those that are equal the first.
fn extreme(given: &[Value<'_>], wanted: Ordering) -> Value<'static> {
    let values = given.iter().filter(|value| !value.is_null());
    let found = values.reduce(|kept, next| match next.total_cmp(kept) == wanted {
        true => next,
        false => kept,
    });
    found.map_or(Value::Null, |found| found.clone().into_owned())
}

/// Those that statements call by name.
pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    vec![age(), justify_hours(), justify_days(), justify_interval(), read_interval()]
}

fn justified(
    given: &[ArrayRef],
    justify: impl Fn(Interval) -> Option<Interval>,
) -> Result<ArrayRef> {
    let [interval] = given else { return wrong_number() };
    let justify =
        |interval| native(justify(of_arrow(interval)).ok_or_else(|| external(out_of_range()))?);
    try_made(try_unary::<_, _, IntervalMonthDayNanoType>(intervals(interval), justify))
}

fn timestamps(column: &ArrayRef) -> &PrimitiveArray<TimestampMicrosecondType> {
    column.as_primitive()
}

fn intervals(column: &ArrayRef) -> &PrimitiveArray<IntervalMonthDayNanoType> {
    column.as_primitive()
}

fn native(interval: Interval) -> Result<IntervalMonthDayNano, ArrowError> {
    to_arrow(interval).map_err(external)
}

pub(super) fn made<T: ArrowPrimitiveType>(array: PrimitiveArray<T>) -> Result<ArrayRef> {
    Ok(Arc::new(array))
}

pub(super) fn try_made<T: ArrowPrimitiveType>(
    array: Result<PrimitiveArray<T>, ArrowError>,
) -> Result<ArrayRef> {
    made(array?)
}

pub(super) fn external(error: QueryError) -> ArrowError {
    ArrowError::ExternalError(Box::new(error))
}

pub(super) fn wrong_number<T>() -> Result<T> {
    internal_err!("a function of intervals has another number of arguments")
}
