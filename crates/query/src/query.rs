//! From a statement to a plan that can be run again and again.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, Schema};
use datafusion::catalog::{TableFunctionArgs, default_table_source::provider_as_source};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{
    DFSchema, ParamValues, ScalarValue, TableReference, internal_datafusion_err,
};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::planner::{
    ContextProvider, ExprPlanner, RelationPlanner, TypePlanner,
};
use datafusion::logical_expr::{
    AggregateUDF, EmptyRelation, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource,
    WindowUDF,
};
use datafusion::sql::planner::{ParserOptions, PlannerContext, SqlToRel};
use datafusion::sql::sqlparser::ast;
use onrush::{DataType, Value};

use crate::cold::ColdTable;
use crate::distinct_on::first_rows_of;
use crate::engine::QueryEngine;
use crate::error::{QueryError, Result};
use crate::postponed::volatile_behind_sorts;
use crate::relation::{Relation, Relations};
use crate::row_by_row::inside_of_calls;
use crate::table::{MadeTable, StoredTable};
use crate::ties::by_rank;
use crate::types::{ColumnType, answer_type, column_type, field, planned_field};
use crate::typing::{Types, with_constants, with_types};
use crate::unkeyed::UnkeyedRelations;
use crate::values::scalar;
use crate::view::ViewSource;
use crate::{nothing, scalar, series, syntax};

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryColumn {
    /// Its name, as PostgreSQL would have it.
    pub name: String,
    /// Its type.
    pub column_type: ColumnType,
}

/// A query, ready to be run.
#[derive(Clone, Debug)]
pub struct Query {
    plan: LogicalPlan,
    columns: Vec<QueryColumn>,
    /// The type of each parameter.
    parameters: Vec<FieldRef>,
}

impl QueryEngine {
    /// Plans a query over the relations that there are now. `declared` has the types of the
    /// parameters as far as they are known.
    ///
    /// # Errors
    /// Whatever is wrong with the statement.
    pub fn plan(
        &self,
        mut query: ast::Query,
        relations: &dyn Relations,
        declared: &[Option<ColumnType>],
    ) -> Result<Query> {
        if nothing::is_surely_empty(&query.body, relations)
            && let Some(names) = syntax::all_names(&query)
        {
            return Query::of_nothing(names, declared);
        }
        let prepared = syntax::prepare(self, &mut query, relations, declared)?;
        scalar::unfold(self, &mut query);
        let planned = self.analyzed(query, relations, declared);
        let (plan, parameters) = planned.map_err(|error| prepared.told(error))?;
        let planned = plan.schema().fields();
        let names = planned.iter().map(|field| field.name().clone()).collect();
        let columns = syntax::names(&prepared.labels, names)
            .into_iter()
            .zip(planned.iter())
            .map(|(name, field)| QueryColumn { name, column_type: answer_type(field) });
        Ok(Query { columns: columns.collect(), plan, parameters })
    }

    /// The plan with its types, and those of the parameters.
    pub(crate) fn analyzed(
        &self,
        query: ast::Query,
        relations: &dyn Relations,
        declared: &[Option<ColumnType>],
    ) -> Result<(LogicalPlan, Vec<FieldRef>)> {
        self.typed(self.untyped(query, relations, declared)?, declared)
    }

    /// The plan as DataFusion has it of the words alone.
    pub(crate) fn untyped(
        &self,
        query: ast::Query,
        relations: &dyn Relations,
        declared: &[Option<ColumnType>],
    ) -> Result<LogicalPlan> {
        let names = Names::new(&self.state, relations);
        let options = ParserOptions::from(&self.state.config_options().sql_parser);
        let planner = SqlToRel::new_with_options(&names, options);
        let known = |column: &Option<ColumnType>| {
            column.map(|column| planned_field("", column, true).into())
        };
        let mut context = PlannerContext::new()
            .with_prepare_param_data_types(declared.iter().map(known).collect());
        let statement = ast::Statement::Query(Box::new(query));
        Ok(planner.sql_statement_to_plan_with_context(statement, &mut context)?)
    }

    pub(crate) fn typed(
        &self,
        plan: LogicalPlan,
        declared: &[Option<ColumnType>],
    ) -> Result<(LogicalPlan, Vec<FieldRef>)> {
        let plan = volatile_behind_sorts(by_rank(with_types(first_rows_of(plan)?)?)?)?;
        let parameters = parameters(&plan, declared)?;
        let analyzer = self.state.analyzer();
        let plan = analyzer.execute_and_check(plan, self.state.config_options(), |_, _| {})?;
        Ok((plan, parameters))
    }
}

impl Query {
    /// A query without rows, of text.
    fn of_nothing(names: Vec<String>, declared: &[Option<ColumnType>]) -> Result<Query> {
        let text = ColumnType::Stored(DataType::Text);
        let columns: Vec<QueryColumn> =
            names.into_iter().map(|name| QueryColumn { name, column_type: text }).collect();
        let fields = (0..columns.len()).map(|at| (None, field(&at.to_string(), text, true).into()));
        let schema = DFSchema::new_with_metadata(fields.collect(), HashMap::new())?;
        let plan = LogicalPlan::EmptyRelation(EmptyRelation {
            produce_one_row: false,
            schema: Arc::new(schema),
        });
        let parameters = parameters(&plan, declared)?;
        Ok(Query { plan, columns, parameters })
    }

    /// The columns of its rows.
    #[must_use]
    pub fn columns(&self) -> &[QueryColumn] {
        &self.columns
    }

    /// The type of each parameter.
    #[must_use]
    pub fn parameters(&self) -> Vec<ColumnType> {
        self.parameters.iter().map(|field| column_type(field)).collect()
    }

    pub(crate) fn plan(&self) -> &LogicalPlan {
        &self.plan
    }

    pub(crate) fn column_types(&self) -> Vec<ColumnType> {
        self.columns.iter().map(|column| column.column_type).collect()
    }

    /// The plan with these values in the place of its parameters.
    pub(crate) fn with_parameters(&self, given: &[Value<'_>]) -> Result<LogicalPlan> {
        if self.parameters.is_empty() {
            return Ok(self.plan.clone());
        }
        let mut values = Vec::with_capacity(given.len());
        for (field, value) in self.parameters.iter().zip(given) {
            values.push(parameter_value(field, value)?);
        }
        let values = ParamValues::from(values);
        let replaced =
            |plan: LogicalPlan| with_constants(plan.replace_params_with_values(&values)?);
        Ok(inside_of_calls(replaced(self.plan.clone())?, &replaced)?)
    }
}

fn parameter_value(field: &FieldRef, value: &Value<'_>) -> Result<ScalarValue> {
    let column = match column_type(field) {
        // Whether it fits the column it is compared with does not matter here.
        ColumnType::Stored(DataType::Varchar(_)) => ColumnType::Stored(DataType::Text),
        other => other,
    };
    scalar(value, column)
}

/// The types of all parameters, from the first on. One that the statement leaves out is what it was
/// declared as, or text.
fn parameters(plan: &LogicalPlan, declared: &[Option<ColumnType>]) -> Result<Vec<FieldRef>> {
    let mut found: HashMap<usize, FieldRef> = HashMap::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            use datafusion::common::tree_node::TreeNode;
            expression.apply(|inner| {
                if let Expr::Placeholder(Placeholder { id, field: Some(field) }) = inner
                    && let Some(number) = number_of(id)
                {
                    found.entry(number).or_insert_with(|| Arc::clone(field));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    let count = found.keys().map(|number| number + 1).max().unwrap_or(0).max(declared.len());
    let text = ColumnType::Stored(DataType::Text);
    let unused = |number: usize| {
        let column = declared.get(number).copied().flatten().unwrap_or(text);
        field("", column, true).into()
    };
    Ok((0..count).map(|number| found.remove(&number).unwrap_or_else(|| unused(number))).collect())
}

/// What an expression without columns comes to.
fn evaluated(state: &SessionState, expression: &Expr) -> Option<ScalarValue> {
    let physical = state.create_physical_expr(expression.clone(), &DFSchema::empty()).ok()?;
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let schema = Arc::new(Schema::empty());
    let row = RecordBatch::try_new_with_options(schema, Vec::new(), &options).ok()?;
    let value = physical.evaluate(&row).ok()?.into_array(1).ok()?;
    ScalarValue::try_from_array(&value, 0).ok()
}

/// A call without columns as its value, as functions in FROM want it.
fn constant(state: &SessionState, expression: Expr) -> Expr {
    match &expression {
        Expr::ScalarFunction(_) => match evaluated(state, &expression) {
            Some(value) => Expr::Literal(value, None),
            None => expression,
        },
        _ => expression,
    }
}

/// Refuses a LIMIT or OFFSET below zero.
pub(crate) fn check_counts(state: &SessionState, plan: &LogicalPlan) -> Result<()> {
    let mut refused = None;
    let is_negative = |count: Option<&Expr>| {
        let value = count.and_then(|count| evaluated(state, count));
        let number = value.and_then(|value| value.cast_to(&ArrowType::Int64).ok());
        matches!(number, Some(ScalarValue::Int64(Some(..0))))
    };
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(limit) = node {
            if is_negative(limit.fetch.as_deref()) {
                refused = Some("LIMIT");
            } else if is_negative(limit.skip.as_deref()) {
                refused = Some("OFFSET");
            }
        }
        Ok(match refused {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        })
    })?;
    refused.map_or(Ok(()), |clause| Err(QueryError::NegativeCount { clause }))
}

/// `$1` is the first, 0.
fn number_of(id: &str) -> Option<usize> {
    id.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

/// Where the planner looks up names.
struct Names<'a> {
    state: &'a SessionState,
    relations: &'a dyn Relations,
    planners: [Arc<dyn RelationPlanner>; 1],
}

impl<'a> Names<'a> {
    fn new(state: &'a SessionState, relations: &'a dyn Relations) -> Names<'a> {
        Names { state, relations, planners: [Arc::new(UnkeyedRelations::default())] }
    }
}

impl ContextProvider for Names<'_> {
    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        &self.planners
    }

    fn get_table_source(
        &self,
        name: TableReference,
    ) -> datafusion::error::Result<Arc<dyn TableSource>> {
        let relation = self.relations.find(name.schema(), name.table())?;
        Ok(match relation {
            Relation::Table(table) => {
                let shown = table.definition().shown_columns().collect();
                provider_as_source(Arc::new(StoredTable::new(table, shown).planned()))
            }
            Relation::TableWithRowIds(table) => {
                let all = (0..table.definition().columns().len()).collect();
                provider_as_source(Arc::new(StoredTable::new(table, all).planned()))
            }
            Relation::Columns(table, positions) => {
                provider_as_source(Arc::new(StoredTable::new(table, positions).planned()))
            }
            Relation::View(view) => Arc::new(ViewSource::new(view)),
            Relation::Cold(rows) => provider_as_source(Arc::new(ColdTable::new(rows))),
            Relation::Made(rows) => provider_as_source(Arc::new(MadeTable::new(rows))),
        })
    }

    fn get_table_function_source(
        &self,
        name: &str,
        arguments: Vec<Expr>,
    ) -> datafusion::error::Result<Arc<dyn TableSource>> {
        let function = self
            .state
            .table_functions()
            .get(name)
            .ok_or_else(|| internal_datafusion_err!("there is no table function {name}"))?;
        let arguments: Vec<Expr> =
            arguments.into_iter().map(|argument| constant(self.state, argument)).collect();
        let table_arguments = TableFunctionArgs::new(&arguments, self.state);
        let rows = function.create_table_provider_with_args(table_arguments)?;
        Ok(provider_as_source(match name {
            "generate_series" => series::of_own_type(rows, &arguments),
            _ => rows,
        }))
    }

    fn create_cte_work_table(
        &self,
        name: &str,
        schema: datafusion::arrow::datatypes::SchemaRef,
    ) -> datafusion::error::Result<Arc<dyn TableSource>> {
        let table = datafusion::catalog::cte_worktable::CteWorkTable::new(name, schema);
        Ok(provider_as_source(Arc::new(table)))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.state.expr_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(Types))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.state.scalar_functions().get(name).cloned()
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.state.aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _: &[String]) -> Option<ArrowType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.state.scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.state.higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.state.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.state.window_functions().keys().cloned().collect()
    }
}
