//! Subqueries that stand for one value, as DataFusion can take them where they depend on the row outside: it
//! wants an aggregate there, and no condition that is about the outer row alone. The aggregate also tells
//! of a second row. What is left as it was is held to one row in the plan.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, GroupByExpr, ObjectNamePart, Query, Select,
    SelectItem, SetExpr, TableFactor, Visit, VisitMut, Visitor, VisitorMut,
};

use crate::engine::QueryEngine;
use crate::functions::SINGLE_VALUE;
use crate::outer_calls::calls_outside_queries;
use crate::syntax::call;

/// Rewrites all of them in a query.
pub(crate) fn unfold(engine: &QueryEngine, query: &mut Query) {
    let _: ControlFlow<()> = query.visit(&mut Unfolder { engine, compared: HashSet::new() });
}

struct Unfolder<'e> {
    engine: &'e QueryEngine,
    /// Where the queries stand whose rows ANY and ALL look at, each of them.
    compared: HashSet<*const Query>,
}

impl VisitorMut for Unfolder<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } = expression
            && let Expr::Subquery(query) = &**right
        {
            self.compared.insert(&raw const **query);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::Subquery(query) = expression
            && !self.compared.contains(&(&raw const **query))
            && query.limit_clause.is_none()
            && query.with.is_none()
            && let SetExpr::Select(select) = &mut *query.body
            && let Some(outer) = make_single(self.engine, select)
        {
            query.order_by = None;
            if let Some(outer) = outer {
                let value = std::mem::replace(expression, Expr::Wildcard(AttachedToken::empty()));
                *expression = Expr::Case {
                    case_token: AttachedToken::empty(),
                    end_token: AttachedToken::empty(),
                    operand: None,
                    conditions: vec![CaseWhen { condition: outer, result: value }],
                    else_result: None,
                };
            }
        }
        ControlFlow::Continue(())
    }
}

/// Makes a SELECT of rows one of the only row. Its conditions about the outer row alone are taken out
/// and returned. None where it cannot be done.
fn make_single(engine: &QueryEngine, select: &mut Select) -> Option<Option<Expr>> {
    let is_plain = select.having.is_none()
        && select.distinct.is_none()
        && matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty())
        && !select.from.is_empty()
        && !is_of_many_rows(engine, select);
    let ([item], true) = (select.projection.as_mut_slice(), is_plain) else { return None };
    match item {
        SelectItem::UnnamedExpr(expression)
        | SelectItem::ExprWithAlias { expr: expression, .. } => {
            *expression = call(SINGLE_VALUE, expression.clone());
        }
        _ => return None,
    }
    let own = own_names(select)?;
    let mut conditions = Vec::new();
    if let Some(selection) = select.selection.take() {
        split(selection, &mut conditions);
    }
    let is_outer = |condition: &Expr| {
        let mut names = Names { own: &own, is_outer: true, any: false };
        let _: ControlFlow<()> = condition.visit(&mut names);
        names.is_outer && names.any
    };
    let (outer, inner): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(is_outer);
    select.selection = joined(inner);
    Some(joined(outer))
}

/// Whether an item is computed of many rows, or makes many.
fn is_of_many_rows(engine: &QueryEngine, select: &Select) -> bool {
    let makes_many = |call: &Function| {
        let name = call.name.0.last().map(ToString::to_string).unwrap_or_default().to_lowercase();
        name == "unnest" || engine.is_of_many_rows(&name)
    };
    select.projection.iter().any(|item| calls_outside_queries(item, &makes_many))
}

/// What the relations of a SELECT are called.
fn own_names(select: &Select) -> Option<HashSet<String>> {
    let relations = select.from.iter().flat_map(|from| {
        std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
    });
    let name = |relation: &TableFactor| match relation {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. } => Some(alias.name.value.to_lowercase()),
        TableFactor::Table { name, .. } => match name.0.last()? {
            ObjectNamePart::Identifier(name) => Some(name.value.to_lowercase()),
            _ => None,
        },
        _ => None,
    };
    relations.map(name).collect()
}

fn split(condition: Expr, into: &mut Vec<Expr>) {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            split(*left, into);
            split(*right, into);
        }
        other => into.push(other),
    }
}

fn joined(conditions: Vec<Expr>) -> Option<Expr> {
    conditions.into_iter().reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    })
}

/// Looks whether all columns are those of relations outside.
struct Names<'n> {
    own: &'n HashSet<String>,
    is_outer: bool,
    any: bool,
}

impl Visitor for Names<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.is_outer = false;
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            // Without a relation in front it may be either's.
            Expr::Identifier(_) => self.is_outer = false,
            Expr::CompoundIdentifier(parts) => {
                self.any = true;
                // Behind the relation is the column, in front of it perhaps a schema.
                let relation = parts.iter().rev().nth(1).map(|part| part.value.to_lowercase());
                self.is_outer &= relation.is_some_and(|name| !self.own.contains(&name));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
