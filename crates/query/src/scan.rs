//! The plan node that reads a table: ranges of keys, some columns, forward or backward.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatchOptions;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::sort_pushdown::SortOrderPushdownResult;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    SendableRecordBatchStream,
};
use onrush::{Direction, KeyRange, Scan, Table};

use crate::columns::ColumnBuilder;
use crate::error::QueryError;
use crate::statement::Statement;
use crate::types::ColumnType;

/// Rows of the first batch: few, as the first rows may be all that is asked for.
const FIRST_BATCH_ROWS: usize = 128;

/// Reads a table.
#[derive(Clone, Debug)]
pub(crate) struct ScanPlan {
    pub(crate) source: Arc<ScanSource>,
    /// For each partition the ranges to read, in key order.
    partitions: Arc<[Vec<KeyRange>]>,
    direction: Direction,
    /// Most rows of each partition.
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// What is read, whichever way.
pub(crate) struct ScanSource {
    pub(crate) table: Table,
    /// The columns to read, by position in the table, in the order of the schema.
    pub(crate) columns: Vec<usize>,
    pub(crate) schema: SchemaRef,
    /// The conditions on the key that the ranges came from.
    pub(crate) conditions: String,
}

impl fmt::Debug for ScanSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {:?}", self.table.name(), self.columns)
    }
}

impl ScanPlan {
    pub(crate) fn new(
        source: ScanSource,
        partitions: Vec<Vec<KeyRange>>,
        fetch: Option<usize>,
    ) -> ScanPlan {
        let source = Arc::new(source);
        let properties = properties(&source, partitions.len(), Direction::Forward);
        ScanPlan {
            source,
            partitions: partitions.into(),
            direction: Direction::Forward,
            fetch,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The order of the key as far as its columns are read.
    fn key_order(source: &ScanSource, direction: Direction) -> Vec<PhysicalSortExpr> {
        let options =
            SortOptions { descending: direction == Direction::Backward, nulls_first: false };
        let mut order = Vec::new();
        for column in source.table.definition().primary_key() {
            let Some(at) = source.columns.iter().position(|own| own == column) else { break };
            let name = source.schema.field(at).name();
            order.push(PhysicalSortExpr { expr: Arc::new(Column::new(name, at)), options });
        }
        order
    }

    /// Whether rows that come `direction` are ordered as is asked for. Key columns are never NULL,
    /// so the place of NULLs does not matter.
    fn serves(&self, order: &[PhysicalSortExpr], direction: Direction) -> bool {
        let own = ScanPlan::key_order(&self.source, direction);
        order.len() <= own.len()
            && order.iter().zip(&own).all(|(asked, own)| {
                asked.expr.eq(&own.expr) && asked.options.descending == own.options.descending
            })
    }
}

fn properties(source: &ScanSource, partitions: usize, direction: Direction) -> Arc<PlanProperties> {
    let order = ScanPlan::key_order(source, direction);
    let orders = if order.is_empty() { Vec::new() } else { vec![order] };
    let equivalences =
        EquivalenceProperties::new_with_orderings(Arc::clone(&source.schema), orders);
    let partitioning = Partitioning::UnknownPartitioning(partitions);
    let properties = PlanProperties::new(
        equivalences,
        partitioning,
        EmissionType::Incremental,
        Boundedness::Bounded,
    );
    Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative))
}

impl DisplayAs for ScanPlan {
    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScanSource { table, schema, conditions, .. } = &*self.source;
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(formatter, "OnrushScan: {}, columns=[{}]", table.name(), names.join(", "))?;
        if !conditions.is_empty() {
            write!(formatter, ", key=[{conditions}]")?;
        }
        let ranges: usize = self.partitions.iter().map(Vec::len).sum();
        if ranges > 1 {
            write!(formatter, ", ranges={ranges}")?;
        }
        if self.partitions.len() > 1 {
            write!(formatter, ", partitions={}", self.partitions.len())?;
        }
        if self.direction == Direction::Backward {
            write!(formatter, ", backward")?;
        }
        match self.fetch {
            Some(rows) => write!(formatter, ", limit={rows}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for ScanPlan {
    fn name(&self) -> &'static str {
        "OnrushScan"
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
        let Some(ranges) = self.partitions.get(partition) else {
            let message = format!("a scan has no partition {partition}");
            return Err(DataFusionError::Internal(message));
        };
        let mut ranges = ranges.clone();
        if self.direction == Direction::Forward {
            ranges.reverse();
        }
        let reader = Reader {
            statement: Statement::of(context.session_config())?,
            source: Arc::clone(&self.source),
            ranges,
            direction: self.direction,
            scan: None,
            left: self.fetch.map_or(u64::MAX, |rows| rows as u64),
            batch_rows: FIRST_BATCH_ROWS,
            batch_rows_max: context.session_config().batch_size(),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let batches = futures::stream::unfold(reader, |mut reader| async move {
            let timer = reader.metrics.elapsed_compute().clone();
            let batch = {
                let _timer = timer.timer();
                reader.next_batch()
            };
            match batch {
                Ok(None) => None,
                Ok(Some(batch)) => {
                    let batch = batch.record_output(&reader.metrics);
                    Some((Ok(batch), reader))
                }
                Err(error) => {
                    reader.ranges.clear();
                    reader.scan = None;
                    reader.left = 0;
                    Some((Err(error.into()), reader))
                }
            }
        });
        let stream = RecordBatchStreamAdapter::new(Arc::clone(&self.source.schema), batches);
        Ok(make_cooperative(Box::pin(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(ScanPlan { fetch: limit, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        for direction in [Direction::Forward, Direction::Backward] {
            // A scan that has a limit already must go on giving the same rows.
            let may_turn = self.fetch.is_none() || direction == self.direction;
            if may_turn && self.serves(order, direction) {
                let partitions = [self.partitions.concat()];
                let properties = properties(&self.source, partitions.len(), direction);
                let partitions = Arc::new(partitions);
                let inner = ScanPlan { partitions, direction, properties, ..self.clone() };
                return Ok(SortOrderPushdownResult::Exact { inner: Arc::new(inner) });
            }
        }
        Ok(SortOrderPushdownResult::Unsupported)
    }
}

/// A partition while it is read.
struct Reader {
    statement: Arc<Statement>,
    source: Arc<ScanSource>,
    /// Those left, next one last.
    ranges: Vec<KeyRange>,
    direction: Direction,
    scan: Option<Scan>,
    /// Rows that are still wanted.
    left: u64,
    batch_rows: usize,
    batch_rows_max: usize,
    metrics: BaselineMetrics,
}

impl Reader {
    /// The next rows; none at the end.
    fn next_batch(&mut self) -> std::result::Result<Option<RecordBatch>, QueryError> {
        let rows_max = self.left.min(self.batch_rows as u64);
        self.batch_rows = (self.batch_rows * 4).min(self.batch_rows_max);
        let source = Arc::clone(&self.source);
        let mut columns = ColumnsInTheMaking::new(&source, rows_max as usize)?;
        let mut rows = 0;
        while rows < rows_max {
            let scan = match &mut self.scan {
                Some(scan) => scan,
                None => {
                    let Some(range) = self.ranges.pop() else { break };
                    let scan = self.statement.scan(&source.table, &range, self.direction)?;
                    self.scan.insert(scan)
                }
            };
            let wanted = rows_max - rows;
            let read = if source.columns.is_empty() {
                scan.visit_some(wanted, |_, _| ())?
            } else {
                let read = scan.visit_some(wanted, |key, row| columns.append(key, row))?;
                columns.outcome()?;
                read
            };
            rows += read;
            if read < wanted {
                self.scan = None;
            }
        }
        self.left -= rows;
        if rows == 0 {
            return Ok(None);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows as usize));
        let schema = Arc::clone(&source.schema);
        Ok(Some(RecordBatch::try_new_with_options(schema, columns.finish(), &options)?))
    }
}

/// The columns of one batch.
struct ColumnsInTheMaking<'s> {
    source: &'s ScanSource,
    builders: Vec<ColumnBuilder>,
    error: Option<QueryError>,
}

impl<'s> ColumnsInTheMaking<'s> {
    fn new(
        source: &'s ScanSource,
        rows: usize,
    ) -> std::result::Result<ColumnsInTheMaking<'s>, QueryError> {
        let all = source.table.definition().columns();
        let builder =
            |column: &usize| ColumnBuilder::new(ColumnType::Stored(all[*column].data_type), rows);
        let builders = source.columns.iter().map(builder).collect::<std::result::Result<_, _>>()?;
        Ok(ColumnsInTheMaking { source, builders, error: None })
    }

    /// Takes in one row; after an error it takes in nothing.
    fn append(&mut self, key: &[u8], row: &[u8]) {
        if self.error.is_none()
            && let Err(error) = self.try_append(key, row)
        {
            self.error = Some(error);
        }
    }

    fn try_append(&mut self, key: &[u8], row: &[u8]) -> std::result::Result<(), QueryError> {
        let view = self.source.table.schema().view(key, row).map_err(onrush::Error::from)?;
        for (builder, column) in self.builders.iter_mut().zip(&self.source.columns) {
            builder.append_column(&view, *column)?;
        }
        Ok(())
    }

    fn outcome(&mut self) -> std::result::Result<(), QueryError> {
        self.error.take().map_or(Ok(()), Err)
    }

    fn finish(&mut self) -> Vec<datafusion::arrow::array::ArrayRef> {
        self.builders.iter_mut().map(ColumnBuilder::finish).collect()
    }
}
