//! `extract`, `date_part`, `date_trunc` and `timezone`, of all types that have dates or times.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Builder, Float64Builder, PrimitiveArray,
};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Date32Type, FieldRef, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use onrush::{DataType, Interval, TimeTz, Value};

use super::zoned::{local_of, utc_of};
use crate::calendar::{Broken, Part, Unit, truncated, truncated_interval};
use crate::columns::ColumnBuilder;
use crate::error::QueryError;
use crate::interval::of_arrow;
use crate::style::{Zone, current};
use crate::timestamp::is_infinite_timestamp;
use crate::types::{ColumnType, TIME_TZ_BYTES, arrow_type, field};
use crate::values::value_at;

const TIME_TZ: ArrowType = ArrowType::FixedSizeBinary(TIME_TZ_BYTES);
const INTERVAL: ArrowType = ArrowType::Interval(IntervalUnit::MonthDayNano);
const LOCAL: ArrowType = ArrowType::Timestamp(TimeUnit::Microsecond, None);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Extract,
    /// Where an infinity may come out.
    EndlessExtract,
    Part,
    Truncate,
    AtZone,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfFields {
    kind: Kind,
    name: &'static str,
    signature: Signature,
}

/// Those that statements call by name.
pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let all = [
        (Kind::Extract, "extract"),
        (Kind::Part, "date_part"),
        (Kind::Truncate, "date_trunc"),
        (Kind::AtZone, "timezone"),
    ];
    let function = |(kind, name)| {
        let signature = Signature::user_defined(Volatility::Stable);
        Arc::new(ScalarUDF::new_from_impl(OfFields { kind, name, signature }))
    };
    all.into_iter().map(function).collect()
}

/// `extract` of a value of this type, if what it comes to may be infinite, or have any digits: known when all types
/// are. None where the one that is called by name will do.
pub(crate) fn endless_extract(part: &Expr, of: &ArrowType) -> Result<Option<Arc<ScalarUDF>>> {
    if !matches!(of, ArrowType::Date32 | ArrowType::Timestamp(..)) {
        return Ok(None);
    }
    let is_endless = match part {
        Expr::Literal(part, _) if let Some(Some(word)) = part.try_as_str() => {
            Unit::of(word, name_of(of))?.is_monotonic()
        }
        _ => true,
    };
    Ok(is_endless.then(|| {
        let signature = Signature::user_defined(Volatility::Stable);
        let kind = Kind::EndlessExtract;
        Arc::new(ScalarUDF::new_from_impl(OfFields { kind, name: "extract", signature }))
    }))
}

/// Whether a function is one of these, so that it asks for the zone where it is called.
pub(super) fn is_of_fields(function: &ScalarUDF) -> bool {
    let inner: &dyn std::any::Any = function.inner().as_ref();
    inner.is::<OfFields>()
}

fn with_zone() -> ArrowType {
    arrow_type(ColumnType::Stored(DataType::TimestampTz))
}

impl OfFields {
    /// The type that a value is taken as.
    fn taken(&self, own: &ArrowType) -> Result<ArrowType> {
        let is_part = matches!(self.kind, Kind::Extract | Kind::EndlessExtract | Kind::Part);
        Ok(match own {
            ArrowType::Timestamp(_, None) => LOCAL,
            ArrowType::Timestamp(_, Some(_)) => with_zone(),
            ArrowType::Date32 if is_part => ArrowType::Date32,
            ArrowType::Date32 => with_zone(),
            ArrowType::Time64(_) if self.kind != Kind::AtZone => {
                ArrowType::Time64(TimeUnit::Microsecond)
            }
            ArrowType::Interval(_) if self.kind != Kind::AtZone => INTERVAL,
            ArrowType::FixedSizeBinary(TIME_TZ_BYTES) if self.kind != Kind::Truncate => TIME_TZ,
            ArrowType::Null | ArrowType::Utf8 => with_zone(),
            _ => return plan_err!("there is no function {} of such a value", self.name),
        })
    }
}

impl ScalarUDFImpl for OfFields {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[ArrowType]) -> Result<Vec<ArrowType>> {
        match given {
            [ArrowType::Interval(_), of] if self.kind == Kind::AtZone => {
                Ok(vec![INTERVAL, self.taken(of)?])
            }
            [_, of] => Ok(vec![ArrowType::Utf8, self.taken(of)?]),
            [_, of, _] if self.kind == Kind::Truncate && has_zone(of) => {
                Ok(vec![ArrowType::Utf8, self.taken(of)?, ArrowType::Utf8])
            }
            _ => plan_err!("there is no function {} of so many arguments", self.name),
        }
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        internal_err!("the type of {} depends on what it is given", self.name)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(of) = args.arg_fields.get(1) else {
            return internal_err!("{} has too few arguments", self.name);
        };
        let returns = match self.kind {
            Kind::Part => ArrowType::Float64,
            Kind::Extract => {
                let word = args.scalar_arguments.first().copied().flatten();
                let of = of.data_type();
                let scale = match word.and_then(ScalarValue::try_as_str).flatten() {
                    Some(word) => Unit::of(word, name_of(of))?.scale(*of == ArrowType::Date32),
                    None => 6,
                };
                ArrowType::Decimal128(28, scale)
            }
            Kind::EndlessExtract => crate::numeric::ANY,
            // A time of day is taken as an interval.
            Kind::Truncate if matches!(of.data_type(), ArrowType::Time64(_)) => INTERVAL,
            Kind::Truncate => of.data_type().clone(),
            Kind::AtZone => match of.data_type() {
                ArrowType::Timestamp(_, Some(_)) => LOCAL,
                ArrowType::FixedSizeBinary(_) => TIME_TZ,
                _ => with_zone(),
            },
        };
        let column = crate::values::own_type(&returns);
        let made = field(self.name, column, true);
        Ok(Arc::new(made.with_data_type(returns)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given: Result<Vec<ArrayRef>> =
            args.args.iter().map(|given| given.to_array(args.number_rows)).collect();
        let given = given?;
        let [word, of, ..] = given.as_slice() else {
            return internal_err!("{} has too few arguments", self.name);
        };
        let made = match self.kind {
            Kind::Extract | Kind::EndlessExtract | Kind::Part => {
                parts(word, of, args.return_field.data_type())?
            }
            Kind::Truncate => truncate(word, of, given.get(2))?,
            Kind::AtZone => at_zone(word, of)?,
        };
        Ok(ColumnarValue::Array(made))
    }
}

fn has_zone(arrow: &ArrowType) -> bool {
    matches!(arrow, ArrowType::Timestamp(_, Some(_)) | ArrowType::Utf8 | ArrowType::Null)
}

fn name_of(arrow: &ArrowType) -> &'static str {
    match arrow {
        ArrowType::Date32 => "date",
        ArrowType::Time64(_) => "time without time zone",
        ArrowType::FixedSizeBinary(_) => "time with time zone",
        ArrowType::Interval(_) => "interval",
        ArrowType::Timestamp(_, None) => "timestamp without time zone",
        _ => "timestamp with time zone",
    }
}

/// The value of a row, broken down.
fn broken(of: &ArrayRef, row: usize, zone: &Zone) -> crate::Result<Broken> {
    match of.data_type() {
        ArrowType::Date32 => Broken::date(of.as_primitive::<Date32Type>().value(row)),
        ArrowType::Time64(_) => {
            Ok(Broken::time(of.as_primitive::<Time64MicrosecondType>().value(row)))
        }
        ArrowType::FixedSizeBinary(_) => Ok(Broken::TimeTz(time_tz_at(of, row)?)),
        ArrowType::Interval(_) => {
            let value = of.as_primitive::<IntervalMonthDayNanoType>().value(row);
            Ok(Broken::interval(of_arrow(value)))
        }
        ArrowType::Timestamp(_, None) => {
            Broken::local(of.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        _ => Broken::zoned(of.as_primitive::<TimestampMicrosecondType>().value(row), zone),
    }
}

fn time_tz_at(of: &ArrayRef, row: usize) -> crate::Result<TimeTz> {
    match value_at(of, row, DataType::TimeTz.into())? {
        Value::TimeTz(time) => Ok(time),
        _ => Err(QueryError::Internal { message: "a time with an offset is none".to_owned() }),
    }
}

fn parts(word: &ArrayRef, of: &ArrayRef, returns: &ArrowType) -> Result<ArrayRef> {
    let (words, style) = (word.as_string::<i32>(), current());
    let name = name_of(of.data_type());
    let is_of_date = *of.data_type() == ArrowType::Date32;
    let part = |row: usize| -> crate::Result<(Part, i8)> {
        if words.is_null(row) || of.is_null(row) {
            return Ok((Part::Null, 0));
        }
        let unit = Unit::of(words.value(row), name)?;
        let part = broken(of, row, &style.zone)?.part(unit, words.value(row), name)?;
        Ok((part, unit.scale(is_of_date)))
    };
    match returns {
        ArrowType::Decimal128(precision, scale) => {
            let mut made = Decimal128Builder::with_capacity(of.len())
                .with_precision_and_scale(*precision, *scale)?;
            let dropped = 10i128.pow(6 - u32::from(scale.unsigned_abs()).min(6));
            for row in 0..of.len() {
                made.append_option(part(row)?.0.millionths().map(|number| number / dropped));
            }
            Ok(Arc::new(made.finish()))
        }
        ArrowType::Float64 => {
            let mut made = Float64Builder::with_capacity(of.len());
            for row in 0..of.len() {
                made.append_option(part(row)?.0.float());
            }
            Ok(Arc::new(made.finish()))
        }
        _ => {
            let mut made = ColumnBuilder::new(DataType::Numeric(None).into(), of.len())?;
            for row in 0..of.len() {
                let (part, scale) = part(row)?;
                made.append(&part.numeric(scale)?.map_or(Value::Null, Value::Numeric))?;
            }
            Ok(made.finish())
        }
    }
}

fn truncate(word: &ArrayRef, of: &ArrayRef, zones: Option<&ArrayRef>) -> Result<ArrayRef> {
    if let ArrowType::Time64(_) = of.data_type() {
        let times = of.as_primitive::<Time64MicrosecondType>();
        let interval = |micros: i64| IntervalMonthDayNano::new(0, 0, micros * 1000);
        let intervals: ArrayRef = Arc::new(times.unary::<_, IntervalMonthDayNanoType>(interval));
        return truncate(word, &intervals, zones);
    }
    let (words, style) = (word.as_string::<i32>(), current());
    let name = name_of(of.data_type());
    if *of.data_type() == INTERVAL {
        let mut made = ColumnBuilder::new(ColumnType::Stored(DataType::Interval), of.len())?;
        let intervals = of.as_primitive::<IntervalMonthDayNanoType>();
        for row in 0..of.len() {
            if words.is_null(row) || of.is_null(row) {
                made.append(&onrush::Value::Null)?;
                continue;
            }
            let unit = Unit::of(words.value(row), name)?;
            let interval = of_arrow(intervals.value(row));
            let cut = truncated_interval(interval, unit, words.value(row))?;
            made.append(&onrush::Value::Interval(cut))?;
        }
        return Ok(made.finish());
    }
    let timestamps = of.as_primitive::<TimestampMicrosecondType>();
    let mut made: Vec<Option<i64>> = timestamps.iter().collect();
    let utc = Zone::utc();
    for (row, micros) in made.iter_mut().enumerate() {
        if words.is_null(row) || zones.is_some_and(|zones| zones.is_null(row)) {
            *micros = None;
        }
        let Some(value) = micros.as_mut().filter(|micros| !is_infinite_timestamp(**micros)) else {
            continue;
        };
        let unit = Unit::of(words.value(row), name)?;
        let other = match zones {
            Some(zones) => Some(zone_named(zones.as_string::<i32>().value(row))?),
            None => None,
        };
        let own = if has_zone(of.data_type()) { &style.zone } else { &utc };
        *value = truncated(*value, unit, words.value(row), other.as_ref().unwrap_or(own), name)?;
    }
    let made: PrimitiveArray<TimestampMicrosecondType> = made.into_iter().collect();
    Ok(match of.data_type() {
        ArrowType::Timestamp(_, zone) => Arc::new(made.with_timezone_opt(zone.clone())),
        _ => Arc::new(made),
    })
}

/// A zone that a statement names, by an abbreviation, too.
pub(super) fn zone_named(name: &str) -> crate::Result<Zone> {
    let zone = crate::abbreviations::zone(name).or_else(|| Zone::named(name));
    zone.ok_or_else(|| QueryError::refused("22023", format!("time zone \"{name}\" not recognized")))
}

fn at_zone(zones: &ArrayRef, of: &ArrayRef) -> Result<ArrayRef> {
    if *of.data_type() == TIME_TZ {
        return time_at_zone(zones, of);
    }
    let timestamps = of.as_primitive::<TimestampMicrosecondType>();
    let has_zone = has_zone(of.data_type());
    // Mostly there is one for all rows.
    let mut known: Option<(String, Zone)> = None;
    let mut made = Vec::with_capacity(of.len());
    let offsets = match zones.data_type() {
        ArrowType::Interval(_) => Some(zones.as_primitive::<IntervalMonthDayNanoType>()),
        _ => None,
    };
    for row in 0..of.len() {
        if zones.is_null(row) || of.is_null(row) {
            made.push(None);
            continue;
        }
        let zone = match offsets {
            Some(offsets) => zone_of(of_arrow(offsets.value(row)))?,
            None => {
                let name = zones.as_string::<i32>().value(row);
                match &known {
                    Some((own, zone)) if own == name => zone.clone(),
                    _ => {
                        let zone = zone_named(name)?;
                        known = Some((name.to_owned(), zone.clone()));
                        zone
                    }
                }
            }
        };
        let one = timestamps.slice(row, 1);
        let moved = if has_zone { local_of(&one, &zone)? } else { utc_of(&one, &zone)? };
        made.push(Some(moved.value(0)));
    }
    let made: PrimitiveArray<TimestampMicrosecondType> = made.into_iter().collect();
    Ok(match has_zone {
        true => Arc::new(made),
        false => Arc::new(made.with_timezone(crate::types::UTC)),
    })
}

/// Times with an offset by the clocks of another zone, as they are today.
fn time_at_zone(zones: &ArrayRef, of: &ArrayRef) -> Result<ArrayRef> {
    let mut made = ColumnBuilder::new(DataType::TimeTz.into(), of.len())?;
    let today = crate::clock::now_micros();
    for row in 0..of.len() {
        if zones.is_null(row) || of.is_null(row) {
            made.append(&Value::Null)?;
            continue;
        }
        let zone = match zones.as_primitive_opt::<IntervalMonthDayNanoType>() {
            Some(offsets) => zone_of(of_arrow(offsets.value(row)))?,
            None => zone_named(zones.as_string::<i32>().value(row))?,
        };
        let time = time_tz_at(of, row)?.at_offset(zone.offsets(today)?.seconds);
        made.append(&Value::TimeTz(time))?;
    }
    Ok(made.finish())
}

/// The zone that is an interval ahead of UTC.
fn zone_of(interval: Interval) -> crate::Result<Zone> {
    if interval.months != 0 || interval.days != 0 {
        let message = format!("interval time zone \"{interval}\" must not include months or days");
        return Err(QueryError::refused("22023", message));
    }
    let seconds = i32::try_from(interval.micros / 1_000_000).ok();
    let too_far = || QueryError::refused("22023", "UTC timezone offset is out of range");
    seconds.and_then(Zone::fixed).ok_or_else(too_far)
}
