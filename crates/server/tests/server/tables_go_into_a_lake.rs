//! Tables are attached to a lake, their rows come into it, and stay what they are.

use std::collections::BTreeMap;
use std::path::Path;

use onrush_server::{CatalogueConfig, CatalogueKind, Server, ServerError, ServerOptions};
use tokio_postgres::Client;

use crate::common::{World, code};

/// A server with the catalogue of a lake, one that is node 7 of it, and where the files are.
fn lake() -> (World, World, tempfile::TempDir) {
    let (catalogue, files) = (World::new(), tempfile::tempdir().unwrap());
    let config = CatalogueConfig {
        kind: CatalogueKind::Sql,
        uri: Some(format!("postgres://test@127.0.0.1:{}/onrush", catalogue.address.port())),
        warehouse: Some(format!("file://{}", files.path().display())),
        token_variable: None,
        credential_variable: None,
        allow_plain_text: false,
        properties: BTreeMap::new(),
    };
    let catalogues = BTreeMap::from([("prod".to_owned(), config)]);
    let options = ServerOptions { node: Some(7), catalogues, ..ServerOptions::default() };
    (catalogue, World::with(options), files)
}

const EVENTS: &str =
    "CREATE TABLE events (id bigint PRIMARY KEY DEFAULT node_offset(), kind char(5),
    amount numeric(12,2), at timestamptz NOT NULL DEFAULT now(), note text, data jsonb)";

async fn rows_in_lake(catalogue: &World) -> u64 {
    let client = catalogue.client().await;
    let places = client.query("SELECT metadata_location FROM iceberg_tables", &[]).await.unwrap();
    let place: &str = places[0].get(0);
    let metadata = std::fs::read_to_string(place.trim_start_matches("file://")).unwrap();
    // Each snapshot tells how many there are, and none has fewer than the one before.
    let counts = metadata.split("\"total-records\":").skip(1);
    let counts = counts.map(|rest| rest.split('"').nth(1).unwrap().parse::<u64>().unwrap());
    counts.max().unwrap()
}

async fn refused(client: &Client, statement: &str) -> (String, String) {
    let error = client.batch_execute(statement).await.expect_err(statement);
    (code(&error), error.as_db_error().unwrap().message().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attached_table_comes_into_the_lake_and_stays_inserted_only() {
    let (catalogue, world, _files) = lake();
    let client = world.client().await;
    client.batch_execute(EVENTS).await.unwrap();
    let insert = "INSERT INTO events (kind, amount, note, data)
        SELECT 'a', n / 4.0, 'note ' || n, '{\"n\": 1}' FROM generate_series(1, 1000) AS n";
    client.batch_execute(insert).await.unwrap();
    client
        .batch_execute("CALL onrush.lake_attach('events', 'prod.shop.events', 3600)")
        .await
        .unwrap();
    client.batch_execute("CALL onrush.lake_flush('events')").await.unwrap();
    assert_eq!(rows_in_lake(&catalogue).await, 1000);

    client.batch_execute(insert).await.unwrap();
    client.batch_execute("CALL onrush.lake_flush(\"table\" => 'events')").await.unwrap();
    assert_eq!(rows_in_lake(&catalogue).await, 2000);
    let state = "SELECT table_name, lake_table, node, state, cause, rows, commits, \
                 mark_lsn <= durable_lsn FROM onrush.lake";
    let row = client.query_one(state, &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "public.events".trim_start_matches("public."));
    assert_eq!((row.get::<_, &str>(1), row.get::<_, i32>(2)), ("prod.shop.events", 7));
    assert_eq!((row.get::<_, &str>(3), row.get::<_, Option<&str>>(4)), ("running", None));
    assert_eq!((row.get::<_, i64>(5), row.get::<_, bool>(7)), (2000, true));
    assert!(row.get::<_, i64>(6) >= 2);

    for statement in [
        "UPDATE events SET note = 'x' WHERE id = 1 OR note = 'note 1'",
        "DELETE FROM events",
        "TRUNCATE events",
        "DROP TABLE events",
        "ALTER TABLE events ALTER COLUMN note TYPE varchar(50)",
        "INSERT INTO events (id) SELECT min(id) FROM events ON CONFLICT (id) DO UPDATE SET note = 'x'",
    ] {
        let (code, message) = refused(&client, statement).await;
        assert_eq!(code, "55000", "{statement}: {message}");
        assert!(message.contains("inserted only"), "{statement}: {message}");
    }
    client.batch_execute("CALL onrush.lake_detach('events')").await.unwrap();
    client.batch_execute("UPDATE events SET note = 'x'; DELETE FROM events").await.unwrap();
    assert!(client.query("SELECT * FROM onrush.lake", &[]).await.unwrap().is_empty());
    // What is in the lake stays there, and the table's rows do not come twice.
    assert_eq!(rows_in_lake(&catalogue).await, 2000);
    let again = "CALL onrush.lake_attach('events', 'prod.shop.events')";
    let (code, message) = refused(&client, again).await;
    assert_eq!(code, "55000", "{message}");
    assert!(message.contains("twice"), "{message}");
    client.batch_execute("DROP TABLE events").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_attached_is_told() {
    let (_catalogue, world, _files) = lake();
    let client = world.client().await;
    client
        .batch_execute(
            "CREATE TABLE events (id bigint PRIMARY KEY); CREATE TABLE spans (id bigint PRIMARY KEY, i interval);
             CREATE UNLOGGED TABLE fast (id bigint PRIMARY KEY); CREATE ROLE anna LOGIN",
        )
        .await
        .unwrap();
    for (statement, code, words) in [
        ("CALL onrush.lake_attach('events', 'other.shop.events')", "22023", "other"),
        ("CALL onrush.lake_attach('events', 'prod.events')", "22023", "catalogue.namespace.table"),
        ("CALL onrush.lake_attach('events', 'prod.shop.events', 0)", "22023", "lag_seconds"),
        ("CALL onrush.lake_attach('spans', 'prod.shop.spans')", "0A000", "interval"),
        ("CALL onrush.lake_attach('fast', 'prod.shop.fast')", "55000", "not logged"),
        ("CALL onrush.lake_attach('nothing', 'prod.shop.events')", "42P01", "nothing"),
        ("CALL onrush.lake_detach('events')", "55000", "not attached"),
        ("CALL onrush.lake_flush('events')", "55000", "not attached"),
        ("BEGIN; CALL onrush.lake_flush('events')", "25001", "transaction block"),
    ] {
        let (found, message) = refused(&client, statement).await;
        assert_eq!(found, code, "{statement}: {message}");
        assert!(message.contains(words), "{statement}: {message}");
    }
    client.batch_execute("ROLLBACK").await.unwrap();
    client
        .batch_execute("CALL onrush.lake_attach('events', 'prod.shop.events', 60)")
        .await
        .unwrap();
    let (code, message) =
        refused(&client, "CALL onrush.lake_attach('events', 'prod.shop.e')").await;
    assert_eq!((code.as_str(), message.contains("already")), ("55000", true), "{message}");
    client.batch_execute("SET ROLE anna").await.unwrap();
    let (code, _) = refused(&client, "CALL onrush.lake_detach('events')").await;
    assert_eq!(code, "42501");

    let without = World::new();
    let client = without.client().await;
    client.batch_execute("CREATE TABLE events (id bigint PRIMARY KEY)").await.unwrap();
    let attach = "CALL onrush.lake_attach('events', 'prod.shop.events')";
    let (code, message) = refused(&client, attach).await;
    assert_eq!((code.as_str(), message.contains("no lake")), ("55000", true), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalogue_that_is_away_keeps_nobody_from_inserting() {
    let (mut catalogue, world, _files) = lake();
    let client = world.client().await;
    client.batch_execute(EVENTS).await.unwrap();
    client
        .batch_execute("CALL onrush.lake_attach('events', 'prod.shop.events', 3600)")
        .await
        .unwrap();
    catalogue.server.take().unwrap().stop().unwrap();
    client.batch_execute("INSERT INTO events (note) VALUES ('meanwhile')").await.unwrap();
    let (code, _) = refused(&client, "CALL onrush.lake_flush('events')").await;
    assert_eq!(code, "08006");
    let row = client.query_one("SELECT state, cause FROM onrush.lake", &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "away");
    assert!(row.get::<_, &str>(1).contains("away"));
    client.batch_execute("INSERT INTO events (note) VALUES ('and later')").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_a_node_are_its_own_for_ever() {
    fn start(folder: &Path, node: Option<u32>) -> Result<Server, ServerError> {
        let database = onrush::Database::open_or_create(folder, onrush::Options::small()).unwrap();
        let listen = Some("127.0.0.1:0".parse().unwrap());
        Server::start(database, ServerOptions { listen, node, ..ServerOptions::default() })
    }
    async fn client(server: &Server) -> Client {
        let settings =
            format!("host=127.0.0.1 port={} user=test", server.address().unwrap().port());
        let (client, connection) =
            tokio_postgres::connect(&settings, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let server = start(&path, None).unwrap();
    let create = "CREATE TABLE t (id bigint PRIMARY KEY DEFAULT node_offset(), n int)";
    let (code, message) = refused(&client(&server).await, create).await;
    assert_eq!((code.as_str(), message.contains("node_offset()")), ("55000", true), "{message}");
    server.stop().unwrap();

    let server = start(&path, Some(92_233)).err().unwrap();
    assert!(server.to_string().contains("92,232"), "{server}");
    let server = start(&path, Some(7)).unwrap();
    client(&server).await.batch_execute(create).await.unwrap();
    server.stop().unwrap();
    let other = start(&path, Some(8)).err().unwrap();
    assert!(matches!(other, ServerError::OtherNode { known: 7, asked: 8 }), "{other}");
    // What is kept counts where none is named.
    let server = start(&path, None).unwrap();
    let client = client(&server).await;
    client
        .batch_execute("CREATE TABLE u (id bigint PRIMARY KEY DEFAULT node_offset())")
        .await
        .unwrap();
    let insert = "INSERT INTO t (n) VALUES (1) RETURNING id";
    let id: i64 = client.query_one(insert, &[]).await.unwrap().get(0);
    assert_eq!(id / 100_000_000_000_000, 7);
}
