//! Tables of the database, and rows made on demand, as DataFusion sees them.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Constraint, Constraints, DFSchema, internal_datafusion_err};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use onrush::{Indexed, KeyRange, ScanOptions, Table};

use crate::access::{Access, Asked, IndexAccess};
use crate::bounds::{Conditions, KeyBounds, KeyPart};
use crate::columns::ColumnBuilder;
use crate::first_rows::Ways;
use crate::relation::MadeRows;
use crate::scan::{FromEntries, IndexSource, ScanPlan, ScanSource};
use crate::statement::Statement;
use crate::types::{ColumnType, column_type, field, planned_field};

/// A table of the database.
pub(crate) struct StoredTable {
    table: Table,
    /// Positions in the table of the columns that there are here.
    columns: Vec<usize>,
    schema: SchemaRef,
    /// As [`schema`](Self::schema), while a statement is read; none where it is the same.
    planned: Option<SchemaRef>,
    /// The primary key, on which the other columns depend: rows grouped by it need not be grouped by them.
    constraints: Constraints,
}

impl StoredTable {
    pub(crate) fn new(table: Table, columns: Vec<usize>) -> StoredTable {
        let definition = table.definition();
        let fields = columns.iter().map(|position| {
            let column = &definition.columns()[*position];
            let is_nullable = column.nullable && !definition.primary_key().contains(position);
            field(&column.name, column.data_type.into(), is_nullable)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let position = |column: &usize| columns.iter().position(|own| own == column);
        let key: Option<Vec<usize>> = definition.primary_key().iter().map(position).collect();
        let key = key.map(Constraint::PrimaryKey).into_iter().collect();
        let constraints = Constraints::new_unverified(key);
        StoredTable { table, columns, schema, planned: None, constraints }
    }

    /// The table while a statement is read.
    pub(crate) fn planned(self) -> StoredTable {
        let field = |own: &FieldRef| planned_field(own.name(), column_type(own), own.is_nullable());
        let planned: Vec<Field> = self.schema.fields().iter().map(field).collect();
        let is_other = |(one, own): (&Field, &FieldRef)| one.data_type() != own.data_type();
        let planned = match planned.iter().zip(self.schema.fields()).any(is_other) {
            true => Some(Arc::new(Schema::new(planned))),
            false => None,
        };
        StoredTable { planned, ..self }
    }

    /// The table as its rows are read, where it is another one.
    pub(crate) fn as_read(&self) -> Option<StoredTable> {
        self.planned.is_some().then(|| StoredTable {
            constraints: self.constraints.clone(),
            ..StoredTable::new(self.table.clone(), self.columns.clone())
        })
    }

    /// The table without what says that no two rows have one key; none if there is nothing that says so.
    pub(crate) fn without_key(&self) -> Option<StoredTable> {
        let has_key = self.constraints.iter().next().is_some();
        has_key.then(|| StoredTable {
            constraints: Constraints::default(),
            planned: self.planned.clone(),
            ..StoredTable::new(self.table.clone(), self.columns.clone())
        })
    }

    /// The filters, as conditions on columns.
    fn conditions(&self, filters: &[&Expr]) -> Conditions {
        Conditions::new(self.table.definition(), filters)
    }

    /// The columns that a filter looks at, by position in the table.
    fn columns_of(&self, filter: &Expr) -> Result<Vec<usize>> {
        let columns = filter.column_refs().into_iter();
        columns.map(|column| Ok(self.columns[self.schema.index_of(column.name())?])).collect()
    }

    /// The fields of some columns of the table.
    fn fields(&self, columns: &[usize]) -> Result<SchemaRef> {
        let at =
            columns.iter().filter_map(|column| self.columns.iter().position(|own| own == column));
        Ok(Arc::new(self.schema.project(&at.collect::<Vec<_>>())?))
    }

    /// Reads the rows that one way leaves of the table, in `parts` parts if there is only one range: the columns that
    /// are asked for, and behind them those of filters that the way is not done with.
    fn scan_by(
        &self,
        statement: &Statement,
        asked: &Asked<'_>,
        filters: &[&Expr],
        way: Access,
        parts: usize,
    ) -> Result<ScanPlan> {
        let is_whole = way.is_whole();
        let Access { index, key, bounds: KeyBounds { ranges, used, constants, .. } } = way;
        let mut columns = asked.columns.to_vec();
        for (own, _) in asked.columns_of.iter().zip(&used).filter(|(_, used)| !**used) {
            for column in own {
                if !columns.contains(column) {
                    columns.push(*column);
                }
            }
        }
        let mentioned = filters.iter().zip(&used).filter(|(_, used)| **used);
        let mentioned: Vec<String> = mentioned.map(|(filter, _)| filter.to_string()).collect();
        let source = ScanSource {
            table: self.table.clone(),
            index: index.map(|index| self.index_source(index, &columns)).transpose()?,
            schema: self.fields(&columns)?,
            columns,
            key,
            constants,
            conditions: mentioned.join(" AND "),
        };
        let limit = asked.limit.filter(|_| is_whole);
        // A few ranges are no work to share; nor is the beginning of a table.
        let parts = if ranges.len() == 1 && limit.is_none() { parts } else { 1 };
        let partitions = partitions(statement, source.scanned(), &ranges, parts)?;
        ScanPlan::new(source, partitions, limit)
    }

    fn index_source(&self, index: IndexAccess, columns: &[usize]) -> Result<IndexSource> {
        let position = |column: &usize| {
            index.position(*column).ok_or_else(|| {
                internal_datafusion_err!("an index lacks column {column} of its table")
            })
        };
        let key = self.table.definition().primary_key();
        let wanted = match index.is_enough {
            true => FromEntries::Columns(columns.iter().map(position).collect::<Result<_>>()?),
            false => FromEntries::Key(key.iter().map(position).collect::<Result<_>>()?),
        };
        Ok(IndexSource { entries: index.entries, wanted })
    }
}

/// The ranges, each in so many parts, or all in one.
fn partitions(
    statement: &Statement,
    scanned: &Table,
    ranges: &[ScanOptions<'_>],
    parts: usize,
) -> Result<Vec<Vec<KeyRange>>> {
    let mut partitions = Vec::new();
    for range in ranges {
        let cut = statement
            .key_ranges(scanned, range, parts)
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        partitions.extend(cut.into_iter().map(|range| vec![range]));
    }
    if parts == 1 {
        partitions = vec![partitions.concat()];
    }
    Ok(partitions)
}

/// A scan and what it leaves to be looked at row by row.
fn filtered(
    state: &dyn Session,
    scan: ScanPlan,
    left: Vec<Expr>,
    wanted: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(left) = conjunction(left) else { return Ok(Arc::new(scan)) };
    let schema = scan.schema();
    let predicate = state.create_physical_expr(left, &DFSchema::try_from(Arc::clone(&schema))?)?;
    let filtered = Arc::new(FilterExec::try_new(predicate, Arc::new(scan))?);
    if schema.fields().len() == wanted {
        return Ok(filtered);
    }
    let columns = schema.fields().iter().take(wanted).enumerate().map(|(at, field)| {
        ProjectionExpr::new(Arc::new(Column::new(field.name(), at)), field.name())
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), filtered)?))
}

impl fmt::Debug for StoredTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("StoredTable").field(&self.table.name()).finish()
    }
}

#[async_trait]
impl TableProvider for StoredTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.planned.as_ref().unwrap_or(&self.schema))
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let definition = self.table.definition();
        let conditions = self.conditions(filters);
        let used: Vec<bool> = if definition.indexes().is_empty() {
            KeyBounds::new(self.table.schema(), &KeyPart::of_table(definition), &conditions).used
        } else {
            // Which way is taken is known when the query is run; what that does not do itself is added there.
            let is_keyed = |column: usize| {
                definition.primary_key().contains(&column)
                    || definition.indexes().iter().any(|index| {
                        let number = u16::try_from(definition.column_number(column));
                        let of = number.map(Indexed::Column);
                        index.columns.iter().any(|own| of == Ok(own.of))
                    })
            };
            conditions.columns().map(|column| column.is_some_and(is_keyed)).collect()
        };
        let answer = |used| match used {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(used.into_iter().map(answer).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wanted: Vec<usize> = match projection {
            Some(projection) => projection.iter().map(|at| self.columns[*at]).collect(),
            None => self.columns.clone(),
        };
        let statement = Statement::of(state.config())?;
        let given: Vec<&Expr> = filters.iter().collect();
        let columns_of: Result<Vec<Vec<usize>>> =
            filters.iter().map(|filter| self.columns_of(filter)).collect();
        let asked = Asked {
            table: &self.table,
            conditions: &self.conditions(&given),
            columns: &wanted,
            columns_of: &columns_of?,
            limit,
        };
        let way = Access::choose(&statement, &asked);
        // Conditions were promised before the way was known, and at different times: some may be left.
        let left = filters.iter().zip(&way.bounds.used).filter(|(_, used)| !**used);
        let left: Vec<Expr> = left.map(|(filter, _)| filter.clone()).collect();
        let parts = state.config().target_partitions();
        let scan = self.scan_by(&statement, &asked, &given, way, parts)?;
        let chosen = filtered(state, scan, left, wanted.len())?;
        if limit.is_some() || self.table.definition().indexes().is_empty() {
            return Ok(chosen);
        }
        let others: Result<Vec<ScanPlan>> = Access::whole(&statement, &asked)
            .into_iter()
            .map(|way| self.scan_by(&statement, &asked, &given, way, 1))
            .collect();
        let others = others?.into();
        Ok(Arc::new(Ways { chosen, others }))
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
