//! `generate_series` of timestamps, as an array.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, ListBuilder, TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Field, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use onrush::Interval;

use super::zoned::plus;
use crate::error::QueryError;
use crate::interval::of_arrow;
use crate::style::{Zone, current};
use crate::timestamp::{is_infinite_timestamp, timestamp_out_of_range};

/// Timestamps of a type from one on, so far apart, up to another one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Series {
    of: ArrowType,
    signature: Signature,
}

/// The series of timestamps with a zone, or of those without one.
pub(crate) fn timestamp_series(of: ArrowType) -> Arc<ScalarUDF> {
    // Days and months are those of the session's zone.
    let volatility = match of {
        ArrowType::Timestamp(_, Some(_)) => Volatility::Stable,
        _ => Volatility::Immutable,
    };
    let step = ArrowType::Interval(IntervalUnit::MonthDayNano);
    let signature = Signature::exact(vec![of.clone(), of.clone(), step], volatility);
    Arc::new(ScalarUDF::new_from_impl(Series { of, signature }))
}

impl ScalarUDFImpl for Series {
    fn name(&self) -> &str {
        "timestamp_series"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::List(Arc::new(Field::new_list_field(self.of.clone(), true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given: Result<Vec<ArrayRef>> =
            args.args.iter().map(|given| given.to_array(args.number_rows)).collect();
        let given = given?;
        let [from, to, step] = given.as_slice() else {
            return internal_err!("a series of timestamps has three arguments");
        };
        let (from, to) = (
            from.as_primitive::<TimestampMicrosecondType>(),
            to.as_primitive::<TimestampMicrosecondType>(),
        );
        let step = step.as_primitive::<IntervalMonthDayNanoType>();
        let zone = match &self.of {
            ArrowType::Timestamp(TimeUnit::Microsecond, Some(_)) => current().zone.clone(),
            _ => Zone::utc(),
        };
        let values = TimestampMicrosecondBuilder::new().with_data_type(self.of.clone());
        let mut made = ListBuilder::new(values);
        for row in 0..args.number_rows {
            if from.is_null(row) || to.is_null(row) || step.is_null(row) {
                made.append_null();
                continue;
            }
            let step = of_arrow(step.value(row));
            append(from.value(row), to.value(row), step, &zone, made.values())?;
            made.append(true);
        }
        Ok(ColumnarValue::Array(Arc::new(made.finish())))
    }
}

fn append(
    from: i64,
    to: i64,
    step: Interval,
    zone: &Zone,
    values: &mut TimestampMicrosecondBuilder,
) -> crate::Result<()> {
    let span = step.span_micros();
    if span == 0 {
        return Err(QueryError::refused("22023", "step size cannot equal zero"));
    }
    let is_within = |micros: i64| if span > 0 { micros <= to } else { micros >= to };
    let mut micros = from;
    // What would have no end ends with the last timestamp that there is.
    if is_within(micros) && (is_infinite_timestamp(from) || is_infinite_timestamp(to)) {
        return Err(timestamp_out_of_range());
    }
    while is_within(micros) {
        values.append_value(micros);
        micros = plus(micros, step, zone)?;
    }
    Ok(())
}
