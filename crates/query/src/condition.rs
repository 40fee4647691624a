//! Conditions that rows must meet by themselves: those of CHECK constraints. Compiled once for a
//! table's definition, then asked about one row at a time, on the thread of whoever writes it.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Volatility};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::sql::sqlparser::ast::{self, SelectItem};
use onrush::{DataType, RowView, TableDefinition};

use crate::columns::ColumnBuilder;
use crate::engine::QueryEngine;
use crate::error::{QueryError, Result};
use crate::functions::is_told_where_called;
use crate::one_row::{self, NamedRow, NamedRows, Place};
use crate::syntax;
use crate::types::{field, plain_type};

const PLACE: Place = Place { one: "check constraint", many: "check constraints" };

/// A condition on one row of a table, ready to be asked.
#[derive(Debug)]
pub struct Condition {
    expression: Arc<dyn PhysicalExpr>,
    /// The columns that it looks at, alone.
    schema: SchemaRef,
    /// Their positions in the table, and their types.
    columns: Vec<(usize, DataType)>,
}

impl QueryEngine {
    /// Compiles a condition on the rows of a table.
    ///
    /// # Errors
    /// A subquery, an aggregate, a function that does not always come to the same; no such column or
    /// function; something that is neither true nor false.
    pub fn condition(&self, table: &TableDefinition, expression: ast::Expr) -> Result<Condition> {
        let items = vec![SelectItem::UnnamedExpr(expression)];
        one_row::check(self, &items, &PLACE)?;
        let row = NamedRow::of_table(table.name(), table);
        let rows = [row.clone()];
        let relations = NamedRows(&rows);
        let mut query = one_row::select(items, &rows)?;
        let prepared = syntax::prepare(self, &mut query, &relations, &[])?;
        let planned = self.analyzed(query, &relations, &[]);
        let (plan, _) = planned.map_err(|error| prepared.told(error))?;
        let LogicalPlan::Projection(projection) = plan else { return Err(too_much()) };
        let schema = projection.input.schema();
        let [expression] = projection.expr.as_slice() else { return Err(too_much()) };
        // Whatever else stands between the row and the value would have to be run.
        if !matches!(&*projection.input, LogicalPlan::TableScan(_)) {
            return Err(too_much());
        }
        let expression = expression.clone().unalias();
        check_type(&expression.get_type(schema)?)?;
        check_functions(&expression)?;
        let expression = one_row::physical(self, expression, schema)?;
        let mut columns: Vec<usize> =
            collect_columns(&expression).iter().map(|column| column.index()).collect();
        columns.sort_unstable();
        let all = table.columns();
        let positions = columns.iter().map(|column| row.columns[*column].position);
        let types = positions.map(|position| (position, all[position].data_type));
        let types: Vec<(usize, DataType)> = types.collect();
        let fields = types
            .iter()
            .map(|(column, data_type)| field(&all[*column].name, (*data_type).into(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        let expression = reassign_expr_columns(expression, &schema)?;
        Ok(Condition { expression, schema, columns: types })
    }
}

impl Condition {
    /// Whether a row meets it: whether it is not false.
    ///
    /// # Errors
    /// A value that cannot be computed; a damaged row.
    pub fn is_met(&self, row: &RowView<'_>) -> Result<bool> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for (column, data_type) in &self.columns {
            let mut builder = ColumnBuilder::new((*data_type).into(), 1)?;
            builder.append(&row.column(*column)?)?;
            columns.push(builder.finish());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
        let value = self.expression.evaluate(&batch)?.into_array(1)?;
        let is_false = value.as_boolean_opt().is_some_and(|met| met.is_valid(0) && !met.value(0));
        Ok(!is_false)
    }

    /// Whether all values of the only column that it may look at meet it.
    pub(crate) fn are_met(&self, values: &ArrayRef) -> Result<bool> {
        let rows = values.len();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let columns = self.schema.fields().iter().map(|field| cast(values, field.data_type()));
        let columns = columns.collect::<std::result::Result<Vec<ArrayRef>, _>>()?;
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
        let met = self.expression.evaluate(&batch)?.into_array(rows)?;
        Ok(met.as_boolean_opt().is_none_or(|met| met.iter().all(|met| met != Some(false))))
    }
}

fn too_much() -> QueryError {
    QueryError::NotSupported {
        message: "a check constraint that is more than an expression of one row is not supported"
            .to_owned(),
    }
}

fn check_type(found: &ArrowType) -> Result<()> {
    if matches!(found, ArrowType::Boolean | ArrowType::Null) {
        return Ok(());
    }
    let found = plain_type(found);
    let message = format!("argument of CHECK must be type boolean, not type {found}");
    Err(QueryError::WrongType { message })
}

/// Refuses functions whose value depends on the moment, the session or chance: a row that met the
/// condition once would not always meet it. The session's time zone may count, as in PostgreSQL.
fn check_functions(expression: &Expr) -> Result<()> {
    let mut refused = None;
    expression.apply(|inner| {
        if let Expr::ScalarFunction(call) = inner
            && call.func.signature().volatility != Volatility::Immutable
            && !is_told_where_called(&call.func)
        {
            refused = Some(call.func.name().to_owned());
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let Some(name) = refused else { return Ok(()) };
    let message = format!(
        "the function {name} in a check constraint is not supported: it does not always come to \
         the same"
    );
    Err(QueryError::NotSupported { message })
}
