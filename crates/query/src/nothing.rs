//! Queries that surely find nothing: those of tables that are always empty.
//!
//! Tools look into many tables of PostgreSQL's catalogue for things that are not here, with whatever
//! SQL they like. Where such a table stands in FROM there can be no rows, whatever is computed of them.

use datafusion::sql::sqlparser::ast::{
    Function, JoinOperator, ObjectNamePart, Select, SetExpr, SetOperator, TableFactor,
    TableWithJoins,
};

use crate::outer_calls::calls_outside_queries;
use crate::relation::Relations;

/// Functions that make a row of no rows.
const AGGREGATES: [&str; 12] = [
    "count",
    "sum",
    "min",
    "max",
    "avg",
    "array_agg",
    "string_agg",
    "bool_and",
    "bool_or",
    "every",
    "json_agg",
    "jsonb_agg",
];

/// Whether the query has no rows, whatever is stored.
pub(crate) fn is_surely_empty(body: &SetExpr, relations: &dyn Relations) -> bool {
    match body {
        SetExpr::Query(query) => query.with.is_none() && is_surely_empty(&query.body, relations),
        SetExpr::SetOperation { op, left, right, .. } => {
            let (left, right) =
                (is_surely_empty(left, relations), is_surely_empty(right, relations));
            match op {
                SetOperator::Union => left && right,
                SetOperator::Intersect => left || right,
                _ => left,
            }
        }
        SetExpr::Select(select) => {
            let has_nothing = |from: &TableWithJoins| has_nothing(from, relations);
            !aggregates(select) && select.from.iter().any(has_nothing)
        }
        _ => false,
    }
}

/// An item of FROM, with what is joined to it.
fn has_nothing(from: &TableWithJoins, relations: &dyn Relations) -> bool {
    let mut nothing = is_empty(&from.relation, relations);
    for join in &from.joins {
        match join.join_operator {
            JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => {
                nothing |= is_empty(&join.relation, relations);
            }
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => {}
            _ => return false,
        }
    }
    nothing
}

fn is_empty(relation: &TableFactor, relations: &dyn Relations) -> bool {
    let TableFactor::Table { name, args: None, .. } = relation else { return false };
    let word = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(name) => Some(name.value.to_lowercase()),
        _ => None,
    };
    let words: Option<Vec<String>> = name.0.iter().map(word).collect();
    match words.as_deref() {
        Some([name]) => relations.is_always_empty(None, name),
        Some([schema, name]) => relations.is_always_empty(Some(schema), name),
        _ => false,
    }
}

/// Whether the SELECT itself, not one inside it, makes a row of no rows.
fn aggregates(select: &Select) -> bool {
    let is_aggregate = |call: &Function| {
        let name = call.name.0.last().map(ToString::to_string).unwrap_or_default();
        AGGREGATES.contains(&name.to_lowercase().as_str())
    };
    select.projection.iter().any(|item| calls_outside_queries(item, &is_aggregate))
}
