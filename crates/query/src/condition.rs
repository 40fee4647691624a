//! Conditions that rows must meet by themselves: those of CHECK constraints. Compiled once for a
//! table's definition, then asked about one row at a time, on the thread of whoever writes it.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Volatility};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::sql::sqlparser::ast::{self, SelectItem, SetExpr, Visit, Visitor};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use onrush::{DataType, Row, RowView, TableDefinition};

use crate::columns::ColumnBuilder;
use crate::engine::QueryEngine;
use crate::error::{QueryError, Result};
use crate::relation::{MadeRows, Relation, Relations};
use crate::statement::Statement;
use crate::syntax;
use crate::types::{ColumnType, field, plain_type};

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
        let mut seeker = Seeker { engine: self, refused: None };
        let _: ControlFlow<()> = expression.visit(&mut seeker);
        if let Some(refused) = seeker.refused {
            return Err(refused);
        }
        let relations = OneTable(table);
        let mut query = select_from(table.name(), expression)?;
        syntax::prepare(&mut query, &relations)?;
        let (plan, _) = self.analyzed(query, &relations, &[])?;
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
        let context = SimplifyContext::builder()
            .with_schema(Arc::clone(schema))
            .with_config_options(Arc::clone(self.state.config_options()))
            .build();
        // Some functions, coalesce among them, are written otherwise before they can be run.
        let expression = ExprSimplifier::new(context).simplify(expression)?;
        let expression = self.state.create_physical_expr(expression, schema)?;
        let mut columns: Vec<usize> =
            collect_columns(&expression).iter().map(|column| column.index()).collect();
        columns.sort_unstable();
        let all = table.columns();
        let types = columns.iter().map(|column| (*column, all[*column].data_type));
        let types: Vec<(usize, DataType)> = types.collect();
        let fields = types.iter().map(|(column, data_type)| {
            field(&all[*column].name, ColumnType::Stored(*data_type), true)
        });
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
            let mut builder = ColumnBuilder::new(ColumnType::Stored(*data_type), 1)?;
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
}

/// `SELECT expression FROM table`.
fn select_from(table: &str, expression: ast::Expr) -> Result<ast::Query> {
    let text = format!("SELECT NULL FROM \"{}\"", table.replace('"', "\"\""));
    let statements = Parser::parse_sql(&PostgreSqlDialect {}, &text);
    let internal = || QueryError::Internal { message: format!("{text} is not read") };
    let statement = statements.ok().and_then(|mut read| read.pop());
    let Some(ast::Statement::Query(mut query)) = statement else { return Err(internal()) };
    let SetExpr::Select(select) = &mut *query.body else { return Err(internal()) };
    select.projection = vec![SelectItem::UnnamedExpr(expression)];
    Ok(*query)
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
/// condition once would not always meet it.
fn check_functions(expression: &Expr) -> Result<()> {
    let mut refused = None;
    expression.apply(|inner| {
        if let Expr::ScalarFunction(call) = inner
            && call.func.signature().volatility != Volatility::Immutable
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

/// Looks for what no check constraint can have.
struct Seeker<'e> {
    engine: &'e QueryEngine,
    refused: Option<QueryError>,
}

impl Visitor for Seeker<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        let message = "cannot use subquery in check constraint".to_owned();
        self.refused = Some(QueryError::NotSupported { message });
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expression: &ast::Expr) -> ControlFlow<()> {
        let ast::Expr::Function(call) = expression else { return ControlFlow::Continue(()) };
        let name = call.name.0.last().map(ToString::to_string).unwrap_or_default().to_lowercase();
        let state = &self.engine.state;
        self.refused = if call.over.is_some() || state.window_functions().contains_key(&name) {
            let message = "window functions are not allowed in check constraints".to_owned();
            Some(QueryError::MisplacedWindow { message })
        } else if state.aggregate_functions().contains_key(&name) {
            let message = "aggregate functions are not allowed in check constraints".to_owned();
            Some(QueryError::NotGrouped { message })
        } else {
            return ControlFlow::Continue(());
        };
        ControlFlow::Break(())
    }
}

/// A table of which only the columns are looked at.
struct OneTable<'d>(&'d TableDefinition);

impl Relations for OneTable<'_> {
    fn find(&self, _: Option<&str>, _: &str) -> Result<Relation> {
        let column = |column: &onrush::ColumnDefinition| (column.name.clone(), column.data_type);
        let columns = self.0.columns().iter().map(column).collect();
        Ok(Relation::Made(Arc::new(OnlyColumns(columns))))
    }

    fn is_always_empty(&self, _: Option<&str>, _: &str) -> bool {
        false
    }
}

#[derive(Debug)]
struct OnlyColumns(Vec<(String, DataType)>);

impl MadeRows for OnlyColumns {
    fn columns(&self) -> Vec<(&str, ColumnType)> {
        self.0.iter().map(|(name, data_type)| (name.as_str(), (*data_type).into())).collect()
    }

    fn rows(&self, _: &Statement) -> Vec<Row> {
        Vec::new()
    }
}
