//! Sums of intervals: each part by itself, with space for more than an interval has, and an error
//! (`22008`) where the result has none.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, Field, FieldRef, Int64Type, IntervalMonthDayNanoType,
    IntervalUnit,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

use crate::error::QueryError;
use crate::interval::{Interval, out_of_range};

const INTERVAL: ArrowType = ArrowType::Interval(IntervalUnit::MonthDayNano);

/// `sum(interval)`.
pub(crate) fn interval_sum() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        let signature = Signature::exact(vec![INTERVAL], Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(IntervalSum { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct IntervalSum {
    signature: Signature,
}

impl AggregateUDFImpl for IntervalSum {
    fn name(&self) -> &str {
        "interval_sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(INTERVAL)
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Sum::default()))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let micros = ArrowType::Decimal128(38, 0);
        let parts = [
            ("rows", ArrowType::Int64),
            ("months", ArrowType::Int64),
            ("days", ArrowType::Int64),
            ("micros", micros),
        ];
        let field = |(name, of)| Arc::new(Field::new(format!("{}[{name}]", args.name), of, false));
        Ok(parts.into_iter().map(field).collect())
    }
}

#[derive(Debug, Default)]
struct Sum {
    rows: i64,
    months: i64,
    days: i64,
    micros: i128,
}

impl Sum {
    fn result(&self) -> std::result::Result<Option<Interval>, QueryError> {
        if self.rows == 0 {
            return Ok(None);
        }
        let whole = |number: i64| i32::try_from(number).map_err(|_| out_of_range());
        Ok(Some(Interval {
            months: whole(self.months)?,
            days: whole(self.days)?,
            micros: i64::try_from(self.micros).map_err(|_| out_of_range())?,
        }))
    }
}

impl Accumulator for Sum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("a sum of intervals is of one column") };
        for value in values.as_primitive::<IntervalMonthDayNanoType>().iter().flatten() {
            let Interval { months, days, micros } = value.into();
            self.rows += 1;
            self.months += i64::from(months);
            self.days += i64::from(days);
            self.micros += i128::from(micros);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let result = self.result()?.map(TryInto::try_into).transpose()?;
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
