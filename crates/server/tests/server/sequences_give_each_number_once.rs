//! What a sequence gives comes once: to many clients at a time, over a crash, and while somebody alters it.

use std::collections::HashSet;

use onrush_files::MemoryDisk;
use tokio_postgres::{Client, NoTls};

use crate::common::{World, failure, query};

async fn next(client: &Client, sequence: &str) -> i64 {
    let row = client.query_one("SELECT nextval($1::text)", &[&sequence]).await.unwrap();
    row.get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_are_given_different_numbers() {
    const CLIENTS: usize = 24;
    const EACH: usize = 300;
    let world = World::new();
    let first = world.client().await;
    query(&first, "CREATE SEQUENCE s").await;
    query(&first, "CREATE SEQUENCE ids CACHE 7").await;
    query(&first, "CREATE TABLE t (id bigint PRIMARY KEY DEFAULT nextval('ids'), n int)").await;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let client = world.client().await;
        clients.push(tokio::spawn(async move {
            let mut given = Vec::new();
            for at in 0..EACH {
                match (number + at) % 3 {
                    // By its own way, as part of a query, and as a default.
                    0 => given.push(next(&client, "s").await),
                    1 => {
                        let row = client.query_one("SELECT nextval('s') + 0", &[]).await.unwrap();
                        given.push(row.get(0));
                    }
                    _ => drop(query(&client, "INSERT INTO t (n) VALUES (1)").await),
                }
            }
            given
        }));
    }
    let mut all = Vec::new();
    for client in clients {
        let given = client.await.unwrap();
        assert!(given.is_sorted(), "a client's numbers ascend");
        all.extend(given);
    }
    let different: HashSet<i64> = all.iter().copied().collect();
    assert_eq!(different.len(), all.len());
    let largest = i64::try_from(all.len()).unwrap();
    assert_eq!(different.into_iter().max(), Some(largest), "none is left out");
    let rows: i64 = first.query_one("SELECT count(*) FROM t", &[]).await.unwrap().get(0);
    assert_eq!(rows, i64::try_from(CLIENTS * EACH).unwrap() - largest);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_no_number_comes_again() {
    let disk = MemoryDisk::default();
    let world = World::on(disk.clone());
    let client = world.client().await;
    query(&client, "CREATE SEQUENCE s").await;
    query(&client, "CREATE SEQUENCE down INCREMENT -3").await;
    // Whatever the commits of the client are: numbers are below a mark that is durable.
    query(&client, "SET synchronous_commit = off").await;
    for count in [1, 5, 40, 700, 4000] {
        for _ in 0..count {
            next(&client, "s").await;
        }
        let (last, lowest) = (next(&client, "s").await, next(&client, "down").await);
        let (server, _) = world.after_a_crash(&disk);
        let port = server.address().unwrap().port();
        let settings = format!("host=127.0.0.1 port={port} user=test");
        let (other, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
        tokio::spawn(connection);
        assert!(next(&other, "s").await > last, "after {last}");
        assert!(next(&other, "down").await < lowest, "after {lowest}");
        drop(other);
        server.stop().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_while_a_sequence_is_altered_waits_and_is_given_what_comes_then() {
    let world = World::new();
    let (one, other, third) = (world.client().await, world.client().await, world.client().await);
    query(&one, "CREATE SEQUENCE s").await;
    assert_eq!((next(&one, "s").await, next(&other, "s").await), (1, 2));
    for (end, expected) in [("ROLLBACK", 3), ("COMMIT", 1002)] {
        query(&one, "BEGIN").await;
        query(&one, "ALTER SEQUENCE s RESTART WITH 1000").await;
        assert_eq!(next(&one, "s").await, 1000);
        let wait = async {
            let (first, second) = tokio::join!(next(&other, "s"), next(&third, "s"));
            let mut given = [first, second];
            given.sort_unstable();
            given
        };
        let alter = async {
            // Queries of others go on, those of the engine's threads too.
            let row = one.query_one("SELECT count(*) FROM pg_class", &[]).await.unwrap();
            assert!(row.get::<_, i64>(0) > 0);
            assert_eq!(next(&one, "s").await, 1001);
            query(&one, end).await;
        };
        let (given, ()) = tokio::join!(wait, alter);
        assert_eq!(given, [expected, expected + 1], "{end}");
    }
    query(&one, "BEGIN").await;
    query(&one, "ALTER SEQUENCE s CYCLE").await;
    query(&other, "SET lock_timeout = '50ms'").await;
    let refused = failure(&other, "SELECT nextval('s')").await;
    assert_eq!(refused, "55P03");
    query(&one, "ROLLBACK").await;
    assert_eq!(next(&other, "s").await, 1004);
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_on_sequences_are_granted() {
    let world = World::new();
    let client = world.client().await;
    for statement in [
        "CREATE ROLE admin SUPERUSER LOGIN PASSWORD 'y'",
        "CREATE ROLE ann LOGIN PASSWORD 'x'",
        "CREATE SEQUENCE s",
        "GRANT USAGE, SELECT ON SEQUENCE s TO ann",
    ] {
        query(&client, statement).await;
    }
    let acl = client.query_one("SELECT relacl::text FROM pg_class WHERE relname = 's'", &[]).await;
    assert_eq!(acl.unwrap().get::<_, &str>(0), "{onrush=rwU/onrush,ann=rU/onrush}");
    let settings = format!("host=127.0.0.1 port={} user=ann password=x", world.address.port());
    let (ann, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(next(&ann, "s").await, 1);
    let row = ann.query_one("SELECT last_value FROM s", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
    for refused in ["SELECT setval('s', 7)", "DROP SEQUENCE s", "ALTER SEQUENCE s CYCLE"] {
        assert_eq!(failure(&ann, refused).await, "42501", "{refused}");
    }
}
