//! `EXCEPT ALL` and `INTERSECT ALL`: DataFusion takes them for joins that lose duplicates, so each row gets its number
//! among those that are the same, and with it they are told apart. Rows without columns get a number, too.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Query, SetExpr, SetOperator, SetQuantifier, Statement, TableFactor, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::Label;
use super::labels::labels;

/// Writes all of them whose columns the statement alone tells.
pub(super) fn with_numbers(query: &mut Query) {
    let _: ControlFlow<()> = query.visit(&mut Writer);
}

struct Writer;

impl VisitorMut for Writer {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        in_body(&mut query.body);
        ControlFlow::Continue(())
    }
}

fn in_body(body: &mut SetExpr) {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { return };
    in_body(left);
    in_body(right);
    let is_all = *set_quantifier == SetQuantifier::All;
    let names: Option<Vec<String>> = labels(left)
        .into_iter()
        .map(|label| match label {
            Label::Name(name) => Some(name),
            Label::Wildcard => None,
        })
        .collect();
    let Some(names) = names.filter(|names| is_all || names.is_empty()) else { return };
    if *op == SetOperator::Union {
        return;
    }
    if let Some(written) = numbered(*op, is_all, &names, (left, right)) {
        *body = written;
    }
}

fn numbered(
    op: SetOperator,
    is_all: bool,
    names: &[String],
    (left, right): (&SetExpr, &SetExpr),
) -> Option<SetExpr> {
    let columns: Vec<String> = (1..=names.len()).map(|number| format!("column{number}")).collect();
    let listed = columns.join(", ");
    let number = match (is_all, columns.is_empty()) {
        (false, _) => "1".to_owned(),
        (true, true) => "row_number() OVER ()".to_owned(),
        (true, false) => format!("row_number() OVER (PARTITION BY {listed})"),
    };
    let inner: Vec<&str> = columns.iter().map(String::as_str).chain([number.as_str()]).collect();
    let inner = inner.join(", ");
    let alias = if columns.is_empty() { String::new() } else { format!("({listed})") };
    let side = |name: &str| format!("SELECT {inner} AS row_place FROM (SELECT 1) AS {name}{alias}");
    let item = |(column, name): (&String, &String)| {
        format!("{column} AS \"{}\"", name.replace('"', "\"\""))
    };
    let items: Vec<String> = columns.iter().zip(names).map(item).collect();
    let (items, left_side, right_side) = (items.join(", "), side("left_rows"), side("right_rows"));
    let text = format!("SELECT {items} FROM ({left_side} {op} {right_side}) AS all_rows");
    let SetExpr::Select(mut select) = *query_of(&text)?.body else { return None };
    let TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else {
        return None;
    };
    let SetExpr::SetOperation { left: own_left, right: own_right, .. } = &mut *subquery.body else {
        return None;
    };
    for (side, rows) in [(own_left, left), (own_right, right)] {
        let SetExpr::Select(select) = &mut **side else { return None };
        let TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else {
            return None;
        };
        *subquery.body = rows.clone();
    }
    Some(SetExpr::Select(select))
}

fn query_of(text: &str) -> Option<Query> {
    match Parser::parse_sql(&PostgreSqlDialect {}, text).ok()?.pop()? {
        Statement::Query(query) => Some(*query),
        _ => None,
    }
}
