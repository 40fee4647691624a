//! BEGIN, COMMIT, ROLLBACK, and what fails between them.

use std::sync::Arc;

use crate::common::{World, code, failure, message, query, read_message};
use onrush::Options;
use onrush_files::MemoryDisk;
use tokio::io::AsyncWriteExt;

#[tokio::test(flavor = "multi_thread")]
async fn others_see_a_transaction_when_it_is_committed_or_never() {
    let world = World::new();
    let (writer, reader) = (world.client().await, world.client().await);
    query(&writer, "CREATE TABLE t (id int PRIMARY KEY)").await;
    query(&writer, "BEGIN").await;
    query(&writer, "INSERT INTO t VALUES (1)").await;
    assert_eq!(query(&writer, "SELECT id FROM t").await, ["1"]);
    assert!(query(&reader, "SELECT id FROM t").await.is_empty());
    query(&writer, "COMMIT").await;
    assert_eq!(query(&reader, "SELECT id FROM t").await, ["1"]);
    query(&writer, "BEGIN; INSERT INTO t VALUES (2); ROLLBACK").await;
    assert_eq!(query(&reader, "SELECT id FROM t").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_error_a_transaction_takes_nothing_but_its_end() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY)").await;
    query(&client, "BEGIN").await;
    query(&client, "INSERT INTO t VALUES (1)").await;
    assert_eq!(failure(&client, "INSERT INTO t VALUES (1)").await, "23505");
    assert_eq!(failure(&client, "SELECT * FROM t").await, "25P02");
    query(&client, "COMMIT").await; // rolls back
    assert!(query(&client, "SELECT id FROM t").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_costs_what_came_after_the_savepoint_only() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY)").await;
    query(&client, "BEGIN").await;
    query(&client, "INSERT INTO t VALUES (1)").await;
    query(&client, "SAVEPOINT s").await;
    query(&client, "INSERT INTO t VALUES (2)").await;
    assert_eq!(failure(&client, "INSERT INTO t VALUES (1)").await, "23505");
    assert_eq!(failure(&client, "RELEASE s").await, "25P02");
    query(&client, "ROLLBACK TO s").await;
    query(&client, "INSERT INTO t VALUES (3)").await;
    query(&client, "RELEASE SAVEPOINT s").await;
    assert_eq!(failure(&client, "ROLLBACK TO SAVEPOINT s").await, "3B001");
    query(&client, "ROLLBACK").await;
    assert!(query(&client, "SELECT id FROM t").await.is_empty());
    query(&client, "BEGIN; INSERT INTO t VALUES (1); SAVEPOINT s; INSERT INTO t VALUES (2)").await;
    query(&client, "ROLLBACK TO s; INSERT INTO t VALUES (3); COMMIT").await;
    assert_eq!(query(&client, "SELECT id FROM t").await, ["1", "3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_savepoints_with_one_name_the_latest_counts() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY)").await;
    query(&client, "BEGIN; SAVEPOINT s; INSERT INTO t VALUES (1); SAVEPOINT s").await;
    query(&client, "INSERT INTO t VALUES (2); ROLLBACK TO s").await;
    assert_eq!(query(&client, "SELECT id FROM t").await, ["1"]);
    query(&client, "RELEASE s; ROLLBACK TO s").await;
    assert!(query(&client, "SELECT id FROM t").await.is_empty());
    query(&client, "COMMIT").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_go_back_to_the_savepoint() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "BEGIN; SET statement_timeout = '1s'; SAVEPOINT s").await;
    query(&client, "SET statement_timeout = '2s'; ROLLBACK TO s; COMMIT").await;
    assert_eq!(query(&client, "SHOW statement_timeout").await, ["1000ms"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_transaction_there_is_no_savepoint() {
    let world = World::new();
    let client = world.client().await;
    assert_eq!(failure(&client, "SAVEPOINT s").await, "25P01");
    assert_eq!(failure(&client, "ROLLBACK TO s").await, "25P01");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_statements_in_one_message_are_one_transaction() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY)").await;
    let twice = "INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)";
    assert_eq!(failure(&client, twice).await, "23505");
    assert!(query(&client, "SELECT id FROM t").await.is_empty());
    query(&client, "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)").await;
    assert_eq!(query(&client, "SELECT id FROM t").await, ["1", "2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_ready_says_how_the_transaction_is() {
    let world = World::new();
    let mut socket = world.raw_client().await;
    let mut states = String::new();
    for text in ["BEGIN", "SELECT nonsense", "SELECT 1", "ROLLBACK"] {
        socket.write_all(&message(b'Q', format!("{text}\0").as_bytes())).await.unwrap();
        loop {
            let (kind, body) = read_message(&mut socket).await.unwrap();
            if kind == b'Z' {
                states.push(char::from(body[0]));
                break;
            }
        }
    }
    assert_eq!(states, "TEEI");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_a_transaction_end_with_it() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "BEGIN").await;
    query(&client, "SET LOCAL synchronous_commit = off").await;
    assert_eq!(query(&client, "SHOW synchronous_commit").await, ["off"]);
    query(&client, "COMMIT").await;
    assert_eq!(query(&client, "SHOW synchronous_commit").await, ["on"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_only_reads_writes_nothing() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, n int)").await;
    query(&client, "INSERT INTO t VALUES (1, 1)").await;
    let prepared = client.prepare("INSERT INTO t VALUES ($1, 2)").await.unwrap();
    for text in [
        "INSERT INTO t VALUES (2, 2)",
        "INSERT INTO t SELECT 2, 2",
        "UPDATE t SET n = 2",
        "DELETE FROM t WHERE id = 1",
        "COPY t FROM STDIN",
        "TRUNCATE t",
        "CREATE TABLE u (id int PRIMARY KEY)",
        "ALTER TABLE t ADD COLUMN m int",
        "DROP TABLE t",
        "COMMENT ON TABLE t IS 'a table'",
        "CREATE SCHEMA s",
        "CREATE ROLE clerk",
        "CALL onrush.insert_loop('t', 1, 1)",
    ] {
        query(&client, "BEGIN READ ONLY").await;
        assert_eq!(query(&client, "SELECT n FROM t").await, ["1"]);
        assert_eq!(failure(&client, text).await, "25006", "{text}");
        query(&client, "ROLLBACK").await;
    }
    query(&client, "BEGIN").await;
    query(&client, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY").await;
    let refused = client.execute(&prepared, &[&2]).await.unwrap_err();
    let told = refused.as_db_error().unwrap();
    assert_eq!(told.code().code(), "25006");
    assert_eq!(told.message(), "cannot execute INSERT in a read-only transaction");
    query(&client, "ROLLBACK").await;
    client.execute(&prepared, &[&2]).await.unwrap();
    assert_eq!(query(&client, "SELECT id FROM t").await, ["1", "2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_transactions_only_read_has_a_default() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY)").await;
    let prepared = client.prepare("INSERT INTO t VALUES ($1)").await.unwrap();
    for set in [
        "SET default_transaction_read_only = on",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    ] {
        query(&client, set).await;
        assert_eq!(query(&client, "SHOW transaction_read_only").await, ["on"]);
        assert_eq!(failure(&client, "INSERT INTO t VALUES (1)").await, "25006");
        assert_eq!(code(&client.execute(&prepared, &[&1]).await.unwrap_err()), "25006");
        query(&client, "START TRANSACTION READ WRITE").await;
        assert_eq!(query(&client, "SHOW transaction_read_only").await, ["off"]);
        query(&client, "INSERT INTO t VALUES (1); ROLLBACK").await;
        assert_eq!(query(&client, "SHOW transaction_read_only").await, ["on"]);
        query(&client, "RESET default_transaction_read_only").await;
        assert_eq!(query(&client, "SHOW transaction_read_only").await, ["off"]);
    }
    // Outside of a transaction it is over with the statement.
    query(&client, "SET TRANSACTION READ ONLY").await;
    query(&client, "START TRANSACTION READ ONLY").await;
    query(&client, "SET TRANSACTION READ WRITE; SET transaction_read_only = on").await;
    query(&client, "RESET ALL; SELECT id FROM t").await;
    assert_eq!(query(&client, "SHOW transaction_read_only").await, ["on"]);
    assert_eq!(failure(&client, "SET TRANSACTION READ WRITE").await, "25001");
    query(&client, "COMMIT").await;
    query(&client, "INSERT INTO t VALUES (1)").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_count_up_one_row_lose_nothing() {
    let world = World::new();
    let reader = world.client().await;
    query(&reader, "CREATE TABLE t (k int PRIMARY KEY, n bigint)").await;
    let mut counting = Vec::new();
    for _ in 0..4 {
        let client = world.client().await;
        counting.push(tokio::spawn(async move {
            let statement = "INSERT INTO t VALUES ($1, 1) ON CONFLICT (k) DO UPDATE \
                             SET n = t.n + EXCLUDED.n + $2 RETURNING n * 1000";
            let statement = client.prepare(statement).await.unwrap();
            for round in 0..100i32 {
                client.query_one(&statement, &[&(round % 2), &0i64]).await.unwrap();
            }
        }));
    }
    for counted in counting {
        counted.await.unwrap();
    }
    assert_eq!(query(&reader, "SELECT n FROM t").await, ["200", "200"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_snapshot_is_too_old_is_told_and_others_go_on() {
    let options = Options { old_versions_bytes: 64 << 10, ..Options::small() };
    let world = World::on_disk(Arc::new(MemoryDisk::new()), options);
    let (old, other) = (world.client().await, world.client().await);
    query(&other, "CREATE TABLE t (id int PRIMARY KEY, n int)").await;
    query(&other, "INSERT INTO t VALUES (1, 0), (2, 0)").await;
    query(&old, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    assert_eq!(query(&old, "SELECT n FROM t WHERE id = 1").await, ["0"]);
    for _ in 0..1000 {
        query(&other, "UPDATE t SET n = n + 1 WHERE id = 1").await;
    }
    let error = old.simple_query("SELECT sum(n) FROM t").await.unwrap_err();
    assert_eq!(code(&error), "72000");
    let message = error.as_db_error().unwrap().message().to_owned();
    assert!(message.contains("old_versions_bytes"), "{message}");
    query(&old, "ROLLBACK").await;
    assert_eq!(query(&old, "SELECT sum(n) FROM t").await, ["1000"]);
}
