//! Statements of simple queries that differ in their constants alone share a plan from the second one on. Nothing that
//! a client sees may show it: each statement answers what a client answers that has sent nothing before.

use proptest::prelude::*;
use tokio_postgres::error::ErrorPosition;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::common::{World, query};

const TABLE: &str = "CREATE TYPE mood AS ENUM ('sad', 'happy'); \
    CREATE DOMAIN short AS varchar(4) CHECK (VALUE <> 'none'); \
    CREATE TABLE t (id int PRIMARY KEY, small smallint, large bigint, exact numeric(6,2), any_exact numeric, \
        real4 real, real8 double precision, is_it boolean, note text, fixed char(4), part varchar(4), name short, \
        feeling mood, day date, clock time, at timestamp, at_zone timestamptz, span interval, document json, \
        binary_document jsonb, bits bytea, number uuid, numbers int[], words text[], address inet); \
    CREATE INDEX by_note ON t (note); CREATE INDEX by_large ON t (large); CREATE INDEX by_fixed ON t (fixed); \
    INSERT INTO t (id, small, large, note, fixed) VALUES (1, 1, 10, 'one', 'a'), (2, 2, 20, 'it''s', 'b'), \
        (3, 3, 30, '', 'c')";

/// Each column beside the key.
const COLUMNS: &[&str] = &[
    "small",
    "large",
    "exact",
    "any_exact",
    "real4",
    "real8",
    "is_it",
    "note",
    "fixed",
    "part",
    "name",
    "feeling",
    "day",
    "clock",
    "at",
    "at_zone",
    "span",
    "document",
    "binary_document",
    "bits",
    "number",
    "numbers",
    "words",
    "address",
];

/// Constants as they are written.
const CONSTANTS: &[&str] = &[
    "0",
    "1",
    "-1",
    "7",
    "40000",
    "-40000",
    "3000000000",
    "99999",
    "123456789012345678",
    "1234567890123456789",
    "1.5",
    "1e3",
    "NULL",
    "true",
    "''",
    "' '",
    "'1'",
    "' 1 '",
    "'-1'",
    "'1.5'",
    "'1.005'",
    "'abc'",
    "'abcd  '",
    "'abcde'",
    "'none'",
    "'it''s'",
    "'happy'",
    "'angry'",
    "'t'",
    "'yes'",
    "'2020-02-30'",
    "'2024-02-29'",
    "'today'",
    "'infinity'",
    "'12:30'",
    "'2024-02-29 12:30:00+02'",
    "'1 day 2 hours'",
    "'NaN'",
    "'{\"a\": [1, 2]}'",
    "'{1,2}'",
    "'{a,\"b c\"}'",
    "'\\x00ff'",
    "'6ba7b810-9dad-11d1-80b4-00c04fd430c8'",
    "'10.0.0.1/8'",
    "'3000000000'",
    "'1e400'",
    "'null'",
];

/// What a client is told: rows, how many were changed, or what is wrong, and where.
async fn told(client: &Client, text: &str) -> Vec<String> {
    match client.simple_query(text).await {
        Ok(messages) => messages.iter().filter_map(shown).collect(),
        Err(error) => {
            let Some(error) = error.as_db_error() else { return vec![error.to_string()] };
            let at = match error.position() {
                Some(ErrorPosition::Original(at)) => at.to_string(),
                _ => "nowhere".to_owned(),
            };
            let code = error.code().code();
            vec![format!("{code} at {at}: {} {:?}", error.message(), error.detail())]
        }
    }
}

fn shown(message: &SimpleQueryMessage) -> Option<String> {
    match message {
        SimpleQueryMessage::Row(row) => {
            let fields = (0..row.len()).map(|at| row.get(at).unwrap_or("∅"));
            Some(fields.collect::<Vec<_>>().join("|"))
        }
        SimpleQueryMessage::CommandComplete(rows) => Some(format!("{rows} rows")),
        SimpleQueryMessage::RowDescription(columns) => {
            Some(columns.iter().map(|column| column.name()).collect::<Vec<_>>().join(","))
        }
        _ => None,
    }
}

/// What a statement answers in a transaction that is rolled back.
async fn tried(client: &Client, statement: &str) -> Vec<String> {
    query(client, "BEGIN").await;
    let told = told(client, statement).await;
    query(client, "ROLLBACK").await;
    told
}

/// Statements with a constant in the place of a column's value.
fn of_column(column: &str, constant: &str) -> Vec<String> {
    vec![
        format!("INSERT INTO t (id, {column}) VALUES (9, {constant}) RETURNING id, {column}"),
        format!("SELECT id FROM t WHERE {column} = {constant}"),
        format!("INSERT INTO t ({column}, id) VALUES ({constant}, 8), ({constant}, 9)"),
        format!(
            "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET {column} = {constant} \
             RETURNING *"
        ),
        format!("UPDATE t SET {column} = {constant} WHERE id = 2 RETURNING {column}"),
    ]
}

/// The same in the place of a key, and in others.
fn of_key(constant: &str) -> Vec<String> {
    vec![
        format!("DELETE FROM t WHERE id = {constant} RETURNING id"),
        format!("SELECT id, note FROM t WHERE id = {constant}"),
        format!("SELECT id, note FROM t WHERE id = {constant} FOR UPDATE"),
        format!("SELECT id FROM t WHERE id BETWEEN 1 AND {constant} ORDER BY id LIMIT 2"),
        format!("SELECT count(*) FROM t WHERE large IN ({constant}, {constant})"),
        format!("SELECT id FROM t WHERE note >= {constant} ORDER BY id"),
        format!("SELECT id, {constant} FROM t WHERE id = 1"),
        format!("SELECT id FROM t WHERE id = 1 LIMIT {constant}"),
        format!("INSERT INTO t (id, large) VALUES (9, abs({constant}))"),
        format!("UPDATE t SET large = large + {constant}, small = ({constant}) WHERE id = 2"),
    ]
}

/// Compares the statements of one shape with what each answers where it is planned by itself.
async fn compare(
    client: &Client,
    statement: impl Fn(&str) -> String,
    constants: impl Iterator<Item = &str>,
) {
    // Two of each kind before, so that each of the others is one that has a plan if it can have one.
    for constant in ["1", "1", "'1'", "'1'"] {
        tried(client, &statement(constant)).await;
    }
    for constant in constants {
        let statement = statement(constant);
        // A text with a comment has no shape.
        let wanted = tried(client, &format!("{statement} /* by itself */")).await;
        assert_eq!(tried(client, &statement).await, wanted, "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_constant_of_a_column_means_what_it_means_by_itself() {
    let world = World::new();
    let client = world.client().await;
    query(&client, TABLE).await;
    for (number, column) in COLUMNS.iter().enumerate() {
        for shape in 0..of_column(column, "0").len() {
            // All constants in two shapes, in the others a third of them.
            let step = if shape < 2 { 1 } else { 3 };
            let constants = CONSTANTS.iter().skip(number % step).step_by(step);
            compare(
                &client,
                |constant| of_column(column, constant).swap_remove(shape),
                constants.copied(),
            )
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_constant_in_another_place_means_what_it_means_by_itself() {
    let world = World::new();
    let client = world.client().await;
    query(&client, TABLE).await;
    for shape in 0..of_key("0").len() {
        compare(&client, |constant| of_key(constant).swap_remove(shape), CONSTANTS.iter().copied())
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_a_shape_follows_what_is_defined() {
    let world = World::new();
    let (client, other) = (world.client().await, world.client().await);
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, v int)").await;
    for id in 1..5 {
        query(&client, &format!("INSERT INTO t (id, v) VALUES ({id}, {id})")).await;
    }
    query(&other, "ALTER TABLE t ALTER COLUMN v TYPE text").await;
    query(&client, "INSERT INTO t (id, v) VALUES (5, '05')").await;
    query(&client, "INSERT INTO t (id, v) VALUES (6, 06)").await;
    let rows = ["4|4", "5|05", "6|6"];
    assert_eq!(query(&client, "SELECT id, v FROM t WHERE id > 3 ORDER BY id").await, rows);
    query(&other, "DROP TABLE t; CREATE TABLE t (v bigint, id date)").await;
    query(&client, "INSERT INTO t (id, v) VALUES ('2020-01-01', 7)").await;
    assert_eq!(
        told(&client, "INSERT INTO t (id, v) VALUES ('7', 7)").await[0].split(' ').next(),
        Some("22007")
    );
    assert_eq!(query(&client, "SELECT id, v FROM t").await, ["2020-01-01|7"]);
    // A temporary table takes the name.
    query(&client, "CREATE TEMP TABLE t (id int, v int)").await;
    query(&client, "INSERT INTO t (id, v) VALUES (1, 7)").await;
    assert_eq!(query(&client, "SELECT id, v FROM t").await, ["1|7"]);
    query(&client, "DROP TABLE t").await;
    assert_eq!(query(&client, "SELECT id, v FROM t").await, ["2020-01-01|7"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn constants_are_read_as_the_session_says_now() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, day date, at timestamptz)").await;
    let insert = |id: u32| format!("INSERT INTO t VALUES ({id}, '01/02/2024', '2024-01-01 12:00')");
    for id in 1..4 {
        query(&client, &insert(id)).await;
    }
    query(&client, "SET datestyle = 'ISO, DMY'; SET timezone = 'Asia/Tokyo'").await;
    query(&client, &insert(4)).await;
    query(&client, &insert(5)).await;
    let days = "SELECT day, at AT TIME ZONE 'UTC' FROM t WHERE id IN (3, 5) ORDER BY id";
    let wanted = ["2024-01-02|2024-01-01 12:00:00", "2024-02-01|2024-01-01 03:00:00"];
    assert_eq!(query(&client, days).await, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_transaction_takes_no_statement_of_a_known_shape() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY)").await;
    for id in 1..4 {
        query(&client, &format!("INSERT INTO t VALUES ({id})")).await;
    }
    query(&client, "BEGIN").await;
    assert!(told(&client, "INSERT INTO t VALUES (1)").await[0].starts_with("23505 "));
    assert!(told(&client, "INSERT INTO t VALUES (4)").await[0].starts_with("25P02 "));
    query(&client, "ROLLBACK").await;
    query(&client, "BEGIN READ ONLY").await;
    assert!(told(&client, "INSERT INTO t VALUES (4)").await[0].starts_with("25006 "));
    query(&client, "ROLLBACK").await;
    query(&client, "CREATE ROLE reader; GRANT SELECT ON t TO reader; SET ROLE reader").await;
    assert!(told(&client, "INSERT INTO t VALUES (4)").await[0].starts_with("42501 "));
    query(&client, "RESET ROLE; INSERT INTO t VALUES (4)").await;
    assert_eq!(query(&client, "SELECT count(*) FROM t").await, ["4"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    /// Rows of texts with quotes, backslashes and anything else come back as they were.
    #[test]
    fn texts_of_any_letters_come_back(texts in prop::collection::vec("[^\u{0}]{0,20}", 40)) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let world = World::new();
            let client = world.client().await;
            query(&client, "CREATE TABLE t (id int PRIMARY KEY, note text)").await;
            for (id, text) in texts.iter().enumerate() {
                let text = text.replace('\'', "''");
                query(&client, &format!("INSERT INTO t VALUES ({id}, '{text}')")).await;
            }
            let found = client.query("SELECT note FROM t ORDER BY id", &[]).await.unwrap();
            let found: Vec<String> = found.iter().map(|row| row.get(0)).collect();
            assert_eq!(found, texts);
        });
    }
}
