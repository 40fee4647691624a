//! Variances and standard deviations of floating-point numbers, added up as PostgreSQL adds them: what is close
//! together and far from zero keeps its digits, and of what is not finite there is none.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

use crate::error::QueryError;

/// The function that takes the place of DataFusion's of this name; none if there is none.
pub(crate) fn real_deviation(name: &str) -> Option<Arc<AggregateUDF>> {
    let (name, is_sample, is_root) = match name {
        "stddev" => ("real_stddev", true, true),
        "stddev_pop" => ("real_stddev_pop", false, true),
        "var" => ("real_var", true, false),
        "var_pop" => ("real_var_pop", false, false),
        _ => return None,
    };
    let signature = Signature::exact(vec![ArrowType::Float64], Volatility::Immutable);
    Some(Arc::new(AggregateUDF::new_from_impl(Deviation { name, is_sample, is_root, signature })))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Deviation {
    name: &'static str,
    is_sample: bool,
    is_root: bool,
    signature: Signature,
}

impl AggregateUDFImpl for Deviation {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Float64)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            let message =
                format!("{} of DISTINCT beside other aggregates is not supported", self.name);
            return Err(QueryError::NotSupported { message }.into());
        }
        let (is_sample, is_root) = (self.is_sample, self.is_root);
        Ok(Box::new(Sums { is_sample, is_root, count: 0.0, sum: 0.0, squares: 0.0 }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |part| {
            let name = format!("{}[{part}]", args.name);
            Arc::new(Field::new(name, ArrowType::Float64, false))
        };
        Ok(["rows", "sum", "squares"].map(field).to_vec())
    }
}

#[derive(Debug)]
struct Sums {
    is_sample: bool,
    is_root: bool,
    count: f64,
    sum: f64,
    /// Of what each number is away from the average.
    squares: f64,
}

impl Sums {
    fn add(&mut self, number: f64) -> Result<()> {
        let before = self.sum;
        self.count += 1.0;
        self.sum += number;
        if self.count == 1.0 {
            if !number.is_finite() {
                self.squares = f64::NAN;
            }
            return Ok(());
        }
        let away = number * self.count - self.sum;
        self.squares += away * away / (self.count * (self.count - 1.0));
        self.check(!before.is_infinite() && !number.is_infinite())
    }

    fn merge(&mut self, count: f64, sum: f64, squares: f64) -> Result<()> {
        if count == 0.0 {
            return Ok(());
        }
        if self.count == 0.0 {
            (self.count, self.sum, self.squares) = (count, sum, squares);
            return Ok(());
        }
        let were_finite = !self.sum.is_infinite() && !sum.is_infinite();
        let together = self.count + count;
        let away = self.sum / self.count - sum / count;
        self.squares += squares + self.count * count * away * away / together;
        (self.count, self.sum) = (together, self.sum + sum);
        self.check(were_finite)
    }

    /// Infinite sums of finite numbers are out of range (`22003`); of others there is no deviation.
    fn check(&mut self, were_finite: bool) -> Result<()> {
        if !self.sum.is_infinite() && !self.squares.is_infinite() {
            return Ok(());
        }
        if were_finite {
            let message = "value out of range: overflow".to_owned();
            return Err(QueryError::OutOfRange { message }.into());
        }
        self.squares = f64::NAN;
        Ok(())
    }
}

impl Accumulator for Sums {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("a deviation is of one column") };
        values
            .as_primitive::<Float64Type>()
            .iter()
            .flatten()
            .try_for_each(|number| self.add(number))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let of = if self.is_sample { self.count - 1.0 } else { self.count };
        if of <= 0.0 {
            return Ok(ScalarValue::Float64(None));
        }
        let variance = self.squares / of;
        Ok(ScalarValue::Float64(Some(if self.is_root { variance.sqrt() } else { variance })))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok([self.count, self.sum, self.squares].map(|part| ScalarValue::Float64(Some(part))).into())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [counts, sums, squares] = states else {
            return internal_err!("a deviation has three states");
        };
        let [counts, sums, squares] =
            [counts, sums, squares].map(|part| part.as_primitive::<Float64Type>().values());
        for ((count, sum), squares) in counts.iter().zip(sums).zip(squares) {
            self.merge(*count, *sum, *squares)?;
        }
        Ok(())
    }
}
