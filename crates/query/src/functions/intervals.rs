//! Arithmetic of intervals as PostgreSQL has it, a column at a time.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray, StringArray};
use datafusion::arrow::compute::kernels::arity::{try_binary, try_unary, unary};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, Decimal128Type, Float64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMicrosecondType,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::QueryError;
use crate::interval::Interval;

const INTERVAL: ArrowType = ArrowType::Interval(IntervalUnit::MonthDayNano);
const TIMESTAMP: ArrowType = ArrowType::Timestamp(TimeUnit::Microsecond, None);
/// The name of the function that reads intervals.
pub(crate) const READ_INTERVAL: &str = "to_interval";
/// Any number of microseconds that an interval can count.
const SPAN_DIGITS: u8 = 38;

/// A function of one or two columns, and the types that it wants of them.
#[derive(Debug)]
struct Vectored {
    name: &'static str,
    takes: &'static [ArrowType],
    returns: ArrowType,
    call: fn(&[ArrayRef]) -> Result<ArrayRef>,
    signature: Signature,
}

impl Vectored {
    fn function(
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
            static FUNCTION: LazyLock<Arc<ScalarUDF>> =
                LazyLock::new(|| Vectored::function($name, $takes, $returns, $call));
            Arc::clone(&FUNCTION)
        }
    };
}

function!(
    /// What `moment - moment` is.
    between, "interval_between", &[TIMESTAMP, TIMESTAMP], INTERVAL, |given| {
        let [later, earlier] = given else { return wrong_number() };
        let (later, earlier) = (timestamps(later), timestamps(earlier));
        let between =
            |later, earlier| native(Interval::between(earlier, later).map_err(external)?);
        try_made(try_binary::<_, _, _, IntervalMonthDayNanoType>(later, earlier, between))
    }
);

function!(
    /// What `interval * number` is.
    times, "interval_times", &[INTERVAL, ArrowType::Float64], INTERVAL, |given| {
        let [interval, factor] = given else { return wrong_number() };
        let factor = factor.as_primitive::<Float64Type>();
        let times = |interval, factor| {
            native(Interval::from(interval).times(factor).map_err(external)?)
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
            native(Interval::from(interval).divided(divisor).map_err(external)?)
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
            Interval::from(interval).span_micros()
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
            written.map(|text| native(Interval::parse(text).map_err(external)?)).transpose()
        });
        let read: Result<Vec<Option<IntervalMonthDayNano>>, ArrowError> = read.collect();
        made(read?.into_iter().collect::<PrimitiveArray<IntervalMonthDayNanoType>>())
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
    justified(given, Interval::with_days)
});

function!(justify_days, "justify_days", &[INTERVAL], INTERVAL, |given| {
    justified(given, Interval::with_months)
});

function!(justify_interval, "justify_interval", &[INTERVAL], INTERVAL, |given| {
    justified(given, |interval| interval.with_days()?.with_months()?.with_one_sign())
});

/// Those that statements call by name.
pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    vec![age(), justify_hours(), justify_days(), justify_interval(), read_interval()]
}

fn justified(
    given: &[ArrayRef],
    justify: impl Fn(Interval) -> std::result::Result<Interval, QueryError>,
) -> Result<ArrayRef> {
    let [interval] = given else { return wrong_number() };
    let justify = |interval| native(justify(Interval::from(interval)).map_err(external)?);
    try_made(try_unary::<_, _, IntervalMonthDayNanoType>(intervals(interval), justify))
}

fn timestamps(column: &ArrayRef) -> &PrimitiveArray<TimestampMicrosecondType> {
    column.as_primitive()
}

fn intervals(column: &ArrayRef) -> &PrimitiveArray<IntervalMonthDayNanoType> {
    column.as_primitive()
}

fn native(interval: Interval) -> Result<IntervalMonthDayNano, ArrowError> {
    interval.try_into().map_err(external)
}

fn made<T: ArrowPrimitiveType>(array: PrimitiveArray<T>) -> Result<ArrayRef> {
    Ok(Arc::new(array))
}

fn try_made<T: ArrowPrimitiveType>(
    array: Result<PrimitiveArray<T>, ArrowError>,
) -> Result<ArrayRef> {
    made(array?)
}

fn external(error: QueryError) -> ArrowError {
    ArrowError::ExternalError(Box::new(error))
}

fn wrong_number<T>() -> Result<T> {
    internal_err!("a function of intervals has another number of arguments")
}
