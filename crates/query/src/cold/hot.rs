//! The plan node that reads the rows of the database that are not in files yet.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::TimestampMicrosecondArray;
use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Builder, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::internal_datafusion_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
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
use onrush::{KeyRange, Lsn, Table, WrittenRows};

use crate::columns::ColumnBuilder;
use crate::error::{QueryError, Result as QueryResult};
use crate::statement::Statement;
use crate::types::UTC;

/// A batch ends behind rows with so many bytes of long values.
const LONG_BYTES: usize = 8 << 20;

/// What is read, by the column of the relation.
#[derive(Clone, Copy, Debug)]
pub(super) enum HotColumn {
    /// A column of the table, by its position.
    Stored(usize),
    Node,
    Lsn,
    At,
}

/// Reads the rows of a table that were written at an LSN or later.
#[derive(Clone)]
pub(super) struct HotScan {
    table: Table,
    node: i32,
    since: Lsn,
    columns: Arc<[HotColumn]>,
    schema: SchemaRef,
    /// For each partition the ranges to read.
    partitions: Arc<[Vec<KeyRange>]>,
    /// Most rows of each partition.
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl fmt::Debug for HotScan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {:?} since {}", self.table.name(), self.columns, self.since.0)
    }
}

impl HotScan {
    pub(super) fn new(
        (table, node, since): (Table, i32, Lsn),
        (columns, schema): (Vec<HotColumn>, SchemaRef),
        partitions: Vec<Vec<KeyRange>>,
        fetch: Option<usize>,
    ) -> HotScan {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = properties.with_scheduling_type(SchedulingType::Cooperative);
        HotScan {
            table,
            node,
            since,
            columns: columns.into(),
            schema,
            partitions: partitions.into(),
            fetch,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    fn stored(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().filter_map(|column| match column {
            HotColumn::Stored(at) => Some(*at),
            _ => None,
        })
    }
}

/// A partition while it is read.
struct Reading {
    statement: Arc<Statement>,
    scan: HotScan,
    /// Next one last.
    ranges: Vec<KeyRange>,
    rows: Option<WrittenRows>,
    left: u64,
    batch_rows: u64,
    metrics: BaselineMetrics,
}

/// What one look came to.
enum Look {
    Rows(RecordBatch),
    /// There may be more.
    Nothing,
    End,
}

impl Reading {
    fn look(&mut self) -> QueryResult<Look> {
        let rows = match &mut self.rows {
            _ if self.left == 0 => return Ok(Look::End),
            Some(rows) => rows,
            None => {
                let Some(range) = self.ranges.pop() else { return Ok(Look::End) };
                let (table, since) = (&self.scan.table, self.scan.since);
                let rows = self.statement.written_in(table, &range, since)?;
                self.rows.insert(rows.only_columns(self.scan.stored()))
            }
        };
        let rows_max = self.left.min(self.batch_rows);
        let mut columns = Columns::new(&self.scan)?;
        let part =
            rows.visit_part(rows_max, LONG_BYTES, |lsn, key, row| columns.append(lsn, key, row))?;
        if let Some(error) = columns.error.take() {
            return Err(error);
        }
        if part.is_over {
            self.rows = None;
        }
        self.left -= part.rows;
        match usize::try_from(part.rows) {
            Ok(0) | Err(_) => Ok(Look::Nothing),
            Ok(rows) => Ok(Look::Rows(columns.finish(rows, self.statement.now_micros)?)),
        }
    }
}

/// The columns of one batch.
struct Columns<'s> {
    scan: &'s HotScan,
    stored: Vec<(usize, ColumnBuilder)>,
    lsns: Option<Int64Builder>,
    error: Option<QueryError>,
}

impl<'s> Columns<'s> {
    fn new(scan: &'s HotScan) -> QueryResult<Columns<'s>> {
        let all = scan.table.definition().columns();
        let builder = |at: usize| Ok((at, ColumnBuilder::new(all[at].data_type.into(), 0)?));
        let stored = scan.stored().map(builder).collect::<QueryResult<_>>()?;
        let has_lsn = scan.columns.iter().any(|column| matches!(column, HotColumn::Lsn));
        Ok(Columns { scan, stored, lsns: has_lsn.then(Int64Builder::new), error: None })
    }

    /// Takes in one row; after an error it takes in nothing.
    fn append(&mut self, lsn: Option<Lsn>, key: &[u8], row: &[u8]) {
        if self.error.is_none()
            && let Err(error) = self.try_append(lsn, key, row)
        {
            self.error = Some(error);
        }
    }

    fn try_append(&mut self, lsn: Option<Lsn>, key: &[u8], row: &[u8]) -> QueryResult<()> {
        if let Some(lsns) = &mut self.lsns {
            lsns.append_option(lsn.map(|lsn| i64::try_from(lsn.0).unwrap_or(i64::MAX)));
        }
        if self.stored.is_empty() {
            return Ok(());
        }
        let view = self.scan.table.schema().view(key, row).map_err(onrush::Error::from)?;
        for (at, builder) in &mut self.stored {
            builder.append_column(&view, *at)?;
        }
        Ok(())
    }

    fn finish(self, rows: usize, now_micros: i64) -> QueryResult<RecordBatch> {
        let Columns { scan, stored, mut lsns, .. } = self;
        let mut stored = stored.into_iter();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(scan.columns.len());
        for column in scan.columns.iter() {
            let array: Option<ArrayRef> = match column {
                HotColumn::Stored(_) => stored.next().map(|(_, mut builder)| builder.finish()),
                HotColumn::Node => Some(Arc::new(Int32Array::from_value(scan.node, rows))),
                HotColumn::Lsn => lsns.as_mut().map(|lsns| Arc::new(lsns.finish()) as ArrayRef),
                HotColumn::At => {
                    let at = TimestampMicrosecondArray::from_value(now_micros, rows);
                    Some(Arc::new(at.with_timezone(UTC)))
                }
            };
            arrays.push(array.ok_or_else(|| QueryError::Internal {
                message: "a column is read twice".to_owned(),
            })?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&scan.schema), arrays, &options)?)
    }
}

impl DisplayAs for HotScan {
    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.schema.fields().iter();
        let names: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
        write!(formatter, "{}: {}", self.name(), self.table.name())?;
        write!(formatter, ", since LSN {}, columns=[{}]", self.since.0, names.join(", "))?;
        let ranges: usize = self.partitions.iter().map(Vec::len).sum();
        if ranges > 1 {
            write!(formatter, ", ranges={ranges}")?;
        }
        match self.fetch {
            Some(rows) => write!(formatter, ", limit={rows}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for HotScan {
    fn name(&self) -> &'static str {
        "OnrushHotScan"
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
        let ranges = self.partitions.get(partition);
        let ranges = ranges.ok_or_else(|| internal_datafusion_err!("no partition {partition}"))?;
        let reading = Reading {
            statement: Statement::of(context.session_config())?,
            scan: self.clone(),
            ranges: ranges.iter().rev().cloned().collect(),
            rows: None,
            left: self.fetch.map_or(u64::MAX, |rows| rows as u64),
            batch_rows: context.session_config().batch_size() as u64,
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let batches = futures::stream::unfold(reading, |mut reading| async move {
            loop {
                let timer = reading.metrics.elapsed_compute().clone();
                let look = {
                    let _timer = timer.timer();
                    reading.look()
                };
                match look {
                    Ok(Look::Rows(batch)) => {
                        let batch = batch.record_output(&reading.metrics);
                        return Some((Ok(batch), reading));
                    }
                    // Whoever ends the query has a turn.
                    Ok(Look::Nothing) => tokio::task::yield_now().await,
                    Ok(Look::End) => return None,
                    Err(error) => {
                        reading.left = 0;
                        return Some((Err(error.into()), reading));
                    }
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
        Some(Arc::new(HotScan { fetch: limit, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }
}
