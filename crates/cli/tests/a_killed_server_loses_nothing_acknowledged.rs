//! `onrush serve` is killed in the middle of inserts, again and again on the same database: each commit
//! that a client was told of is there when it is started next.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::World;
use tokio_postgres::{Client, NoTls};

const ROUNDS: u64 = 50;
const CLIENTS: usize = 8;

async fn connect(address: &str) -> Client {
    let (host, port) = address.rsplit_once(':').unwrap();
    let settings = format!("host={host} port={port} user=test");
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Inserts numbers from `next` on, each its own commit, until the server is gone. Returns the first that
/// was not acknowledged.
async fn insert(client: Client, name: i64, mut next: i64, acknowledged: Arc<AtomicU64>) -> i64 {
    let insert = "INSERT INTO t VALUES ($1, $2)";
    let Ok(insert) = client.prepare(insert).await else { return next };
    while client.execute(&insert, &[&name, &next]).await.is_ok() {
        acknowledged.fetch_add(1, Ordering::Relaxed);
        next += 1;
    }
    next
}

/// How many rows each client has: they are all numbers from 0 on.
async fn rows_of_clients(client: &Client) -> Vec<i64> {
    let query = "SELECT client, count(*), max(number) FROM t GROUP BY client ORDER BY client";
    let rows = client.query(query, &[]).await.unwrap();
    let mut counts = vec![0; CLIENTS];
    for row in rows {
        let (name, count, last): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(count, last + 1, "client {name}: a row in the middle is missing");
        counts[usize::try_from(name).unwrap()] = count;
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn every_commit_that_a_client_was_told_of_is_there_after_each_kill() {
    let world = World::new();
    let (mut child, address) = world.serve(&["--leaf-memory", "64MiB"]);
    let create = "CREATE TABLE t (client bigint, number bigint, PRIMARY KEY (client, number))";
    connect(&address).await.batch_execute(create).await.unwrap();
    let mut acknowledged_in_all = 0;
    let mut told = vec![0; CLIENTS];
    let mut address = address;
    for round in 0..ROUNDS {
        let checker = connect(&address).await;
        let mut next = rows_of_clients(&checker).await;
        for (name, (next, told)) in next.iter_mut().zip(&told).enumerate() {
            // The last insert before the kill may be there though nobody was told.
            assert!(
                *next == *told || *next == *told + 1,
                "round {round}, client {name}: {next}, told {told}"
            );
        }
        let acknowledged = Arc::new(AtomicU64::new(0));
        let mut clients = Vec::new();
        for (name, next) in (0i64..).zip(next) {
            let client = connect(&address).await;
            clients.push(tokio::spawn(insert(client, name, next, Arc::clone(&acknowledged))));
        }
        let enough = 1 + round * 17 % 300;
        while acknowledged.load(Ordering::Relaxed) < enough {
            tokio::task::yield_now().await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        told.clear();
        for client in clients {
            told.push(client.await.unwrap());
        }
        acknowledged_in_all += acknowledged.load(Ordering::Relaxed);
        (child, address) = world.serve(&["--leaf-memory", "64MiB"]);
    }
    let found = rows_of_clients(&connect(&address).await).await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(found.iter().zip(&told).all(|(found, told)| found >= told), "{found:?}, told {told:?}");
    assert!(acknowledged_in_all >= ROUNDS);
    world.ok(&["check", "shop"]);
}
