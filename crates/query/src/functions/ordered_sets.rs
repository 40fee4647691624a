//! Aggregates of values in an order: `percentile_disc(...) WITHIN GROUP (ORDER BY ...)` and `mode()`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::kernels::cmp::distinct;
use datafusion::arrow::compute::{SortOptions, concat, filter, is_not_null, sort_to_indices, take};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Schema};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

use crate::error::QueryError;
use crate::numeric;

/// The functions, each with a WITHIN GROUP.
pub(crate) fn ordered_sets() -> [Arc<AggregateUDF>; 2] {
    let function = |of, arguments| {
        let signature = Signature::any(arguments, Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(OrderedSet { of, signature }))
    };
    [function(Wanted::Mode, 1), function(Wanted::Percentile, 2)]
}

/// Whether an aggregate is one of values in an order, which has to be given.
pub(crate) fn is_ordered_set(name: &str) -> bool {
    matches!(name, "mode" | "percentile_disc" | "percentile_cont")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Wanted {
    /// The value that is there most often; of several the first one.
    Mode,
    /// The first value that a part of all values reaches.
    Percentile,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OrderedSet {
    of: Wanted,
    signature: Signature,
}

impl AggregateUDFImpl for OrderedSet {
    fn name(&self) -> &str {
        match self.of {
            Wanted::Mode => "mode",
            Wanted::Percentile => "percentile_disc",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[ArrowType]) -> Result<ArrowType> {
        match arguments {
            [ordered, ..] => Ok(ordered.clone()),
            [] => internal_err!("{} without WITHIN GROUP", self.name()),
        }
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        match arguments {
            [ordered, ..] => {
                Ok(Arc::new(ordered.as_ref().clone().with_name(self.name()).with_nullable(true)))
            }
            [] => internal_err!("{} without WITHIN GROUP", self.name()),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let wanted = match (self.of, args.exprs.get(1)) {
            (Wanted::Percentile, Some(part)) => {
                let options = RecordBatchOptions::new().with_row_count(Some(1));
                let row = RecordBatch::try_new_with_options(
                    Arc::new(Schema::empty()),
                    Vec::new(),
                    &options,
                )?;
                let part = part.evaluate(&row)?.into_array(1)?;
                match ScalarValue::try_from_array(&part, 0)?.cast_to(&ArrowType::Float64)? {
                    ScalarValue::Float64(Some(part)) if (0.0..=1.0).contains(&part) => {
                        Some(Of::Part(part))
                    }
                    ScalarValue::Float64(Some(part)) => {
                        let message = format!("percentile value {part} is not between 0 and 1");
                        return Err(QueryError::refused("22003", message).into());
                    }
                    _ => None,
                }
            }
            _ => Some(Of::Most),
        };
        let options = args.order_bys.first().map(|order| order.options).unwrap_or_default();
        let own = args.expr_fields[0].data_type().clone();
        if matches!(own, ArrowType::Interval(_)) {
            let message = format!("{} of intervals is not supported", self.name());
            return Err(QueryError::NotSupported { message }.into());
        }
        Ok(Box::new(Values { wanted, options, own, parts: Vec::new() }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let own = Field::new_list_field(args.input_fields[0].data_type().clone(), true);
        let name = format!("{}[values]", args.name);
        Ok(vec![Arc::new(Field::new(name, ArrowType::List(Arc::new(own)), true))])
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }
}

#[derive(Clone, Copy, Debug)]
enum Of {
    Most,
    Part(f64),
}

/// All values but NULL, as they came.
#[derive(Debug)]
struct Values {
    /// None for a part that is NULL.
    wanted: Option<Of>,
    options: SortOptions,
    own: ArrowType,
    parts: Vec<ArrayRef>,
}

impl Values {
    fn all(&self) -> Result<ArrayRef> {
        let parts: Vec<&dyn Array> = self.parts.iter().map(AsRef::as_ref).collect();
        Ok(match parts.is_empty() {
            true => datafusion::arrow::array::new_empty_array(&self.own),
            false => concat(&parts)?,
        })
    }
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first() else { return internal_err!("values are missing") };
        if values.len() > values.null_count() {
            self.parts.push(filter(values, &is_not_null(values)?)?);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let all = self.all()?;
        let (Some(wanted), false) = (self.wanted, all.is_empty()) else {
            return ScalarValue::try_from(&self.own);
        };
        let sorted = take(&all, &sort_to_indices(&all, Some(self.options), None)?, None)?;
        let at = match wanted {
            Of::Part(part) => {
                let count = (part * sorted.len() as f64).ceil() as usize;
                count.clamp(1, sorted.len()) - 1
            }
            Of::Most => most(&sorted)?,
        };
        ScalarValue::try_from_array(&sorted, at)
    }

    fn size(&self) -> usize {
        let parts = self.parts.iter().map(|part| part.get_array_memory_size());
        size_of_val(self) + parts.sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let list = SingleRowListArrayBuilder::new(self.all()?).build_list_array();
        Ok(vec![ScalarValue::List(Arc::new(list))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first() else { return internal_err!("a state is missing") };
        lists.as_list::<i32>().iter().flatten().try_for_each(|list| self.update_batch(&[list]))
    }
}

/// Where the value stands that is there most often, among values in an order.
fn most(sorted: &ArrayRef) -> Result<usize> {
    let last = sorted.len() - 1;
    let begins = match sorted.data_type() {
        // Equal numbers may be shown with other digits.
        own if *own == numeric::ANY => {
            let mut numbers = Vec::with_capacity(sorted.len());
            for at in 0..sorted.len() {
                numbers.push(numeric::number_at(sorted, at)?.map(|number| number.trimmed()));
            }
            numbers.windows(2).map(|pair| Some(pair[0] != pair[1])).collect::<BooleanArray>()
        }
        _ => distinct(&sorted.slice(1, last), &sorted.slice(0, last))?,
    };
    let (mut begun, mut best, mut best_count) = (0, 0, 0);
    for at in 1..=sorted.len() {
        if at == sorted.len() || begins.value(at - 1) {
            if at - begun > best_count {
                (best, best_count) = (begun, at - begun);
            }
            begun = at;
        }
    }
    Ok(best)
}
