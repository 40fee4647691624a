//! The plan node that reads files.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, BooleanArray};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{Int32Type, Int64Type, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::internal_datafusion_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    SendableRecordBatchStream,
};
use onrush::Lsn;

use super::ColdFile;
use super::file::{OpenFile, Wanted};
use crate::error::QueryError;

/// Own rows of a node that are left out: those written at an LSN or later.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeftOut {
    pub(super) node: i32,
    pub(super) from: Lsn,
    /// Where the node and the LSN are among the columns that are read.
    pub(super) node_at: usize,
    pub(super) lsn_at: usize,
}

/// Reads files.
#[derive(Clone, Debug)]
pub(super) struct ColdScan {
    /// What the table is called.
    table: String,
    /// For each partition the files to read.
    partitions: Arc<[Vec<Arc<dyn ColdFile>>]>,
    wanted: Arc<Wanted>,
    left_out: Option<LeftOut>,
    /// The first columns of those that are read.
    schema: SchemaRef,
    /// Most rows of each partition.
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ColdScan {
    /// Gives the first columns of `wanted`, those of `schema`, from the files, in at most `parts` parts.
    pub(super) fn new(
        table: String,
        files: Vec<Arc<dyn ColdFile>>,
        parts: usize,
        (wanted, schema): (Wanted, SchemaRef),
        left_out: Option<LeftOut>,
        fetch: Option<usize>,
    ) -> ColdScan {
        let partitions = shared_out(files, parts);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = properties.with_scheduling_type(SchedulingType::Cooperative);
        ColdScan {
            table,
            partitions: partitions.into(),
            wanted: Arc::new(wanted),
            left_out,
            schema,
            fetch,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

/// The files in parts of about the same size, each in the order that they came in.
fn shared_out(files: Vec<Arc<dyn ColdFile>>, parts: usize) -> Vec<Vec<Arc<dyn ColdFile>>> {
    let mut shared: Vec<(u64, Vec<Arc<dyn ColdFile>>)> =
        (0..parts.clamp(1, files.len().max(1))).map(|_| (0, Vec::new())).collect();
    for file in files {
        if let Some((bytes, files)) = shared.iter_mut().min_by_key(|(bytes, _)| *bytes) {
            *bytes += file.bytes();
            files.push(file);
        }
    }
    shared.into_iter().map(|(_, files)| files).collect()
}

/// A partition while it is read.
struct Reading {
    /// Next one last.
    files: Vec<Arc<dyn ColdFile>>,
    open: Option<OpenFile>,
    wanted: Arc<Wanted>,
    left_out: Option<LeftOut>,
    columns: usize,
    left: usize,
    memory: MemoryReservation,
    metrics: BaselineMetrics,
}

impl Reading {
    /// The next rows; none at the end.
    async fn next(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        while self.left > 0 {
            let open = match &mut self.open {
                Some(open) => open,
                None => {
                    let Some(file) = self.files.pop() else { break };
                    self.open.insert(OpenFile::open(file, &self.wanted).await?)
                }
            };
            let Some(batch) = open.next(&self.memory).await? else {
                self.open = None;
                continue;
            };
            let mut batch = match &self.left_out {
                Some(left_out) => left_out.without(&batch)?,
                None => batch,
            };
            if batch.num_columns() > self.columns {
                batch = batch.project(&(0..self.columns).collect::<Vec<_>>())?;
            }
            batch = batch.slice(0, batch.num_rows().min(self.left));
            self.left -= batch.num_rows();
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
            }
        }
        self.end();
        Ok(None)
    }

    fn end(&mut self) {
        (self.open, self.left) = (None, 0);
        self.memory.free();
    }
}

impl LeftOut {
    fn without(&self, batch: &RecordBatch) -> Result<RecordBatch, QueryError> {
        let nodes = batch.column(self.node_at).as_primitive_opt::<Int32Type>();
        let lsns = batch.column(self.lsn_at).as_primitive_opt::<Int64Type>();
        let Some((nodes, lsns)) = nodes.zip(lsns) else {
            let message = "a node or an LSN is no number".to_owned();
            return Err(QueryError::Internal { message });
        };
        let from = i64::try_from(self.from.0).unwrap_or(i64::MAX);
        let is_kept = nodes
            .iter()
            .zip(lsns)
            .map(|(node, lsn)| Some(node != Some(self.node) || lsn.is_some_and(|lsn| lsn < from)));
        Ok(filter_record_batch(batch, &BooleanArray::from_iter(is_kept))?)
    }
}

impl DisplayAs for ColdScan {
    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: usize = self.partitions.iter().map(Vec::len).sum();
        let fields = self.schema.fields().iter();
        let names: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
        write!(formatter, "{}: {}, files={files}", self.name(), self.table)?;
        write!(formatter, ", columns=[{}]", names.join(", "))?;
        if let Some(LeftOut { node, from, .. }) = self.left_out {
            write!(formatter, ", node {node} below LSN {}", from.0)?;
        }
        if self.partitions.len() > 1 {
            write!(formatter, ", partitions={}", self.partitions.len())?;
        }
        match self.fetch {
            Some(rows) => write!(formatter, ", limit={rows}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for ColdScan {
    fn name(&self) -> &'static str {
        "OnrushColdScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let files = self.partitions.get(partition);
        let files = files.ok_or_else(|| internal_datafusion_err!("no partition {partition}"))?;
        let reading = Reading {
            files: files.iter().rev().cloned().collect(),
            open: None,
            wanted: Arc::clone(&self.wanted),
            left_out: self.left_out,
            columns: self.schema.fields().len(),
            left: self.fetch.unwrap_or(usize::MAX),
            memory: MemoryConsumer::new(format!("files of {}", self.table))
                .register(context.memory_pool()),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let batches = futures::stream::unfold(reading, |mut reading| async move {
            match reading.next().await {
                Ok(None) => None,
                Ok(Some(batch)) => {
                    let batch = batch.record_output(&reading.metrics);
                    Some((Ok(batch), reading))
                }
                Err(error) => {
                    reading.end();
                    Some((Err(error.into()), reading))
                }
            }
        });
        let stream = RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches);
        Ok(make_cooperative(Box::pin(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(ColdScan { fetch: limit, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }
}
