//! `avg` of whole numbers and of decimals, which is a `numeric`, and `sum` of decimals of many digits: a
//! `double precision` has not all of their digits.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, LargeBinaryArray,
};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, Field, FieldRef, Int64Type,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use onrush::Numeric;

use super::numeric_math::quotient;
use crate::error::QueryError;
use crate::numeric;

/// `avg` of decimals.
pub(crate) fn numeric_average() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| function("numeric_average", false));
    Arc::clone(&FUNCTION)
}

/// `sum` of decimals that DataFusion would add up past the end of what it has space for.
pub(crate) fn decimal_sum() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| function("decimal_sum", true));
    Arc::clone(&FUNCTION)
}

fn function(name: &'static str, is_sum: bool) -> Arc<AggregateUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(NumericAverage { name, is_sum, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NumericAverage {
    name: &'static str,
    is_sum: bool,
    signature: Signature,
}

impl AggregateUDFImpl for NumericAverage {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[ArrowType]) -> Result<ArrowType> {
        match arguments {
            [ArrowType::Decimal128(..)] => Ok(numeric::ANY),
            _ => internal_err!("an average of {arguments:?}"),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let made = Made::new(self.is_sum, args.expr_fields)?;
        Ok(Box::new(One { made, sum: 0, count: 0 }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let scale = Made::new(self.is_sum, args.input_fields)?.scale;
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
        let made = Made::new(self.is_sum, args.expr_fields)?;
        Ok(Box::new(Groups { made, sums: Vec::new(), counts: Vec::new() }))
    }
}

/// What is made of a sum, and the digits behind the point of the numbers.
#[derive(Clone, Copy, Debug)]
struct Made {
    is_sum: bool,
    scale: i8,
}

impl Made {
    fn new(is_sum: bool, fields: &[FieldRef]) -> Result<Made> {
        match fields.first().map(|field| field.data_type()) {
            Some(ArrowType::Decimal128(_, scale)) => Ok(Made { is_sum, scale: *scale }),
            other => internal_err!("an average of {other:?}"),
        }
    }

    fn of(self, sum: i128, count: i64) -> Result<Option<Vec<u8>>> {
        if count == 0 {
            return Ok(None);
        }
        let sum = Numeric::new(sum, i32::from(self.scale)).map_err(QueryError::from)?;
        Ok(Some(match self.is_sum {
            true => sum.to_bytes(),
            false => quotient(&sum, &Numeric::from(count))?.to_bytes(),
        }))
    }
}

pub(super) fn out_of_range() -> QueryError {
    QueryError::OutOfRange { message: "numeric value out of range".to_owned() }
}

fn add(sum: &mut i128, number: i128) -> Result<()> {
    *sum = sum.checked_add(number).ok_or_else(out_of_range)?;
    Ok(())
}

/// The average of all rows.
#[derive(Debug)]
struct One {
    made: Made,
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
        Ok(ScalarValue::LargeBinary(self.made.of(self.sum, self.count)?))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![
            ScalarValue::Decimal128(Some(self.sum), 38, self.made.scale),
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
    made: Made,
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
        let averages = averages.map(|(sum, count)| self.made.of(sum, count));
        let averages = averages.collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(LargeBinaryArray::from_iter(averages)))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let (sums, counts) = (emit.take_needed(&mut self.sums), emit.take_needed(&mut self.counts));
        let sums = Decimal128Array::from(sums).with_precision_and_scale(38, self.made.scale)?;
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
        let sums = sums.with_precision_and_scale(38, self.made.scale)?;
        let counts: Int64Array = rows.map(|row| i64::from(is_in(row))).collect::<Vec<_>>().into();
        Ok(vec![Arc::new(sums), Arc::new(counts)])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.counts.capacity() * size_of::<i64>()
    }
}
