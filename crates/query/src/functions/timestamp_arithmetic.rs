//! Arithmetic and casts of dates and timestamps, which may be infinite and of years that DataFusion's own do not know;
//! `date_bin`.

use std::ops::RangeInclusive;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::kernels::arity::{try_binary, try_unary, unary};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Date32Type, Int32Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use onrush::Interval;

use super::intervals::{Vectored, external, function, made, try_made, wrong_number};
use crate::error::QueryError;
use crate::interval::{MICROS_PER_DAY, of_arrow, out_of_range};
use crate::timestamp::{
    date_of_timestamp, date_plus, days_between, is_infinite_timestamp, of_date, plus, timestamp,
    timestamp_out_of_range,
};
use crate::types::UTC;

const DATE: ArrowType = ArrowType::Date32;
const TIME: ArrowType = ArrowType::Time64(TimeUnit::Microsecond);
const TIMESTAMP: ArrowType = ArrowType::Timestamp(TimeUnit::Microsecond, None);
const NANOS: ArrowType = ArrowType::Timestamp(TimeUnit::Nanosecond, None);
const INTERVAL: ArrowType = ArrowType::Interval(IntervalUnit::MonthDayNano);

function!(
    /// The beginning of a date.
    date_as_timestamp, "date_timestamp", &[DATE], TIMESTAMP, |given| {
        let [date] = given else { return wrong_number() };
        let begin = |days| of_date(days).map_err(external);
        try_made(try_unary::<_, _, TimestampMicrosecondType>(date.as_primitive::<Date32Type>(), begin))
    }
);

function!(
    /// The date that a timestamp is of.
    timestamp_as_date, "timestamp_date", &[TIMESTAMP], DATE, |given| {
        let [timestamps] = given else { return wrong_number() };
        let timestamps = timestamps.as_primitive::<TimestampMicrosecondType>();
        made(unary::<_, _, Date32Type>(timestamps, date_of_timestamp))
    }
);

function!(
    /// The time of day of a timestamp; an infinite one has none.
    timestamp_as_time, "timestamp_time", &[TIMESTAMP], TIME, |given| {
        let [timestamps] = given else { return wrong_number() };
        let timestamps = timestamps.as_primitive::<TimestampMicrosecondType>();
        let time = |micros: i64| {
            (!is_infinite_timestamp(micros)).then(|| micros.rem_euclid(MICROS_PER_DAY))
        };
        made(timestamps.unary_opt::<_, Time64MicrosecondType>(time))
    }
);

function!(
    /// A timestamp in nanoseconds, for what DataFusion has of them alone.
    timestamp_as_nanos, "timestamp_nanos", &[TIMESTAMP], NANOS, |given| {
        let [timestamps] = given else { return wrong_number() };
        let timestamps = timestamps.as_primitive::<TimestampMicrosecondType>();
        let nanos = |micros: i64| {
            micros.checked_mul(1000).ok_or_else(|| {
                let message = "a timestamp before 1678 or after 2261 is not supported here";
                external(QueryError::NotSupported { message: message.to_owned() })
            })
        };
        try_made(try_unary::<_, _, TimestampNanosecondType>(timestamps, nanos))
    }
);

function!(
    /// The days between two dates.
    date_difference, "date_difference", &[DATE, DATE], ArrowType::Int32, |given| {
        let [later, earlier] = given else { return wrong_number() };
        let between = |later, earlier| days_between(earlier, later).map_err(external);
        let (later, earlier) = (later.as_primitive::<Date32Type>(), earlier.as_primitive::<Date32Type>());
        try_made(try_binary::<_, _, _, Int32Type>(later, earlier, between))
    }
);

function!(
    /// A date at a time of day.
    date_with_time, "date_time", &[DATE, TIME], TIMESTAMP, |given| {
        let [date, time] = given else { return wrong_number() };
        let at = |days, micros: i64| {
            let begin = of_date(days).map_err(external)?;
            if is_infinite_timestamp(begin) {
                return Ok(begin);
            }
            timestamp(begin + micros).ok_or_else(|| external(timestamp_out_of_range()))
        };
        let time = time.as_primitive::<Time64MicrosecondType>();
        try_made(try_binary::<_, _, _, TimestampMicrosecondType>(date.as_primitive::<Date32Type>(), time, at))
    }
);

function!(
    /// A timestamp and an interval later.
    timestamp_plus, "timestamp_plus", &[TIMESTAMP, INTERVAL], TIMESTAMP, |given| {
        moved(given, Ok)
    }
);

function!(
    /// A timestamp and an interval earlier.
    timestamp_minus, "timestamp_minus", &[TIMESTAMP, INTERVAL], TIMESTAMP, |given| {
        moved(given, |interval| interval.negated().ok_or_else(|| external(out_of_range())))
    }
);

function!(
    /// A date so many days later as an interval has.
    date_forth, "date_forth", &[DATE, INTERVAL], DATE, |given| date_moved(given, 1)
);

function!(
    /// A date so many days earlier as an interval has.
    date_back, "date_back", &[DATE, INTERVAL], DATE, |given| date_moved(given, -1)
);

function!(
    /// A date so many days later.
    date_plus_days, "date_plus_days", &[DATE, ArrowType::Int64], DATE, |given| {
        let [date, days] = given else { return wrong_number() };
        let sum = |date, days: i64| match i32::try_from(days) {
            Ok(days) => date_plus(date, days.into()).map_err(external),
            Err(_) => Err(external(QueryError::refused("22008", "date out of range"))),
        };
        let days = days.as_primitive::<Int64Type>();
        try_made(try_binary::<_, _, _, Date32Type>(date.as_primitive::<Date32Type>(), days, sum))
    }
);

fn moved(
    given: &[ArrayRef],
    directed: impl Fn(Interval) -> Result<Interval, ArrowError>,
) -> Result<ArrayRef> {
    let [timestamps, interval] = given else { return wrong_number() };
    let timestamps = timestamps.as_primitive::<TimestampMicrosecondType>();
    let interval = interval.as_primitive::<IntervalMonthDayNanoType>();
    let sum = |micros, interval: IntervalMonthDayNano| {
        plus(micros, directed(of_arrow(interval))?).map_err(external)
    };
    try_made(try_binary::<_, _, _, TimestampMicrosecondType>(timestamps, interval, sum))
}

/// Whole numbers of days have become intervals.
fn date_moved(given: &[ArrayRef], sign: i64) -> Result<ArrayRef> {
    let [date, interval] = given else { return wrong_number() };
    let interval = interval.as_primitive::<IntervalMonthDayNanoType>();
    let sum = |days, interval: IntervalMonthDayNano| {
        let Interval { days: by, micros, .. } = of_arrow(interval);
        date_plus(days, sign * (i64::from(by) + micros / MICROS_PER_DAY)).map_err(external)
    };
    try_made(try_binary::<_, _, _, Date32Type>(date.as_primitive::<Date32Type>(), interval, sum))
}

/// Those that statements call by name.
pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let signature = Signature::user_defined(Volatility::Immutable);
    vec![Arc::new(ScalarUDF::new_from_impl(DateBin { signature }))]
}

/// A date or timestamp by which rows are ordered, where DataFusion adds an interval to it or takes one away: it takes a
/// sum that it cannot compute for one without an end, so that the frames of others than these would be wrong.
pub(crate) fn in_reach() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(OnDays {
        name: "in_reach",
        // Of the years from -262000 to 262000.
        days: -96_413_000..=94_974_000,
        refusal: "RANGE with a distance from an infinite date or one after 262000 is not supported",
        signature: Signature::any(1, Volatility::Immutable),
    }))
}

/// An array of dates or timestamps that DataFusion takes apart, which writes those of other years otherwise than
/// PostgreSQL.
pub(crate) fn in_common_years() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(OnDays {
        name: "in_common_years",
        // Of the years from 1 to 9999.
        days: -719_162..=2_932_896,
        refusal: "an array of dates before the year 1 or after 9999 is not supported here",
        signature: Signature::any(1, Volatility::Immutable),
    }))
}

/// The same value, a date, a timestamp or an array of them, which is refused unless all are on some days.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OnDays {
    name: &'static str,
    /// Since 1970.
    days: RangeInclusive<i64>,
    refusal: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for OnDays {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[ArrowType]) -> Result<ArrowType> {
        match given {
            [own] => Ok(own.clone()),
            _ => internal_err!("{} has one argument", self.name),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [given] = args.args.as_slice() else { return wrong_number() };
        if !are_within(&given.to_array(args.number_rows)?, &self.days) {
            return Err(QueryError::NotSupported { message: self.refusal.to_owned() }.into());
        }
        Ok(given.clone())
    }
}

/// Whether all dates or timestamps are on these days.
fn are_within(column: &ArrayRef, days: &RangeInclusive<i64>) -> bool {
    match column.data_type() {
        ArrowType::List(_) => {
            column.as_list::<i32>().iter().flatten().all(|elements| are_within(&elements, days))
        }
        ArrowType::Date32 => {
            let dates = column.as_primitive::<Date32Type>();
            dates.iter().flatten().all(|date| days.contains(&date.into()))
        }
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
            let micros = column.as_primitive::<TimestampMicrosecondType>();
            micros.iter().flatten().all(|micros| days.contains(&micros.div_euclid(MICROS_PER_DAY)))
        }
        _ => true,
    }
}

/// `date_bin`: the last timestamp not behind another one that is some strides away from an origin.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DateBin {
    signature: Signature,
}

impl ScalarUDFImpl for DateBin {
    fn name(&self) -> &str {
        "date_bin"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[ArrowType]) -> Result<Vec<ArrowType>> {
        let [_, source, origin] = given else {
            return plan_err!("date_bin takes 3 arguments");
        };
        let is_local = |own: &ArrowType| matches!(own, ArrowType::Timestamp(_, None));
        let is_text = |own: &ArrowType| matches!(own, ArrowType::Utf8 | ArrowType::Null);
        // What is in quotes is what the other one is.
        let wanted = match is_local(source) && (is_local(origin) || is_text(origin))
            || is_text(source) && is_local(origin)
        {
            true => TIMESTAMP,
            false => ArrowType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        };
        Ok(vec![INTERVAL, wanted.clone(), wanted])
    }

    fn return_type(&self, given: &[ArrowType]) -> Result<ArrowType> {
        match given {
            [_, source, _] => Ok(source.clone()),
            _ => internal_err!("date_bin takes 3 arguments"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns: Result<Vec<ArrayRef>> =
            args.args.iter().map(|given| given.to_array(args.number_rows)).collect();
        let columns = columns?;
        let [strides, sources, origins] = columns.as_slice() else { return wrong_number() };
        let strides = strides.as_primitive::<IntervalMonthDayNanoType>();
        let micros = sources.as_primitive::<TimestampMicrosecondType>();
        let origins = origins.as_primitive::<TimestampMicrosecondType>();
        let mut binned = Vec::with_capacity(micros.len());
        for row in 0..micros.len() {
            let is_null = strides.is_null(row) || micros.is_null(row) || origins.is_null(row);
            binned.push(match is_null {
                true => None,
                false => {
                    let stride = of_arrow(strides.value(row));
                    Some(bin(stride, micros.value(row), origins.value(row))?)
                }
            });
        }
        let binned: PrimitiveArray<TimestampMicrosecondType> = binned.into_iter().collect();
        let ArrowType::Timestamp(_, zone) = sources.data_type() else { return wrong_number() };
        Ok(ColumnarValue::Array(Arc::new(binned.with_timezone_opt(zone.clone()))))
    }
}

fn bin(stride: Interval, micros: i64, origin: i64) -> crate::Result<i64> {
    if is_infinite_timestamp(micros) {
        return Ok(micros);
    }
    if is_infinite_timestamp(origin) {
        return Err(QueryError::refused("22008", "origin out of range"));
    }
    if stride.months != 0 {
        let message = "timestamps cannot be binned into intervals containing months or years";
        return Err(QueryError::refused("0A000", message));
    }
    let width = i64::from(stride.days)
        .checked_mul(MICROS_PER_DAY)
        .and_then(|days| days.checked_add(stride.micros))
        .ok_or_else(out_of_range)?;
    if width <= 0 {
        return Err(QueryError::refused("22008", "stride must be greater than zero"));
    }
    let since = micros.checked_sub(origin).ok_or_else(out_of_range)?;
    timestamp(micros - since.rem_euclid(width)).ok_or_else(timestamp_out_of_range)
}
