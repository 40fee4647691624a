//! Values that are computed from a row as it is written: those of ON CONFLICT DO UPDATE, from the row
//! that is there and the one that was to be inserted, and those of RETURNING. Compiled when the
//! statement is planned, then evaluated one row at a time, on the thread of whoever writes it.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::Column as LogicalColumn;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, ScalarUDF, Volatility};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::sql::sqlparser::ast::{self, SelectItem};
use onrush::{DataType, Row, Value};

use crate::columns::ColumnBuilder;
use crate::engine::QueryEngine;
use crate::error::{QueryError, Result};
use crate::functions::{self, SystemFunction};
use crate::one_row::{self, NamedColumn, NamedRow, NamedRows, Place};
use crate::query::{Query, QueryColumn};
use crate::statement::Client;
use crate::style::{Style, current};
use crate::types::{ColumnType, field};
use crate::values::{readable, value_at};

/// What stands in front of the column that says when it is, and its name.
const TIMESTAMP: &str = "onrush_timestamp";

/// Expressions of rows, without values for their parameters.
pub struct RowExpressions {
    query: Query,
    /// The columns of the rows that they are of, one row behind the other, each with the number of its row.
    columns: Vec<(usize, NamedColumn)>,
    /// Where neither parameters nor the moment count, what every execution in this style uses.
    ready: Option<(Arc<Style>, Arc<RowValues>)>,
}

/// Expressions of rows, ready to be evaluated.
#[derive(Debug)]
pub struct RowValues {
    expressions: Vec<(Arc<dyn PhysicalExpr>, ColumnType)>,
    /// The columns that they look at, alone.
    schema: SchemaRef,
    /// Which of the rows each of those is of, its position there, and its type.
    columns: Vec<(usize, usize, ColumnType)>,
}

impl QueryEngine {
    /// Compiles expressions of these rows, of which none or several may be of one table. `declared` has the types
    /// of the parameters as far as they are known.
    ///
    /// # Errors
    /// A subquery, an aggregate; no such column or function.
    pub fn row_expressions(
        &self,
        rows: &[NamedRow],
        items: Vec<SelectItem>,
        place: Place,
        declared: &[Option<ColumnType>],
    ) -> Result<RowExpressions> {
        one_row::check(self, &items, &place)?;
        let query = self.plan(one_row::select(items, rows)?, &NamedRows(rows), declared)?;
        let mut made = RowExpressions { query, columns: numbered(rows), ready: None };
        // Those of the statement may stand elsewhere in it.
        let has_parameters = has(made.query.plan(), |it| matches!(it, Expr::Placeholder(_)))?;
        if !has_parameters && !calls(made.query.plan(), tells_of_statement)? {
            let values = made.compiled(self, made.query.plan())?;
            made.ready = Some((current(), Arc::new(values)));
        }
        Ok(made)
    }

    /// What an expression comes to that is of no row.
    ///
    /// # Errors
    /// One that does not always come to the same.
    pub fn constant(&self, expression: ast::Expr) -> Result<Value<'static>> {
        let query = self.rowless(expression, &[])?;
        let is_changing =
            |function: &ScalarUDF| function.signature().volatility != Volatility::Immutable;
        if calls(query.plan(), is_changing)? {
            let message = "an expression that does not always come to the same".to_owned();
            return Err(QueryError::NotSupported { message });
        }
        let expressions = RowExpressions { query, columns: Vec::new(), ready: None };
        let values = expressions.compiled(self, expressions.query.plan())?.of(&[])?;
        Ok(values.into_iter().next().unwrap_or(Value::Null))
    }

    /// Compiles an expression of no row that is computed again and again, whoever asks.
    ///
    /// # Errors
    /// A function that tells who asks.
    pub fn rowless_value(&self, expression: ast::Expr) -> Result<RowlessValue> {
        let (name, column_type) = (TIMESTAMP.to_owned(), DataType::TimestampTz.into());
        let column = NamedColumn { position: 0, name: name.clone(), column_type };
        let rows = [NamedRow { schema: None, name, columns: vec![column] }];
        let query = self.rowless(expression, &rows)?;
        let timestamp = Expr::Column(LogicalColumn::new(Some(TIMESTAMP), TIMESTAMP));
        let plan = functions::bind_to_column(query.plan().clone(), &timestamp)?;
        let expressions = RowExpressions { query, columns: numbered(&rows), ready: None };
        Ok(RowlessValue(expressions.compiled(self, &plan)?))
    }

    fn rowless(&self, expression: ast::Expr, rows: &[NamedRow]) -> Result<Query> {
        let place = Place { one: "DEFAULT expression", many: "DEFAULT expressions" };
        let items = vec![SelectItem::UnnamedExpr(expression)];
        one_row::check(self, &items, &place)?;
        let query = self.plan(one_row::select(items, rows)?, &NamedRows(rows), &[])?;
        if !query.parameters().is_empty() {
            let message = "a parameter in a DEFAULT expression is not supported".to_owned();
            return Err(QueryError::NotSupported { message });
        }
        Ok(query)
    }
}

/// An expression of no row, ready to be computed.
#[derive(Debug)]
pub struct RowlessValue(RowValues);

impl RowlessValue {
    /// What it comes to at a moment, in microseconds since 1970-01-01 00:00:00 UTC.
    ///
    /// # Errors
    /// A value that cannot be computed.
    pub fn at(&self, now_micros: i64) -> Result<Value<'static>> {
        let values = self.0.of(&[&[Value::TimestampTz(now_micros)]])?;
        Ok(values.into_iter().next().unwrap_or(Value::Null))
    }
}

/// The columns of rows, each with the number of its row.
fn numbered(rows: &[NamedRow]) -> Vec<(usize, NamedColumn)> {
    let of_row = |(number, row): (usize, &NamedRow)| {
        let columns: Vec<_> = row.columns.iter().map(|column| (number, column.clone())).collect();
        columns
    };
    rows.iter().enumerate().flat_map(of_row).collect()
}

impl RowExpressions {
    /// The columns of what they come to.
    #[must_use]
    pub fn columns(&self) -> &[QueryColumn] {
        self.query.columns()
    }

    /// The type of each parameter.
    #[must_use]
    pub fn parameters(&self) -> Vec<ColumnType> {
        self.query.parameters()
    }

    /// The expressions for one execution of a statement.
    ///
    /// # Errors
    /// Parameters that are not of these types.
    pub fn bind(
        &self,
        engine: &QueryEngine,
        client: &Client,
        now_micros: i64,
        parameters: &[Value<'_>],
    ) -> Result<Arc<RowValues>> {
        if let Some((style, ready)) = &self.ready
            && *style == current()
        {
            return Ok(Arc::clone(ready));
        }
        let plan = self.query.with_parameters(parameters)?;
        let plan = functions::bind(plan, client, now_micros)?;
        Ok(Arc::new(self.compiled(engine, &plan)?))
    }

    fn compiled(&self, engine: &QueryEngine, plan: &LogicalPlan) -> Result<RowValues> {
        let too_much = || QueryError::NotSupported {
            message: "an expression that is more than one of its row is not supported here"
                .to_owned(),
        };
        let LogicalPlan::Projection(projection) = plan else { return Err(too_much()) };
        if !is_of_rows_alone(&projection.input)? {
            return Err(too_much());
        }
        let input = projection.input.schema();
        let mut expressions = Vec::with_capacity(projection.expr.len());
        for (expression, column) in projection.expr.iter().zip(self.columns_of_answer()) {
            let expression = expression.clone().unalias();
            expressions.push((one_row::physical(engine, expression, input)?, column));
        }
        let mut used: Vec<usize> = expressions
            .iter()
            .flat_map(|(expression, _)| collect_columns(expression))
            .map(|column| column.index())
            .collect();
        used.sort_unstable();
        used.dedup();
        for (expression, _) in &mut expressions {
            *expression = with_columns_at(Arc::clone(expression), &used)?;
        }
        let (mut columns, mut fields) = (Vec::new(), Vec::<Field>::new());
        for at in used {
            let (row, NamedColumn { position, name, column_type }) = &self.columns[at];
            columns.push((*row, *position, *column_type));
            fields.push(field(name, *column_type, true));
        }
        Ok(RowValues { expressions, schema: Arc::new(Schema::new(fields)), columns })
    }

    fn columns_of_answer(&self) -> impl Iterator<Item = ColumnType> {
        self.query.columns().iter().map(|column| column.column_type)
    }
}

impl fmt::Debug for RowExpressions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RowExpressions").finish_non_exhaustive()
    }
}

impl RowValues {
    /// What the expressions come to for these rows, in the order of their names.
    ///
    /// # Errors
    /// A value that cannot be computed.
    pub fn of(&self, rows: &[&[Value<'static>]]) -> Result<Row> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for (row, position, column_type) in &self.columns {
            let mut builder = ColumnBuilder::new(*column_type, 1)?;
            let value = rows.get(*row).and_then(|row| row.get(*position));
            builder.append(value.unwrap_or(&Value::Null))?;
            columns.push(builder.finish());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
        let mut values = Row::with_capacity(self.expressions.len());
        for (expression, column_type) in &self.expressions {
            let value = readable(&expression.evaluate(&batch)?.into_array(1)?)?;
            values.push(value_at(&value, 0, *column_type)?.into_owned());
        }
        Ok(values)
    }
}

/// The expression where of all columns only those at `used` are left, which may be of one name.
fn with_columns_at(
    expression: Arc<dyn PhysicalExpr>,
    used: &[usize],
) -> Result<Arc<dyn PhysicalExpr>> {
    let moved = expression.transform(|inner| {
        let any: &dyn std::any::Any = &*inner;
        let Some(column) = any.downcast_ref::<Column>() else { return Ok(Transformed::no(inner)) };
        let at = used.iter().position(|own| *own == column.index()).unwrap_or_default();
        Ok(Transformed::yes(Arc::new(Column::new(column.name(), at)) as Arc<dyn PhysicalExpr>))
    });
    Ok(moved.data()?)
}

/// Whether nothing would have to be run between the rows and the expressions.
fn is_of_rows_alone(plan: &LogicalPlan) -> Result<bool> {
    let mut is_alone = true;
    plan.apply(|node| {
        is_alone &= matches!(
            node,
            LogicalPlan::TableScan(_) | LogicalPlan::Join(_) | LogicalPlan::EmptyRelation(_)
        );
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(is_alone)
}

/// Of a function that tells who asks, or when.
fn tells_of_statement(function: &ScalarUDF) -> bool {
    let inner: &dyn std::any::Any = function.inner().as_ref();
    let own = inner.downcast_ref::<SystemFunction>();
    function.signature().volatility == Volatility::Stable
        || own.is_some_and(SystemFunction::is_of_client)
}

/// Whether such a function is called.
fn calls(plan: &LogicalPlan, is_sought: impl Fn(&ScalarUDF) -> bool) -> Result<bool> {
    has(
        plan,
        |expression| matches!(expression, Expr::ScalarFunction(call) if is_sought(&call.func)),
    )
}

/// Whether there is such an expression in it.
fn has(plan: &LogicalPlan, is_sought: impl Fn(&Expr) -> bool) -> Result<bool> {
    let mut has = false;
    plan.apply_expressions(|expression| {
        expression.apply(|inner| {
            has |= is_sought(inner);
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(has)
}
