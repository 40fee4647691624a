//! Makes SQL statements out of choices: queries, and changes of rows, over four small tables.
//!
//! What a statement gives is the same each time: a LIMIT stands only where all columns are ordered by, a window is
//! ordered by all that its rows have, and a row that is changed is joined with at most one other. No number comes
//! near the end of its type, nothing is divided.

mod changes;
mod expressions;
mod queries;
mod ranges;
mod relations;

use changes::{delete, insert, update};
use queries::query;
use ranges::range;

/// Bytes that decide what is made, each of them once. When they are used up, every choice is the first one, which
/// is always the simplest: a shorter tape makes a smaller statement.
pub struct Choices<'a> {
    tape: std::slice::Iter<'a, u8>,
    names: usize,
}

/// The tables and their rows.
pub const TABLES: &str = "
    CREATE TABLE a (id int PRIMARY KEY, x int, t text);
    CREATE TABLE b (id int PRIMARY KEY, a_id int, y int UNIQUE, d date);
    CREATE INDEX ON b (a_id);
    CREATE TABLE c (k int, l int, v numeric, f boolean, PRIMARY KEY (k, l));
    CREATE TABLE e (gone int, k int);
    ALTER TABLE e ADD COLUMN t text, DROP COLUMN gone;
    INSERT INTO a VALUES (0, 1, 'p'), (1, 2, NULL), (2, NULL, 'q'), (3, 1, 'p'), (4, 7, ''), (5, NULL, NULL),
        (6, 3, 'Q'), (7, 2, 'pq');
    INSERT INTO b VALUES (0, 0, 1, '2024-02-29'), (1, 0, NULL, '2024-03-01'), (2, 3, 3, NULL),
        (3, NULL, 4, '1999-12-31'), (4, 9, 5, '2024-02-29'), (5, 5, NULL, '2000-01-01'), (6, 2, 0, NULL);
    INSERT INTO c VALUES (0, 0, 1.5, true), (0, 1, NULL, false), (0, 2, 2, NULL), (1, 0, 1.50, true),
        (1, 1, 2.25, NULL),
        (1, 2, NULL, true), (2, 0, -3, false), (2, 1, 0, false), (2, 2, 10.125, true);
    INSERT INTO e VALUES (1, 'p'), (1, 'p'), (NULL, 'q'), (2, NULL), (NULL, NULL), (3, 'pq');
";

const TABLE_COLUMNS: [(&str, &[(&str, Kind)]); 4] = [
    ("a", &[("id", Kind::Int), ("x", Kind::Int), ("t", Kind::Text)]),
    ("b", &[("id", Kind::Int), ("a_id", Kind::Int), ("y", Kind::Int), ("d", Kind::Date)]),
    ("c", &[("k", Kind::Int), ("l", Kind::Int), ("v", Kind::Numeric), ("f", Kind::Bool)]),
    ("e", &[("k", Kind::Int), ("t", Kind::Text)]),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Int,
    Text,
    Numeric,
    Bool,
    Date,
}

const KINDS: [Kind; 5] = [Kind::Int, Kind::Text, Kind::Numeric, Kind::Bool, Kind::Date];

#[derive(Clone, Debug)]
struct Column {
    /// As it is written: `r1.id`.
    name: String,
    kind: Kind,
}

/// A query and the kinds of its columns, which are called `c0`, `c1`, ...
struct Query {
    sql: String,
    kinds: Vec<Kind>,
}

/// A statement, and whether its rows have an order.
pub struct Statement {
    pub sql: String,
    pub is_ordered: bool,
    /// The table that the statement changes.
    pub changes: Option<&'static str>,
}

impl<'a> Choices<'a> {
    pub fn new(tape: &'a [u8]) -> Choices<'a> {
        Choices { tape: tape.iter(), names: 0 }
    }

    fn below(&mut self, end: usize) -> usize {
        usize::from(self.tape.next().copied().unwrap_or(0)) % end
    }

    /// True once in so many times.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("r{}", self.names)
    }
}

pub fn statement(choices: &mut Choices<'_>) -> Statement {
    match choices.below(10) {
        5 => update(choices),
        6 => delete(choices),
        7 => insert(choices),
        8 | 9 => range(choices),
        _ => {
            let query = query(choices, 2, &[]);
            if choices.below(3) == 0 {
                return Statement { sql: query.sql, is_ordered: false, changes: None };
            }
            let order = order_of(choices, &query);
            let limit = choices.of(&["", "", "", " LIMIT 3", " OFFSET 2", " LIMIT 2 OFFSET 1"]);
            let sql = format!("SELECT * FROM ({}) o ORDER BY {order}{limit}", query.sql);
            Statement { sql, is_ordered: true, changes: None }
        }
    }
}

/// All columns of a query by their numbers, each up or down.
fn order_of(choices: &mut Choices<'_>, query: &Query) -> String {
    let ways = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"];
    let numbers = 1..=query.kinds.len();
    numbers.map(|at| format!("{at}{}", choices.of(&ways))).collect::<Vec<_>>().join(", ")
}

/// `WHERE a AND b`, or nothing where there is nothing.
fn clause(keyword: &str, conditions: &[String]) -> String {
    if conditions.is_empty() {
        return String::new();
    }
    format!("{keyword}{}", conditions.join(" AND "))
}

fn columns_of(table: &str, alias: &str) -> Vec<Column> {
    let (_, columns) = TABLE_COLUMNS.iter().find(|(name, _)| *name == table).expect("a table");
    let column =
        |(name, kind): &(&str, Kind)| Column { name: format!("{alias}.{name}"), kind: *kind };
    columns.iter().map(column).collect()
}

/// The columns of a query that stands in FROM as `alias`.
fn columns_of_query(query: &Query, alias: &str) -> Vec<Column> {
    let column =
        |(at, kind): (usize, &Kind)| Column { name: format!("{alias}.c{at}"), kind: *kind };
    query.kinds.iter().enumerate().map(column).collect()
}
