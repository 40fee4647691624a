//! CREATE INDEX and REINDEX go on beside clients that write to the table, tell how far they are, and leave a whole
//! index or none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{World, failure, query};
use onrush::OnlineOptions;
use onrush_check::Progress;
use tokio_postgres::Client;

/// So many that there is time to do something while they are read.
const ROWS: i64 = 100_000;
const LOOK: &str = "SELECT pid, relid, tuples_done FROM pg_stat_progress_create_index \
                    WHERE phase = 'building index: scanning table' AND blocks_total > 0";

async fn filled(world: &World) -> Client {
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, note text)").await;
    let fill = format!(
        "INSERT INTO t SELECT n, 'note ' || n % 977 FROM generate_series(0, {}) AS g(n)",
        ROWS - 1
    );
    query(&client, &fill).await;
    client
}

fn check(world: &World) {
    let options = OnlineOptions { busy_percent: 100, ..OnlineOptions::default() };
    let report = world.database.check(&options, &Progress::default()).unwrap();
    assert_eq!(report.findings, []);
}

/// Inserts, changes and deletes rows until it is told to end. How often a change was acknowledged between two looks at
/// a build under way.
async fn write(client: Client, is_over: Arc<AtomicBool>) -> usize {
    let mut between = 0;
    for at in ROWS.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let is_building = !query(&client, LOOK).await.is_empty();
        query(&client, &format!("INSERT INTO t VALUES ({at}, 'note {}')", at % 977)).await;
        between += usize::from(is_building && !query(&client, LOOK).await.is_empty());
        query(&client, &format!("UPDATE t SET note = 'other' WHERE id = {}", at * 7 % ROWS)).await;
        query(&client, &format!("DELETE FROM t WHERE id = {}", at * 31 % ROWS)).await;
    }
    between
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_write_while_indexes_are_built() {
    let world = World::with_space();
    let client = filled(&world).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn(write(world.client().await, Arc::clone(&is_over)));
    query(&client, "CREATE INDEX by_note ON t (note)").await;
    for _ in 0..20 {
        query(&client, "REINDEX INDEX by_note").await;
    }
    is_over.store(true, Ordering::Relaxed);
    assert!(writer.await.unwrap() > 0, "nobody wrote while an index was built");
    check(&world);
    let by_index = query(&client, "SELECT count(*) FROM t WHERE note = 'other'").await;
    let by_rows = query(&client, "SELECT count(*) FROM t WHERE note || '' = 'other'").await;
    assert_eq!(by_index, by_rows);
    let plan = query(&client, "EXPLAIN SELECT count(*) FROM t WHERE note = 'other'").await;
    assert!(plan.join("\n").contains("by_note"), "{plan:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_that_takes_too_long_leaves_no_index() {
    let world = World::with_space();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, note text)").await;
    // Of so many leaves that the time is looked at again while they are read.
    let wide =
        "INSERT INTO t SELECT n, n || repeat('x', 1000) FROM generate_series(1, 40000) AS g(n)";
    query(&client, wide).await;
    // A client of its own: whatever else it says may take too long, too.
    let hurried = world.client().await;
    query(&hurried, "SET statement_timeout = 1").await;
    let failed = failure(&hurried, "CREATE INDEX by_note ON t (note)").await;
    assert_eq!(failed, "57014");
    let indexes = query(&client, "SELECT indexname FROM pg_indexes WHERE tablename = 't'").await;
    assert_eq!(indexes, ["t_pkey"]);
    assert!(query(&client, LOOK).await.is_empty());
    query(&client, "CREATE INDEX by_note ON t (note)").await;
    check(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_unique_leaves_no_index() {
    let world = World::with_space();
    let client = filled(&world).await;
    let failed = failure(&client, "CREATE UNIQUE INDEX CONCURRENTLY once ON t (note)").await;
    assert_eq!(failed, "23505");
    let indexes = query(&client, "SELECT indexname FROM pg_indexes WHERE tablename = 't'").await;
    assert_eq!(indexes, ["t_pkey"]);
    query(&client, "INSERT INTO t VALUES (-1, 'note 1')").await;
    check(&world);
}
