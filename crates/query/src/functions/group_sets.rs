//! GROUP BY ROLLUP, CUBE and GROUPING SETS: a column that they leave out is NULL in their rows, whatever order or
//! value it has in the rows below. DataFusion would take both for those of the groups, too.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{
    Aggregate, ColumnarValue, Expr, LogicalPlan, Projection, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use datafusion::optimizer::analyzer::AnalyzerRule;

/// Gives what it is given, of which nobody knows an order any more. Without an argument it is NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SetApart {
    signature: Signature,
}

static SET_APART: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let any = vec![TypeSignature::Nullary, TypeSignature::Any(2)];
    let signature = Signature::one_of(any, Volatility::Volatile);
    Arc::new(ScalarUDF::new_from_impl(SetApart { signature }))
});

impl ScalarUDFImpl for SetApart {
    fn name(&self) -> &str {
        "set_apart"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[ArrowType]) -> Result<ArrowType> {
        Ok(arguments.first().cloned().unwrap_or(ArrowType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(match args.arg_fields.first() {
            Some(given) => Arc::clone(given),
            None => Arc::new(datafusion::arrow::datatypes::Field::new(
                self.name(),
                ArrowType::Null,
                true,
            )),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(given) => Ok(given),
            None => Ok(ColumnarValue::Scalar(ScalarValue::Null)),
        }
    }
}

/// Sets the columns that sets of groups are made of apart from those of the rows below.
#[derive(Debug)]
pub(crate) struct GroupSets;

impl AnalyzerRule for GroupSets {
    fn name(&self) -> &str {
        "group_sets"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(set_apart).data()
    }
}

fn set_apart(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = plan else { return Ok(Transformed::no(plan)) };
    if !matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let mut grouped: HashSet<Column> = HashSet::new();
    for expression in grouping_set_to_exprlist(&aggregate.group_expr)? {
        grouped.extend(expression.column_refs().into_iter().cloned());
    }
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
    let apart =
        |arguments| Expr::ScalarFunction(ScalarFunction::new_udf(SET_APART.clone(), arguments));
    let items = input.schema().iter().map(|(qualifier, field)| {
        let column = Column::from((qualifier, field));
        let is_grouped = grouped.contains(&column);
        let column = Expr::Column(column);
        match is_grouped {
            true => apart(vec![column, apart(Vec::new())])
                .alias_qualified(qualifier.cloned(), field.name()),
            false => column,
        }
    });
    let items: Vec<Expr> = items.collect();
    if items.is_empty() {
        return internal_err!("groups of rows without columns");
    }
    let input = Arc::new(LogicalPlan::Projection(Projection::try_new(items, input)?));
    let aggregate = Aggregate::try_new_with_schema(input, group_expr, aggr_expr, schema)?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
}
