//! The order of rows, where what is made of them depends on it: `array_agg` and the like gather rows of a query with
//! ORDER BY in that order, and `row_number() OVER ()` counts them so. DataFusion forgets an order that no clause of
//! the function asks for.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, Result, internal_err};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, Filter, Limit, LogicalPlan, LogicalPlanBuilder, Projection,
    SubqueryAlias,
};
use datafusion::optimizer::analyzer::AnalyzerRule;

/// The column that has the place of a row in its query. No column of a statement has a name with such a character.
const PLACE: &str = "place\u{1}";

/// Gives functions that depend on an order the order of the query below them.
#[derive(Debug)]
pub(crate) struct InputOrder;

impl AnalyzerRule for InputOrder {
    fn name(&self) -> &str {
        "input_order"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(ordered).data()
    }
}

fn ordered(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let input = match &plan {
        LogicalPlan::Aggregate(aggregate) => &aggregate.input,
        LogicalPlan::Window(window) => &window.input,
        _ => return Ok(Transformed::no(plan)),
    };
    let asks = plan.expressions().iter().any(asks_for_order);
    let (input, order) = match asks.then(|| order_of(input)) {
        None => (None, None),
        Some(Order::None) => (None, None),
        Some(Order::Of(order)) => (None, Some(order)),
        Some(Order::OfOthers) => {
            let (input, place) = with_place(input)?;
            (Some(input), Some(vec![Expr::Column(place).sort(true, false)]))
        }
    };
    let names = NamePreserver::new(&plan);
    let mut changed = plan.map_expressions(|expression| {
        let name = names.save(&expression);
        let given = given_order(expression, order.as_deref());
        Ok(given.update_data(|expression| name.restore(expression)))
    })?;
    if let Some(input) = input {
        let expressions = changed.data.expressions();
        changed.data = changed.data.with_new_exprs(expressions, vec![input])?;
    }
    Ok(changed)
}

/// The functions that make something else of rows in another order.
fn depends_on_order(function: &str) -> bool {
    matches!(function, "array_agg" | "string_agg")
}

/// The same of windows.
fn depends_on_order_in_window(function: &str) -> bool {
    depends_on_order(function)
        || matches!(
            function,
            "row_number" | "lag" | "lead" | "ntile" | "first_value" | "last_value" | "nth_value"
        )
}

/// Whether an expression of a node is a call that depends on the order of rows, and tells none.
fn asks_for_order(expression: &Expr) -> bool {
    match expression {
        Expr::Alias(alias) => asks_for_order(&alias.expr),
        Expr::AggregateFunction(call) => {
            depends_on_order(call.func.name())
                && call.params.order_by.is_empty()
                && !call.params.distinct
        }
        Expr::WindowFunction(call) => {
            call.params.order_by.is_empty() && depends_on_order_in_window(call.fun.name())
        }
        _ => false,
    }
}

/// A call with the order of the rows that it is given. Of DISTINCT the order is that of the values.
fn given_order(expression: Expr, order: Option<&[SortExpr]>) -> Transformed<Expr> {
    match expression {
        Expr::Alias(mut alias) => {
            let inner = given_order(std::mem::take(&mut alias.expr), order);
            inner.update_data(|inner| {
                *alias.expr = inner;
                Expr::Alias(alias)
            })
        }
        Expr::AggregateFunction(mut call)
            if call.params.distinct
                && call.params.order_by.is_empty()
                && depends_on_order(call.func.name()) =>
        {
            let value = call.params.args.first().cloned();
            call.params.order_by = value.into_iter().map(|value| value.sort(true, false)).collect();
            Transformed::yes(Expr::AggregateFunction(call))
        }
        other => match (order, asks_for_order(&other), other) {
            (Some(order), true, Expr::AggregateFunction(mut call)) => {
                call.params.order_by = order.to_vec();
                Transformed::yes(Expr::AggregateFunction(call))
            }
            (Some(order), true, Expr::WindowFunction(mut call)) => {
                call.params.order_by = order.to_vec();
                Transformed::yes(Expr::WindowFunction(call))
            }
            (_, _, other) => Transformed::no(other),
        },
    }
}

/// What the rows of a plan are ordered by.
enum Order {
    None,
    /// By these, of its columns.
    Of(Vec<SortExpr>),
    /// By what is not among its columns.
    OfOthers,
}

fn order_of(plan: &LogicalPlan) -> Order {
    match plan {
        LogicalPlan::Sort(sort) => Order::Of(sort.expr.clone()),
        LogicalPlan::Filter(Filter { input, .. }) | LogicalPlan::Limit(Limit { input, .. }) => {
            order_of(input)
        }
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, schema, .. }) => {
            let names = input.schema().columns().into_iter().zip(schema.columns());
            let names: Vec<_> = names.map(|(inner, outer)| (Expr::Column(inner), outer)).collect();
            order_of(input).named(&names)
        }
        LogicalPlan::Projection(Projection { expr, input, schema, .. }) => {
            let names = expr.iter().zip(schema.columns());
            let names: Vec<_> =
                names.map(|(inner, outer)| (inner.clone().unalias(), outer)).collect();
            order_of(input).named(&names)
        }
        _ => Order::None,
    }
}

impl Order {
    /// By the columns that these expressions become.
    fn named(self, names: &[(Expr, Column)]) -> Order {
        let Order::Of(order) = self else { return self };
        let named = order.into_iter().map(|by| {
            let (_, column) = names.iter().find(|(inner, _)| *inner == by.expr)?;
            Some(SortExpr { expr: Expr::Column(column.clone()), ..by })
        });
        named.collect::<Option<Vec<_>>>().map_or(Order::OfOthers, Order::Of)
    }
}

/// The same rows with a column more, that of their places.
fn with_place(plan: &LogicalPlan) -> Result<(LogicalPlan, Column)> {
    let place = |plan: &LogicalPlan| plan.schema().columns().into_iter().next_back();
    let changed = match plan {
        LogicalPlan::Sort(sort) => {
            let number = row_number().order_by(sort.expr.clone()).build()?.alias(PLACE);
            LogicalPlanBuilder::from(plan.clone()).window(vec![number])?.build()?
        }
        LogicalPlan::Filter(filter) => {
            let (input, _) = with_place(&filter.input)?;
            LogicalPlan::Filter(Filter::try_new(filter.predicate.clone(), Arc::new(input))?)
        }
        LogicalPlan::Limit(limit) => {
            let (input, _) = with_place(&limit.input)?;
            LogicalPlan::Limit(Limit { input: Arc::new(input), ..limit.clone() })
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let (input, _) = with_place(&alias.input)?;
            let alias = SubqueryAlias::try_new(Arc::new(input), alias.alias.clone())?;
            LogicalPlan::SubqueryAlias(alias)
        }
        LogicalPlan::Projection(projection) => {
            let (input, place) = with_place(&projection.input)?;
            let mut items = projection.expr.clone();
            items.push(Expr::Column(place));
            LogicalPlan::Projection(Projection::try_new(items, Arc::new(input))?)
        }
        _ => return internal_err!("rows that have no order have no places"),
    };
    match place(&changed) {
        Some(place) => Ok((changed, place)),
        None => internal_err!("rows without columns have no places"),
    }
}
