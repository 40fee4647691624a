//! The plan node that reads a table, by its own key or by an index: ranges of keys, some columns, forward or backward.
//! The reading itself: `reader.rs`.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    AcrossPartitions, ConstExpr, EquivalenceProperties, PhysicalExpr, PhysicalSortExpr,
};
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
use onrush::{Direction, KeyOrder, KeyRange, Table};

use crate::bounds::KeyPart;
use crate::reader::Reader;
use crate::statement::Statement;

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
    /// The table whose rows are wanted.
    pub(crate) table: Table,
    /// The way to them that is not their own key.
    pub(crate) index: Option<IndexSource>,
    /// The columns to read, by position in the table, in the order of the schema.
    pub(crate) columns: Vec<usize>,
    pub(crate) schema: SchemaRef,
    /// The key of what is scanned.
    pub(crate) key: Vec<KeyPart>,
    /// How many of the first columns of the key have one value in all ranges.
    pub(crate) constants: usize,
    /// The conditions on the key that the ranges came from.
    pub(crate) conditions: String,
}

/// An index by which a table is read.
pub(crate) struct IndexSource {
    pub(crate) entries: Table,
    pub(crate) wanted: FromEntries,
}

/// What is taken out of the entries of an index, by position in them.
pub(crate) enum FromEntries {
    /// The columns to read.
    Columns(Vec<usize>),
    /// The key of the row, which is read then.
    Key(Vec<usize>),
}

impl ScanSource {
    /// What is scanned.
    pub(crate) fn scanned(&self) -> &Table {
        self.index.as_ref().map_or(&self.table, |index| &index.entries)
    }

    fn column(&self, table_column: Option<usize>) -> Option<Arc<dyn PhysicalExpr>> {
        let at = self.columns.iter().position(|own| Some(*own) == table_column)?;
        Some(Arc::new(Column::new(self.schema.field(at).name(), at)))
    }

    /// The order of the key behind its columns of one value, as far as its columns are read.
    fn order(&self, direction: Direction) -> Vec<PhysicalSortExpr> {
        let is_backward = direction == Direction::Backward;
        let rest = self.key.iter().skip(self.constants);
        let sorted = rest.map_while(|part| {
            let KeyOrder { descending, nulls_first } = part.order.unwrap_or(KeyOrder::ASCENDING);
            let options = SortOptions {
                descending: descending != is_backward,
                nulls_first: nulls_first != is_backward,
            };
            Some(PhysicalSortExpr { expr: self.column(part.column)?, options })
        });
        sorted.collect()
    }

    /// Columns that are read and have one value.
    fn constants(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        let constants = self.key.iter().take(self.constants);
        constants.filter_map(|part| self.column(part.column)).collect()
    }

    /// Whether rows that come `direction` are ordered as is asked for.
    fn serves(&self, asked: &[PhysicalSortExpr], direction: Direction) -> bool {
        let constants = self.constants();
        let is_constant = |sort: &&PhysicalSortExpr| constants.iter().any(|own| own.eq(&sort.expr));
        let asked: Vec<_> = asked.iter().filter(|sort| !is_constant(sort)).collect();
        let own = self.order(direction);
        asked.len() <= own.len()
            && asked.iter().zip(&own).all(|(asked, own)| own.satisfy_expr(asked, &self.schema))
    }

    fn properties(&self, partitions: usize, direction: Direction) -> Result<Arc<PlanProperties>> {
        let order = self.order(direction);
        let orders = if order.is_empty() { Vec::new() } else { vec![order] };
        let mut equivalences =
            EquivalenceProperties::new_with_orderings(Arc::clone(&self.schema), orders);
        let constant = |column| ConstExpr::new(column, AcrossPartitions::Uniform(None));
        equivalences.add_constants(self.constants().into_iter().map(constant))?;
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative)))
    }
}

impl fmt::Debug for ScanSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {:?}", self.scanned().name(), self.columns)
    }
}

impl ScanPlan {
    pub(crate) fn new(
        source: ScanSource,
        partitions: Vec<Vec<KeyRange>>,
        fetch: Option<usize>,
    ) -> Result<ScanPlan> {
        let properties = source.properties(partitions.len(), Direction::Forward)?;
        Ok(ScanPlan {
            source: Arc::new(source),
            partitions: partitions.into(),
            direction: Direction::Forward,
            fetch,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The same rows the given way, in one part.
    pub(crate) fn turned(&self, direction: Direction) -> Result<ScanPlan> {
        let partitions = [self.partitions.concat()];
        let properties = self.source.properties(partitions.len(), direction)?;
        let partitions = Arc::new(partitions);
        Ok(ScanPlan { partitions, direction, properties, ..self.clone() })
    }
}

impl DisplayAs for ScanPlan {
    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScanSource { table, index, schema, conditions, .. } = &*self.source;
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(formatter, "{}: {}", self.name(), table.name())?;
        if let Some(index) = index {
            write!(formatter, ", index={}", index.entries.name())?;
        }
        write!(formatter, ", columns=[{}]", names.join(", "))?;
        if !conditions.is_empty() {
            write!(formatter, ", key=[{conditions}]")?;
        }
        if matches!(index, Some(IndexSource { wanted: FromEntries::Columns(_), .. })) {
            write!(formatter, ", index only")?;
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
        if self.source.index.is_some() { "OnrushIndexScan" } else { "OnrushScan" }
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
        let reader = Reader::new(
            Statement::of(context.session_config())?,
            Arc::clone(&self.source),
            ranges,
            self.direction,
            self.fetch,
            context.session_config().batch_size(),
            BaselineMetrics::new(&self.metrics, partition),
        );
        let batches = futures::stream::unfold(reader, |mut reader| async move {
            let timer = reader.metrics().elapsed_compute().clone();
            let batch = {
                let _timer = timer.timer();
                reader.next_batch()
            };
            match batch {
                Ok(None) => None,
                Ok(Some(batch)) => {
                    let batch = batch.record_output(reader.metrics());
                    Some((Ok(batch), reader))
                }
                Err(error) => {
                    reader.end();
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
            if may_turn && self.source.serves(order, direction) {
                let inner = Arc::new(self.turned(direction)?);
                return Ok(SortOrderPushdownResult::Exact { inner });
            }
        }
        Ok(SortOrderPushdownResult::Unsupported)
    }
}
