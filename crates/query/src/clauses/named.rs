//! Queries of WITH that are named more than once. Each name is planned as a query of its own, so one that does
//! not always make the same rows would make others for each.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, ObjectName, ObjectNamePart, Query, Visit, Visitor,
};

use super::Checked;
use crate::syntax::{folded, unqualified};

/// `is_volatile` tells functions that do not always make the same of the same.
pub(super) fn check(query: &Query, is_volatile: &dyn Fn(&str) -> bool) -> Checked {
    let Some(with) = &query.with else { return Ok(()) };
    // Those that call such a function, by themselves or in a query that they name.
    let mut volatile: Vec<String> = Vec::new();
    for table in &with.cte_tables {
        let name = folded(&table.alias.name);
        let mut calls = Calls { is_volatile, named: &volatile };
        if table.query.visit(&mut calls).is_continue() {
            continue;
        }
        let mut uses = Uses { name: &name, count: 0 };
        let _: ControlFlow<()> = query.visit(&mut uses);
        // A recursive query names itself once.
        let most = if with.recursive { 2 } else { 1 };
        if uses.count > most {
            return Err(format!(
                "the query {name} of WITH, which is named several times and makes other rows each time: \
                 write its rows into a table first; this"
            ));
        }
        volatile.push(name);
    }
    Ok(())
}

struct Calls<'c> {
    is_volatile: &'c dyn Fn(&str) -> bool,
    named: &'c [String],
}

impl Visitor for Calls<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        match only_part(relation) {
            Some(name) if self.named.contains(&name) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            Expr::Function(Function { name, .. })
                if (self.is_volatile)(&unqualified(name).join(".")) =>
            {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

struct Uses<'u> {
    name: &'u str,
    count: usize,
}

impl Visitor for Uses<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        if only_part(relation).as_deref() == Some(self.name) {
            self.count += 1;
        }
        ControlFlow::Continue(())
    }
}

fn only_part(relation: &ObjectName) -> Option<String> {
    match relation.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Some(folded(name)),
        _ => None,
    }
}
