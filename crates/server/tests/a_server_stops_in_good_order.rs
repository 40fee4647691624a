//! Where a server listens, and what is left when it stops.

#![allow(clippy::unwrap_used)]

mod common;

use std::os::unix::fs::PermissionsExt;

use common::{World, query};
use onrush::{Database, Options};
use onrush_server::{Server, ServerOptions};
use tokio_postgres::NoTls;

#[test]
fn clients_are_sent_away_and_everything_is_there_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let database = Database::create(&path, Options::small()).unwrap();
    let socket = folder.path().join(".s.PGSQL.5433");
    let options = ServerOptions {
        listen: None,
        unix_socket: Some(socket.clone()),
        ..ServerOptions::default()
    };
    let server = Server::start(database, options).unwrap();
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(async {
        let settings = format!("host={} port=5433 user=test", folder.path().display());
        let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
        tokio::spawn(connection);
        query(&client, "CREATE TABLE t (id int PRIMARY KEY)").await;
        query(&client, "SET synchronous_commit = off").await;
        query(&client, "INSERT INTO t VALUES (1)").await;
        query(&client, "BEGIN").await;
        query(&client, "INSERT INTO t VALUES (2)").await;
        client
    });
    server.stop().unwrap();
    assert!(!socket.exists());
    runtime.block_on(async {
        assert!(client.simple_query("SELECT 1").await.is_err());
    });
    let database = Database::open(&path, Options::small()).unwrap();
    assert_eq!(database.recovery().records, 0);
    let mut session = database.session().unwrap();
    let table = database.table("t").unwrap();
    assert!(session.get(&table, &[1i32.into()]).unwrap().is_some());
    assert!(session.get(&table, &[2i32.into()]).unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_told_where_they_are() {
    let world = World::new();
    let client = world.client().await;
    assert!(query(&client, "SELECT version()").await[0].starts_with("Onrush"));
    assert_eq!(query(&client, "SHOW client_encoding").await, ["UTF8"]);
    query(&client, "SET extra_float_digits = 3").await;
    assert_eq!(query(&client, "SHOW extra_float_digits").await, ["3"]);
}
