//! The lake may be a database that speaks PostgreSQL's protocol: another Onrush, here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use onrush::{Database, OnlineOptions, Options};
use onrush_backup::{RestoreOptions, restore};
use onrush_files::OsDisk;
use onrush_server::{CatalogueConfig, CatalogueKind, Server, ServerError, ServerOptions};
use tokio_postgres::{Client, NoTls};

use crate::common::World;

const COLUMNS: &str = "id bigint PRIMARY KEY, yes boolean, small smallint, big bigint, single real,
    wide double precision, amount numeric(28,10), code char(5), note text, data bytea, token uuid, birth date,
    clock time, stamp timestamp, at timestamptz";
const VALUES: [&str; 3] = [
    "1, true, -32768, -9223372036854775808, 1.5, 'NaN', -123456789012345678.0123456789, 'ab', E'a\\tb\\\\', '\\x00ff',
     '00000000-0000-0000-0000-000000000007', 'infinity', '24:00', '0001-12-31 BC', '2023-11-14 22:13:20.123456+00'",
    "2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
    "3, false, 0, 0, 'Infinity', 0.1, 0, '', '', '', NULL, '1970-01-01', '00:00', 'infinity', '-infinity'",
];

/// Of a node whose lake is this one.
fn options(lake: &World, node: Option<u32>) -> ServerOptions {
    let config = CatalogueConfig {
        kind: CatalogueKind::Postgres,
        uri: Some(format!("postgres://test@127.0.0.1:{}/onrush", lake.address.port())),
        warehouse: None,
        token_variable: None,
        credential_variable: None,
        allow_plain_text: false,
        properties: BTreeMap::new(),
    };
    let catalogues = BTreeMap::from([("other".to_owned(), config)]);
    ServerOptions { node, catalogues, ..ServerOptions::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_into_another_onrush_and_read_the_same() {
    let lake = World::new();
    let world = World::with(options(&lake, Some(7)));
    let client = world.client().await;
    client.batch_execute(&format!("CREATE TABLE events ({COLUMNS})")).await.unwrap();
    for values in VALUES {
        client.batch_execute(&format!("INSERT INTO events VALUES ({values})")).await.unwrap();
    }
    let attach = "CALL onrush.lake_attach('events', 'other.shop.events', 3600)";
    client.batch_execute(attach).await.unwrap();
    for round in 1..4 {
        client.batch_execute("CALL onrush.lake_flush('events')").await.unwrap();
        let insert = format!("INSERT INTO events (id) VALUES ({})", 10 + round);
        client.batch_execute(&insert).await.unwrap();
    }
    client.batch_execute("CALL onrush.lake_flush('events')").await.unwrap();
    let state =
        client.query_one("SELECT state, rows, commits FROM onrush.lake", &[]).await.unwrap();
    assert_eq!((state.get::<_, &str>(0), state.get::<_, i64>(1)), ("running", 6));
    assert_eq!(state.get::<_, i64>(2), 4);

    let names: Vec<&str> =
        COLUMNS.split(',').filter_map(|it| it.split_whitespace().next()).collect();
    // `numeric(28` and `10)` are one column.
    let names: Vec<&str> = names.into_iter().filter(|name| *name != "10)").collect();
    let shown = names.iter().map(|name| format!("{name}::text")).collect::<Vec<_>>().join(", ");
    let other = lake.client().await;
    let here = client.query(&format!("SELECT {shown} FROM events ORDER BY id"), &[]).await.unwrap();
    let there = format!("SELECT {shown}, _node FROM shop.events ORDER BY id");
    let there = other.query(&there, &[]).await.unwrap();
    assert_eq!((here.len(), there.len()), (6, 6));
    for (here, there) in here.iter().zip(&there) {
        for (place, name) in names.iter().enumerate() {
            let text = |row: &tokio_postgres::Row| row.get::<_, Option<String>>(place);
            // Blanks behind a char are not brought.
            let expected = text(here).map(|text| text.trim_end_matches(' ').to_owned());
            assert_eq!(text(there), expected, "{name}");
        }
        assert_eq!(there.get::<_, i32>(names.len()), 7);
    }
}

fn start(folder: &Path, options: ServerOptions) -> Result<Server, ServerError> {
    let database = Database::open(folder, Options::small()).unwrap();
    let listen = Some("127.0.0.1:0".parse().unwrap());
    Server::start(database, ServerOptions { listen, ..options })
}

async fn client(server: &Server) -> Client {
    let settings = format!("host=127.0.0.1 port={} user=test", server.address().unwrap().port());
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The rows in the lake: their notes by their node.
async fn in_lake(lake: &World) -> Vec<(i32, String)> {
    let rows = lake.client().await.query("SELECT _node, note FROM shop.events", &[]).await.unwrap();
    let mut rows: Vec<_> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_database_goes_on_under_another_number() {
    let lake = World::new();
    let old = World::with(options(&lake, Some(7)));
    let client_of_old = old.client().await;
    let say =
        async |client: &Client, statement: &str| client.batch_execute(statement).await.unwrap();
    let flush = "CALL onrush.lake_flush('events')";
    say(
        &client_of_old,
        "CREATE TABLE events (id bigint PRIMARY KEY DEFAULT node_offset(), note text)",
    )
    .await;
    say(&client_of_old, "CALL onrush.lake_attach('events', 'other.shop.events', 3600)").await;
    say(&client_of_old, "INSERT INTO events (note) VALUES ('drained')").await;
    say(&client_of_old, flush).await;
    say(&client_of_old, "INSERT INTO events (note) VALUES ('restored')").await;
    let folder = tempfile::tempdir().unwrap();
    let (backup, restored) = (folder.path().join("backup"), folder.path().join("restored"));
    old.database.backup(&backup, &OnlineOptions::default(), &Default::default()).unwrap();
    let made = RestoreOptions::default();
    restore(Arc::new(OsDisk::new()), &backup, &restored, &made, &Default::default()).unwrap();
    say(&client_of_old, "INSERT INTO events (note) VALUES ('lost')").await;

    // Under the old number, or none, it does not drain.
    let refused = start(&restored, options(&lake, Some(7))).err().unwrap();
    assert!(matches!(refused, ServerError::LostNode { asked: 7 }), "{refused}");
    let refused = start(&restored, options(&lake, None)).err().unwrap();
    assert!(refused.to_string().contains("another number"), "{refused}");
    for is_again in [false, true] {
        let server = start(&restored, options(&lake, (!is_again).then_some(8))).unwrap();
        let client = client(&server).await;
        say(&client, &format!("INSERT INTO events (note) VALUES ('new {is_again}')")).await;
        say(&client, flush).await;
        let row =
            client.query_one("SELECT max(id) / 100000000000000 FROM events", &[]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), 8);
        server.stop().unwrap();
    }
    let of_new = ["new false", "new true", "restored"].map(|note| (8, note.to_owned()));
    let expected = [vec![(7, "drained".to_owned())], of_new.to_vec()].concat();
    assert_eq!(in_lake(&lake).await, expected);

    // Who lives on as the node that was lost is told who goes on.
    let error = client_of_old.batch_execute(flush).await.unwrap_err();
    assert!(error.as_db_error().unwrap().message().contains("node 8"), "{error:?}");
    let row = client_of_old.query_one("SELECT state, cause FROM onrush.lake", &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "stopped");
    assert!(row.get::<_, &str>(1).contains("Stop this server"));
    assert_eq!(in_lake(&lake).await, expected);
}
