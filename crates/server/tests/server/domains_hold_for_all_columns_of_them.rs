//! The conditions of a domain hold for every value in a column of it: whichever way the row comes, whatever others do
//! while the domain is altered, and after the database was opened again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::SinkExt;
use onrush::{Error, Value};
use onrush_files::MemoryDisk;
use tokio_postgres::Client;

use crate::common::{World, client_of, code, failure, query};

async fn all(client: &Client, statements: &[&str]) {
    for statement in statements {
        query(client, statement).await;
    }
}

const DOMAIN: &str = "CREATE DOMAIN positive AS int CHECK (VALUE > 0) DEFAULT 1";

async fn copied(client: &Client, rows: &'static str) -> Result<u64, tokio_postgres::Error> {
    let sink = client.copy_in("COPY t FROM STDIN").await?;
    let mut sink = Box::pin(sink);
    sink.send(Bytes::from_static(rows.as_bytes())).await?;
    sink.as_mut().finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_copied_in_are_looked_at() {
    let world = World::new();
    let client = world.client().await;
    all(&client, &[DOMAIN, "CREATE TABLE t (id int PRIMARY KEY, n positive)"]).await;
    assert_eq!(copied(&client, "1\t5\n2\t\\N\n").await.unwrap(), 2);
    assert_eq!(code(&copied(&client, "3\t7\n4\t0\n").await.unwrap_err()), "23514");
    assert_eq!(query(&client, "SELECT * FROM t WHERE n < 1").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_prepared_inserts_are_looked_at() {
    let world = World::new();
    let client = world.client().await;
    all(&client, &[DOMAIN, "CREATE TABLE t (id int PRIMARY KEY, n positive)"]).await;
    let insert = client.prepare("INSERT INTO t VALUES ($1, $2)").await.unwrap();
    client.execute(&insert, &[&1, &1]).await.unwrap();
    assert_eq!(code(&client.execute(&insert, &[&2, &-1]).await.unwrap_err()), "23514");
    query(&client, "ALTER DOMAIN positive ADD CHECK (VALUE < 10)").await;
    assert_eq!(code(&client.execute(&insert, &[&2, &10]).await.unwrap_err()), "23514");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_told_of_the_type_that_a_domain_is_over() {
    let world = World::new();
    let client = world.client().await;
    all(&client, &[DOMAIN, "CREATE TABLE t (n positive)"]).await;
    let select = client.prepare("SELECT n, n::positive AS cast FROM t").await.unwrap();
    let types: Vec<&str> = select.columns().iter().map(|column| column.type_().name()).collect();
    assert_eq!(types, ["int4", "int4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_names_the_domain_and_the_constraint() {
    let world = World::new();
    let client = world.client().await;
    all(&client, &[DOMAIN, "CREATE TABLE t (n positive)"]).await;
    let error = client.execute("INSERT INTO t VALUES (0)", &[]).await.unwrap_err();
    let told = error.as_db_error().unwrap();
    assert_eq!((told.schema(), told.table()), (Some("public"), None));
    assert_eq!((told.datatype(), told.constraint()), (Some("positive"), Some("positive_check")));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_programs_that_embed_the_engine_are_looked_at() {
    let world = World::new();
    all(&world.client().await, &[DOMAIN, "CREATE TABLE t (id int PRIMARY KEY, n positive)"]).await;
    let table = world.database.table("t").unwrap();
    let mut session = world.database.session().unwrap();
    session.insert(&table, &[1.into(), Value::Default]).unwrap();
    match session.insert(&table, &[2.into(), 0.into()]) {
        Err(Error::DomainViolated(violation)) => {
            assert_eq!(violation.domain, "positive");
            assert_eq!(violation.constraint.as_deref(), Some("positive_check"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_is_there_after_the_database_was_opened_again() {
    let disk = MemoryDisk::default();
    let world = World::on(disk.clone());
    let client = world.client().await;
    let not_valid = "ALTER DOMAIN small ADD CONSTRAINT even CHECK (VALUE % 2 = 0) NOT VALID";
    let over = "CREATE DOMAIN small AS positive CHECK (length(VALUE::text) < 3) CHECK (VALUE < 50)";
    all(&client, &[DOMAIN, over, "CREATE TABLE t (id int PRIMARY KEY, n small)"]).await;
    all(&client, &["INSERT INTO t VALUES (1, 3)", not_valid]).await;
    let (server, database) = world.after_a_crash(&disk);
    let client = client_of(&server).await;
    assert_eq!(query(&client, "SELECT * FROM t").await, ["1|3"]);
    for refused in ["0", "100", "50", "5"] {
        let insert = format!("INSERT INTO t VALUES (2, {refused})");
        assert_eq!(failure(&client, &insert).await, "23514", "{refused}");
    }
    assert_eq!(failure(&client, "ALTER DOMAIN small VALIDATE CONSTRAINT even").await, "23514");
    assert_eq!(failure(&client, "DROP DOMAIN positive").await, "2BP01");
    query(&client, "INSERT INTO t VALUES (3, 4)").await;
    drop(database);
    server.stop().unwrap();
}

/// ALTER DOMAIN gives each table that uses the domain another version, and takes the table for that: whoever has
/// written by the version before is refused when he commits.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_was_written_before_a_constraint_came_is_not_committed_after_it() {
    let world = World::new();
    let (one, other) = (world.client().await, world.client().await);
    let table = "CREATE TABLE t (id int PRIMARY KEY, n amount)";
    all(&one, &["CREATE DOMAIN amount AS int", table]).await;
    all(&one, &["BEGIN", "INSERT INTO t VALUES (1, -1)"]).await;
    query(&other, "ALTER DOMAIN amount ADD CHECK (VALUE > 0)").await;
    assert_eq!(failure(&one, "COMMIT").await, "40001");
    assert_eq!(query(&other, "SELECT * FROM t").await, [""; 0]);
    assert_eq!(failure(&one, "INSERT INTO t VALUES (1, -1)").await, "23514");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_insert_slips_past_a_constraint_that_is_added() {
    let world = World::new();
    let client = world.client().await;
    let table = "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n amount)";
    all(&client, &["CREATE DOMAIN amount AS int", table]).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for _ in 0..4 {
        let (client, is_over) = (world.client().await, Arc::clone(&is_over));
        writers.push(tokio::spawn(async move {
            let insert = client.prepare("INSERT INTO t (n) VALUES ($1)").await.unwrap();
            let mut written = 0_u32;
            while !is_over.load(Ordering::Relaxed) {
                written += u32::from(client.execute(&insert, &[&-1]).await.is_ok());
            }
            written
        }));
    }
    for round in 0..10 {
        while query(&client, "SELECT count(*) FROM t").await == ["0"] {}
        // Rows that are there are in the way, so they go in the same transaction.
        let add = format!("ALTER DOMAIN amount ADD CONSTRAINT c{round} CHECK (VALUE > 0)");
        all(&client, &["BEGIN", "LOCK TABLE t", "DELETE FROM t", &add, "COMMIT"]).await;
        assert_eq!(query(&client, "SELECT count(*) FROM t WHERE n <= 0").await, ["0"]);
        query(&client, &format!("ALTER DOMAIN amount DROP CONSTRAINT c{round}")).await;
    }
    is_over.store(true, Ordering::Relaxed);
    let mut written = 0;
    for writer in writers {
        written += writer.await.unwrap();
    }
    assert!(written > 0);
}
