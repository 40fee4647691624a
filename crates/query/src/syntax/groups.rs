//! Expressions in GROUP BY that DataFusion calls as it calls a column. Beside the key of a table it groups by all
//! columns of the table, and takes two of one name for one.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CastKind, Expr, GroupByExpr, Ident, OrderByKind, Query, SelectItem, SetExpr, Value, VisitMut,
    VisitorMut,
};

use super::whole_rows::Sources;
use super::{call, folded, name_items};

/// Writes such expressions in other words, wherever they stand.
pub(super) fn tell_apart(query: &mut Query, sources: &Sources) {
    let SetExpr::Select(select) = &mut *query.body else { return };
    let GroupByExpr::Expressions(groups, _) = &select.group_by else { return };
    // No other columns come with what stands alone: it is no key.
    if groups.len() < 2 {
        return;
    }
    let meant = groups.iter().filter_map(|group| of_item(group, &select.projection));
    let meant = meant.filter(|group| is_called_as_a_column(group)).map(in_one_form);
    let mut alike = Alike { forms: meant.collect(), depth: 0 };
    if alike.forms.is_empty() {
        return;
    }
    name_items(&mut select.projection, sources);
    let _ = select.distinct.visit(&mut alike);
    let _ = select.projection.visit(&mut alike);
    let _ = select.group_by.visit(&mut alike);
    let _ = select.having.visit(&mut alike);
    let _ = select.named_window.visit(&mut alike);
    if let Some(order) = &mut query.order_by
        && let OrderByKind::Expressions(keys) = &mut order.kind
    {
        let _ = keys.visit(&mut alike);
    }
}

/// What is grouped by: of a number the item that it counts.
fn of_item<'e>(group: &'e Expr, items: &'e [SelectItem]) -> Option<&'e Expr> {
    let Expr::Value(number) = group else { return Some(group) };
    let Value::Number(digits, _) = &number.value else { return Some(group) };
    let at = digits.parse::<usize>().ok()?.checked_sub(1)?;
    match items.get(at)? {
        SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. } => Some(item),
        _ => None,
    }
}

fn is_called_as_a_column(group: &Expr) -> bool {
    match group {
        Expr::Cast { expr, .. } => is_column(expr),
        Expr::Nested(inner) => is_called_as_a_column(inner),
        other => matches!(other, Expr::Subquery(_)),
    }
}

fn is_column(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) => is_column(inner),
        other => matches!(other, Expr::Identifier(_) | Expr::CompoundIdentifier(_)),
    }
}

/// An expression without what it may be written with or not: brackets, the table of a column, capitals, the words of
/// a cast. That two of different tables have one form does no harm: each is written as itself in other words.
fn in_one_form(expression: &Expr) -> String {
    struct Former;

    impl VisitorMut for Former {
        type Break = ();

        fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
            match expression {
                Expr::Nested(inner) => *expression = std::mem::replace(inner, empty()),
                Expr::Identifier(name) => *expression = Expr::Identifier(Ident::new(folded(name))),
                Expr::CompoundIdentifier(parts) => {
                    if let Some(name) = parts.last() {
                        *expression = Expr::Identifier(Ident::new(folded(name)));
                    }
                }
                Expr::Cast { kind, .. } => *kind = CastKind::DoubleColon,
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }

    fn empty() -> Expr {
        Expr::value(Value::Null)
    }

    let mut form = expression.clone();
    let _ = form.visit(&mut Former);
    form.to_string()
}

/// Writes expressions in other words that have one of these forms, but not in queries inside.
struct Alike {
    forms: Vec<String>,
    depth: usize,
}

impl VisitorMut for Alike {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && is_called_as_a_column(expression)
            && !matches!(expression, Expr::Nested(_))
            && self.forms.contains(&in_one_form(expression))
        {
            *expression = call("coalesce", expression.clone());
        }
        ControlFlow::Continue(())
    }
}
