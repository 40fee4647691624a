//! Whichever way a client commits, the database counts what the client counts, each commit once and under how
//! it was acknowledged.

use bytes::Bytes;
use futures_util::{SinkExt, pin_mut};
use onrush_waits::Counter;
use tokio_postgres::Client;

use crate::common::{World, failure, query};

/// Commits by kind (durable, delayed, token, unlogged), and rollbacks.
type Counts = [u64; 5];

fn counts(world: &World) -> Counts {
    let totals = world.database.statistics().totals;
    let kinds = Counter::COMMIT_KINDS.iter().map(|kind| totals.counter(*kind)).collect::<Vec<_>>();
    assert_eq!(totals.counter(Counter::Commits), kinds.iter().sum::<u64>());
    [kinds[0], kinds[1], kinds[2], kinds[3], totals.counter(Counter::Rollbacks)]
}

struct Stage {
    world: World,
    client: Client,
    before: Counts,
}

impl Stage {
    async fn new() -> Stage {
        let world = World::new();
        let client = world.client().await;
        query(&client, "CREATE TABLE t (id bigint PRIMARY KEY, a int DEFAULT 1)").await;
        query(&client, "CREATE TABLE made (id bigserial PRIMARY KEY, a int DEFAULT 1)").await;
        query(&client, "CREATE UNLOGGED TABLE front (id bigint PRIMARY KEY)").await;
        let before = counts(&world);
        Stage { world, client, before }
    }

    /// What was counted since the last time.
    #[track_caller]
    fn counts(&mut self, what: &str, expected: Counts) {
        let now = counts(&self.world);
        let since: Vec<u64> =
            now.iter().zip(self.before).map(|(now, before)| now - before).collect();
        assert_eq!(since, expected, "{what}");
        self.before = now;
    }

    async fn say(&mut self, text: &str, expected: Counts) {
        query(&self.client, text).await;
        self.counts(text, expected);
    }

    async fn copy(&self, rows: std::ops::Range<u64>) {
        let sink = self.client.copy_in::<_, Bytes>("COPY t (id) FROM STDIN").await.unwrap();
        pin_mut!(sink);
        let lines: String = rows.clone().map(|id| format!("{id}\n")).collect();
        sink.send(Bytes::from(lines)).await.unwrap();
        assert_eq!(sink.finish().await.unwrap(), rows.end - rows.start);
    }
}

fn durable(count: u64) -> Counts {
    [count, 0, 0, 0, 0]
}

const NOTHING: Counts = [0; 5];
const ROLLED_BACK: Counts = [0, 0, 0, 0, 1];

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_commit_by_themselves() {
    let mut stage = Stage::new().await;
    for text in [
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (2), (3), (4)",
        "INSERT INTO t VALUES (5) ON CONFLICT DO NOTHING RETURNING a",
        "INSERT INTO t SELECT id + 10, a FROM t",
        "UPDATE t SET a = 2 WHERE id = 1",
        "UPDATE t SET a = a + 1 WHERE id = 1",
        "UPDATE t SET a = 7 WHERE a = 1",
        "DELETE FROM t WHERE id = 1",
        "DELETE FROM t WHERE a = 7 RETURNING id",
        // Several statements of rows are one transaction.
        "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); UPDATE t SET a = 3",
    ] {
        stage.say(text, durable(1)).await;
    }
    for text in [
        "SELECT * FROM t",
        "SELECT a FROM t WHERE id = 1",
        "UPDATE t SET a = 1 WHERE id = 99",
        "DELETE FROM t WHERE a = 99",
        "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
    ] {
        stage.say(text, NOTHING).await;
    }
    assert_eq!(failure(&stage.client, "INSERT INTO t VALUES (1)").await, "23505");
    stage.counts("a taken key", NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_statements_alone_and_many_at_once() {
    const ROWS: u64 = 200;
    let mut stage = Stage::new().await;
    let insert = stage.client.prepare("INSERT INTO t (id) VALUES ($1)").await.unwrap();
    for id in 0..ROWS as i64 {
        assert_eq!(stage.client.execute(&insert, &[&id]).await.unwrap(), 1);
    }
    stage.counts("one after the other", durable(ROWS));
    let ids: Vec<i64> = (1000..1000 + ROWS as i64).collect();
    let all = ids.iter().map(|id| {
        let (client, insert) = (&stage.client, &insert);
        async move { client.execute(insert, &[id]).await.unwrap() }
    });
    assert_eq!(futures_util::future::join_all(all).await.len() as u64, ROWS);
    stage.counts("many at once", durable(ROWS));
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_that_are_committed_and_rolled_back() {
    let mut stage = Stage::new().await;
    stage.say("BEGIN; INSERT INTO t VALUES (1)", NOTHING).await;
    stage.say("UPDATE t SET a = 2 WHERE id = 1", NOTHING).await;
    stage.say("COMMIT", durable(1)).await;
    stage.say("BEGIN; SELECT * FROM t; COMMIT", NOTHING).await;
    stage.say("BEGIN; INSERT INTO t VALUES (2)", NOTHING).await;
    stage.say("ROLLBACK", ROLLED_BACK).await;
    stage.say("BEGIN; INSERT INTO t VALUES (2); SAVEPOINT s", NOTHING).await;
    assert_eq!(failure(&stage.client, "INSERT INTO t VALUES (2)").await, "23505");
    stage.say("ROLLBACK TO s; INSERT INTO t VALUES (3)", NOTHING).await;
    stage.say("COMMIT", durable(1)).await;
    query(&stage.client, "BEGIN").await;
    assert_eq!(failure(&stage.client, "INSERT INTO t VALUES (2)").await, "23505");
    query(&stage.client, "COMMIT").await;
    stage.counts("a COMMIT of a transaction that has failed", ROLLED_BACK);
    let gone = stage.world.client().await;
    query(&gone, "BEGIN; INSERT INTO t VALUES (9)").await;
    drop(gone);
    while counts(&stage.world) == stage.before {
        tokio::task::yield_now().await;
    }
    stage.counts("a client that went away", ROLLED_BACK);
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_commit_by_pieces_and_inside_a_transaction_with_it() {
    let mut stage = Stage::new().await;
    stage.copy(0..2500).await;
    stage.counts("pieces of 1000 rows", durable(3));
    query(&stage.client, "BEGIN").await;
    stage.copy(5000..5100).await;
    stage.counts("inside", NOTHING);
    stage.say("COMMIT", durable(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_loop_in_the_server() {
    let mut stage = Stage::new().await;
    stage.say("CALL onrush.insert_loop('made', 300, 1)", durable(300)).await;
    stage.say("CALL onrush.insert_loop('made', 300, 50)", durable(6)).await;
    query(&stage.client, "SET synchronous_commit = off").await;
    stage.say("CALL onrush.insert_loop('made', 300, 1)", [0, 300, 0, 0, 0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_that_do_not_wait() {
    let mut stage = Stage::new().await;
    query(&stage.client, "SET synchronous_commit = off").await;
    let delayed = [0, 1, 0, 0, 0];
    stage.say("INSERT INTO t VALUES (1)", delayed).await;
    stage.say("UPDATE t SET a = 5 WHERE a = 1", delayed).await;
    stage.say("BEGIN; INSERT INTO t VALUES (2); COMMIT", delayed).await;
    stage.copy(10..20).await;
    stage.counts("a copy", delayed);
    query(&stage.client, "SET synchronous_commit = on").await;
    let local = "BEGIN; SET LOCAL synchronous_commit = off; INSERT INTO t VALUES (3); COMMIT";
    stage.say(local, delayed).await;
    stage.say("INSERT INTO t VALUES (4)", durable(1)).await;
    let unlogged = [0, 0, 0, 1, 0];
    stage.say("INSERT INTO front VALUES (1)", unlogged).await;
    stage.say("DELETE FROM front", unlogged).await;
}
