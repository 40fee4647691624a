//! The value of the only row there is: what a subquery that stands for a value becomes. A second row is an
//! error (`21000`).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Int64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, LogicalPlan, LogicalPlanBuilder, Signature,
    Subquery, Volatility,
};
use datafusion::optimizer::analyzer::AnalyzerRule;

use super::rewrite;
use crate::error::QueryError;

/// The function's name.
pub(crate) const SINGLE_VALUE: &str = "single_value";

#[derive(Debug, PartialEq, Eq, Hash)]
struct SingleValue {
    signature: Signature,
}

/// The function.
pub(crate) fn single_value() -> Arc<AggregateUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(SingleValue { signature }))
}

/// Holds subqueries that stand for a value, and may have several rows, to one.
#[derive(Debug)]
pub(crate) struct SingleRows;

impl AnalyzerRule for SingleRows {
    fn name(&self) -> &str {
        "single_rows"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| rewrite(plan, held_to_one)).data()
    }
}

fn held_to_one(expression: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarSubquery(subquery) = expression else {
        return Ok(Transformed::no(expression));
    };
    let rows = &subquery.subquery;
    if rows.max_rows().is_some_and(|rows| rows <= 1) {
        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
    }
    let Some(column) = rows.schema().columns().into_iter().next() else {
        return internal_err!("a subquery without a column stands for a value");
    };
    let value = single_value().call(vec![Expr::Column(column)]);
    let rows = LogicalPlanBuilder::from(rows.as_ref().clone());
    let one = rows.aggregate(Vec::<Expr>::new(), vec![value])?.build()?;
    Ok(Transformed::yes(Expr::ScalarSubquery(Subquery { subquery: Arc::new(one), ..subquery })))
}

impl AggregateUDFImpl for SingleValue {
    fn name(&self) -> &str {
        SINGLE_VALUE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[ArrowType]) -> Result<ArrowType> {
        match arguments {
            [only] => Ok(only.clone()),
            _ => internal_err!("{SINGLE_VALUE} of {arguments:?}"),
        }
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        match arguments {
            [only] => {
                Ok(Arc::new(only.as_ref().clone().with_name(SINGLE_VALUE).with_nullable(true)))
            }
            _ => internal_err!("{SINGLE_VALUE} has one argument"),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let value = ScalarValue::try_from(args.return_field.data_type())?;
        Ok(Box::new(Single { value, rows: 0 }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let value = args.return_field.as_ref().clone().with_name(format!("{}[value]", args.name));
        let rows = Field::new(format!("{}[rows]", args.name), ArrowType::Int64, false);
        Ok(vec![Arc::new(value), Arc::new(rows)])
    }
}

#[derive(Debug)]
struct Single {
    value: ScalarValue,
    rows: i64,
}

impl Single {
    fn take(&mut self, values: &ArrayRef, at: usize, rows: i64) -> Result<()> {
        self.rows += rows;
        if self.rows > 1 {
            return Err(QueryError::SeveralRows.into());
        }
        self.value = ScalarValue::try_from_array(values, at)?;
        Ok(())
    }
}

impl Accumulator for Single {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("{SINGLE_VALUE} takes one column") };
        (0..values.len()).try_for_each(|at| self.take(values, at, 1))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), ScalarValue::Int64(Some(self.rows))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, rows] = states else { return internal_err!("{SINGLE_VALUE} has two states") };
        let rows = rows.as_primitive::<Int64Type>();
        for at in 0..values.len() {
            if rows.value(at) > 0 {
                self.take(values, at, rows.value(at))?;
            }
        }
        Ok(())
    }
}
