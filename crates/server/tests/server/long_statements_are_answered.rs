//! Statements whose plans are deep: each is answered or refused, and the server goes on.

use crate::common::{World, code, query};

const PARTS: usize = 300;

fn joined(part: &str, between: &str) -> String {
    vec![part; PARTS].join(between)
}

#[tokio::test(flavor = "multi_thread")]
async fn unions_in_a_row_are_answered() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (a int PRIMARY KEY)").await;
    query(&client, "INSERT INTO t VALUES (1)").await;
    assert_eq!(query(&client, &joined("SELECT a FROM t", " UNION ")).await, ["1"]);
    let all = joined("SELECT a FROM t", " UNION ALL ");
    assert_eq!(query(&client, &format!("SELECT count(*) FROM ({all}) AS u")).await, ["300"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_of_with_that_read_each_other_are_answered() {
    let world = World::new();
    let client = world.client().await;
    let parts: Vec<String> =
        (1..PARTS).map(|at| format!("c{at} AS (SELECT * FROM c{})", at - 1)).collect();
    let text =
        format!("WITH c0 AS (SELECT 7 AS a), {} SELECT a FROM c{}", parts.join(", "), PARTS - 1);
    assert_eq!(query(&client, &text).await, ["7"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn computations_of_too_many_operators_are_refused_and_the_client_goes_on() {
    let world = World::new();
    let client = world.client().await;
    for text in [joined("1", " + "), joined("'a'", " || "), format!("1{}", "::int".repeat(PARTS))] {
        let refused = client.simple_query(&format!("SELECT {text}")).await.unwrap_err();
        assert_eq!(code(&refused), "54001");
        assert_eq!(query(&client, "SELECT 1").await, ["1"]);
    }
}
