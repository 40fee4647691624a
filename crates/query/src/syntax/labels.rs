//! What the columns of a query are called.

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderByKind, Query, SelectItem, SetExpr, Value,
};

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
