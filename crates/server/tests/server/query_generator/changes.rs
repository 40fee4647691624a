//! Statements that change rows.

use super::expressions::{condition, expression};
use super::relations::relation;
use super::{Choices, Column, KINDS, Kind, Statement, clause, columns_of};

pub fn update(choices: &mut Choices<'_>) -> Statement {
    let (table, set, kind, key) = choices.of(&[
        ("a", "x", Kind::Int, "x"),
        ("a", "t", Kind::Text, "x"),
        ("b", "d", Kind::Date, "a_id"),
        ("c", "v", Kind::Numeric, "k"),
        ("e", "k", Kind::Int, "k"),
    ]);
    let mut columns = columns_of(table, "z");
    let from = if choices.below(2) == 0 {
        String::new()
    } else {
        // A key of the other table: one row of it at most.
        columns.extend(columns_of("b", "o"));
        " FROM b o".to_owned()
    };
    let value = expression(choices, kind, &columns, 1);
    let mut conditions = Vec::new();
    if !from.is_empty() {
        conditions.push(format!("o.id = z.{key}"));
    }
    if choices.below(3) > 0 {
        conditions.push(condition(choices, &columns, 1));
    }
    let sql = format!(
        "UPDATE {table} z SET {set} = {value}{from}{}{}",
        clause(" WHERE ", &conditions),
        returning(choices, &columns, "*")
    );
    Statement { sql, is_ordered: false, changes: Some(table) }
}

pub fn delete(choices: &mut Choices<'_>) -> Statement {
    let table = choices.of(&["a", "b", "c", "e"]);
    let mut columns = columns_of(table, "z");
    let own = columns.clone();
    let using = if choices.below(2) == 0 {
        String::new()
    } else {
        let relation = relation(choices, 1, &[]);
        columns.extend(relation.columns);
        format!(" USING {}", relation.sql)
    };
    let conditions =
        if choices.below(4) == 0 { Vec::new() } else { vec![condition(choices, &columns, 1)] };
    // Only what the row has itself: which of the rows that it was joined with is shown is not said.
    let returned = returning(choices, &own, "z.*");
    let sql = format!("DELETE FROM {table} z{using}{}{returned}", clause(" WHERE ", &conditions));
    Statement { sql, is_ordered: false, changes: Some(table) }
}

pub fn insert(choices: &mut Choices<'_>) -> Statement {
    let relation = relation(choices, 1, &[]);
    let values =
        [Kind::Int, Kind::Text].map(|kind| expression(choices, kind, &relation.columns, 1));
    let conditions = if choices.below(2) == 0 {
        Vec::new()
    } else {
        vec![condition(choices, &relation.columns, 1)]
    };
    let sql = format!(
        "INSERT INTO e AS z SELECT {} FROM {}{}{}",
        values.join(", "),
        relation.sql,
        clause(" WHERE ", &conditions),
        returning(choices, &columns_of("e", "z"), "*")
    );
    Statement { sql, is_ordered: false, changes: Some("e") }
}

/// A RETURNING of `all` columns, of a value, or none.
fn returning(choices: &mut Choices<'_>, columns: &[Column], all: &str) -> String {
    match choices.below(3) {
        0 => String::new(),
        1 => format!(" RETURNING {all}"),
        _ => {
            let kind = choices.of(&KINDS);
            format!(" RETURNING {}", expression(choices, kind, columns, 1))
        }
    }
}
