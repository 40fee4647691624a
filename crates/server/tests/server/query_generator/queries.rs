//! Queries: plain ones, with windows, with groups, set operations, and queries with a name.

use super::expressions::{aggregate, condition, expression, literal};
use super::relations::{Relation, matching, relation};
use super::{Choices, Column, Kind, Query, clause, columns_of_query};

pub fn query(choices: &mut Choices<'_>, depth: usize, outer: &[Column]) -> Query {
    let first = if depth > 0 && choices.once_in(10) {
        with(choices, depth, outer)
    } else {
        select(choices, depth, outer)
    };
    if depth == 0 || !choices.once_in(7) {
        return first;
    }
    // The second side: columns of the first one's kinds.
    let from = relation(choices, depth - 1, outer);
    let all = [outer, &from.columns].concat();
    let values: Vec<_> =
        first.kinds.iter().map(|kind| expression(choices, *kind, &all, 1)).collect();
    let operation =
        choices.of(&["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]);
    let sql = format!("({}) {operation} SELECT {} FROM {}", first.sql, values.join(", "), from.sql);
    let name = choices.name();
    let names: Vec<_> = (0..first.kinds.len()).map(|at| format!("c{at}")).collect();
    let sql = format!("SELECT * FROM ({sql}) {name}({})", names.join(", "));
    Query { sql, kinds: first.kinds }
}

/// A query that is named once and stands twice.
fn with(choices: &mut Choices<'_>, depth: usize, outer: &[Column]) -> Query {
    let named = select(choices, depth - 1, outer);
    let (with, first, second) = (choices.name(), choices.name(), choices.name());
    let mut columns = columns_of_query(&named, &first);
    let others = columns_of_query(&named, &second);
    let on = matching(choices, &columns, &others)
        .map_or("true".to_owned(), |(ours, theirs)| format!("{ours} = {theirs}"));
    columns.extend(others);
    let sql = format!("{with} {first} JOIN {with} {second} ON {on}");
    let mut query = select_from(choices, Relation { sql, columns }, outer, 0);
    query.sql = format!("WITH {with} AS ({}) {}", named.sql, query.sql);
    query
}

fn select(choices: &mut Choices<'_>, depth: usize, outer: &[Column]) -> Query {
    let from = relation(choices, depth, outer);
    select_from(choices, from, outer, depth)
}

fn select_from(choices: &mut Choices<'_>, from: Relation, outer: &[Column], depth: usize) -> Query {
    let all = [outer, &from.columns].concat();
    let conditions = match choices.below(3) {
        0 => Vec::new(),
        1 => vec![condition(choices, &all, depth)],
        _ => vec![condition(choices, &all, depth), condition(choices, &all, 0)],
    };
    let filter = clause(" WHERE ", &conditions);
    match choices.below(5) {
        0 | 1 => plain(choices, &from, &all, &filter, depth),
        2 => windowed(choices, &from, &filter),
        _ => grouped(choices, &from, &filter),
    }
}

/// Values with the names of a query's columns.
fn named(values: &[(String, Kind)]) -> (String, Vec<Kind>) {
    let list = values.iter().enumerate().map(|(at, (value, _))| format!("{value} AS c{at}"));
    (list.collect::<Vec<_>>().join(", "), values.iter().map(|(_, kind)| *kind).collect())
}

fn plain(
    choices: &mut Choices<'_>,
    from: &Relation,
    all: &[Column],
    filter: &str,
    depth: usize,
) -> Query {
    let mut values = Vec::new();
    for _ in 0..=choices.below(3) {
        let column = choices.of(&from.columns);
        if choices.once_in(2) {
            values.push((expression(choices, column.kind, all, depth.max(1)), column.kind));
        } else {
            values.push((column.name, column.kind));
        }
    }
    let has_rows = choices.once_in(6);
    if has_rows {
        let element = expression(choices, Kind::Int, &from.columns, 0);
        values.push((format!("unnest(ARRAY[{element}, 3])"), Kind::Int));
    }
    let (mut list, kinds) = named(&values);
    if has_rows {
        // Beside rows that are made here, a column must not be called as another one is.
        list = list.replace(" AS c", " AS u");
    }
    let sql = match choices.below(6) {
        4 => format!("SELECT DISTINCT {list} FROM {}{filter}", from.sql),
        5 if !has_rows => {
            let order: Vec<_> = (1..=kinds.len()).map(|at| at.to_string()).collect();
            let first = &values[0].0;
            let order = order.join(", ");
            format!(
                "SELECT DISTINCT ON ({first}) {list} FROM {}{filter} ORDER BY {order}",
                from.sql
            )
        }
        _ => format!("SELECT {list} FROM {}{filter}", from.sql),
    };
    if !has_rows {
        return Query { sql, kinds };
    }
    let shown: Vec<_> = (0..kinds.len()).map(|at| format!("u{at} AS c{at}")).collect();
    let sql = format!("SELECT {} FROM ({sql}) {}", shown.join(", "), choices.name());
    Query { sql, kinds }
}

fn windowed(choices: &mut Choices<'_>, from: &Relation, filter: &str) -> Query {
    let order: Vec<_> = from.columns.iter().map(|column| column.name.as_str()).collect();
    let order = order.join(", ");
    let shown = choices.of(&from.columns);
    let part = choices.of(&from.columns).name;
    let of = choices.of(&from.columns);
    let partition =
        if choices.once_in(2) { format!("PARTITION BY {part} ") } else { String::new() };
    let frame = choices.of(&[
        "",
        " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
        " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
        " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        " GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    ]);
    let integer = expression(choices, Kind::Int, &from.columns, 0);
    let (function, kind) = choices.of(&[
        ("row_number()".to_owned(), Kind::Int),
        ("rank()".to_owned(), Kind::Int),
        ("dense_rank()".to_owned(), Kind::Int),
        (format!("lag({})", of.name), of.kind),
        (format!("lead({}, 2)", of.name), of.kind),
        (format!("first_value({})", of.name), of.kind),
        (format!("last_value({})", of.name), of.kind),
        (format!("nth_value({}, 2)", of.name), of.kind),
        (format!("sum({integer})"), Kind::Int),
        (format!("count({})", of.name), Kind::Int),
        (format!("max({integer})"), Kind::Int),
        ("ntile(3)".to_owned(), Kind::Int),
    ]);
    let window = format!("{function} OVER ({partition}ORDER BY {order}{frame})");
    let (list, kinds) = named(&[(shown.name, shown.kind), (window, kind)]);
    Query { sql: format!("SELECT {list} FROM {}{filter}", from.sql), kinds }
}

fn grouped(choices: &mut Choices<'_>, from: &Relation, filter: &str) -> Query {
    let mut keys = Vec::new();
    for _ in 0..choices.below(4) {
        let column = choices.of(&from.columns);
        if !keys.iter().any(|key: &Column| key.name == column.name) {
            keys.push(column);
        }
    }
    let mut values: Vec<_> = keys.iter().map(|key| (key.name.clone(), key.kind)).collect();
    if keys.len() > 1 && choices.once_in(3) {
        values.pop();
    }
    for _ in 0..=choices.below(2) {
        values.push(aggregate(choices, &from.columns));
    }
    let names: Vec<_> = keys.iter().map(|key| key.name.as_str()).collect();
    let mut group = String::new();
    if !names.is_empty() {
        let form = choices.of(&["", "", "", "ROLLUP ", "CUBE "]);
        group = match form {
            "" => format!(" GROUP BY {}", names.join(", ")),
            form => format!(" GROUP BY {form}({})", names.join(", ")),
        };
    }
    let having = match choices.below(4) {
        3 => {
            let (aggregate, kind) = aggregate(choices, &from.columns);
            let value = literal(choices, kind);
            format!(" HAVING {aggregate} >= {value}")
        }
        _ => String::new(),
    };
    let (list, kinds) = named(&values);
    Query { sql: format!("SELECT {list} FROM {}{filter}{group}{having}", from.sql), kinds }
}
