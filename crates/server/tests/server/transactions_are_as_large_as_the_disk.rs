//! COPY, INSERT ... SELECT, UPDATE and DELETE of much more than a record of the log takes.

use crate::common::{World, failure, query};
use futures_util::{SinkExt, pin_mut};
use onrush_files::MemoryDisk;
use tokio_postgres::Client;

/// Rows of some 200 bytes each: a hundred times the largest record of the tests' small log.
const ROWS: usize = 16_000;

async fn copy_in(client: &Client, table: &str) -> u64 {
    let sink = client.copy_in(&format!("COPY {table} FROM STDIN")).await.unwrap();
    pin_mut!(sink);
    for first in (0..ROWS).step_by(100) {
        let line = |id: usize| format!("{id}\told\t{}\n", "x".repeat(200));
        let lines: String = (first..first + 100).map(line).collect();
        sink.send(bytes::Bytes::from(lines)).await.unwrap();
    }
    sink.finish().await.unwrap()
}

async fn kinds(client: &Client, table: &str) -> Vec<String> {
    query(client, &format!("SELECT kind, count(*) FROM {table} GROUP BY kind ORDER BY kind")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_many_rows_are_whole_and_go_back_to_savepoints() {
    let world = World::new();
    let (client, other) = (world.client().await, world.client().await);
    for table in ["source", "target"] {
        query(&client, &format!("CREATE TABLE {table} (id int PRIMARY KEY, kind text, note text)"))
            .await;
    }
    query(&client, "BEGIN").await;
    assert_eq!(copy_in(&client, "source").await, ROWS as u64);
    assert!(kinds(&other, "source").await.is_empty());
    // It has written rows of the table, which it can define no more: that is no internal error.
    query(&client, "SAVEPOINT before").await;
    assert_eq!(failure(&client, "ALTER TABLE source ADD COLUMN n int").await, "0A000");
    query(&client, "ROLLBACK TO before").await;
    query(&client, "COMMIT").await;
    let all_old = format!("old|{ROWS}");
    assert_eq!(kinds(&other, "source").await, [all_old.as_str()]);

    query(&client, "INSERT INTO target SELECT * FROM source").await;
    query(&client, "UPDATE target SET kind = 'new'").await;
    assert_eq!(kinds(&other, "target").await, [format!("new|{ROWS}")]);

    query(&client, "BEGIN").await;
    query(&client, "UPDATE source SET kind = 'first'").await;
    query(&client, "SAVEPOINT s").await;
    query(&client, "DELETE FROM source WHERE id % 2 = 0").await;
    assert_eq!(kinds(&client, "source").await, [format!("first|{}", ROWS / 2)]);
    assert_eq!(failure(&client, "INSERT INTO source VALUES (1)").await, "23505");
    query(&client, "ROLLBACK TO s").await;
    assert_eq!(kinds(&client, "source").await, [format!("first|{ROWS}")]);
    assert_eq!(kinds(&other, "source").await, [all_old.as_str()]);
    assert_eq!(failure(&other, "UPDATE source SET kind = 'other' WHERE id = 1").await, "40001");
    query(&client, "ROLLBACK").await;
    assert_eq!(kinds(&client, "source").await, [all_old.as_str()]);

    query(&client, "DELETE FROM source").await;
    assert!(kinds(&other, "source").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_fails_the_statement_alone() {
    let disk = MemoryDisk::new();
    let world = World::on(disk.clone());
    let (client, other) = (world.client().await, world.client().await);
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, note text)").await;
    query(&client, "INSERT INTO t SELECT n, 'before' FROM generate_series(1, 100) AS g(n)").await;
    disk.set_capacity(disk.used_bytes() + (4 << 20));
    let too_many =
        "INSERT INTO t SELECT n, repeat('x', 1000) FROM generate_series(1000, 100000) AS g(n)";
    for _ in 0..2 {
        assert_eq!(failure(&client, too_many).await, "53100");
        assert_eq!(query(&other, "SELECT count(*) FROM t").await, ["100"]);
        query(&client, "BEGIN").await;
        assert_eq!(failure(&client, too_many).await, "53100");
        assert_eq!(failure(&client, "SELECT 1").await, "25P02");
        query(&client, "ROLLBACK").await;
        // There is space for what is small.
        query(&other, "UPDATE t SET note = 'beside' WHERE id = 7").await;
    }
    disk.set_capacity(u64::MAX);
    query(&client, too_many).await;
    assert_eq!(query(&other, "SELECT count(*) FROM t").await, ["99101"]);
}
