//! `x < ANY (SELECT ...)`.
//!
//! DataFusion asks whether there is a row with `x < column`, and where both are columns of one name of
//! one table it takes the one for the other.

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectNamePart, Query, Select, SetExpr, Statement, TableFactor,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::folded;

/// The names of the tables of each query around an expression, the innermost last.
#[derive(Default)]
pub(super) struct InSight {
    tables: Vec<Vec<String>>,
    /// How many queries have got a name of their own.
    named: usize,
}

impl InSight {
    pub(super) fn enter(&mut self, select: &Select) {
        self.tables.push(tables_of(select));
    }

    pub(super) fn leave(&mut self) {
        self.tables.pop();
    }

    /// Gives a query after ANY or ALL a name that nothing else has, if a table of it is in sight
    /// outside of it, too.
    pub(super) fn set_apart(&mut self, compared: &mut Expr) {
        let Expr::Subquery(query) = compared else { return };
        let inside = tables_in(&query.body);
        if self.tables.iter().flatten().any(|outside| inside.contains(outside)) {
            name(query, self.named);
            self.named += 1;
        }
    }
}

fn tables_in(body: &SetExpr) -> Vec<String> {
    match body {
        SetExpr::Select(select) => tables_of(select),
        SetExpr::Query(query) => tables_in(&query.body),
        SetExpr::SetOperation { left, right, .. } => [tables_in(left), tables_in(right)].concat(),
        _ => Vec::new(),
    }
}

fn tables_of(select: &Select) -> Vec<String> {
    let joined = select.from.iter().flat_map(|from| {
        let joins = from.joins.iter().map(|join| &join.relation);
        std::iter::once(&from.relation).chain(joins)
    });
    joined.filter_map(name_of).collect()
}

fn name_of(relation: &TableFactor) -> Option<String> {
    match relation {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. } => Some(folded(&alias.name)),
        TableFactor::Table { name, alias: None, .. } => match name.0.last()? {
            ObjectNamePart::Identifier(name) => Some(folded(name)),
            ObjectNamePart::Function(_) => None,
        },
        _ => None,
    }
}

/// `SELECT * FROM (query) AS name`.
fn name(query: &mut Box<Query>, number: usize) -> Option<()> {
    let text = format!("SELECT * FROM (SELECT 1) AS \"compared {number}\"");
    let statement = Parser::parse_sql(&PostgreSqlDialect {}, &text).ok()?.pop()?;
    let Statement::Query(mut named) = statement else { return None };
    let SetExpr::Select(select) = &mut *named.body else { return None };
    let TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else {
        return None;
    };
    std::mem::swap(subquery, query);
    *query = named;
    Some(())
}
