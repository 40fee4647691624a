//! What the columns of a query are called.

use datafusion::sql::sqlparser::ast::{Query, SelectItem, SetExpr};

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
