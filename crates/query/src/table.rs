//! Tables of the database, and rows made on demand, as DataFusion sees them.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DFSchema;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use onrush::Table;

use crate::bounds::KeyBounds;
use crate::columns::ColumnBuilder;
use crate::relation::MadeRows;
use crate::scan::{ScanPlan, ScanSource};
use crate::statement::Statement;
use crate::types::{ColumnType, field};

/// A table of the database.
pub(crate) struct StoredTable {
    table: Table,
    /// Positions in the table of the columns that there are here.
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl StoredTable {
    pub(crate) fn new(table: Table, columns: Vec<usize>) -> StoredTable {
        let definition = table.definition();
        let fields = columns.iter().map(|position| {
            let column = &definition.columns()[*position];
            let is_nullable = column.nullable && !definition.primary_key().contains(position);
            field(&column.name, ColumnType::Stored(column.data_type), is_nullable)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        StoredTable { table, columns, schema }
    }

    /// Reads some of the columns that there are here, of the rows that the conditions on the key leave.
    fn scan_plan(
        &self,
        state: &dyn Session,
        wanted: &[usize],
        filters: &[&Expr],
        limit: Option<usize>,
    ) -> Result<(ScanPlan, Vec<bool>)> {
        let statement = Statement::of(state.config())?;
        let KeyBounds { ranges, used } = KeyBounds::new(&self.table, filters);
        // A few ranges are no work to share; nor is the beginning of a table.
        let parts = match (ranges.as_slice(), limit) {
            ([_], None) => state.config().target_partitions(),
            _ => 1,
        };
        let mut partitions = Vec::new();
        for range in &ranges {
            let cut = statement
                .key_ranges(&self.table, range, parts)
                .map_err(|error| DataFusionError::External(Box::new(error)))?;
            partitions.extend(cut.into_iter().map(|range| vec![range]));
        }
        if parts == 1 {
            partitions = vec![partitions.concat()];
        }
        let mentioned = filters.iter().zip(&used).filter(|(_, used)| **used);
        let conditions: Vec<String> = mentioned.map(|(filter, _)| filter.to_string()).collect();
        let source = ScanSource {
            table: self.table.clone(),
            schema: Arc::new(self.schema.project(wanted)?),
            columns: wanted.iter().map(|at| self.columns[*at]).collect(),
            conditions: conditions.join(" AND "),
        };
        Ok((ScanPlan::new(source, partitions, limit), used))
    }
}

impl fmt::Debug for StoredTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("StoredTable").field(&self.table.name()).finish()
    }
}

#[async_trait]
impl TableProvider for StoredTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let answer = |used| match used {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(KeyBounds::new(&self.table, filters).used.into_iter().map(answer).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.columns.len()).collect::<Vec<_>>();
        let wanted: Vec<usize> = projection.map_or_else(all, Clone::clone);
        let given: Vec<&Expr> = filters.iter().collect();
        let (scan, used) = self.scan_plan(state, &wanted, &given, limit)?;
        let left: Vec<Expr> = filters
            .iter()
            .zip(used)
            .filter(|(_, used)| !used)
            .map(|(filter, _)| filter.clone())
            .collect();
        let Some(left) = conjunction(left) else { return Ok(Arc::new(scan)) };
        // Conditions that were promised at different times, of which not all fit the ranges.
        let (scan, _) = self.scan_plan(state, &all(), &given, None)?;
        let schema = DFSchema::try_from(Arc::clone(&self.schema))?;
        let predicate = state.create_physical_expr(left, &schema)?;
        let filtered = Arc::new(FilterExec::try_new(predicate, Arc::new(scan))?);
        let columns = wanted.iter().map(|position| {
            let name = self.schema.field(*position).name();
            ProjectionExpr::new(Arc::new(Column::new(name, *position)), name)
        });
        Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), filtered)?))
    }
}

/// A view of the system.
#[derive(Debug)]
pub(crate) struct MadeTable {
    rows: Arc<dyn MadeRows>,
    types: Vec<ColumnType>,
    schema: SchemaRef,
}

impl MadeTable {
    pub(crate) fn new(rows: Arc<dyn MadeRows>) -> MadeTable {
        let columns = rows.columns();
        let types = columns.iter().map(|(_, column_type)| *column_type).collect();
        let fields = columns.iter().map(|(name, column_type)| field(name, *column_type, true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        MadeTable { rows, types, schema }
    }
}

#[async_trait]
impl TableProvider for MadeTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = self.rows.rows(&*Statement::of(state.config())?);
        let mut columns = Vec::with_capacity(self.types.len());
        for (position, column_type) in self.types.iter().enumerate() {
            let mut builder = ColumnBuilder::new(*column_type, rows.len())?;
            for row in &rows {
                builder.append(row.get(position).unwrap_or(&onrush::Value::Null))?;
            }
            columns.push(builder.finish());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
        let schema = Arc::clone(&self.schema);
        Ok(MemorySourceConfig::try_new_exec(&[vec![batch]], schema, projection.cloned())?)
    }
}
