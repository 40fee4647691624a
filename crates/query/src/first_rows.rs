//! The first rows of a table in the order of an index.
//!
//! How a table is read is chosen before it is known what its rows are for. That an ORDER BY with a small LIMIT takes
//! them changes the choice: then an index in that order is best, however many entries the conditions leave, as few of
//! them are read. So a scan that has such ways besides the one that was chosen is a [`Ways`] at first, of which
//! [`FirstRows`] takes one before anything else is done with the plan.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream, replace_children_if_necessary,
};
use onrush::Direction;

use crate::access::ENTRIES_FEW;
use crate::scan::ScanPlan;

/// A scan, and other ways to the same rows, of which the order may be worth more.
#[derive(Debug)]
pub(crate) struct Ways {
    pub(crate) chosen: Arc<dyn ExecutionPlan>,
    /// Best first; each in one part.
    pub(crate) others: Arc<[ScanPlan]>,
}

impl DisplayAs for Ways {
    fn fmt_as(&self, form: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chosen.fmt_as(form, formatter)
    }
}

impl ExecutionPlan for Ways {
    fn name(&self) -> &'static str {
        "OnrushWays"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.chosen.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.chosen]
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
        let chosen = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.chosen));
        Ok(Arc::new(Ways { chosen, others: Arc::clone(&self.others) }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.chosen.execute(partition, context)
    }
}

/// Takes one of the ways of each scan.
#[derive(Debug)]
pub(crate) struct FirstRows;

impl PhysicalOptimizerRule for FirstRows {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|node| {
            if let Some(ways) = node.downcast_ref::<Ways>() {
                return Ok(Transformed::yes(Arc::clone(&ways.chosen)));
            }
            if let Some(sort) = node.downcast_ref::<SortExec>()
                && sort.fetch().is_some_and(|rows| rows as u64 <= ENTRIES_FEW)
                && let Some(input) = in_order(sort)?
            {
                // The sort has nothing to do any more, which later rules see.
                return Ok(Transformed::yes(replace_children_if_necessary(node, vec![input])?));
            }
            Ok(Transformed::no(node))
        })
        .data()
    }

    fn name(&self) -> &str {
        "first_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What is sorted, if there is a way by which it comes in that order.
fn in_order(sort: &SortExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(ways) = ways_below(sort.input()) else { return Ok(None) };
    for way in ways.others.iter() {
        for direction in [Direction::Forward, Direction::Backward] {
            let input = with_way(sort.input(), Arc::new(way.turned(direction)?))?;
            if input.equivalence_properties().ordering_satisfy(sort.expr().iter().cloned())? {
                return Ok(Some(input));
            }
        }
    }
    Ok(None)
}

/// The scan below a node that takes every row of it.
fn ways_below(node: &Arc<dyn ExecutionPlan>) -> Option<&Ways> {
    match node.downcast_ref::<ProjectionExec>() {
        Some(projection) => ways_below(projection.input()),
        None => node.downcast_ref::<Ways>(),
    }
}

/// The same node over another scan.
fn with_way(
    node: &Arc<dyn ExecutionPlan>,
    way: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    match node.downcast_ref::<ProjectionExec>() {
        Some(projection) => {
            let input = with_way(projection.input(), way)?;
            replace_children_if_necessary(Arc::clone(node), vec![input])
        }
        None => Ok(way),
    }
}
