//! `sum`, `avg`, variances and standard deviations of any `numeric`.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use dashu_int::IBig;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use onrush::Numeric;
use onrush_types::numeric::power_of_ten;

use super::numeric_math::{deviation, quotient};
use crate::error::QueryError;
use crate::numeric::{self, number_at};

/// What is made of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Sum,
    Average,
    /// Of a sample or of all there are; and its root.
    Deviation {
        is_sample: bool,
        is_root: bool,
    },
}

/// The function that takes the place of DataFusion's of this name; none if there is none.
pub(crate) fn numeric_sum(name: &str, is_distinct: bool) -> Option<Arc<AggregateUDF>> {
    let deviation = |is_sample, is_root| Kind::Deviation { is_sample, is_root };
    let (kind, name, distinct_name) = match name {
        "sum" => (Kind::Sum, "numeric_sum", "numeric_sum_distinct"),
        "avg" => (Kind::Average, "numeric_avg", "numeric_avg_distinct"),
        "stddev" => (deviation(true, true), "numeric_stddev", "numeric_stddev_distinct"),
        "stddev_pop" => {
            (deviation(false, true), "numeric_stddev_pop", "numeric_stddev_pop_distinct")
        }
        "var" => (deviation(true, false), "numeric_var", "numeric_var_distinct"),
        "var_pop" => (deviation(false, false), "numeric_var_pop", "numeric_var_pop_distinct"),
        _ => return None,
    };
    let name = if is_distinct { distinct_name } else { name };
    let signature = Signature::any(1, Volatility::Immutable);
    Some(Arc::new(AggregateUDF::new_from_impl(NumericSum { kind, name, is_distinct, signature })))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NumericSum {
    kind: Kind,
    name: &'static str,
    is_distinct: bool,
    signature: Signature,
}

impl AggregateUDFImpl for NumericSum {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(numeric::ANY)
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let seen = self.is_distinct.then(HashSet::new);
        Ok(Box::new(Running { kind: self.kind, seen, sums: Sums::default() }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let name = format!("{}[sums]", args.name);
        Ok(vec![Arc::new(match self.is_distinct {
            true => {
                Field::new_list(name, Field::new_list_field(ArrowType::LargeBinary, true), false)
            }
            false => Field::new(name, ArrowType::Utf8, false),
        })])
    }
}

/// Sums of numbers, from which numbers can be taken away again.
#[derive(Clone, Debug, Default)]
struct Sums {
    /// Numbers that have digits.
    count: i64,
    /// Without the point, as that of `squares`, before which there are twice as many digits.
    sum: IBig,
    squares: IBig,
    scale: i32,
    /// How many numbers show so many digits after the point.
    shown: BTreeMap<u16, i64>,
    not_a_number: i64,
    infinite: i64,
    negative_infinite: i64,
}

impl Sums {
    fn add(&mut self, number: &Numeric, times: i64, with_squares: bool) {
        let (digits, scale) = match number {
            Numeric::NaN => return self.not_a_number += times,
            Numeric::Infinity => return self.infinite += times,
            Numeric::NegativeInfinity => return self.negative_infinite += times,
            Numeric::Finite(digits, scale) => (digits.clone(), *scale),
        };
        let shown = self.shown.entry(scale).or_insert(0);
        *shown += times;
        if *shown == 0 {
            self.shown.remove(&scale);
        }
        self.move_to(i32::from(scale));
        self.count += times;
        let digits = match self.scale - i32::from(scale) {
            0 => digits,
            places => digits * power_of_ten(places),
        };
        if with_squares {
            let square = digits.clone() * &digits;
            self.squares += square * IBig::from(times);
        }
        self.sum += if times == 1 { digits } else { digits * IBig::from(times) };
    }

    /// Makes space for so many digits after the point.
    fn move_to(&mut self, scale: i32) {
        if scale > self.scale {
            let unit = power_of_ten(scale - self.scale);
            self.squares *= unit.clone() * &unit;
            self.sum *= unit;
            self.scale = scale;
        }
    }

    fn merge(&mut self, mut other: Sums) {
        self.move_to(other.scale);
        other.move_to(self.scale);
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        for (scale, count) in other.shown {
            *self.shown.entry(scale).or_insert(0) += count;
        }
        self.not_a_number += other.not_a_number;
        self.infinite += other.infinite;
        self.negative_infinite += other.negative_infinite;
    }

    /// The sum as it is shown; none of no number.
    fn total(&self) -> crate::Result<Option<Numeric>> {
        Ok(match (self.not_a_number, self.infinite, self.negative_infinite) {
            (1.., ..) | (_, 1.., 1..) => Some(Numeric::NaN),
            (_, 1.., _) => Some(Numeric::Infinity),
            (_, _, 1..) => Some(Numeric::NegativeInfinity),
            _ if self.count == 0 => None,
            _ => {
                let scale = self.shown.last_key_value().map_or(0, |(scale, _)| i32::from(*scale));
                Some(Numeric::new(self.sum.clone(), self.scale)?.cut(scale))
            }
        })
    }

    fn made(&self, kind: Kind) -> crate::Result<Option<Numeric>> {
        let others = self.not_a_number + self.infinite + self.negative_infinite;
        let count = self.count + others;
        match kind {
            Kind::Sum => self.total(),
            Kind::Average => {
                let average = |total: Numeric| quotient(&total, &Numeric::from(count));
                self.total()?.map(average).transpose()
            }
            Kind::Deviation { is_sample, .. } if count <= i64::from(is_sample) => Ok(None),
            Kind::Deviation { .. } if others > 0 => Ok(Some(Numeric::NaN)),
            Kind::Deviation { is_sample, is_root } => {
                let scale = self.shown.last_key_value().map_or(0, |(scale, _)| i32::from(*scale));
                let unit = power_of_ten(self.scale - scale);
                let sum = self.sum.clone() / &unit;
                let squares = self.squares.clone() / (unit.clone() * &unit);
                deviation(self.count, &sum, &squares, scale, is_sample, is_root).map(Some)
            }
        }
    }

    fn written(&self) -> String {
        let shown: Vec<String> =
            self.shown.iter().map(|(scale, count)| format!("{scale}:{count}")).collect();
        format!(
            "{} {} {} {} {} {} {} {}",
            self.count,
            self.sum,
            self.squares,
            self.scale,
            self.not_a_number,
            self.infinite,
            self.negative_infinite,
            shown.join(",")
        )
    }

    fn read(written: &str) -> Option<Sums> {
        let mut parts = written.split(' ');
        let mut next = || parts.next();
        let mut sums = Sums {
            count: next()?.parse().ok()?,
            sum: next()?.parse().ok()?,
            squares: next()?.parse().ok()?,
            scale: next()?.parse().ok()?,
            not_a_number: next()?.parse().ok()?,
            infinite: next()?.parse().ok()?,
            negative_infinite: next()?.parse().ok()?,
            shown: BTreeMap::new(),
        };
        for part in next()?.split(',').filter(|part| !part.is_empty()) {
            let (scale, count) = part.split_once(':')?;
            sums.shown.insert(scale.parse().ok()?, count.parse().ok()?);
        }
        Some(sums)
    }
}

#[derive(Debug)]
struct Running {
    kind: Kind,
    /// The numbers that were added, where none is added twice.
    seen: Option<HashSet<Vec<u8>>>,
    sums: Sums,
}

impl Running {
    fn with_squares(&self) -> bool {
        matches!(self.kind, Kind::Deviation { .. })
    }

    fn change(&mut self, values: &[ArrayRef], times: i64) -> Result<()> {
        let [values] = values else { return internal_err!("a sum is of one column") };
        let with_squares = self.with_squares();
        for row in 0..values.len() {
            let Some(number) = number_at(values, row)? else { continue };
            if let Some(seen) = &mut self.seen {
                let mut key = Vec::new();
                number.write_key(&mut key);
                if !seen.insert(key) {
                    continue;
                }
            }
            self.sums.add(&number, times, with_squares);
        }
        Ok(())
    }
}

impl Accumulator for Running {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(values, 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(values, -1)
    }

    fn supports_retract_batch(&self) -> bool {
        self.seen.is_none()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let made = self.sums.made(self.kind)?;
        Ok(ScalarValue::LargeBinary(made.map(|number| number.to_bytes())))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.seen.as_ref().map_or(0, |seen| seen.capacity() * 32)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        if let Some(seen) = &self.seen {
            let scale = self.sums.shown.last_key_value().map_or(0, |(scale, _)| *scale);
            let number = |key: &Vec<u8>| {
                let mut bytes = key.clone();
                bytes.extend_from_slice(&scale.to_be_bytes());
                ScalarValue::LargeBinary(Some(bytes))
            };
            let numbers: Vec<ScalarValue> = seen.iter().map(number).collect();
            let list = ScalarValue::new_list_nullable(&numbers, &ArrowType::LargeBinary);
            return Ok(vec![ScalarValue::List(list)]);
        }
        Ok(vec![ScalarValue::Utf8(Some(self.sums.written()))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [states] = states else { return internal_err!("a sum has one state") };
        if self.seen.is_some() {
            let numbers = states.as_list::<i32>();
            return numbers.iter().flatten().try_for_each(|numbers| self.update_batch(&[numbers]));
        }
        for written in states.as_string::<i32>().iter().flatten() {
            let damaged = || QueryError::Internal { message: "a sum is damaged".to_owned() };
            self.sums.merge(Sums::read(written).ok_or_else(damaged)?);
        }
        Ok(())
    }
}
