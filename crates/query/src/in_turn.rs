//! The parts of an answer one after the other.
//!
//! A table is read in several parts at once, and queries of UNION ALL have one for each. Where nothing says in which
//! order rows come, they come in that of the parts, as PostgreSQL's do: a table's in the order of its key. Parts that
//! are not wanted yet run ahead by a few batches.
//!
//! Invariant: rows that are shared out among parts are not read so. Whoever shares them out would have to keep those of
//! the later parts.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::common::spawn_buffered;
use datafusion::physical_plan::limit::LimitStream;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;

/// Batches that a part runs ahead.
const BATCHES_AHEAD: usize = 2;

/// Makes the parts of a plan one.
#[derive(Debug)]
struct InTurn {
    parts: Arc<dyn ExecutionPlan>,
    /// Rows that are wanted at most.
    fetch: Option<usize>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl InTurn {
    fn new(parts: Arc<dyn ExecutionPlan>, fetch: Option<usize>) -> InTurn {
        let of_parts = parts.properties();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(parts.schema()),
            Partitioning::UnknownPartitioning(1),
            of_parts.emission_type,
            of_parts.boundedness,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        InTurn { parts, fetch, metrics, properties: Arc::new(properties) }
    }
}

impl DisplayAs for InTurn {
    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PartsInTurn")?;
        match self.fetch {
            Some(rows) => write!(formatter, ": fetch={rows}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for InTurn {
    fn name(&self) -> &'static str {
        "PartsInTurn"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.parts]
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
        let parts = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.parts));
        Ok(Arc::new(InTurn::new(parts, self.fetch)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut parts = Vec::new();
        for part in 0..self.parts.output_partitioning().partition_count() {
            let batches = self.parts.execute(part, Arc::clone(&context))?;
            parts.push(spawn_buffered(batches, BATCHES_AHEAD));
        }
        let batches = futures::stream::iter(parts).flatten();
        let batches: SendableRecordBatchStream =
            Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches));
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        Ok(Box::pin(LimitStream::new(batches, 0, self.fetch, metrics)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }
}

/// Reads parts in turn wherever they become one.
#[derive(Debug)]
pub(crate) struct PartsInTurn;

impl PhysicalOptimizerRule for PartsInTurn {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan
            .transform_up(|node| {
                let Some(merged) = node.downcast_ref::<CoalescePartitionsExec>() else {
                    return Ok(Transformed::no(node));
                };
                if has_shared_out(merged.input())? {
                    return Ok(Transformed::no(node));
                }
                let parts = InTurn::new(Arc::clone(merged.input()), merged.fetch());
                Ok(Transformed::yes(Arc::new(parts) as Arc<dyn ExecutionPlan>))
            })
            .data()?;
        let parts = plan.output_partitioning().partition_count();
        Ok(if parts > 1 && !has_shared_out(&plan)? {
            Arc::new(InTurn::new(plan, None))
        } else {
            plan
        })
    }

    fn name(&self) -> &str {
        "parts_in_turn"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether rows are shared out among parts somewhere below.
fn has_shared_out(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| Ok(node.downcast_ref::<RepartitionExec>().is_some()))
}
