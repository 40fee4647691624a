//! Subqueries that depend on the row outside and that no join can stand for: they are run anew for each row.
//!
//! DataFusion makes a join of what it can, which is faster. What it cannot, such as a subquery with a LIMIT, becomes a
//! [call](RowByRow) of the values that it depends on. Before a statement runs, each call gets [what it runs
//! with](made_ready).

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, new_empty_array};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, Result, ScalarValue, internal_err};
use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::expr::{Alias, Exists, InSubquery, ScalarFunction};
use datafusion::logical_expr::logical_plan::check_subquery_expr;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, JoinType, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, col,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::optimizer::decorrelate::PullUpCorrelatedExpr;
use datafusion::physical_plan::collect;

use crate::functions::{has_expression, rewrite};
use crate::query::check_counts;
use membership::Members;
pub(crate) use membership::has_subquery;
use tokio::sync::OnceCell;

mod join_condition;
mod lateral;
mod membership;

/// What a subquery tells of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Tells {
    /// The value of its only row; NULL if there is none.
    Value,
    /// Whether there are rows.
    Exists { negated: bool },
    /// Whether a value, the call's last, is among them.
    Has { negated: bool },
    /// All of them, as an array of rows; NULL if there are none and `is_kept`.
    Rows { is_kept: bool },
}

/// A call of a subquery: its arguments are the values of the row outside that it depends on.
#[derive(Clone, Debug)]
struct RowByRow {
    rows: Arc<LogicalPlan>,
    /// What stands for the arguments in the subquery.
    outer: Vec<Expr>,
    tells: Tells,
    returns: FieldRef,
    signature: Signature,
}

impl PartialEq for RowByRow {
    fn eq(&self, other: &RowByRow) -> bool {
        self.rows == other.rows && self.outer == other.outer && self.tells == other.tells
    }
}

impl Eq for RowByRow {}

impl Hash for RowByRow {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.rows.hash(hasher);
        self.outer.hash(hasher);
        self.tells.hash(hasher);
    }
}

impl ScalarUDFImpl for RowByRow {
    fn name(&self) -> &str {
        "subquery"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.returns.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::clone(&self.returns))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("a subquery has no rows outside of a statement")
    }
}

/// Puts calls in the place of subqueries that DataFusion has no join for. Comes last: what is inside of a call is not
/// seen by other rules.
#[derive(Debug)]
pub(crate) struct SubqueriesByRow;

impl AnalyzerRule for SubqueriesByRow {
    fn name(&self) -> &str {
        "subqueries_by_row"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(by_row).data()
    }
}

fn by_row(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let node = membership::as_existence(node)?;
    let mut calls = Vec::new();
    node.apply_expressions(|expression| {
        expression.apply(|inner| {
            if needs_call(inner, &node)? {
                calls.push(inner.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    let node = match node {
        LogicalPlan::Join(join) => match lateral::rows(&join)? {
            Some(rows) => return Ok(Transformed::yes(rows)),
            None => LogicalPlan::Join(join),
        },
        other => other,
    };
    if calls.is_empty() {
        return Ok(Transformed::no(node));
    }
    let schema = merge_schema(&node.inputs());
    match node {
        LogicalPlan::Projection(_) => {
            rewrite(node, |expression| match calls.contains(&expression) {
                true => Ok(Transformed::yes(call(&expression, &schema)?)),
                false => Ok(Transformed::no(expression)),
            })
        }
        // The condition is one of all rows that are joined.
        LogicalPlan::Join(mut join) if join.join_type == JoinType::Inner => {
            let Some(condition) = join.filter.take() else {
                return Ok(Transformed::no(LogicalPlan::Join(join)));
            };
            let joined = LogicalPlanBuilder::from(LogicalPlan::Join(join));
            by_row(joined.filter(condition)?.build()?)
        }
        LogicalPlan::Join(join) => join_condition::computed_below(join, &calls),
        // A condition with a call must not become one of a join, which cannot wait for it.
        LogicalPlan::Filter(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Window(_) => computed_below(node, &calls, &schema),
        other => Ok(Transformed::no(other)),
    }
}

/// The node over columns of what it would have called.
fn computed_below(
    node: LogicalPlan,
    calls: &[Expr],
    schema: &DFSchema,
) -> Result<Transformed<LogicalPlan>> {
    let [input] = node.inputs()[..] else { return Ok(Transformed::no(node)) };
    // An order is one of the rows that columns are chosen of, and may look at others of their columns.
    let (mut columns, rows, rows_schema) = match (&node, input) {
        (LogicalPlan::Sort(_), LogicalPlan::Projection(chosen)) => {
            (chosen.expr.clone(), chosen.input.as_ref().clone(), chosen.input.schema().as_ref())
        }
        _ => (columns_of(schema), input.clone(), schema),
    };
    let name = |number: usize| format!("__subquery_{number}");
    for (number, of) in calls.iter().enumerate() {
        let computed = call(of, rows_schema)?;
        columns.push(Expr::Alias(Alias::new(computed, None::<&str>, name(number))));
    }
    let below = LogicalPlanBuilder::from(rows).project(columns)?.build()?;
    let node = rewrite(node, |expression| {
        Ok(match calls.iter().position(|call| *call == expression) {
            Some(number) => Transformed::yes(col(name(number))),
            None => Transformed::no(expression),
        })
    })?
    .data;
    let has_columns_of_below = matches!(node, LogicalPlan::Sort(_) | LogicalPlan::Filter(_));
    let node = node.with_new_exprs(node.expressions(), vec![below])?;
    if !has_columns_of_below {
        return Ok(Transformed::yes(node));
    }
    // What only orders rows or leaves some out has the columns of those below.
    let shown = LogicalPlanBuilder::from(node).project(columns_of(schema))?.build()?;
    Ok(Transformed::yes(shown))
}

fn columns_of(schema: &DFSchema) -> Vec<Expr> {
    schema.columns().into_iter().map(Expr::Column).collect()
}

/// The rows of a subquery, and what is asked of them; none of another expression.
fn subquery_of(expression: &Expr) -> Option<(&Arc<LogicalPlan>, Tells)> {
    match expression {
        Expr::ScalarSubquery(subquery) => Some((&subquery.subquery, Tells::Value)),
        Expr::Exists(Exists { subquery, negated }) => {
            Some((&subquery.subquery, Tells::Exists { negated: *negated }))
        }
        Expr::InSubquery(InSubquery { subquery, negated, .. }) => {
            Some((&subquery.subquery, Tells::Has { negated: *negated }))
        }
        _ => None,
    }
}

/// Whether an expression of a node is a subquery that no join can be made of.
fn needs_call(expression: &Expr, node: &LogicalPlan) -> Result<bool> {
    let Some((rows, tells)) = subquery_of(expression) else { return Ok(false) };
    if let Expr::InSubquery(of) = expression
        && !membership::is_joined(of, node)?
    {
        return Ok(true);
    }
    let outer = outer_references(rows)?;
    if outer.is_empty() {
        let is_existence = matches!(tells, Tells::Exists { .. });
        return Ok(is_existence && matches!(node, LogicalPlan::Join(_)));
    }
    // A row two queries outside is none that a join here could be with, and nor is one that a call inside depends on.
    let schema = merge_schema(&node.inputs());
    let is_further_outside = |reference: &Expr| match reference {
        Expr::OuterReferenceColumn(_, column) => !schema.has_column(column),
        _ => false,
    };
    if outer.iter().any(is_further_outside) || has_calls_of_outer(rows)? {
        return Ok(true);
    }
    let is_joined_there = match tells {
        Tells::Value => matches!(node, LogicalPlan::Projection(_) | LogicalPlan::Filter(_)),
        Tells::Exists { .. } | Tells::Has { .. } | Tells::Rows { .. } => {
            matches!(node, LogicalPlan::Filter(_))
        }
    };
    // Rows of FROM that depend on the row outside are not looked into where it is asked whether a join can be made.
    let has_lateral_rows = rows.exists(|node| Ok(is_lateral(node)))?;
    if !is_joined_there || has_lateral_rows || check_subquery_expr(node, rows, expression).is_err()
    {
        return Ok(true);
    }
    let mut pulled = PullUpCorrelatedExpr::new()
        .with_need_handle_count_bug(tells == Tells::Value)
        .with_exists_sub_query(matches!(tells, Tells::Exists { .. }));
    let is_refused = rows.as_ref().clone().rewrite(&mut pulled).is_err();
    Ok(is_refused || !pulled.can_pull_up)
}

/// Whether rows have a call of something that is of the row outside.
fn has_calls_of_outer(rows: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    rows.apply(|node| {
        node.apply_expressions(|expression| {
            found |= expression
                .exists(|inner| Ok(own_call(inner).is_some() && inner.contains_outer()))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

fn is_lateral(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Subquery(rows) if !rows.subquery.all_out_ref_exprs().is_empty())
}

/// What a subquery has of the row outside, each once: not what rows of its FROM have of those in front of them.
fn outer_references(rows: &LogicalPlan) -> Result<Vec<Expr>> {
    let mut in_front = Vec::new();
    rows.apply(|node| {
        if let LogicalPlan::Join(join) = node {
            in_front.push(Arc::clone(join.left.schema()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut outer: Vec<Expr> = Vec::new();
    for reference in rows.all_out_ref_exprs() {
        let is_in_front = |schema: &DFSchemaRef| match &reference {
            Expr::OuterReferenceColumn(_, column) => schema.has_column(column),
            _ => false,
        };
        if !outer.contains(&reference) && !in_front.iter().any(is_in_front) {
            outer.push(reference);
        }
    }
    Ok(outer)
}

/// The call of a subquery.
fn call(expression: &Expr, schema: &DFSchema) -> Result<Expr> {
    let Some((rows, tells)) = subquery_of(expression) else {
        return internal_err!("{expression} is no subquery");
    };
    let returns = match tells {
        Tells::Value => rows.schema().field(0).as_ref().clone().with_nullable(true),
        _ => Field::new("subquery", ArrowType::Boolean, true),
    };
    let value = match expression {
        Expr::InSubquery(InSubquery { expr, .. }) => Some((**expr).clone()),
        _ => None,
    };
    call_of(rows, tells, returns, schema, value)
}

/// The call of a subquery for rows of these columns.
fn call_of(
    rows: &Arc<LogicalPlan>,
    tells: Tells,
    returns: Field,
    schema: &DFSchema,
    value: Option<Expr>,
) -> Result<Expr> {
    let outer = outer_references(rows)?;
    // What is of a row further outside is one of the subquery that this one stands in.
    let argument = |reference: &Expr| match reference {
        Expr::OuterReferenceColumn(_, column) if schema.has_column(column) => {
            Expr::Column(column.clone())
        }
        other => other.clone(),
    };
    let arguments = outer.iter().map(argument).chain(value).collect();
    // Each row is one of its own: what depends on what it reads is not moved.
    let signature = Signature::variadic_any(Volatility::Volatile);
    let (rows, returns) = (Arc::clone(rows), Arc::new(returns));
    let function = RowByRow { rows, outer, tells, returns, signature };
    let function = Arc::new(ScalarUDF::new_from_impl(function));
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments)))
}

/// What the subqueries of a statement run with.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) state: SessionState,
    pub(crate) runtime: Arc<RuntimeEnv>,
}

/// Changes the plans inside of calls, and those inside of these.
pub(crate) fn inside_of_calls(
    plan: LogicalPlan,
    change: &dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<LogicalPlan> {
    calls_changed(plan, &|call| {
        let rows = inside_of_calls(change(call.rows.as_ref().clone())?, change)?;
        Ok(ScalarUDF::new_from_impl(RowByRow { rows: Arc::new(rows), ..call.clone() }))
    })
}

/// The plan with calls that can run.
pub(crate) fn made_ready(
    plan: LogicalPlan,
    setting: &dyn Fn() -> Arc<Setting>,
) -> Result<LogicalPlan> {
    calls_changed(plan, &|call| {
        let rows = made_ready(call.rows.as_ref().clone(), setting)?;
        let call = RowByRow { rows: Arc::new(rows), ..call.clone() };
        let running = Running { call, setting: setting(), members: OnceCell::new() };
        Ok(AsyncScalarUDF::new(Arc::new(running)).into_scalar_udf())
    })
}

/// The call of a subquery that an expression is.
fn own_call(expression: &Expr) -> Option<&RowByRow> {
    match expression {
        Expr::ScalarFunction(call) => call.func.inner().downcast_ref::<RowByRow>(),
        _ => None,
    }
}

fn calls_changed(
    plan: LogicalPlan,
    change: &dyn Fn(&RowByRow) -> Result<ScalarUDF>,
) -> Result<LogicalPlan> {
    if !has_expression(&plan, |inner| Ok(own_call(inner).is_some()))? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        rewrite(node, |expression| {
            let Some(func) = own_call(&expression).map(change).transpose()?.map(Arc::new) else {
                return Ok(Transformed::no(expression));
            };
            Ok(match expression {
                Expr::ScalarFunction(call) => {
                    Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, ..call }))
                }
                other => Transformed::no(other),
            })
        })
    })
    .data()
}

/// A call in a statement that runs.
#[derive(Debug)]
struct Running {
    call: RowByRow,
    setting: Arc<Setting>,
    /// The rows of a subquery that depends on nothing, which is asked whether they have a value.
    members: OnceCell<Arc<Members>>,
}

impl PartialEq for Running {
    fn eq(&self, other: &Running) -> bool {
        self.call == other.call
    }
}

impl Eq for Running {}

impl Hash for Running {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.call.hash(hasher);
    }
}

impl ScalarUDFImpl for Running {
    fn name(&self) -> &str {
        self.call.name()
    }

    fn signature(&self) -> &Signature {
        self.call.signature()
    }

    fn return_type(&self, given: &[ArrowType]) -> Result<ArrowType> {
        self.call.return_type(given)
    }

    fn return_field_from_args(&self, given: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.call.return_field_from_args(given)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("a subquery is waited for")
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Running {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut columns = Vec::with_capacity(args.args.len());
        for given in &args.args {
            columns.push(given.to_array(args.number_rows)?);
        }
        let mut known: HashMap<Vec<ScalarValue>, ScalarValue> = HashMap::new();
        let mut last = None;
        let mut values = Vec::with_capacity(args.number_rows);
        for row in 0..args.number_rows {
            let given = columns.iter().map(|column| ScalarValue::try_from_array(column, row));
            let given = given.collect::<Result<Vec<_>>>()?;
            let value = match known.get(&given) {
                Some(value) => value.clone(),
                None => {
                    let value = match self.call.tells {
                        Tells::Has { negated } => self.has(&given, negated, &mut last).await?,
                        _ => self.value_of(&given).await?,
                    };
                    known.insert(given, value.clone());
                    value
                }
            };
            values.push(value);
        }
        let made = match values.is_empty() {
            true => new_empty_array(self.call.returns.data_type()),
            false => ScalarValue::iter_to_array(values)?,
        };
        Ok(ColumnarValue::Array(made))
    }
}

impl Running {
    /// What the subquery tells for one row outside.
    async fn value_of(&self, given: &[ScalarValue]) -> Result<ScalarValue> {
        let batches = self.rows_of(given).await?;
        let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
        match self.call.tells {
            Tells::Exists { negated } => Ok(ScalarValue::Boolean(Some((rows > 0) != negated))),
            Tells::Value => match batches.iter().find(|batch| batch.num_rows() > 0) {
                Some(batch) => ScalarValue::try_from_array(batch.column(0), 0),
                None => ScalarValue::try_from(self.call.returns.data_type()),
            },
            Tells::Rows { is_kept: true } if rows == 0 => {
                ScalarValue::try_from(self.call.returns.data_type())
            }
            Tells::Rows { .. } => lateral::array_of(&batches, self.call.returns.data_type()),
            Tells::Has { .. } => internal_err!("IN has no value of its rows alone"),
        }
    }

    /// The rows of the subquery for one row outside.
    async fn rows_of(&self, given: &[ScalarValue]) -> Result<Vec<RecordBatch>> {
        let state = &self.setting.state;
        let plan = with_values(self.call.rows.as_ref().clone(), &self.call.outer, given)?;
        let plan = match self.call.tells {
            Tells::Exists { .. } => LogicalPlanBuilder::from(plan).limit(0, Some(1))?.build()?,
            Tells::Value | Tells::Has { .. } | Tells::Rows { .. } => plan,
        };
        check_counts(state, &plan)?;
        let plan = state.create_physical_plan(&plan).await?;
        let context = TaskContext::from(state).with_runtime(Arc::clone(&self.setting.runtime));
        collect(plan, Arc::new(context)).await
    }

    /// Whether the last of what is given is among the rows. `last` keeps those of the row outside before.
    async fn has(
        &self,
        given: &[ScalarValue],
        negated: bool,
        last: &mut Option<(Vec<ScalarValue>, Arc<Members>)>,
    ) -> Result<ScalarValue> {
        let Some((wanted, outer)) = given.split_last() else {
            return internal_err!("IN without a value");
        };
        let members = match last {
            Some((known, members)) if known == outer => Arc::clone(members),
            _ => {
                let made = async {
                    let pool = &self.setting.runtime.memory_pool;
                    Members::new(&self.rows_of(given).await?, pool).map(Arc::new)
                };
                let members = match outer {
                    [] => Arc::clone(self.members.get_or_try_init(|| made).await?),
                    _ => made.await?,
                };
                *last = Some((outer.to_vec(), Arc::clone(&members)));
                members
            }
        };
        let is_in = members.have(wanted)?;
        Ok(ScalarValue::Boolean(is_in.map(|is_in| is_in != negated)))
    }
}

/// A value of a row outside, with the notes on the column that it is of.
fn noted(value: ScalarValue, reference: &Expr) -> Expr {
    let notes = match reference {
        Expr::OuterReferenceColumn(field, _) if !field.metadata().is_empty() => {
            Some(FieldMetadata::from(field.as_ref()))
        }
        _ => None,
    };
    Expr::Literal(value, notes)
}

/// A subquery for one row outside.
fn with_values(plan: LogicalPlan, outer: &[Expr], given: &[ScalarValue]) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| {
        rewrite(node, |expression| {
            Ok(match outer.iter().position(|reference| *reference == expression) {
                Some(at) => Transformed::yes(noted(given[at].clone(), &outer[at])),
                None => Transformed::no(expression),
            })
        })
    });
    let plan = plan.data()?.transform_up(|node| match node {
        // It depends on nothing any more.
        LogicalPlan::Subquery(rows) if rows.subquery.all_out_ref_exprs().is_empty() => {
            Ok(Transformed::yes(Arc::unwrap_or_clone(rows.subquery)))
        }
        other => other.recompute_schema().map(Transformed::yes),
    });
    plan.data()
}
