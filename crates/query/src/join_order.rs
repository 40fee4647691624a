//! The order of a join's rows, as far as it has one.
//!
//! A join by hash or by loop reads one side whole, and gives its rows anew for each row of the other side, so that the
//! join comes in the other side's order. DataFusion also takes its rows to come in the order of the side that was read
//! whole, wherever rows of the other are equal, which is wrong where several are. So that side tells no order.
//!
//! What is always one value on a side of a join is that value or NULL where the join gives rows that the side has none
//! for; DataFusion goes on to take it for one value, and does not sort by it. So such a side tells that no more either.
//!
//! So it is with columns that are equal, or in order, below several groupings at once, where each of them may be NULL.
//!
//! Behind `unnest` it finds the columns of an order, and of how rows are shared out, by their names. Where two columns
//! have one name, what is below tells neither.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties, SendableRecordBatchStream, replace_children_if_necessary,
};

/// The name of DataFusion's rule that sorts what is not in the order that is wanted; this one comes before it.
pub(crate) const SORTS: &str = "EnsureRequirements";

/// Hides the order of the side of each join that is read whole.
#[derive(Debug)]
pub(crate) struct JoinOrder;

impl PhysicalOptimizerRule for JoinOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let children = match (node.children().as_slice(), join_type(&node)) {
                ([whole, other], Some(join_type)) => {
                    let (first_may_miss, second_may_miss) = may_miss(join_type);
                    let hides_first =
                        whole.output_ordering().is_some() || first_may_miss && has_constants(whole);
                    let hides_second = second_may_miss && has_constants(other);
                    if !hides_first && !hides_second {
                        return Ok(Transformed::no(node));
                    }
                    vec![hidden_if(hides_first, whole), hidden_if(hides_second, other)]
                }
                ([input], None) if has_several_groupings(&node) => {
                    vec![hidden_if(true, input)]
                }
                ([input], None)
                    if node.is::<UnnestExec>() && has_one_name_twice(&input.schema()) =>
                {
                    vec![Arc::new(Unordered::new(Arc::clone(input), Hidden::OrderAndShares)) as _]
                }
                _ => return Ok(Transformed::no(node)),
            };
            Ok(Transformed::yes(replace_children_if_necessary(node, children)?))
        })
        .data()
    }

    fn name(&self) -> &str {
        "join_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The type of a join that reads its first side whole.
fn join_type(node: &Arc<dyn ExecutionPlan>) -> Option<JoinType> {
    let by_hash = node.downcast_ref::<HashJoinExec>().map(|join| *join.join_type());
    by_hash.or_else(|| node.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type()))
}

/// Whether rows of a join may miss one of the first side, and of the second.
fn may_miss(join_type: JoinType) -> (bool, bool) {
    match join_type {
        JoinType::Left => (false, true),
        JoinType::Right => (true, false),
        JoinType::Full => (true, true),
        _ => (false, false),
    }
}

/// Whether rows are grouped in several ways at once: a column is NULL where it is not grouped by.
fn has_several_groupings(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
        let is_first = matches!(aggregate.mode(), AggregateMode::Partial | AggregateMode::Single);
        is_first && aggregate.group_expr().groups().len() > 1
    })
}

fn has_constants(side: &Arc<dyn ExecutionPlan>) -> bool {
    !side.equivalence_properties().constants().is_empty()
}

fn hidden_if(is_so: bool, side: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match is_so {
        true => Arc::new(Unordered::new(Arc::clone(side), Hidden::Order)),
        false => Arc::clone(side),
    }
}

fn has_one_name_twice(schema: &Schema) -> bool {
    let mut names = HashSet::new();
    !schema.fields().iter().all(|field| names.insert(field.name()))
}

/// What is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hidden {
    Order,
    /// By which columns rows are shared out, too.
    OrderAndShares,
}

/// The rows of a plan, in an order that is not told.
#[derive(Debug)]
struct Unordered {
    input: Arc<dyn ExecutionPlan>,
    hidden: Hidden,
    properties: Arc<PlanProperties>,
}

impl Unordered {
    fn new(input: Arc<dyn ExecutionPlan>, hidden: Hidden) -> Unordered {
        let without_order = EquivalenceProperties::new(input.schema());
        let mut properties = input.properties().as_ref().clone().with_eq_properties(without_order);
        if hidden == Hidden::OrderAndShares {
            let parts = properties.partitioning.partition_count();
            properties = properties.with_partitioning(Partitioning::UnknownPartitioning(parts));
        }
        Unordered { input, hidden, properties: Arc::new(properties) }
    }
}

impl DisplayAs for Unordered {
    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("OnrushUnordered")
    }
}

impl ExecutionPlan for Unordered {
    fn name(&self) -> &'static str {
        "OnrushUnordered"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(Unordered::new(input, self.hidden)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
