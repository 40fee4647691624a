//! `avg` of whole numbers and of `numeric`, which is a `numeric`: a `double precision` has not all of their digits.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array,
};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, Field, FieldRef, Int64Type,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};

use super::rounded::{divided, out_of_range};

/// Digits behind the point, where the numbers have no more.
const SCALE: i8 = 16;

/// `avg(numeric)`.
pub(crate) fn numeric_average() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(NumericAverage { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NumericAverage {
    signature: Signature,
}

impl AggregateUDFImpl for NumericAverage {
    fn name(&self) -> &str {
        "numeric_average"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[ArrowType]) -> Result<ArrowType> {
        match arguments {
            [ArrowType::Decimal128(_, scale)] => Ok(ArrowType::Decimal128(38, SCALE.max(*scale))),
            _ => internal_err!("an average of {arguments:?}"),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let scales = Scales::new(args.expr_fields)?;
        Ok(Box::new(One { scales, sum: 0, count: 0 }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let scale = Scales::new(args.input_fields)?.given;
        let fields = [("sum", ArrowType::Decimal128(38, scale)), ("rows", ArrowType::Int64)];
        let field = |(name, of)| Arc::new(Field::new(format!("{}[{name}]", args.name), of, false));
        Ok(fields.into_iter().map(field).collect())
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let scales = Scales::new(args.expr_fields)?;
        Ok(Box::new(Groups { scales, sums: Vec::new(), counts: Vec::new() }))
    }
}

/// Digits behind the point of the numbers and of their average.
#[derive(Clone, Copy, Debug)]
struct Scales {
    given: i8,
    made: i8,
}

impl Scales {
    fn new(fields: &[FieldRef]) -> Result<Scales> {
        match fields.first().map(|field| field.data_type()) {
            Some(ArrowType::Decimal128(_, given)) => {
                Ok(Scales { given: *given, made: SCALE.max(*given) })
            }
            other => internal_err!("an average of {other:?}"),
        }
    }

    fn average(self, sum: i128, count: i64) -> Result<Option<i128>> {
        match count {
            0 => Ok(None),
            _ => {
                let shift = i32::from(self.made) - i32::from(self.given);
                Ok(Some(divided(sum, count.into(), shift)?))
            }
        }
    }
}

fn add(sum: &mut i128, number: i128) -> Result<()> {
    *sum = sum.checked_add(number).ok_or_else(out_of_range)?;
    Ok(())
}

/// The average of all rows.
#[derive(Debug)]
struct One {
    scales: Scales,
    sum: i128,
    count: i64,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("an average is of one column") };
        for number in values.as_primitive::<Decimal128Type>().iter().flatten() {
            add(&mut self.sum, number)?;
            self.count += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("an average is of one column") };
        for number in values.as_primitive::<Decimal128Type>().iter().flatten() {
            add(&mut self.sum, -number)?;
            self.count -= 1;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let average = self.scales.average(self.sum, self.count)?;
        Ok(ScalarValue::Decimal128(average, 38, self.scales.made))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![
            ScalarValue::Decimal128(Some(self.sum), 38, self.scales.given),
            ScalarValue::Int64(Some(self.count)),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [sums, counts] = states else { return internal_err!("an average has two states") };
        for sum in sums.as_primitive::<Decimal128Type>().iter().flatten() {
            add(&mut self.sum, sum)?;
        }
        self.count += counts.as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        Ok(())
    }
}

/// The averages of groups of rows.
#[derive(Debug)]
struct Groups {
    scales: Scales,
    sums: Vec<i128>,
    counts: Vec<i64>,
}

impl Groups {
    /// Adds a sum of so many rows to each group.
    fn add(
        &mut self,
        sums: &Decimal128Array,
        count: impl Fn(usize) -> i64,
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_count: usize,
    ) -> Result<()> {
        self.sums.resize(groups_count, 0);
        self.counts.resize(groups_count, 0);
        let is_in = |row| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        for (row, group) in groups.iter().enumerate() {
            if sums.is_valid(row) && is_in(row) {
                add(&mut self.sums[*group], sums.value(row))?;
                self.counts[*group] += count(row);
            }
        }
        Ok(())
    }
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_count: usize,
    ) -> Result<()> {
        let [values] = values else { return internal_err!("an average is of one column") };
        self.add(values.as_primitive::<Decimal128Type>(), |_| 1, groups, filter, groups_count)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let (sums, counts) = (emit.take_needed(&mut self.sums), emit.take_needed(&mut self.counts));
        let averages = sums.into_iter().zip(counts);
        let averages = averages.map(|(sum, count)| self.scales.average(sum, count));
        let averages: Decimal128Array = averages.collect::<Result<Vec<_>>>()?.into();
        Ok(Arc::new(averages.with_precision_and_scale(38, self.scales.made)?))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let (sums, counts) = (emit.take_needed(&mut self.sums), emit.take_needed(&mut self.counts));
        let sums = Decimal128Array::from(sums).with_precision_and_scale(38, self.scales.given)?;
        Ok(vec![Arc::new(sums), Arc::new(Int64Array::from(counts))])
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        groups_count: usize,
    ) -> Result<()> {
        let [sums, counts] = states else { return internal_err!("an average has two states") };
        let counts = counts.as_primitive::<Int64Type>();
        let sums = sums.as_primitive::<Decimal128Type>();
        self.add(sums, |row| counts.value(row), groups, None, groups_count)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let [values] = values else { return internal_err!("an average is of one column") };
        let numbers = values.as_primitive::<Decimal128Type>();
        let is_in = |row: usize| {
            numbers.is_valid(row)
                && filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
        };
        let rows = 0..numbers.len();
        let sums = rows.clone().map(|row| if is_in(row) { numbers.value(row) } else { 0 });
        let sums: Decimal128Array = sums.collect::<Vec<_>>().into();
        let sums = sums.with_precision_and_scale(38, self.scales.given)?;
        let counts: Int64Array = rows.map(|row| i64::from(is_in(row))).collect::<Vec<_>>().into();
        Ok(vec![Arc::new(sums), Arc::new(counts)])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.counts.capacity() * size_of::<i64>()
    }
}
