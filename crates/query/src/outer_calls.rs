//! Calls of functions in an expression itself, and not in a query inside of it.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Function, Query, Visit, Visitor};

/// Whether a call for which `is_wanted` holds stands outside of all queries that are inside.
pub(crate) fn calls_outside_queries(
    node: &impl Visit,
    is_wanted: &dyn Fn(&Function) -> bool,
) -> bool {
    node.visit(&mut Seeker { is_wanted, depth: 0 }).is_break()
}

struct Seeker<'w> {
    is_wanted: &'w dyn Fn(&Function) -> bool,
    /// How many queries inside.
    depth: usize,
}

impl Visitor for Seeker<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            Expr::Function(call) if self.depth == 0 && (self.is_wanted)(call) => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
