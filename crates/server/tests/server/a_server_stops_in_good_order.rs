//! Where a server listens, and what is left when it stops.

use std::os::unix::fs::PermissionsExt;

use crate::common::{World, code, query};
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
    assert!(query(&client, "SELECT version()").await[0].starts_with("PostgreSQL 15"));
    assert_eq!(query(&client, "SHOW client_encoding").await, ["UTF8"]);
    query(&client, "SET extra_float_digits = 3").await;
    assert_eq!(query(&client, "SHOW extra_float_digits").await, ["3"]);
}

/// What a statement answers on a client of its own, or the SQLSTATE that it fails with.
fn ask(server: &Server, text: &str) -> Vec<String> {
    let port = server.address().unwrap().port();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let settings = format!("host=127.0.0.1 port={port} user=test");
        let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
        tokio::spawn(connection);
        match client.simple_query(text).await {
            Ok(_) => query(&client, text).await,
            Err(error) => vec![code(&error)],
        }
    })
}

#[test]
fn what_the_database_says_of_settings_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let start = |database| {
        let listen = Some("127.0.0.1:0".parse().unwrap());
        Server::start(database, ServerOptions { listen, ..ServerOptions::default() }).unwrap()
    };
    let server = start(Database::create(&path, Options::small()).unwrap());
    let show = "SHOW synchronous_commit";
    assert_eq!(ask(&server, show), ["on"]);
    ask(&server, "ALTER DATABASE onrush SET synchronous_commit = off");
    ask(&server, "ALTER DATABASE onrush SET search_path TO a, public");
    // In a session it is what it goes back to.
    assert_eq!(ask(&server, show), ["off"]);
    let back = "SET synchronous_commit = on; RESET synchronous_commit; SHOW synchronous_commit";
    assert_eq!(ask(&server, back), ["off"]);
    for (text, state) in [
        ("ALTER DATABASE onrush SET synchronous_commit = maybe", "22023"),
        ("ALTER DATABASE onrush SET nosuch = 1", "42704"),
        ("ALTER DATABASE onrush SET max_connections = 1", "55P02"),
        ("ALTER DATABASE onrush SET transaction_read_only = on", "55P02"),
        ("ALTER DATABASE other SET synchronous_commit = off", "3D000"),
        ("ALTER DATABASE onrush SET TRANSACTION READ ONLY", "42601"),
        ("ALTER DATABASE onrush RENAME TO other", "0A000"),
        ("ALTER ROLE test SET synchronous_commit = off", "0A000"),
        ("BEGIN; ALTER DATABASE onrush RESET ALL", "25001"),
    ] {
        assert_eq!(ask(&server, text), [state], "{text}");
    }
    server.stop().unwrap();
    let server = start(Database::open(&path, Options::small()).unwrap());
    assert_eq!(ask(&server, show), ["off"]);
    assert_eq!(ask(&server, "SHOW search_path"), ["a, public"]);
    ask(&server, "ALTER DATABASE onrush RESET synchronous_commit");
    assert_eq!(ask(&server, show), ["on"]);
    ask(&server, "ALTER DATABASE onrush RESET ALL");
    server.stop().unwrap();
    let server = start(Database::open(&path, Options::small()).unwrap());
    assert_eq!(ask(&server, show), ["on"]);
    assert_eq!(ask(&server, "SHOW search_path"), ["\"$user\", public"]);
}
