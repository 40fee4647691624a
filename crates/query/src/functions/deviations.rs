//! Variances and standard deviations of whole numbers and of `numeric`, which are `numeric`.

use std::collections::HashSet;
use std::sync::Arc;

use dashu_int::IBig;
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, Decimal256Type, Field, FieldRef, Int64Type, i256,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

use super::averages::out_of_range;
use super::numeric_math::deviation;
use crate::numeric;

/// Digits of the sum of squares, which has a type of its own.
const SQUARES_DIGITS: u8 = 76;

/// The function that takes the place of DataFusion's of this name; none if there is none.
pub(crate) fn numeric_deviation(name: &str) -> Option<Arc<AggregateUDF>> {
    let (name, is_sample, is_root) = match name {
        "stddev" => ("numeric_stddev", true, true),
        "stddev_pop" => ("numeric_stddev_pop", false, true),
        "var" => ("numeric_var", true, false),
        "var_pop" => ("numeric_var_pop", false, false),
        _ => return None,
    };
    let signature = Signature::any(1, Volatility::Immutable);
    Some(Arc::new(AggregateUDF::new_from_impl(Deviation { name, is_sample, is_root, signature })))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Deviation {
    name: &'static str,
    is_sample: bool,
    is_root: bool,
    signature: Signature,
}

impl Deviation {
    fn scale_given(&self, fields: &[FieldRef]) -> Result<i8> {
        match fields.first().map(|field| field.data_type()) {
            Some(ArrowType::Decimal128(_, scale)) => Ok(*scale),
            other => internal_err!("{} of {other:?}", self.name),
        }
    }
}

impl AggregateUDFImpl for Deviation {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[ArrowType]) -> Result<ArrowType> {
        match arguments {
            [ArrowType::Decimal128(..)] => Ok(numeric::ANY),
            _ => internal_err!("{} of {arguments:?}", self.name),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let scale = self.scale_given(args.expr_fields)?;
        let (is_sample, is_root) = (self.is_sample, self.is_root);
        let seen = args.is_distinct.then(HashSet::new);
        let (count, sum, squares) = (0, 0, i256::ZERO);
        Ok(Box::new(Sums { scale, is_sample, is_root, seen, count, sum, squares }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if args.is_distinct {
            let scale = self.scale_given(args.input_fields)?;
            let numbers = Field::new_list_field(ArrowType::Decimal128(38, scale), true);
            let name = format!("{}[numbers]", args.name);
            return Ok(vec![Arc::new(Field::new_list(name, numbers, false))]);
        }
        let fields = [
            ("rows", ArrowType::Int64),
            ("sum", ArrowType::Decimal128(38, 0)),
            ("squares", ArrowType::Decimal256(SQUARES_DIGITS, 0)),
        ];
        let field = |(name, of)| Arc::new(Field::new(format!("{}[{name}]", args.name), of, false));
        Ok(fields.into_iter().map(field).collect())
    }
}

/// Sums of the numbers without their point.
#[derive(Debug)]
struct Sums {
    scale: i8,
    is_sample: bool,
    is_root: bool,
    /// The numbers that were added, where none is added twice.
    seen: Option<HashSet<i128>>,
    count: i64,
    sum: i128,
    squares: i256,
}

impl Sums {
    fn add(&mut self, count: i64, sum: i128, squares: Option<i256>) -> Result<()> {
        self.count += count;
        self.sum = self.sum.checked_add(sum).ok_or_else(out_of_range)?;
        let squares = squares.and_then(|squares| self.squares.checked_add(squares));
        self.squares = squares.ok_or_else(out_of_range)?;
        Ok(())
    }
}

fn square(number: i128) -> Option<i256> {
    i256::from_i128(number).checked_mul(i256::from_i128(number))
}

impl Accumulator for Sums {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("a deviation is of one column") };
        for number in values.as_primitive::<Decimal128Type>().iter().flatten() {
            if self.seen.as_mut().is_some_and(|seen| !seen.insert(number)) {
                continue;
            }
            self.add(1, number, square(number))?;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("a deviation is of one column") };
        for number in values.as_primitive::<Decimal128Type>().iter().flatten() {
            self.add(-1, -number, square(number).and_then(i256::checked_neg))?;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        self.seen.is_none()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.count <= i64::from(self.is_sample) {
            return Ok(ScalarValue::LargeBinary(None));
        }
        let squares: IBig = self.squares.to_string().parse().map_err(|_| out_of_range())?;
        let (sum, scale) = (IBig::from(self.sum), i32::from(self.scale));
        let made = deviation(self.count, &sum, &squares, scale, self.is_sample, self.is_root)?;
        Ok(numeric::scalar(&made))
    }

    fn size(&self) -> usize {
        let seen = self.seen.as_ref().map_or(0, HashSet::capacity);
        size_of_val(self) + seen * size_of::<i128>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        if let Some(seen) = &self.seen {
            let number = |number: &i128| ScalarValue::Decimal128(Some(*number), 38, self.scale);
            let numbers: Vec<ScalarValue> = seen.iter().map(number).collect();
            let of = ArrowType::Decimal128(38, self.scale);
            return Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&numbers, &of))]);
        }
        Ok(vec![
            ScalarValue::Int64(Some(self.count)),
            ScalarValue::Decimal128(Some(self.sum), 38, 0),
            ScalarValue::Decimal256(Some(self.squares), SQUARES_DIGITS, 0),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        if self.seen.is_some() {
            let [numbers] = states else { return internal_err!("a deviation has one state") };
            let numbers = numbers.as_list::<i32>();
            return numbers.iter().flatten().try_for_each(|numbers| self.update_batch(&[numbers]));
        }
        let [counts, sums, squares] = states else {
            return internal_err!("a deviation has three states");
        };
        let counts = counts.as_primitive::<Int64Type>().values();
        let sums = sums.as_primitive::<Decimal128Type>().values();
        let squares = squares.as_primitive::<Decimal256Type>().values();
        for ((count, sum), squares) in counts.iter().zip(sums).zip(squares) {
            self.add(*count, *sum, Some(*squares))?;
        }
        Ok(())
    }
}
