//! What stands beside the table that an UPDATE or a DELETE changes: RETURNING may show it.

use onrush_query::{NamedColumn, NamedRow};
use sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, SelectItem,
    SelectItemQualifiedWildcardKind, TableAlias, TableFactor, TableWithJoins,
    WildcardAdditionalOptions, With,
};

use super::operand::Parameters;
use super::select::query_of;
use super::view::stored::quoted;
use super::{Planner, QueryPlan, names};
use crate::error::{Result, SqlError};

/// The rows that a row is found with, whose values come behind the first so many that are found.
pub(super) fn rows(
    planner: &Planner<'_>,
    with: Option<&With>,
    others: &[TableWithJoins],
    parameters: &Parameters,
    mut position: usize,
) -> Result<Vec<NamedRow>> {
    let mut called = Vec::new();
    others.iter().try_for_each(|other| add_names(other, &mut called))?;
    let mut rows = Vec::with_capacity(called.len());
    for name in called {
        let mut query = query_of(vec![all_of(&name)], others.to_vec(), None)?;
        query.with = with.cloned();
        let planned = QueryPlan::new(planner, query, &mut parameters.clone())?;
        let column = |(at, column): (usize, &super::OutputColumn)| NamedColumn {
            position: position + at,
            name: column.name.clone(),
            column_type: column.column_type,
        };
        let columns: Vec<_> = planned.columns.iter().enumerate().map(column).collect();
        position += columns.len();
        rows.push(NamedRow { schema: None, name, columns });
    }
    Ok(rows)
}

/// Refuses `*` where it would not be the columns of each relation.
pub(super) fn check_items(
    items: &[SelectItem],
    others: &[TableWithJoins],
    is_view: bool,
) -> Result<()> {
    let is_all = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_));
    if !items.iter().any(is_all) || !(is_view || others.iter().any(merges_columns)) {
        return Ok(());
    }
    let what = "RETURNING * of a view beside others, or of merged columns";
    Err(SqlError::not_supported(what, "Name the columns."))
}

fn all_of(name: &str) -> SelectItem {
    let name = ObjectName::from(vec![Ident::with_quote('"', name)]);
    let of = SelectItemQualifiedWildcardKind::ObjectName(name);
    SelectItem::QualifiedWildcard(of, WildcardAdditionalOptions::default())
}

/// The columns of a row one by one: all that the changed table has is more than it shows.
pub(super) fn columns_of(row: &NamedRow) -> impl Iterator<Item = SelectItem> {
    let column = move |column: &NamedColumn| {
        let parts = vec![quoted(&row.name), quoted(&column.name)];
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts))
    };
    row.columns.iter().map(column)
}

fn add_names(of: &TableWithJoins, called: &mut Vec<String>) -> Result<()> {
    let joined = of.joins.iter().map(|join| &join.relation);
    for factor in std::iter::once(&of.relation).chain(joined) {
        let alias =
            |alias: &Option<TableAlias>| alias.as_ref().map(|alias| names::identifier(&alias.name));
        let name = match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                add_names(table_with_joins, called)?;
                continue;
            }
            TableFactor::Table { name, alias: own, .. } => match alias(own) {
                None => names::parts(name)?.pop(),
                own => own,
            },
            TableFactor::Derived { alias: own, .. }
            | TableFactor::UNNEST { alias: own, .. }
            | TableFactor::Function { alias: own, .. }
            | TableFactor::NestedJoin { alias: own, .. } => alias(own),
            _ => None,
        };
        called.push(name.ok_or_else(|| {
            let what = "RETURNING beside something that has no name";
            SqlError::not_supported(what, "Give everything in FROM an alias.")
        })?);
    }
    Ok(())
}

fn merges_columns(of: &TableWithJoins) -> bool {
    use JoinOperator::{FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter};
    let merges = |operator: &JoinOperator| match operator {
        Join(on) | Inner(on) | Left(on) | LeftOuter(on) | Right(on) | RightOuter(on)
        | FullOuter(on) => matches!(on, JoinConstraint::Using(_) | JoinConstraint::Natural),
        _ => false,
    };
    let inner = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => merges_columns(table_with_joins),
        _ => false,
    };
    inner(&of.relation)
        || of.joins.iter().any(|join| merges(&join.join_operator) || inner(&join.relation))
}
