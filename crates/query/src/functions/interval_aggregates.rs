//! Aggregates of intervals. A sum counts each part by itself, with space for more than an interval has, and is an
//! error (`22008`) where the result has none; an average is a part of it.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, Field, FieldRef, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use onrush::Interval;

use crate::error::QueryError;
use crate::interval::{divided, of_arrow, out_of_range, to_arrow};

const INTERVAL: ArrowType = ArrowType::Interval(IntervalUnit::MonthDayNano);

/// Which aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Sum,
    Average,
    Least,
    Greatest,
    First,
}

/// The aggregate of this name, of intervals.
pub(crate) fn interval_aggregate(name: &str) -> Option<Arc<AggregateUDF>> {
    let (name, kind) = match name {
        "sum" => ("interval_sum", Kind::Sum),
        "avg" => ("interval_avg", Kind::Average),
        "min" => ("interval_min", Kind::Least),
        "max" => ("interval_max", Kind::Greatest),
        _ => return None,
    };
    Some(function(name, kind))
}

/// The first of some intervals.
pub(crate) fn first_interval() -> Arc<AggregateUDF> {
    function("interval_first", Kind::First)
}

fn function(name: &'static str, kind: Kind) -> Arc<AggregateUDF> {
    let signature = Signature::exact(vec![INTERVAL], Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(OfIntervals { name, kind, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfIntervals {
    name: &'static str,
    kind: Kind,
    signature: Signature,
}

impl AggregateUDFImpl for OfIntervals {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(INTERVAL)
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(match self.kind {
            Kind::Sum | Kind::Average => {
                Box::new(Sum { is_average: self.kind == Kind::Average, ..Sum::default() })
            }
            kind => Box::new(Extreme { kind, found: None }),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let parts = match self.kind {
            Kind::Least | Kind::Greatest | Kind::First => vec![("found", INTERVAL)],
            Kind::Sum | Kind::Average => vec![
                ("rows", ArrowType::Int64),
                ("months", ArrowType::Int64),
                ("days", ArrowType::Int64),
                ("micros", ArrowType::Decimal128(38, 0)),
            ],
        };
        let field = |(name, of)| Arc::new(Field::new(format!("{}[{name}]", args.name), of, true));
        Ok(parts.into_iter().map(field).collect())
    }
}

/// The least or the greatest, of those that are equal the last; or the first.
#[derive(Debug)]
struct Extreme {
    kind: Kind,
    found: Option<IntervalMonthDayNano>,
}

impl Accumulator for Extreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("intervals are of one column") };
        for value in values.as_primitive::<IntervalMonthDayNanoType>().iter().flatten() {
            let span = |of| of_arrow(of).span_micros();
            let is_kept = self.found.is_some_and(|found| match self.kind {
                Kind::Greatest => span(found) > span(value),
                Kind::Least => span(found) < span(value),
                _ => true,
            });
            if !is_kept {
                self.found = Some(value);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::IntervalMonthDayNano(self.found))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

#[derive(Debug, Default)]
struct Sum {
    is_average: bool,
    rows: i64,
    months: i64,
    days: i64,
    micros: i128,
}

impl Sum {
    /// Adds the values, or takes them away again.
    fn count(&mut self, values: &[ArrayRef], sign: i64) -> Result<()> {
        let [values] = values else { return internal_err!("a sum of intervals is of one column") };
        for value in values.as_primitive::<IntervalMonthDayNanoType>().iter().flatten() {
            let Interval { months, days, micros } = of_arrow(value);
            self.rows += sign;
            self.months += sign * i64::from(months);
            self.days += sign * i64::from(days);
            self.micros += i128::from(sign) * i128::from(micros);
        }
        Ok(())
    }

    fn result(&self) -> std::result::Result<Option<Interval>, QueryError> {
        if self.rows == 0 {
            return Ok(None);
        }
        let whole = |number: i64| i32::try_from(number).map_err(|_| out_of_range());
        let sum = Interval {
            months: whole(self.months)?,
            days: whole(self.days)?,
            micros: i64::try_from(self.micros).map_err(|_| out_of_range())?,
        };
        Ok(Some(if self.is_average { divided(sum, self.rows as f64)? } else { sum }))
    }
}

impl Accumulator for Sum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.count(values, 1)
    }

    /// What a window that moves leaves behind.
    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.count(values, -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let result = self.result()?.map(to_arrow).transpose()?;
        Ok(ScalarValue::IntervalMonthDayNano(result))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![
            ScalarValue::Int64(Some(self.rows)),
            ScalarValue::Int64(Some(self.months)),
            ScalarValue::Int64(Some(self.days)),
            ScalarValue::Decimal128(Some(self.micros), 38, 0),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [rows, months, days, micros] = states else {
            return internal_err!("a sum of intervals has four states");
        };
        let number = |of: &ArrayRef, at| of.as_primitive::<Int64Type>().value(at);
        for at in 0..rows.len() {
            self.rows += number(rows, at);
            self.months += number(months, at);
            self.days += number(days, at);
            self.micros += micros.as_primitive::<Decimal128Type>().value(at);
        }
        Ok(())
    }
}

/// `avg`, which DataFusion has not of intervals: what is called by name, until the types of its arguments are known.
pub(crate) fn any_average() -> AggregateUDF {
    let signature = Signature::user_defined(Volatility::Immutable);
    AggregateUDF::new_from_impl(AnyAverage { signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AnyAverage {
    signature: Signature,
}

impl AggregateUDFImpl for AnyAverage {
    fn name(&self) -> &str {
        "avg"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[ArrowType]) -> Result<Vec<ArrowType>> {
        if let [ArrowType::Interval(_)] = given {
            return Ok(vec![INTERVAL]);
        }
        let field = |of: &ArrowType| Arc::new(Field::new("of", of.clone(), true));
        let fields: Vec<FieldRef> = given.iter().map(field).collect();
        let coerced = fields_with_udf(&fields, avg_udaf().as_ref())?;
        Ok(coerced.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, given: &[ArrowType]) -> Result<ArrowType> {
        match given {
            [ArrowType::Interval(_)] => Ok(INTERVAL),
            _ => avg_udaf().return_type(given),
        }
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        internal_err!("avg was not made one of a type")
    }
}
