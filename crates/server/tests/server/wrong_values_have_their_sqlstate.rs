//! Values that cannot be have the SQLSTATE that PostgreSQL tells of them.

use tokio_postgres::Client;

use crate::common::{World, failure, query};
use crate::postgresql::Cluster;

/// A statement and its SQLSTATE, over `two (a int, b text)` with the rows (1, 'x') and (2, 'y').
const WRONG_VALUES: &[(&str, &str)] = &[
    ("SELECT '12x'::text::int", "22P02"),
    ("SELECT b::int FROM two", "22P02"),
    ("SELECT '3000000000'::text::int", "22003"),
    ("SELECT 3000000000::int", "22003"),
    ("SELECT (a * 3000000000)::int FROM two", "22003"),
    ("SELECT 70000::smallint", "22003"),
    ("SELECT 1e20::float8::bigint", "22003"),
    ("SELECT 123456::numeric(5,2)", "22003"),
    ("SELECT (a + 99999.5)::numeric(5,0) FROM two", "22003"),
    ("SELECT b::numeric FROM two", "22P02"),
    ("SELECT b::float8 FROM two", "22P02"),
    ("SELECT b::boolean FROM two WHERE b <> 'y'", "22P02"),
    ("SELECT b::date FROM two", "22007"),
    ("SELECT b::timestamp FROM two", "22007"),
    ("SELECT a / (a - a) FROM two", "22012"),
    ("SELECT a % (a - a) FROM two", "22012"),
    ("SELECT a / 0.0 FROM two", "22012"),
    ("SELECT a / 0::float8 FROM two", "22012"),
    ("SELECT a + 2147483647 FROM two", "22003"),
    ("SELECT a * 9223372036854775807 FROM two", "22003"),
    ("SELECT sqrt(-a) FROM two", "2201F"),
    ("SELECT power(a - a, -1) FROM two", "2201F"),
    ("SELECT power(-a, 0.5) FROM two", "2201F"),
    ("SELECT power(10::float8, 400)", "22003"),
    ("SELECT ln(a - a) FROM two", "2201E"),
    ("SELECT ln(-a) FROM two", "2201E"),
    ("SELECT (SELECT a FROM two)", "21000"),
    ("SELECT (SELECT a FROM two UNION SELECT 3)", "21000"),
    ("SELECT (SELECT DISTINCT a FROM two)", "21000"),
    ("SELECT (SELECT a FROM two LIMIT 2)", "21000"),
    ("SELECT (SELECT row_number() OVER () FROM two)", "21000"),
    ("SELECT (SELECT i.a FROM two i, two j WHERE i.a = o.a) FROM two o", "21000"),
    ("SELECT true + a FROM two", "42883"),
    ("SELECT a FROM two WHERE a", "42804"),
    ("SELECT count(*) FROM two HAVING 1", "42804"),
    ("SELECT 1 FROM two o JOIN two i ON o.a", "42804"),
    ("SELECT sum(a) FILTER (WHERE a) FROM two", "42804"),
];

async fn compare_values(client: &Client) {
    let table = "CREATE TABLE two (a int, b text); INSERT INTO two VALUES (1, 'x'), (2, 'y')";
    client.batch_execute(table).await.unwrap();
    let mut differences = Vec::new();
    for (statement, state) in WRONG_VALUES {
        let told = failure(client, statement).await;
        if told != *state {
            differences.push(format!("{statement}: {told}, not {state}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_cannot_be_are_told_with_their_state() {
    let world = World::new();
    compare_values(&world.client().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_tells_the_same_of_values() {
    let Some(cluster) = Cluster::start() else { return };
    compare_values(&cluster.client_in_new_database("wrong_values").await).await;
}

/// A subquery of ANY and ALL has as many rows as it likes, in whatever order, also where the row outside is looked at.
#[tokio::test(flavor = "multi_thread")]
async fn only_subqueries_that_stand_for_a_value_are_held_to_one_row() {
    let world = World::new();
    let client = world.client().await;
    client
        .batch_execute("CREATE TABLE two (a int); INSERT INTO two VALUES (1), (2)")
        .await
        .unwrap();
    for (statement, rows) in [
        ("SELECT a FROM two WHERE a >= ALL (SELECT a FROM two)", ["2"].as_slice()),
        ("SELECT a FROM two WHERE a = ANY (SELECT a FROM two) ORDER BY a", &["1", "2"]),
        ("SELECT o.a FROM two o WHERE o.a > ALL (SELECT i.a FROM two i WHERE i.a <> o.a)", &["2"]),
        (
            "SELECT (SELECT i.a FROM two i WHERE i.a = o.a AND o.a > 1) FROM two o ORDER BY a",
            &["2", "∅"],
        ),
        ("SELECT (SELECT stddev(a) IS NULL FROM two WHERE a = 1)", &["t"]),
    ] {
        assert_eq!(query(&client, statement).await, rows, "{statement}");
    }
}
