//! Values that cannot be have the SQLSTATE that PostgreSQL tells of them.

use tokio_postgres::Client;

use crate::common::{World, failure};
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
