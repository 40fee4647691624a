//! What stands in FROM: tables, queries, lists of values, and their joins.

use super::expressions::{condition, expression};
use super::queries::query;
use super::{Choices, Column, Kind, columns_of, columns_of_query};

/// What stands in FROM.
pub struct Relation {
    pub sql: String,
    pub columns: Vec<Column>,
}

/// What stands in FROM; `outer` has the columns of queries around it.
pub fn relation(choices: &mut Choices<'_>, depth: usize, outer: &[Column]) -> Relation {
    if depth == 0 {
        return table(choices);
    }
    match choices.below(10) {
        0..=3 => table(choices),
        4 | 5 => {
            let inner = query(choices, depth - 1, outer);
            let name = choices.name();
            let columns = columns_of_query(&inner, &name);
            Relation { sql: format!("({}) {name}", inner.sql), columns }
        }
        6 => {
            let name = choices.name();
            let sql = format!("(VALUES (1, 'p'), (2, NULL), (NULL, 'q')) {name}(n, t)");
            let column = |(column, kind)| Column { name: format!("{name}.{column}"), kind };
            let columns = [("n", Kind::Int), ("t", Kind::Text)].map(column).to_vec();
            Relation { sql, columns }
        }
        _ => join(choices, depth, outer),
    }
}

fn table(choices: &mut Choices<'_>) -> Relation {
    let table = choices.of(&["a", "b", "c", "e"]);
    let name = choices.name();
    Relation { sql: format!("{table} {name}"), columns: columns_of(table, &name) }
}

fn join(choices: &mut Choices<'_>, depth: usize, outer: &[Column]) -> Relation {
    let mut left = relation(choices, depth - 1, outer);
    let way = choices.below(10);
    let name = choices.name();
    let made = |column: &str| Column { name: format!("{name}.{column}"), kind: Kind::Int };
    match way {
        6 => {
            let element = expression(choices, Kind::Int, &left.columns, 0);
            let ordinality = choices.once_in(3);
            let (with, names) = if ordinality { (" WITH ORDINALITY", "u, o") } else { ("", "u") };
            left.sql = format!(
                "{} CROSS JOIN unnest(ARRAY[1, 2, {element}]){with} {name}({names})",
                left.sql
            );
            left.columns.push(made("u"));
        }
        7 => {
            let end = choices.of(&["2", "0", "3"]);
            left.sql = format!("{} CROSS JOIN generate_series(1, {end}) {name}(g)", left.sql);
            left.columns.push(made("g"));
        }
        8 => {
            let around = [outer, &left.columns].concat();
            let inner = query(choices, depth - 1, &around);
            let (way, end) = choices.of(&[("CROSS", ""), ("LEFT", " ON true")]);
            left.sql = format!("{} {way} JOIN LATERAL ({}) {name}{end}", left.sql, inner.sql);
            left.columns.extend(columns_of_query(&inner, &name));
        }
        _ => {
            let right = relation(choices, depth - 1, outer);
            let sides = (matching(choices, &left.columns, &right.columns), way);
            let right_sql =
                if right.sql.contains(" JOIN ") { format!("({})", right.sql) } else { right.sql };
            let ((Some((ours, theirs)), 0..=5 | 9), (way, more)) = (
                sides,
                choices.of(&[("INNER", true), ("LEFT", true), ("RIGHT", true), ("FULL", false)]),
            ) else {
                left.sql = format!("{} CROSS JOIN {right_sql}", left.sql);
                left.columns.extend(right.columns);
                return left;
            };
            left.columns.extend(right.columns);
            let mut conditions = vec![format!("{ours} = {theirs}")];
            if more && choices.once_in(4) {
                conditions.push(condition(choices, &left.columns, 0));
            }
            let on = conditions.join(" AND ");
            left.sql = format!("{} {way} JOIN {right_sql} ON {on}", left.sql);
        }
    }
    left
}

/// A column of each side, both of one kind.
pub fn matching(
    choices: &mut Choices<'_>,
    left: &[Column],
    right: &[Column],
) -> Option<(String, String)> {
    let ours = choices.of(left);
    let theirs: Vec<_> = right.iter().filter(|column| column.kind == ours.kind).collect();
    (!theirs.is_empty()).then(|| (ours.name, choices.of(&theirs).name.clone()))
}
