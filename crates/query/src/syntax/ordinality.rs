//! `WITH ORDINALITY`, and functions whose rows are JSON or are made of it: a query of the function's rows with their
//! numbers, or of their type, in the place of the call.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, Query, Select, SelectItem, SetExpr,
    Statement, TableAlias, TableAliasColumnDef, TableFactor, TableFunctionArgs, VisitMut,
    VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::folded;
use super::json_rows::{self, JsonRows};
use super::populated::{self, Populated};

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
    if let TableFactor::NestedJoin { table_with_joins, .. } = relation {
        number(&mut table_with_joins.relation, has_others_before);
        for join in &mut table_with_joins.joins {
            number(&mut join.relation, true);
        }
    }
    // LATERAL in front of a function says nothing: it may have columns of what stands in front in any case.
    if let TableFactor::Function { name, args, alias, with_ordinality, .. } = relation {
        *relation = call(name.clone(), args.clone(), alias.take(), *with_ordinality);
    }
    let (name, given, alias, is_numbered) = match relation {
        TableFactor::NestedJoin { alias, .. } => {
            if let Some(alias) = alias.take()
                && let Some(query) = all_of(relation.clone(), &alias.name)
            {
                let (subquery, alias) = (Box::new(query), Some(alias));
                *relation = TableFactor::Derived { lateral: false, subquery, alias, sample: None };
            }
            return;
        }
        TableFactor::Table { name, args: Some(given), alias, with_ordinality, .. } => {
            (name.clone(), given.args.clone(), alias, *with_ordinality)
        }
        TableFactor::UNNEST { array_exprs, alias, with_ordinality: true, .. } => {
            let given = array_exprs.iter().cloned();
            let given = given.map(|array| FunctionArg::Unnamed(FunctionArgExpr::Expr(array)));
            (vec![Ident::new("unnest")].into(), given.collect(), alias, true)
        }
        _ => return,
    };
    let Some(function) = name.0.last().and_then(|part| part.as_ident()).cloned() else { return };
    if let Some(rows) = json_rows::of_call(&folded(&function), &given, alias.as_ref()) {
        let alias = alias.take();
        if let Some(made) = of_arrays(rows, function, alias, is_numbered, has_others_before) {
            *relation = made;
        }
        return;
    }
    if let Some(populated) = populated::of_call(&folded(&function), &given) {
        let alias = alias.take();
        if let Some(made) = of_records(populated, function, alias, is_numbered, has_others_before) {
            *relation = made;
        }
        return;
    }
    let column = match folded(&function).as_str() {
        other @ "jsonb_path_query" => other.to_owned(),
        _ => "value".to_owned(),
    };
    let of_type = json_elements(&folded(&function));
    if !is_numbered && of_type.is_none() {
        return;
    }
    let alias = alias.take();
    let called = alias.as_ref().map_or(function, |alias| alias.name.clone());
    let (text, own, other) = match of_type {
        Some(of_type) => {
            let number = if is_numbered { ", row_number() OVER () AS ordinality" } else { "" };
            let text = format!("SELECT element::{of_type} AS {column}{number} FROM rows");
            // The name alone stands for the only column.
            let is_column = alias.is_some() && !is_numbered;
            let columns = is_column.then(|| called.clone()).into_iter().collect();
            (text, plain("rows".into(), vec!["element".into()]), plain(called, columns))
        }
        None => {
            let text = "SELECT *, row_number() OVER () AS ordinality FROM rows".to_owned();
            (text, plain(called.clone(), Vec::new()), plain(called, Vec::new()))
        }
    };
    let rows = call(name, given, Some(own), false);
    let Some(query) = query_of(&text, rows) else { return };
    *relation = TableFactor::Derived {
        lateral: has_others_before,
        subquery: Box::new(query),
        alias: Some(alias.filter(|alias| !alias.columns.is_empty()).unwrap_or(other)),
        sample: None,
    };
}

/// The rows that arrays are beside each other, each column of its type.
fn of_arrays(
    rows: JsonRows,
    function: Ident,
    alias: Option<TableAlias>,
    is_numbered: bool,
    has_others_before: bool,
) -> Option<TableFactor> {
    let places: Vec<Ident> =
        (1..=rows.arrays.len()).map(|number| Ident::new(format!("column{number}"))).collect();
    let item = |(place, (name, data_type)): (&Ident, &(Ident, String))| {
        format!("{place}::{data_type} AS {name}")
    };
    let items: Vec<String> = places.iter().zip(&rows.columns).map(item).collect();
    let number = if is_numbered { ", row_number() OVER () AS ordinality" } else { "" };
    let text = format!("SELECT {}{number} FROM rows", items.join(", "));
    let called = (function, alias);
    of_elements(&text, rows.arrays, places, called, has_others_before)
}

/// The fields of records.
fn of_records(
    populated: Populated,
    function: Ident,
    alias: Option<TableAlias>,
    is_numbered: bool,
    has_others_before: bool,
) -> Option<TableFactor> {
    let number = if is_numbered { ", row_number() OVER () AS ordinality" } else { "" };
    let text = format!("SELECT {}{number} FROM rows", populated.items);
    let (arrays, places) = (vec![populated.array], vec![Ident::new("r")]);
    of_elements(&text, arrays, places, (function, alias), has_others_before)
}

/// A query of the elements of arrays beside each other, which have these names there.
fn of_elements(
    text: &str,
    arrays: Vec<Expr>,
    places: Vec<Ident>,
    (function, alias): (Ident, Option<TableAlias>),
    has_others_before: bool,
) -> Option<TableFactor> {
    let given = arrays.into_iter();
    let given = given.map(|array| FunctionArg::Unnamed(FunctionArgExpr::Expr(array))).collect();
    let unnest =
        call(vec![Ident::new("unnest")].into(), given, Some(plain("rows".into(), places)), false);
    let subquery = Box::new(query_of(text, unnest)?);
    let (name, renamed) = match alias {
        Some(alias) => (alias.name, alias.columns),
        None => (function, Vec::new()),
    };
    let renamed = renamed.into_iter().map(|column| column.name).collect();
    let alias = Some(plain(name, renamed));
    Some(TableFactor::Derived { lateral: has_others_before, subquery, alias, sample: None })
}

/// A function in FROM.
fn call(
    name: ObjectName,
    args: Vec<FunctionArg>,
    alias: Option<TableAlias>,
    with_ordinality: bool,
) -> TableFactor {
    TableFactor::Table {
        name,
        alias,
        args: Some(TableFunctionArgs { args, settings: None }),
        with_hints: Vec::new(),
        version: None,
        with_ordinality,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

/// All columns of a join that has a name, which is where its `*` stands.
fn all_of(join: TableFactor, name: &Ident) -> Option<Query> {
    let mut query = query_of("SELECT * FROM rows", join)?;
    let SetExpr::Select(select) = &mut *query.body else { return None };
    if let [SelectItem::Wildcard(options)] = select.projection.as_mut_slice() {
        options.wildcard_token.0.span = name.span;
    }
    Some(query)
}

/// The JSON that the rows of a function are, which the array that they are made of does not know.
fn json_elements(function: &str) -> Option<&'static str> {
    match function {
        "json_array_elements" => Some("json"),
        "jsonb_array_elements" | "jsonb_path_query" => Some("jsonb"),
        _ => None,
    }
}

/// `AS name (columns)`.
fn plain(name: Ident, columns: Vec<Ident>) -> TableAlias {
    let column = |name| TableAliasColumnDef { name, data_type: None };
    let columns = columns.into_iter().map(column).collect();
    TableAlias { explicit: true, name, columns, at: None }
}

/// A query of these rows.
fn query_of(text: &str, rows: TableFactor) -> Option<Query> {
    let statement = Parser::parse_sql(&PostgreSqlDialect {}, text).ok()?.pop()?;
    let Statement::Query(mut query) = statement else { return None };
    let SetExpr::Select(select) = &mut *query.body else { return None };
    select.from.first_mut()?.relation = rows;
    Some(*query)
}
