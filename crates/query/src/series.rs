//! `generate_series` in FROM: of `integer`s where it goes from one to another, while DataFusion's are `bigint`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, cast};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

/// The rows of a series with these bounds.
pub(crate) fn of_own_type(
    series: Arc<dyn TableProvider>,
    bounds: &[Expr],
) -> Arc<dyn TableProvider> {
    if bounds.is_empty() || !bounds.iter().all(is_integer) {
        return series;
    }
    let field = |field: &Arc<Field>| match field.data_type() {
        ArrowType::Int64 => field.as_ref().clone().with_data_type(ArrowType::Int32),
        _ => field.as_ref().clone(),
    };
    let fields: Vec<Field> = series.schema().fields().iter().map(field).collect();
    Arc::new(Integers { series, schema: Arc::new(Schema::new(fields)) })
}

/// Whether a bound is an `integer` as it is written.
pub(crate) fn is_integer(bound: &Expr) -> bool {
    match bound {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => i32::try_from(*number).is_ok(),
        Expr::Literal(ScalarValue::Int32(Some(_)) | ScalarValue::Int16(Some(_)), _) => true,
        Expr::Negative(inner) => is_integer(inner),
        _ => false,
    }
}

#[derive(Debug)]
struct Integers {
    series: Arc<dyn TableProvider>,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for Integers {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        self.series.table_type()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = self.series.scan(state, projection, filters, limit).await?;
        let schema = rows.schema();
        let mut columns: Vec<(Arc<dyn PhysicalExpr>, String)> = Vec::new();
        for (at, field) in schema.fields().iter().enumerate() {
            let column = Arc::new(Column::new(field.name(), at));
            columns.push((cast(column, &schema, ArrowType::Int32)?, field.name().clone()));
        }
        Ok(Arc::new(ProjectionExec::try_new(columns, rows)?))
    }
}
