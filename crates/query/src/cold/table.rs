//! A table with rows in files as well, as DataFusion sees it.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DFSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::union::UnionExec;
use onrush::{DataType, Lsn};

use super::file::Wanted;
use super::hot::{HotColumn, HotScan};
use super::scan::{ColdScan, LeftOut};
use super::statistics::Pruning;
use super::{ADDED, ColdCondition, ColdPart, ColdRows, ColdValues};
use crate::bounds::{Condition, Conditions, FilteredColumns, KeyBounds, KeyPart};
use crate::statement::Statement;
use crate::types::{ColumnType, field};

/// See the module.
#[derive(Debug)]
pub(crate) struct ColdTable {
    rows: Arc<dyn ColdRows>,
    /// Positions in the table of the columns before those that are added.
    stored: Vec<usize>,
    schema: SchemaRef,
}

impl ColdTable {
    pub(crate) fn new(rows: Arc<dyn ColdRows>) -> ColdTable {
        let definition = rows.table().definition();
        let stored: Vec<usize> = definition.shown_columns().collect();
        let mut fields = Vec::with_capacity(stored.len() + ADDED.len());
        for at in &stored {
            let column = &definition.columns()[*at];
            let is_nullable = column.nullable && !definition.primary_key().contains(at);
            fields.push(field(&column.name, column.data_type.into(), is_nullable));
        }
        fields.extend(ADDED.map(|(name, data_type)| field(name, data_type.into(), true)));
        ColdTable { stored, schema: Arc::new(Schema::new(fields)), rows }
    }

    /// Name and type of each column.
    pub(crate) fn columns(rows: &dyn ColdRows) -> Vec<(String, ColumnType)> {
        let definition = rows.table().definition();
        let stored = definition.shown_columns().map(|at| {
            let column = &definition.columns()[at];
            (column.name.clone(), column.data_type.into())
        });
        stored.chain(ADDED.map(|(name, data_type)| (name.to_owned(), data_type.into()))).collect()
    }

    fn node_at(&self) -> usize {
        self.stored.len()
    }

    fn lsn_at(&self) -> usize {
        self.stored.len() + 1
    }

    fn conditions(&self, filters: &[&Expr]) -> Vec<ColdCondition> {
        let of = |(column, condition): (usize, Condition)| {
            let values = match condition {
                Condition::Points(values) => ColdValues::OneOf(values),
                Condition::Range(from, to) => ColdValues::Between(from, to),
            };
            ColdCondition { column, values }
        };
        Conditions::new(self, filters).into_found().map(of).collect()
    }

    /// Reads the files; none if there is nothing to read.
    fn cold(
        &self,
        state: &dyn Session,
        part: &ColdPart,
        seen_below: Lsn,
        (projection, filters, limit): (&[usize], &[Expr], Option<usize>),
    ) -> Result<Option<ColdScan>> {
        if part.files.is_empty() {
            return Ok(None);
        }
        let mut read = projection.to_vec();
        let mut place = |column: usize| {
            read.iter().position(|own| *own == column).unwrap_or_else(|| {
                read.push(column);
                read.len() - 1
            })
        };
        // Files that were made since the statement began have rows that it does not see.
        let left_out = (part.hot_from > seen_below).then(|| LeftOut {
            node: part.node,
            from: seen_below,
            node_at: place(self.node_at()),
            lsn_at: place(self.lsn_at()),
        });
        let field_ids = read.iter().filter_map(|at| part.field_ids.get(*at)).copied().collect();
        let schema = Arc::new(self.schema.project(projection)?);
        let wanted = Wanted {
            schema: Arc::new(self.schema.project(&read)?),
            field_ids,
            pruning: self.pruning(state, part, filters).map(Arc::new),
            batch_rows: state.config().batch_size(),
        };
        let (files, parts) = (part.files.clone(), state.config().target_partitions());
        // The beginning of a table is no work to share.
        let parts = if limit.is_some() { 1 } else { parts };
        let name = self.rows.table().name().to_owned();
        Ok(Some(ColdScan::new(name, files, parts, (wanted, schema), left_out, limit)))
    }

    fn pruning(&self, state: &dyn Session, part: &ColdPart, filters: &[Expr]) -> Option<Pruning> {
        let filter = conjunction(filters.iter().cloned())?;
        let schema = DFSchema::try_from(Arc::clone(&self.schema)).ok()?;
        // What cannot be asked of a single row is asked above.
        let condition = state.create_physical_expr(filter, &schema).ok()?;
        Pruning::new(condition, &self.schema, &part.field_ids)
    }

    /// Reads the database; none if there is nothing to read.
    fn hot(
        &self,
        state: &dyn Session,
        part: &ColdPart,
        conditions: &[ColdCondition],
        (projection, filters, limit): (&[usize], &[&Expr], Option<usize>),
    ) -> Result<Option<HotScan>> {
        let of = |column: usize| conditions.iter().filter(move |own| own.column == column);
        if of(self.node_at()).any(|own| !own.values.has(part.node.into())) {
            return Ok(None);
        }
        let asked = of(self.lsn_at()).filter_map(|own| own.values.lowest()).max();
        let asked = asked.and_then(|lowest| u64::try_from(lowest).ok()).map_or(Lsn::ZERO, Lsn);
        let since = part.hot_from.max(asked);
        let table = self.rows.table();
        let definition = table.definition();
        let bounds = Conditions::new(definition, filters);
        let bounds = KeyBounds::new(table.schema(), &KeyPart::of_table(definition), &bounds);
        let statement = Statement::of(state.config())?;
        let parts = state.config().target_partitions();
        let parts = if bounds.ranges.len() == 1 && limit.is_none() { parts } else { 1 };
        let mut partitions = Vec::new();
        for range in &bounds.ranges {
            let ranges = statement
                .key_ranges(table, range, parts)
                .map_err(|error| DataFusionError::External(Box::new(error)))?;
            partitions.extend(ranges.into_iter().map(|range| vec![range]));
        }
        if parts == 1 {
            partitions = vec![partitions.concat()];
        }
        let columns = projection.iter().map(|at| match self.stored.get(*at) {
            Some(stored) => HotColumn::Stored(*stored),
            None if *at == self.node_at() => HotColumn::Node,
            None if *at == self.lsn_at() => HotColumn::Lsn,
            None => HotColumn::At,
        });
        let columns = (columns.collect(), Arc::new(self.schema.project(projection)?));
        let scanned = (table.clone(), part.node, since);
        Ok(Some(HotScan::new(scanned, columns, partitions, limit)))
    }
}

impl FilteredColumns for ColdTable {
    fn find(&self, name: &str) -> Option<(usize, DataType)> {
        let at = self.schema.index_of(name).ok()?;
        let stored = self.stored.get(at).map(|stored| {
            let columns = self.rows.table().definition().columns();
            columns[*stored].data_type
        });
        let added = || ADDED.get(at.checked_sub(self.stored.len())?).map(|(_, of)| *of);
        Some((at, stored.or_else(added)?))
    }

    fn is_of_key(&self, position: usize) -> bool {
        let stored = self.stored.get(position);
        let key = self.rows.table().definition().primary_key();
        stored.is_some_and(|stored| key.contains(stored))
    }
}

#[async_trait]
impl TableProvider for ColdTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        // They leave files and ranges of keys out; which rows of the rest are wanted is asked above.
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let projection = match projection {
            Some(projection) => projection.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let limit = limit.filter(|_| filters.is_empty());
        let given: Vec<&Expr> = filters.iter().collect();
        let conditions = self.conditions(&given);
        let statement = Statement::of(state.config())?;
        let part = self.rows.part(&statement, &conditions).await?;
        let cold = self.cold(state, &part, statement.lsn(), (&projection, filters, limit))?;
        let hot = self.hot(state, &part, &conditions, (&projection, &given, limit))?;
        let cold = cold.map(|scan| Arc::new(scan) as Arc<dyn ExecutionPlan>);
        let hot = hot.map(|scan| Arc::new(scan) as Arc<dyn ExecutionPlan>);
        match (cold, hot) {
            (Some(cold), Some(hot)) => UnionExec::try_new(vec![cold, hot]),
            (Some(only), None) | (None, Some(only)) => Ok(only),
            (None, None) => {
                Ok(Arc::new(EmptyExec::new(Arc::new(self.schema.project(&projection)?))))
            }
        }
    }
}
