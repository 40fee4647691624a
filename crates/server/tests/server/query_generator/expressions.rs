//! Values, conditions and aggregates over given columns.

use super::{Choices, Column, Kind, columns_of};

pub fn aggregate(choices: &mut Choices<'_>, columns: &[Column]) -> (String, Kind) {
    let of = choices.of(columns);
    let integer = expression(choices, Kind::Int, columns, 0);
    let truth = expression(choices, Kind::Bool, columns, 0);
    let text = expression(choices, Kind::Text, columns, 0);
    let (aggregate, kind) = match choices.below(9) {
        0 => ("count(*)".to_owned(), Kind::Int),
        1 => (format!("count({})", of.name), Kind::Int),
        2 => (format!("sum({integer})"), Kind::Int),
        3 if of.kind != Kind::Bool => (format!("max({})", of.name), of.kind),
        4 if of.kind != Kind::Bool => (format!("min({})", of.name), of.kind),
        5 => (format!("count(DISTINCT {})", of.name), Kind::Int),
        6 => (format!("bool_or({truth})"), Kind::Bool),
        7 => (format!("string_agg({text}, ',' ORDER BY {text})"), Kind::Text),
        8 => (format!("sum(DISTINCT {integer})"), Kind::Int),
        _ => (format!("bool_and({truth})"), Kind::Bool),
    };
    if !choices.once_in(5) {
        return (aggregate, kind);
    }
    (format!("{aggregate} FILTER (WHERE {})", condition(choices, columns, 0)), kind)
}

pub fn literal(choices: &mut Choices<'_>, kind: Kind) -> String {
    match kind {
        Kind::Int => choices.of(&["1", "0", "2", "3", "-1"]),
        Kind::Text => choices.of(&["'p'", "'q'", "''", "'pq'"]),
        Kind::Numeric => choices.of(&["1.5", "2.0", "0.00", "-3.25"]),
        Kind::Bool => choices.of(&["true", "false"]),
        Kind::Date => choices.of(&["DATE '2024-02-29'", "DATE '2000-01-01'"]),
    }
    .to_owned()
}

pub fn expression(
    choices: &mut Choices<'_>,
    kind: Kind,
    columns: &[Column],
    depth: usize,
) -> String {
    let own: Vec<_> = columns.iter().filter(|column| column.kind == kind).collect();
    let leaf = |choices: &mut Choices<'_>| {
        if own.is_empty() || choices.once_in(6) {
            literal(choices, kind)
        } else {
            choices.of(&own).name.clone()
        }
    };
    if depth == 0 {
        return leaf(choices);
    }
    let way = choices.below(11);
    let of = |choices: &mut Choices<'_>, kind| expression(choices, kind, columns, depth - 1);
    match way {
        5 => format!("coalesce({}, {})", of(choices, kind), literal(choices, kind)),
        6 => format!("nullif({}, {})", of(choices, kind), of(choices, kind)),
        7 => {
            let when = condition(choices, columns, depth - 1);
            let (then, otherwise) = (of(choices, kind), of(choices, kind));
            format!("CASE WHEN {when} THEN {then} ELSE {otherwise} END")
        }
        8 if kind != Kind::Bool => {
            format!("greatest({}, {})", of(choices, kind), of(choices, kind))
        }
        9 => looked_up(choices, kind, columns),
        10 => match kind {
            Kind::Int => match choices.below(4) {
                0 => format!("({} + {})", of(choices, kind), of(choices, kind)),
                1 => format!("({} - {})", of(choices, kind), of(choices, kind)),
                2 => format!("length({})", of(choices, Kind::Text)),
                _ => format!("abs({})", of(choices, kind)),
            },
            Kind::Text => match choices.below(4) {
                0 => format!("({} || {})", of(choices, kind), of(choices, kind)),
                1 => format!("upper({})", of(choices, kind)),
                2 => format!("left({}, 1)", of(choices, kind)),
                _ => format!("({})::text", of(choices, Kind::Int)),
            },
            Kind::Numeric => match choices.below(3) {
                0 => format!("({} + {})", of(choices, kind), of(choices, kind)),
                1 => format!("round({}, 1)", of(choices, kind)),
                _ => format!("({})::numeric", of(choices, Kind::Int)),
            },
            Kind::Bool => format!("({})", condition(choices, columns, depth - 1)),
            Kind::Date => format!("({} + {})", of(choices, kind), choices.of(&["1", "30"])),
        },
        _ => leaf(choices),
    }
}

/// The value of a correlated query.
fn looked_up(choices: &mut Choices<'_>, kind: Kind, columns: &[Column]) -> String {
    let name = choices.name();
    let (table, value, key) = choices.of(&match kind {
        Kind::Int => [("b", "max({}.y)", "a_id"), ("a", "count({}.x)", "id")],
        Kind::Text => [("a", "min({}.t)", "x"), ("a", "{}.t", "id")],
        Kind::Numeric => [("c", "sum({}.v)", "k"), ("c", "max({}.v)", "l")],
        Kind::Bool => [("c", "bool_or({}.f)", "l"), ("c", "bool_and({}.f)", "k")],
        Kind::Date => [("b", "max({}.d)", "a_id"), ("b", "{}.d", "id")],
    });
    let value = value.replace("{}", &name);
    let with = expression(choices, Kind::Int, columns, 0);
    format!("(SELECT {value} FROM {table} {name} WHERE {name}.{key} = {with})")
}

pub fn condition(choices: &mut Choices<'_>, columns: &[Column], depth: usize) -> String {
    let kind = choices.of(columns).kind;
    let one = expression(choices, kind, columns, depth.saturating_sub(1));
    let way = choices.below(14);
    let inner = |choices: &mut Choices<'_>, kind| {
        expression(choices, kind, columns, depth.saturating_sub(1))
    };
    match way {
        1 => format!("{one} IS NOT NULL"),
        2 => format!("{one} IS NULL"),
        3 => format!("{one} <> {}", inner(choices, kind)),
        4 => format!("{one} < {}", inner(choices, kind)),
        5 => format!("{one} IN ({}, {})", literal(choices, kind), inner(choices, kind)),
        6 => format!("{one} IS DISTINCT FROM {}", inner(choices, kind)),
        7 => format!("{one} BETWEEN {} AND {}", literal(choices, kind), inner(choices, kind)),
        8 => {
            format!("{} LIKE {}", inner(choices, Kind::Text), choices.of(&["'p%'", "'%q'", "'_'"]))
        }
        9 => {
            let (not, set) = (choices.of(&["", "NOT "]), choices.of(&["a", "b", "e"]));
            let (name, number) = (choices.name(), inner(choices, Kind::Int));
            let column = columns_of(set, &name)[usize::from(set != "e")].name.clone();
            format!("{number} {not}IN (SELECT {column} FROM {set} {name})")
        }
        10 => {
            let not = choices.of(&["", "NOT "]);
            let name = choices.name();
            let other = columns_of("b", &name);
            let with = inner(choices, Kind::Int);
            let both = [columns, &other].concat();
            let more =
                if choices.once_in(3) { condition(choices, &both, 0) } else { "true".to_owned() };
            format!("{not}EXISTS (SELECT 1 FROM b {name} WHERE {name}.a_id = {with} AND {more})")
        }
        11 if depth > 0 => format!(
            "({} OR {})",
            condition(choices, columns, depth - 1),
            condition(choices, columns, depth - 1)
        ),
        12 if depth > 0 => format!("NOT ({})", condition(choices, columns, depth - 1)),
        13 if depth > 0 => format!(
            "({}, {}) = ({}, {})",
            one,
            inner(choices, Kind::Int),
            inner(choices, kind),
            inner(choices, Kind::Int)
        ),
        _ => format!("{one} = {}", inner(choices, kind)),
    }
}
