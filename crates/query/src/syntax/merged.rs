//! Columns that JOIN ... USING has merged, written as columns of the sides that have them: the planner takes a name
//! without a relation for that of the left side, and the columns of `*` in the order of the sides.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, Query, Select, SelectItem, TableFactor,
    TableWithJoins, VisitMut, VisitorMut, visit_expressions_mut,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use super::{NAMELESS, call_of, folded, name_of};

/// The relations that have a column.
#[derive(Clone, Debug)]
pub(crate) enum Sides {
    One(String),
    /// Of a FULL JOIN: what the first has not the second may have.
    Both(String, String),
}

/// Where columns stand that are to be written otherwise.
#[derive(Debug, Default)]
pub(crate) struct MergedColumns {
    /// Each with its name.
    names: Vec<(Span, String, Sides)>,
    /// What a `*` stands for.
    stars: Vec<(Span, Vec<(String, Sides)>)>,
}

impl MergedColumns {
    pub(crate) fn add(&mut self, place: &Ident, sides: Sides) {
        self.names.push((place.span, folded(place), sides));
    }

    pub(crate) fn add_star(&mut self, place: Span, columns: Vec<(String, Sides)>) {
        self.stars.push((place, columns));
    }

    /// Writes all of them.
    pub(super) fn write(&self, query: &mut Query) {
        if !self.names.is_empty() || !self.stars.is_empty() {
            let _: ControlFlow<()> = query.visit(&mut Writer { merged: self });
        }
    }

    fn of(&self, expression: &Expr) -> Option<Expr> {
        let Expr::Identifier(name) = expression else { return None };
        let is_own = |own: &&(Span, String, Sides)| {
            own.0 == name.span && name.span != Span::empty() && own.1 == folded(name)
        };
        self.names.iter().find(is_own).map(|(_, name, sides)| column(name, sides))
    }

    /// What an item stands for; none where that is itself.
    fn items(&self, item: &SelectItem) -> Option<Vec<SelectItem>> {
        match item {
            SelectItem::Wildcard(options) => {
                let place = options.wildcard_token.0.span;
                let (_, columns) = self.stars.iter().find(|(own, _)| *own == place)?;
                let shown = |(name, sides): &(String, Sides)| SelectItem::ExprWithAlias {
                    expr: column(name, sides),
                    alias: Ident::with_quote('"', name.clone()),
                };
                Some(columns.iter().map(shown).collect())
            }
            SelectItem::UnnamedExpr(expression) => {
                let name = name_of(expression).unwrap_or_else(|| NAMELESS.to_owned());
                let mut written = expression.clone();
                let _: ControlFlow<()> = visit_expressions_mut(&mut written, |inner| {
                    if let Some(column) = self.of(inner) {
                        *inner = column;
                    }
                    ControlFlow::Continue(())
                });
                let alias = Ident::with_quote('"', name);
                (written != *expression)
                    .then(|| vec![SelectItem::ExprWithAlias { expr: written, alias }])
            }
            _ => None,
        }
    }
}

struct Writer<'m> {
    merged: &'m MergedColumns,
}

impl VisitorMut for Writer<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        // What was written anew before may have the places of other names.
        if select.from.iter().any(has_merged) {
            let items = std::mem::take(&mut select.projection).into_iter();
            select.projection =
                items.flat_map(|item| self.merged.items(&item).unwrap_or(vec![item])).collect();
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Some(column) = self.merged.of(expression) {
            *expression = column;
        }
        ControlFlow::Continue(())
    }
}

fn column(name: &str, sides: &Sides) -> Expr {
    let of = |relation: &String| {
        let parts = [relation.clone(), name.to_owned()];
        Expr::CompoundIdentifier(parts.map(|part| Ident::with_quote('"', part)).to_vec())
    };
    match sides {
        Sides::One(relation) => of(relation),
        Sides::Both(left, right) => call_of("coalesce", [of(left), of(right)]),
    }
}

fn has_merged(from: &TableWithJoins) -> bool {
    let is_nested = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => has_merged(table_with_joins),
        _ => false,
    };
    let merges = |operator: &JoinOperator| match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => {
            matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural)
        }
        _ => false,
    };
    is_nested(&from.relation)
        || from.joins.iter().any(|join| merges(&join.join_operator) || is_nested(&join.relation))
}
