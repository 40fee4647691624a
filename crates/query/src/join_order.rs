//! The order of a join's rows, as far as it has one.
//!
//! A join by hash or by loop reads one side whole, and gives its rows anew for each row of the other side, so that the
//! join comes in the other side's order. DataFusion also takes its rows to come in the order of the side that was read
//! whole, wherever rows of the other are equal, which is wrong where several are. So that side tells no order.
//!
//! Behind `unnest` it finds the columns of an order, and of how rows are shared out, by their names. Where two columns
//! have one name, what is below tells neither.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
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
            let reads_first_whole = node.is::<HashJoinExec>() || node.is::<NestedLoopJoinExec>();
            let children = match node.children().as_slice() {
                [whole, other] if reads_first_whole && whole.output_ordering().is_some() => {
                    let whole = Unordered::new(Arc::clone(whole), Hidden::Order);
                    vec![Arc::new(whole) as Arc<dyn ExecutionPlan>, Arc::clone(other)]
                }
                [input] if node.is::<UnnestExec>() && has_one_name_twice(&input.schema()) => {
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
