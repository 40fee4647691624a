//! Rows of one table between two keys: what goes the short way, and what nearly does.

use super::{Choices, Kind, Statement, TABLE_COLUMNS, clause};

/// Columns by which rows are found: of primary keys, or of indexes.
const KEYS: [(&str, &[&str]); 5] =
    [("a", &["id"]), ("b", &["id"]), ("b", &["a_id"]), ("b", &["y"]), ("c", &["k", "l"])];
const VALUES: [&str; 7] = ["0", "1", "2", "3", "5", "-1", "NULL"];

pub fn range(choices: &mut Choices<'_>) -> Statement {
    let (table, key) = choices.of(&KEYS);
    let equal = choices.below(key.len() + 1);
    let mut conditions: Vec<String> =
        key[..equal].iter().map(|column| format!("{column} = {}", choices.of(&VALUES))).collect();
    let next = key.get(equal).copied();
    conditions.extend(next.and_then(|column| bounds(choices, column)));
    let filter = clause(" WHERE ", &conditions);
    let (_, columns) = TABLE_COLUMNS.iter().find(|(name, _)| *name == table).expect("a table");
    if choices.once_in(3) {
        let totals = totals(choices, columns);
        let sql = format!("SELECT {totals} FROM {table}{filter}");
        return Statement { sql, is_ordered: true, changes: None };
    }
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let shown = &names[choices.below(names.len())..];
    let distinct = choices.of(&["", "", "DISTINCT "]);
    // All rows are told apart by all columns that are shown, or they are alike.
    let ways = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"];
    let order: Vec<String> =
        shown.iter().map(|name| format!("{name}{}", choices.of(&ways))).collect();
    let is_ordered = choices.once_in(2);
    let order = if is_ordered { clause(" ORDER BY ", &[order.join(", ")]) } else { String::new() };
    let limit = if is_ordered { choices.of(&["", " LIMIT 2", " LIMIT 4"]) } else { "" };
    let sql = format!("SELECT {distinct}{} FROM {table}{filter}{order}{limit}", shown.join(", "));
    Statement { sql, is_ordered, changes: None }
}

fn bounds(choices: &mut Choices<'_>, column: &str) -> Option<String> {
    let (low, high) = (choices.of(&VALUES), choices.of(&VALUES));
    Some(match choices.below(10) {
        0 => return None,
        1 => format!("{column} BETWEEN {low} AND {high}"),
        2 => format!("{column} IN ({low}, {high}, 2)"),
        3 => format!("{column} > {low} AND {column} <= {high}"),
        4 => format!("{low} >= {column}"),
        5 => format!("{column} < {high}.5"),
        6 => format!("{column} >= {low} AND {column} < {high} AND {column} > 0"),
        7 => format!("({column} < {low} OR {column} > {high})"),
        8 => format!("({column} = {low} OR {column} BETWEEN {high} AND 3 OR {column} > 4)"),
        _ => format!("{column} > {low}"),
    })
}

fn totals(choices: &mut Choices<'_>, columns: &[(&str, Kind)]) -> String {
    let count = choices.below(3) + 1;
    let total = |choices: &mut Choices<'_>| {
        let (name, kind) = choices.of(columns);
        match (choices.below(5), kind) {
            (0, _) => "count(*)".to_owned(),
            (1, _) | (_, Kind::Bool) => format!("count({name})"),
            (2, Kind::Int | Kind::Numeric) => format!("sum({name})"),
            (3, _) => format!("min({name})"),
            _ => format!("max({name})"),
        }
    };
    (0..count).map(|_| total(choices)).collect::<Vec<_>>().join(", ")
}
