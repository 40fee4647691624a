//! What the columns of a query are called.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderByKind, Query, SelectItem, SetExpr, Value,
};

use super::whole_rows::{Sources, stars};
use super::{Label, NAMELESS, folded, name_of};

/// What the columns of a query are called; none where the statement alone does not tell it.
pub(crate) fn all_names(query: &Query) -> Option<Vec<String>> {
    let name = |label: Label| match label {
        Label::Name(name) => Some(name),
        Label::Wildcard => None,
    };
    labels(&query.body).into_iter().map(name).collect()
}

/// What the columns of a query are called.
pub(super) fn labels(body: &SetExpr) -> Vec<Label> {
    match body {
        SetExpr::Select(select) => select.projection.iter().map(label).collect(),
        SetExpr::Query(query) => labels(&query.body),
        SetExpr::SetOperation { left, .. } => labels(left),
        _ => vec![Label::Wildcard],
    }
}

pub(super) fn label(item: &SelectItem) -> Label {
    match item {
        SelectItem::UnnamedExpr(expression) => {
            Label::Name(name_of(expression).unwrap_or_else(|| NAMELESS.to_owned()))
        }
        SelectItem::ExprWithAlias { alias, .. } => Label::Name(folded(alias)),
        _ => Label::Wildcard,
    }
}

/// Gives each item that ORDER BY or GROUP BY has by its number a name that no other has: DataFusion sorts by the name.
/// Of a query whose names are known and not asked for any more.
pub(super) fn tell_numbered_apart(query: &mut Query) {
    let names = labels(&query.body);
    let SetExpr::Select(select) = &mut *query.body else { return };
    let ordered: Vec<&Expr> = match query.order_by.as_ref().map(|order| &order.kind) {
        Some(OrderByKind::Expressions(by)) => by.iter().map(|by| &by.expr).collect(),
        _ => Vec::new(),
    };
    let grouped: &[Expr] = match &select.group_by {
        GroupByExpr::Expressions(by, _) => by,
        GroupByExpr::All(_) => &[],
    };
    let numbers: Vec<usize> = ordered.into_iter().chain(grouped).filter_map(number).collect();
    for number in numbers {
        let Some(at) = number.checked_sub(1) else { continue };
        let Some(SelectItem::ExprWithAlias { alias, .. }) = select.projection.get_mut(at) else {
            continue;
        };
        let is_taken = names.iter().enumerate().any(|(other, label)| {
            other != at && matches!(label, Label::Name(name) if *name == folded(alias))
        });
        if is_taken {
            *alias = Ident::with_quote('"', format!("{}:{number}", alias.value));
        }
    }
}

/// The number of an item.
fn number(written: &Expr) -> Option<usize> {
    let Expr::Value(constant) = written else { return None };
    match &constant.value {
        Value::Number(digits, _) => digits.parse().ok(),
        _ => None,
    }
}

/// Gives each expression the name that PostgreSQL gives it, or one like it where that is taken:
/// DataFusion wants them to differ.
pub(super) fn name_items(items: &mut [SelectItem], sources: &Sources) {
    let stars = stars(items);
    let mut taken: HashSet<String> = HashSet::new();
    let mut seen: HashSet<String> = HashSet::new();
    for item in items.iter() {
        if let SelectItem::ExprWithAlias { alias, .. } = item {
            taken.insert(folded(alias));
        }
        if let SelectItem::UnnamedExpr(
            column @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_)),
        ) = item
        {
            taken.extend(name_of(column));
        }
    }
    for item in items {
        let (expression, label) = match item {
            SelectItem::UnnamedExpr(expression) => {
                let is_column =
                    matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                let is_new = is_column && !sources.is_in_star(expression, &stars);
                if is_new && seen.insert(sources.key_of(expression)) {
                    continue;
                }
                let label = name_of(expression).unwrap_or_else(|| NAMELESS.to_owned());
                (expression.clone(), label)
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                let label = folded(alias);
                // The first of those called alike keeps its name. DataFusion takes no note of a column's own.
                let is_own = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
                    && name_of(expr).as_ref() == Some(&label);
                let key = if is_own { sources.key_of(expr) } else { format!(" alias {label}") };
                if seen.insert(key) {
                    continue;
                }
                (expr.clone(), label)
            }
            _ => continue,
        };
        let mut name = label.clone();
        let mut number = 2;
        while !taken.insert(name.clone()) {
            name = format!("{label} {number}");
            number += 1;
        }
        *item = SelectItem::ExprWithAlias { expr: expression, alias: Ident::with_quote('"', name) };
    }
}

/// The names of an answer's columns: from the statement where it tells them, else from the plan.
pub(crate) fn names(labels: &[Label], planned: Vec<String>) -> Vec<String> {
    let name = |label: &Label| match label {
        Label::Name(name) => Some(name.clone()),
        Label::Wildcard => None,
    };
    let front: Vec<String> = labels.iter().map_while(name).collect();
    if front.len() == labels.len() {
        return if front.len() == planned.len() { front } else { planned };
    }
    let mut back: Vec<String> = labels.iter().rev().map_while(name).collect();
    back.reverse();
    if front.len() + back.len() > planned.len() {
        return planned;
    }
    let middle = planned[front.len()..planned.len() - back.len()].to_vec();
    [front, middle, back].concat()
}
