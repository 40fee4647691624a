//! CREATE TABLE, INSERT, SELECT, UPDATE, DELETE, TRUNCATE and DROP in the simple protocol.

use crate::common::{World, failure, message, query, read_message};
use tokio::io::AsyncWriteExt;

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_inserted_read_changed_and_removed() {
    let world = World::new();
    let client = world.client().await;
    query(
        &client,
        "CREATE TABLE orders (id bigint PRIMARY KEY, note varchar(40) DEFAULT 'none', \
         amount numeric(10,2), is_paid boolean NOT NULL DEFAULT false)",
    )
    .await;
    query(&client, "INSERT INTO orders VALUES (1, 'one', 1.50, true), (2, DEFAULT, NULL, false)")
        .await;
    query(&client, "INSERT INTO orders (amount, id) VALUES (-7, 3)").await;
    let all = ["1|one|1.50|t", "2|none|∅|f", "3|none|-7.00|f"];
    assert_eq!(query(&client, "SELECT * FROM orders").await, all);
    assert_eq!(query(&client, "SELECT note, id FROM orders WHERE id = 2").await, ["none|2"]);
    assert_eq!(query(&client, "SELECT id FROM orders WHERE id > 1 AND id <= 3").await, ["2", "3"]);
    assert_eq!(query(&client, "SELECT id FROM orders WHERE is_paid = true").await, ["1"]);
    assert_eq!(query(&client, "SELECT id FROM orders WHERE amount IS NULL").await, ["2"]);
    let newest = "SELECT id FROM orders ORDER BY id DESC LIMIT 1 OFFSET 1";
    assert_eq!(query(&client, newest).await, ["2"]);
    assert_eq!(query(&client, "SELECT count(*) FROM orders WHERE id < 3").await, ["2"]);
    assert_eq!(query(&client, "SELECT count(*) FROM orders WHERE note = 'none'").await, ["2"]);
    query(&client, "UPDATE orders SET note = 'two', amount = 2 WHERE id = 2").await;
    query(&client, "DELETE FROM orders WHERE id = 1").await;
    assert_eq!(
        query(&client, "SELECT id, note, amount FROM orders").await,
        ["2|two|2.00", "3|none|-7.00"]
    );
    query(&client, "TRUNCATE orders").await;
    assert_eq!(query(&client, "SELECT count(*) FROM orders").await, ["0"]);
    query(&client, "DROP TABLE orders").await;
    assert_eq!(failure(&client, "SELECT * FROM orders").await, "42P01");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_generated_and_returned() {
    let world = World::new();
    let client = world.client().await;
    let tables = [
        ("serial", "id bigserial PRIMARY KEY"),
        ("identity", "id int GENERATED ALWAYS AS IDENTITY (START WITH 100) PRIMARY KEY"),
        ("random", "id uuid PRIMARY KEY DEFAULT gen_random_uuid()"),
        ("clock", "id uuid PRIMARY KEY DEFAULT uuidv7()"),
        ("sessions", "id bigint PRIMARY KEY DEFAULT onrush.session_offset()"),
        ("nodes", "id bigint PRIMARY KEY DEFAULT node_offset(7)"),
        ("reversed", "id bigint PRIMARY KEY DEFAULT bit_reversed()"),
    ];
    for (name, key) in tables {
        query(
            &client,
            &format!("CREATE TABLE {name} ({key}, at timestamptz DEFAULT now(), n int)"),
        )
        .await;
        let insert = format!("INSERT INTO {name} (n) VALUES (1), (2) RETURNING n, id");
        let returned = query(&client, &insert).await;
        assert_eq!(returned.len(), 2, "{name}");
        let (_, id) = returned[1].split_once('|').unwrap();
        let found = query(&client, &format!("SELECT n FROM {name} WHERE id = '{id}'")).await;
        assert_eq!(found, ["2"], "{name}");
    }
    assert_eq!(query(&client, "INSERT INTO identity (n) VALUES (3) RETURNING n").await, ["3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taken_key_fails_or_is_left_out_or_is_changed() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (a int, b text, c int DEFAULT 5, PRIMARY KEY (a, b))").await;
    query(&client, "INSERT INTO t VALUES (1, 'x', 1)").await;
    assert_eq!(failure(&client, "INSERT INTO t VALUES (1, 'x', 2)").await, "23505");
    query(&client, "INSERT INTO t VALUES (1, 'x', 2), (1, 'y', 2) ON CONFLICT DO NOTHING").await;
    assert_eq!(query(&client, "SELECT c FROM t").await, ["1", "2"]);
    let upsert = "INSERT INTO t VALUES (1, 'x', 3), (2, 'z', 3) \
         ON CONFLICT (a, b) DO UPDATE SET c = EXCLUDED.c RETURNING a, c";
    assert_eq!(query(&client, upsert).await, ["1|3", "2|3"]);
    assert_eq!(query(&client, "SELECT b, c FROM t WHERE a = 1").await, ["x|3", "y|2"]);
    assert_eq!(
        query(&client, "UPDATE t SET c = 9 WHERE a = 2 AND b = 'z' RETURNING *").await,
        ["2|z|9"]
    );
    assert_eq!(query(&client, "DELETE FROM t WHERE a = 2 AND b = 'z' RETURNING c").await, ["9"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn if_exists_and_if_not_exists_are_no_errors() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "DROP TABLE IF EXISTS t").await;
    query(&client, "CREATE TABLE IF NOT EXISTS t (id int PRIMARY KEY)").await;
    query(&client, "CREATE TABLE IF NOT EXISTS t (id int PRIMARY KEY)").await;
    assert_eq!(failure(&client, "CREATE TABLE t (id int PRIMARY KEY)").await, "42P07");
    query(&client, "CREATE UNLOGGED TABLE u (id int PRIMARY KEY) WITH (strict_identity = on)")
        .await;
    assert!(!world.database.table("u").unwrap().definition().is_logged());
}

/// Some loops have a thread of their own and the others share few.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_loops_that_run_at_once_each_inserts_its_rows() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id bigserial PRIMARY KEY)").await;
    let mut loops = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let client = world.client().await;
        loops.spawn(async move { query(&client, "CALL onrush.insert_loop('t', 50, 3)").await });
    }
    loops.join_all().await;
    assert_eq!(query(&client, "SELECT count(*) FROM t").await, ["2000"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_can_be_looked_into() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id bigserial PRIMARY KEY, n int)").await;
    query(&client, "CALL onrush.insert_loop('t', 100, 10)").await;
    query(&client, "SET synchronous_commit = off").await;
    query(&client, "CALL onrush.insert_loop('t', 50, 1)").await;
    query(&client, "SELECT onrush.wait_durable()").await;
    assert_eq!(query(&client, "SELECT count(*) FROM t").await, ["150"]);
    for view in [
        "wait_stats",
        "latch_stats",
        "spin_stats",
        "phase_stats",
        "counters",
        "sessions",
        "settings",
    ] {
        assert!(
            !query(&client, &format!("SELECT * FROM onrush.{view}")).await.is_empty(),
            "{view}"
        );
    }
    let inserted = "SELECT value FROM onrush.counters WHERE counter = 'ROWS_INSERTED'";
    assert_eq!(query(&client, inserted).await, ["150"]);
    let longest = "SELECT name, value FROM onrush.settings ORDER BY name DESC LIMIT 2";
    assert_eq!(query(&client, longest).await.len(), 2);
    query(&client, "CHECKPOINT").await;
    let report = query(&client, "CALL onrush.check(dop => 2)").await;
    assert!(!report.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_tell_when_they_were_and_what_they_did() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id bigserial PRIMARY KEY, n int)").await;
    query(&client, "CALL onrush.insert_loop('t', 1000, 100)").await;
    query(&client, "CHECKPOINT").await;
    query(&client, "CHECKPOINT").await;
    let first = "SELECT stage, images > 0, bytes = 16384 * images, segments > 0, duration_us > 0, \
        ended >= began, began > now() - interval '1 hour', redo_from_lsn > 0 \
        FROM onrush.checkpoints ORDER BY number LIMIT 1";
    assert_eq!(query(&client, first).await, ["done|t|t|t|t|t|t|t"]);
    let apart = "SELECT max(number) - min(number), count(*) FROM onrush.checkpoints";
    assert_eq!(query(&client, apart).await, ["1|2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_are_those_of_postgresql() {
    let world = World::new();
    let mut socket = world.raw_client().await;
    for (text, expected) in [
        ("SET statement_timeout = 0", "SET"),
        ("RESET statement_timeout", "RESET"),
        ("RESET ALL", "RESET"),
        ("BEGIN READ ONLY", "BEGIN"),
        ("ABORT", "ROLLBACK"),
        ("SHOW ALL", "SHOW"),
        ("DROP INDEX IF EXISTS i", "DROP INDEX"),
        ("ALTER DATABASE onrush RESET ALL", "ALTER DATABASE"),
    ] {
        socket.write_all(&message(b'Q', format!("{text}\0").as_bytes())).await.unwrap();
        let mut tag = Vec::new();
        loop {
            match read_message(&mut socket).await.unwrap() {
                (b'C', body) => tag = body,
                (b'Z', _) => break,
                _ => {}
            }
        }
        assert_eq!(String::from_utf8_lossy(&tag), format!("{expected}\0"), "{text}");
    }
}
