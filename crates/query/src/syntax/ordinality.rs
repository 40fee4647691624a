//! `WITH ORDINALITY`: a query of the function's rows and their numbers, in the place of the call.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    FunctionArg, FunctionArgExpr, Ident, Query, Select, SetExpr, Statement, TableAlias,
    TableFactor, TableFunctionArgs, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// Numbers the rows of all calls in FROM that are to be numbered.
pub(super) fn number_rows(query: &mut Query) {
    let _: ControlFlow<()> = query.visit(&mut Numberer);
}

struct Numberer;

impl VisitorMut for Numberer {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        in_body(&mut query.body);
        ControlFlow::Continue(())
    }
}

fn in_body(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => in_select(select),
        SetExpr::SetOperation { left, right, .. } => {
            in_body(left);
            in_body(right);
        }
        _ => {}
    }
}

fn in_select(select: &mut Select) {
    for (at, from) in select.from.iter_mut().enumerate() {
        number(&mut from.relation, at > 0);
        for join in &mut from.joins {
            number(&mut join.relation, true);
        }
    }
}

/// `has_others_before` tells whether the arguments may be columns of relations in front.
fn number(relation: &mut TableFactor, has_others_before: bool) {
    let (name, given, alias) = match relation {
        TableFactor::Table { name, args: Some(given), alias, with_ordinality: true, .. } => {
            (name.clone(), given.args.clone(), alias.take())
        }
        TableFactor::Function { name, args, alias, with_ordinality: true, .. } => {
            (name.clone(), args.clone(), alias.take())
        }
        TableFactor::UNNEST { array_exprs, alias, with_ordinality: true, .. } => {
            let given = array_exprs.iter().cloned();
            let given = given.map(|array| FunctionArg::Unnamed(FunctionArgExpr::Expr(array)));
            (vec![Ident::new("unnest")].into(), given.collect(), alias.take())
        }
        _ => return,
    };
    let function = name.0.last().and_then(|part| part.as_ident()).cloned();
    let called = match (&alias, function) {
        (Some(alias), _) => alias.name.clone(),
        (None, Some(function)) => function,
        (None, None) => return,
    };
    let plain = |name: Ident| TableAlias { explicit: true, name, columns: Vec::new(), at: None };
    let rows = TableFactor::Table {
        name,
        alias: Some(plain(called.clone())),
        args: Some(TableFunctionArgs { args: given, settings: None }),
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    let Some(numbered) = numbered(rows) else { return };
    *relation = TableFactor::Derived {
        lateral: has_others_before,
        subquery: Box::new(numbered),
        alias: Some(alias.unwrap_or_else(|| plain(called))),
        sample: None,
    };
}

/// All columns of rows, and their numbers.
fn numbered(rows: TableFactor) -> Option<Query> {
    let text = "SELECT *, row_number() OVER () AS ordinality FROM rows";
    let statement = Parser::parse_sql(&PostgreSqlDialect {}, text).ok()?.pop()?;
    let Statement::Query(mut query) = statement else { return None };
    let SetExpr::Select(select) = &mut *query.body else { return None };
    select.from.first_mut()?.relation = rows;
    Some(*query)
}
