//! ORDER BY, GROUP BY, DISTINCT and LIMIT, which name columns of the answer, too, and what is grouped.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, LimitClause, OrderByExpr, OrderByKind, Query, Select,
    Spanned, Value, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use super::calls::has_rows;
use super::expression::Place;
use super::scope::{Column, Found, Grouping, Scope, Space};
use super::types::Type;
use super::{Binder, Columns};
use crate::error::{QueryError, Result};
use crate::syntax::folded;

/// One column of an answer.
pub(super) struct Item<'s> {
    name: String,
    data_type: Type,
    /// None: it is one of those that `*` stands for.
    expression: Option<&'s Expr>,
    column: Option<(Column, Span)>,
}

/// The columns of an answer.
#[derive(Default)]
pub(super) struct Items<'s> {
    all: Vec<Item<'s>>,
    /// There are some that are not told.
    pub(super) is_open: bool,
}

impl<'s> Items<'s> {
    pub(super) fn push(
        &mut self,
        name: String,
        data_type: Type,
        expression: Option<&'s Expr>,
        column: Option<(Column, Span)>,
    ) {
        self.all.push(Item { name, data_type, expression, column });
    }

    pub(super) fn extend(&mut self, columns: &[Column], span: Span) {
        for column in columns {
            self.push(column.name.clone(), column.data_type, None, Some((column.clone(), span)));
        }
    }

    pub(super) fn columns(self) -> Columns {
        let shown = |item: Item<'_>| (item.name, item.data_type);
        (!self.is_open).then(|| self.all.into_iter().map(shown).collect())
    }
}

/// What an item of ORDER BY or GROUP BY stands for.
enum Meant<'i> {
    Item(&'i Item<'i>),
    /// An expression of the rows.
    Itself,
    /// It may be anything.
    Untold,
}

impl Binder<'_> {
    /// A number is the place of a column of the answer, and a name that of one; GROUP BY looks for it
    /// among the columns of the rows first.
    fn meant<'i>(
        expression: &Expr,
        items: &'i Items<'i>,
        clause: &str,
        scope: Option<&Scope<'_>>,
    ) -> Result<Meant<'i>> {
        match expression {
            Expr::Value(ValueWithSpan { value: Value::Placeholder(_) | Value::Null, .. }) => {
                Ok(Meant::Untold)
            }
            Expr::Value(constant) => {
                let Value::Number(digits, _) = &constant.value else {
                    let message = format!("non-integer constant in {clause}");
                    return Err(QueryError::refused("42601", message).at(constant.span));
                };
                let Ok(place) = digits.parse::<usize>() else {
                    let message = format!("non-integer constant in {clause}");
                    return Err(QueryError::refused("42601", message).at(constant.span));
                };
                if items.is_open {
                    return Ok(Meant::Untold);
                }
                let found = place.checked_sub(1).and_then(|place| items.all.get(place));
                found.map(Meant::Item).ok_or_else(|| {
                    let message = format!("{clause} position {place} is not in select list");
                    QueryError::refused("42P10", message).at(constant.span)
                })
            }
            Expr::Identifier(name) => {
                let wanted = folded(name);
                if scope.is_some_and(|scope| scope.space.named(&wanted).next().is_some()) {
                    return Ok(Meant::Itself);
                }
                let mut found = items.all.iter().filter(|item| item.name == wanted);
                let Some(first) = found.next() else { return Ok(Meant::Itself) };
                let is_same = |other: &Item<'_>| {
                    let column =
                        |item: &Item<'_>| item.column.as_ref().map(|(own, _)| own.identity);
                    let is_alike =
                        first.expression == other.expression && column(first) == column(other);
                    is_alike || is_column_of(first, other) || is_column_of(other, first)
                };
                match found.all(is_same) {
                    true => Ok(Meant::Item(first)),
                    false => {
                        let message = format!("{clause} \"{wanted}\" is ambiguous");
                        Err(QueryError::refused("42702", message).at(name.span))
                    }
                }
            }
            _ => Ok(Meant::Itself),
        }
    }

    pub(super) fn order_by(
        &mut self,
        by: &[OrderByExpr],
        items: &Items<'_>,
        scope: &Scope<'_>,
    ) -> Result<()> {
        for item in by {
            let meant = Self::meant(&item.expr, items, "ORDER BY", None)?;
            if let (Meant::Item(of), Expr::Identifier(name)) = (&meant, &item.expr)
                && let Some((sides, true)) = scope.side_of_merged(name)
            {
                check_is_merged(of, name, scope)?;
                self.merged.add(name, sides);
            }
            if let Meant::Itself = meant {
                if has_rows(&item.expr) && !is_among(&item.expr, items, scope) {
                    let message = "a function that makes rows in ORDER BY alone is not supported";
                    let hint = "Make it a column of the query, and order by its name.";
                    let error = QueryError::refused("0A000", message).at(item.expr.span());
                    return Err(error.hint(hint));
                }
                self.expression(&item.expr, scope, Place::OrderBy)?;
            }
        }
        Ok(())
    }

    /// ORDER BY and LIMIT of rows that are not those of one SELECT.
    pub(super) fn clauses_of_result(
        &mut self,
        clauses: Option<&Query>,
        columns: &Columns,
        outer: Option<&Scope<'_>>,
    ) -> Result<()> {
        let Some(query) = clauses else { return Ok(()) };
        let scope = Scope::new(Space::default(), outer);
        if let (Some(order_by), Some(columns)) = (&query.order_by, columns)
            && let OrderByKind::Expressions(by) = &order_by.kind
        {
            let mut items = Items::default();
            for (name, own) in columns {
                items.push(name.clone(), *own, None, None);
            }
            for item in by {
                if let Meant::Itself = Self::meant(&item.expr, &items, "ORDER BY", None)? {
                    if let Expr::Identifier(name) = &item.expr {
                        scope.column(name)?;
                    }
                    let message = "invalid UNION/INTERSECT/EXCEPT ORDER BY clause";
                    let hint = "Add the expression/function to every SELECT, or move the UNION into a FROM \
                                clause.";
                    let error = QueryError::refused("0A000", message).at(item.expr.span());
                    return Err(error.hint(hint));
                }
            }
        }
        self.limit(query, &scope)
    }

    pub(super) fn limit(&mut self, query: &Query, scope: &Scope<'_>) -> Result<()> {
        let (mut limits, mut offsets) = (Vec::new(), Vec::new());
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
            limits.extend(limit);
            offsets.extend(offset.as_ref().map(|offset| &offset.value));
        }
        limits.extend(query.fetch.iter().filter_map(|fetch| fetch.quantity.as_ref()));
        let limits = limits.into_iter().map(|limit| (limit, Place::Limit, "LIMIT"));
        let offsets = offsets.into_iter().map(|offset| (offset, Place::Offset, "OFFSET"));
        for (count, place, clause) in offsets.chain(limits) {
            self.expression(count, scope, place)?;
            if let ControlFlow::Break(span) = count.visit(&mut Variable { depth: 0 }) {
                let message = format!("argument of {clause} must not contain variables");
                return Err(QueryError::refused("42P10", message).at(span));
            }
        }
        Ok(())
    }

    /// What the rows are grouped by; none where there is no GROUP BY.
    pub(super) fn group_by(
        &mut self,
        group_by: &GroupByExpr,
        items: &Items<'_>,
        scope: &Scope<'_>,
    ) -> Result<Option<Grouping>> {
        let GroupByExpr::Expressions(by, _) = group_by else { return Ok(None) };
        if by.is_empty() {
            return Ok(None);
        }
        check_sets(by, items, scope)?;
        let mut grouping = Grouping::default();
        let mut all = Vec::new();
        flatten(by, &mut all);
        for expression in all {
            match Self::meant(expression, items, "GROUP BY", Some(scope))? {
                Meant::Untold => {}
                Meant::Itself => {
                    self.expression(expression, scope, Place::GroupBy)?;
                    take(&mut grouping, expression, scope);
                }
                Meant::Item(item) => match (item.expression, &item.column) {
                    (Some(expression), _) => {
                        self.expression(expression, scope, Place::GroupBy)?;
                        take(&mut grouping, expression, scope);
                    }
                    (None, Some((column, _))) => {
                        grouping.columns.insert(column.identity);
                    }
                    (None, None) => {}
                },
            }
        }
        for source in &scope.space.sources {
            let is_grouped = |at: &usize| grouping.columns.contains(&(source.number, *at));
            if !source.key.is_empty() && source.key.iter().all(is_grouped) {
                grouping.sources.insert(source.number);
            }
        }
        Ok(Some(grouping))
    }

    pub(super) fn distinct(
        &mut self,
        distinct: Option<&Distinct>,
        order_by: &[OrderByExpr],
        items: &Items<'_>,
        scope: &Scope<'_>,
    ) -> Result<()> {
        match distinct {
            None | Some(Distinct::All) => Ok(()),
            Some(Distinct::Distinct) => {
                for by in order_by {
                    let is_there = match Self::meant(&by.expr, items, "ORDER BY", None)? {
                        Meant::Item(_) | Meant::Untold => true,
                        Meant::Itself => items.is_open || is_among(&by.expr, items, scope),
                    };
                    if !is_there {
                        let message =
                            "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                        return Err(QueryError::refused("42P10", message).at(by.expr.span()));
                    }
                }
                Ok(())
            }
            Some(Distinct::On(on)) => {
                let mut wanted = Vec::new();
                for expression in on {
                    let canonical = match Self::meant(expression, items, "DISTINCT ON", None)? {
                        Meant::Untold => return Ok(()),
                        Meant::Item(item) => canonical_item(item, scope),
                        Meant::Itself => {
                            self.expression(expression, scope, Place::Items)?;
                            canonical(expression, scope)
                        }
                    };
                    wanted.push((canonical, expression.span()));
                }
                let mut first = Vec::new();
                for by in order_by {
                    let canonical = match Self::meant(&by.expr, items, "ORDER BY", None)? {
                        Meant::Untold => return Ok(()),
                        Meant::Item(item) => canonical_item(item, scope),
                        Meant::Itself => canonical(&by.expr, scope),
                    };
                    if !wanted.iter().any(|(wanted, _)| *wanted == canonical) {
                        break;
                    }
                    first.push(canonical);
                }
                let all_are_wanted = first.len() == order_by.len();
                let missing = wanted.iter().find(|(wanted, _)| !first.contains(wanted));
                match missing {
                    Some((_, span)) if !all_are_wanted => {
                        let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
                        Err(QueryError::refused("42P10", message).at(*span))
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// Holds what is computed of groups to what they are grouped by.
    pub(super) fn check_grouped(
        &mut self,
        select: &Select,
        order_by: &[OrderByExpr],
        items: &Items<'_>,
        scope: &Scope<'_>,
    ) -> Result<()> {
        for item in &items.all {
            if let Some(expression) = item.expression {
                self.expression(expression, scope, Place::Items)?;
            }
            if let Some((column, span)) = &item.column {
                scope.check_grouped(column, 0, *span)?;
            }
        }
        if let Some(having) = &select.having {
            self.expression(having, scope, Place::Having)?;
        }
        self.order_by(order_by, items, scope)
    }

    /// Whether the rows are grouped by all of an expression.
    pub(super) fn is_grouped(&self, expression: &Expr, scope: &Scope<'_>) -> bool {
        let grouping = scope.grouping.borrow();
        grouping.as_ref().is_some_and(|grouping| {
            let is_alike =
                |by: &Expr| std::mem::discriminant(by) == std::mem::discriminant(expression);
            grouping.expressions.iter().any(is_alike)
                && grouping.expressions.contains(&canonical(expression, scope))
        })
    }
}

/// Refuses to order by a column of the answer that is called as a merged column and is another.
fn check_is_merged(item: &Item<'_>, name: &Ident, scope: &Scope<'_>) -> Result<()> {
    let own = match (item.expression, &item.column) {
        (Some(Expr::Identifier(own)), _) => scope.find(own).ok(),
        (Some(Expr::CompoundIdentifier(parts)), _) => scope.find_qualified(parts).ok(),
        (_, Some((column, _))) => Some((0, Found::Column(column))),
        _ => None,
    };
    let merged = scope.find(name).ok();
    match (own, merged) {
        (Some((_, Found::Column(own))), Some((_, Found::Column(merged))))
            if own.identity == merged.identity =>
        {
            Ok(())
        }
        _ => {
            let message = format!(
                "ORDER BY \"{name}\", which is a merged column, one of the answer and one outside, is not supported"
            );
            let hint = "Give the column of the answer a name of its own.";
            Err(QueryError::refused("0A000", message).at(name.span).hint(hint))
        }
    }
}

/// Whether an item is a column by its name that another one, of a star, is, too.
fn is_column_of(item: &Item<'_>, of_star: &Item<'_>) -> bool {
    let (Some(expression), Some((column, _))) = (item.expression, &of_star.column) else {
        return false;
    };
    match expression {
        // Were there several of the name, it would have been refused.
        Expr::Identifier(name) => folded(name) == column.name,
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [.., relation, name] => {
                folded(relation) == column.relation && folded(name) == column.name
            }
            _ => false,
        },
        _ => false,
    }
}

/// The expressions of GROUP BY, those inside of sets of groups, too.
fn flatten<'e>(by: &'e [Expr], all: &mut Vec<&'e Expr>) {
    for expression in by {
        match expression {
            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
                sets.iter().for_each(|set| flatten(set, all));
            }
            Expr::Tuple(items) => flatten(items, all),
            other => all.push(other),
        }
    }
}

/// Refuses sets of groups over what the rows are grouped by anyway: planned it would be one column, which is never
/// NULL.
fn check_sets(by: &[Expr], items: &Items<'_>, scope: &Scope<'_>) -> Result<()> {
    let (mut plain, mut of_sets) = (Vec::new(), Vec::new());
    for expression in by {
        match expression {
            Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => {
                flatten(std::slice::from_ref(expression), &mut of_sets);
            }
            other => flatten(std::slice::from_ref(other), &mut plain),
        }
    }
    let meant = |expression: &Expr| -> Result<Expr> {
        Ok(match Binder::meant(expression, items, "GROUP BY", Some(scope))? {
            Meant::Item(item) => canonical_item(item, scope),
            Meant::Itself | Meant::Untold => canonical(expression, scope),
        })
    };
    let plain = plain.into_iter().map(meant).collect::<Result<Vec<Expr>>>()?;
    for expression in of_sets {
        if plain.contains(&meant(expression)?) {
            let message = format!(
                "{expression} both in GROUP BY and in ROLLUP, CUBE or GROUPING SETS is not supported"
            );
            return Err(QueryError::refused("0A000", message).at(expression.span()));
        }
    }
    Ok(())
}

fn take(grouping: &mut Grouping, expression: &Expr, scope: &Scope<'_>) {
    match identity(expression, scope) {
        Some(identity) => {
            grouping.columns.insert(identity);
        }
        None => grouping.expressions.push(canonical(expression, scope)),
    }
}

fn identity(expression: &Expr, scope: &Scope<'_>) -> Option<(usize, usize)> {
    let found = match expression {
        Expr::Nested(inner) => return identity(inner, scope),
        Expr::Identifier(name) => scope.find(name),
        Expr::CompoundIdentifier(parts) => scope.find_qualified(parts),
        _ => return None,
    };
    match found {
        Ok((_, Found::Column(column))) => Some(column.identity),
        _ => None,
    }
}

fn is_among(expression: &Expr, items: &Items<'_>, scope: &Scope<'_>) -> bool {
    let wanted = canonical(expression, scope);
    items.all.iter().any(|item| canonical_item(item, scope) == wanted)
}

/// An expression whose columns are written by their numbers, so that those that are the same are equal.
fn canonical(expression: &Expr, scope: &Scope<'_>) -> Expr {
    let mut expression = expression.clone();
    while let Expr::Nested(inner) = expression {
        expression = *inner;
    }
    let _: ControlFlow<()> = VisitMut::visit(&mut expression, &mut Numbers { scope, depth: 0 });
    expression
}

fn canonical_item(item: &Item<'_>, scope: &Scope<'_>) -> Expr {
    match (item.expression, &item.column) {
        (Some(expression), _) => canonical(expression, scope),
        (None, Some((column, _))) => numbered(column.identity),
        (None, None) => Expr::Identifier(Ident::new(&item.name)),
    }
}

fn numbered((source, column): (usize, usize)) -> Expr {
    Expr::Identifier(Ident::with_quote('"', format!("{source} {column}")))
}

struct Numbers<'n, 'o> {
    scope: &'n Scope<'o>,
    /// How many queries inside of the expression.
    depth: usize,
}

impl VisitorMut for Numbers<'_, '_> {
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
            && let Some(identity) = identity(expression, self.scope)
        {
            *expression = numbered(identity);
        }
        ControlFlow::Continue(())
    }
}

/// Looks for the first column.
struct Variable {
    depth: usize,
}

impl Visitor for Variable {
    type Break = Span;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Span> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Span> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Span> {
        match expression {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) if self.depth == 0 => {
                ControlFlow::Break(expression.span())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
