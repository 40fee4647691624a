//! Queries that nobody wants any more end soon.
//!
//! A task that runs a query can be taken away only where it waits. DataFusion's operators give others
//! a turn where rows are read, but a join may make millions of combinations of rows that were read
//! long ago, and keep a thread for minutes. So joins give others a turn with each batch that they
//! make; and where a condition drops nearly all combinations, and there is no batch for long, the
//! condition itself fails as soon as the query is not wanted any more.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
};

use crate::error::QueryError;

/// Whether a query is still wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interest {
    is_gone: Arc<AtomicBool>,
}

impl Interest {
    /// Nobody wants the query any more.
    pub(crate) fn end(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    /// The plan, so that it ends soon after the interest in it.
    pub(crate) fn watch(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let join: Arc<dyn ExecutionPlan> =
                if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
                    let filter = join.filter().map(|filter| self.watched(filter));
                    Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(filter).build()?)
                } else if let Some(join) = node.downcast_ref::<HashJoinExec>() {
                    let filter = join.filter().map(|filter| self.watched(filter));
                    join.builder().with_filter(filter).build_exec()?
                } else if node.is::<CrossJoinExec>() {
                    node
                } else {
                    return Ok(Transformed::no(node));
                };
            Ok(Transformed::yes(Arc::new(CooperativeExec::new(join)) as _))
        })
        .data()
    }

    fn watched(&self, filter: &JoinFilter) -> JoinFilter {
        let condition =
            Watched { condition: Arc::clone(filter.expression()), interest: self.clone() };
        let columns = filter.column_indices().to_vec();
        JoinFilter::new(Arc::new(condition), columns, Arc::clone(filter.schema()))
    }
}

/// A condition that fails when the query is not wanted any more.
#[derive(Debug)]
struct Watched {
    condition: Arc<dyn PhysicalExpr>,
    interest: Interest,
}

impl PhysicalExpr for Watched {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.condition.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.condition.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.condition.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if self.interest.is_gone.load(Ordering::Relaxed) {
            return Err(QueryError::GivenUp.into());
        }
        self.condition.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let condition = children.pop().unwrap_or_else(|| Arc::clone(&self.condition));
        Ok(Arc::new(Watched { condition, interest: self.interest.clone() }))
    }

    fn fmt_sql(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(formatter)
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(formatter)
    }
}

impl PartialEq for Watched {
    fn eq(&self, other: &Watched) -> bool {
        self.condition.eq(&other.condition)
    }
}

impl Eq for Watched {}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}
