//! A temporary table is of one client: others do not read it, and it goes with its client. What SQL says about them
//! is written down in `slt/temporary.slt`.

use std::time::Duration;

use onrush::{Database, Options};
use onrush_files::MemoryDisk;
use tokio_postgres::NoTls;

use crate::common::{World, client_of, failure, query};

/// The engine's names of temporary tables.
fn temporary_tables(database: &Database) -> Vec<String> {
    let names = database.tables().into_iter().map(|table| table.name().to_owned());
    names.filter(|name| name.starts_with("pg_temp_")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_have_tables_of_one_name_and_do_not_see_each_others() {
    let world = World::new();
    let (one, two) = (world.client().await, world.client().await);
    query(&one, "CREATE TEMP TABLE t (n int)").await;
    query(&one, "INSERT INTO t VALUES (1)").await;
    assert_eq!(failure(&two, "SELECT * FROM t").await, "42P01");
    query(&two, "CREATE TEMP TABLE t (n int)").await;
    query(&two, "INSERT INTO t VALUES (2)").await;
    assert_eq!(query(&one, "SELECT n FROM t").await, ["1"]);
    assert_eq!(query(&two, "SELECT n FROM t").await, ["2"]);
    let schema = "SELECT nspname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
                  WHERE c.oid = 't'::regclass";
    let of_one = &query(&one, schema).await[0];
    for statement in ["SELECT * FROM", "INSERT INTO", "DROP TABLE", "TRUNCATE"] {
        let values = if statement == "INSERT INTO" { "VALUES (3)" } else { "" };
        let text = format!("{statement} {of_one}.t {values}");
        assert_ne!(failure(&two, &text).await, "no error", "{text}");
        assert_eq!(query(&one, &format!("SELECT n FROM {of_one}.t")).await, ["1"]);
    }
    assert_eq!(failure(&two, &format!("DROP SCHEMA {of_one} CASCADE")).await, "0A000");
    for path in [format!("{of_one}, public"), format!("{of_one}, pg_temp")] {
        query(&two, &format!("SET search_path = {path}")).await;
        assert_eq!(query(&two, "SELECT n FROM t").await, ["2"], "{path}");
        query(&two, "CREATE TEMP TABLE u (n int)").await;
        query(&two, "DROP TABLE u").await;
    }
    assert_eq!(failure(&one, "SELECT * FROM u").await, "42P01");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_goes_with_its_client() {
    let world = World::new();
    let settings = format!("host=127.0.0.1 port={} user=test", world.address.port());
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    query(&client, "CREATE TEMP TABLE t AS SELECT 1 AS n").await;
    query(&client, "BEGIN").await;
    query(&client, "INSERT INTO t VALUES (2)").await;
    assert_eq!(temporary_tables(&world.database).len(), 1);
    drop(client);
    connection.await.unwrap().unwrap();
    // The server sees the end of the connection in its own time.
    let is_gone = async {
        while !temporary_tables(&world.database).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), is_gone).await.expect("the table goes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_a_client_that_a_crash_took_goes_when_the_server_starts() {
    let disk = MemoryDisk::default();
    let world = World::on(disk.clone());
    let client = world.client().await;
    query(&client, "CREATE TABLE lasting (n int)").await;
    query(&client, "CREATE TEMP TABLE t (n int PRIMARY KEY)").await;
    query(&client, "COMMENT ON TABLE t IS 'gone'").await;
    query(&client, "INSERT INTO t VALUES (1)").await;
    let (server, database) = world.after_a_crash(&disk);
    assert!(temporary_tables(&database).is_empty());
    let again = client_of(&server).await;
    assert_eq!(
        query(&again, "SELECT relname FROM pg_class WHERE relkind = 'r'").await,
        ["lasting"]
    );
    let kept = "SELECT count(*) FROM pg_description WHERE classoid = 'pg_class'::regclass";
    assert_eq!(query(&again, kept).await, ["0"]);
    drop(again);
    server.stop().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_make_no_table_has_temporary_ones() {
    let world = World::new();
    let owner = world.client().await;
    query(&owner, "CREATE TABLE t (n int)").await;
    query(&owner, "INSERT INTO t VALUES (1)").await;
    query(&owner, "CREATE ROLE root LOGIN SUPERUSER PASSWORD 'r'").await;
    query(&owner, "CREATE ROLE clerk LOGIN PASSWORD 'c'").await;
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(world.address.port()).user("clerk").password("c");
    let (clerk, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    query(&clerk, "CREATE TEMP TABLE own (n int PRIMARY KEY)").await;
    query(&clerk, "INSERT INTO own VALUES (1)").await;
    query(&clerk, "UPDATE own SET n = 2").await;
    query(&clerk, "ALTER TABLE own ADD COLUMN m int").await;
    assert_eq!(query(&clerk, "SELECT n FROM own").await, ["2"]);
    assert_eq!(query(&clerk, "SELECT has_table_privilege('own', 'SELECT')").await, ["t"]);
    for refused in [
        "CREATE TABLE lasting (n int)",
        "CREATE TABLE lasting AS SELECT 1 AS n",
        "CREATE TEMP TABLE taken AS SELECT n FROM t",
        "SELECT n INTO TEMP taken FROM t",
        "ALTER TABLE t RENAME TO u",
        "DROP TABLE own, t",
    ] {
        assert_eq!(failure(&clerk, refused).await, "42501", "{refused}");
    }
    query(&clerk, "TRUNCATE own").await;
    query(&clerk, "DROP TABLE own").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_statement_means_the_temporary_table_once_it_is_there() {
    let world = World::with_space();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (n int)").await;
    let select = "SELECT count(*) FROM t";
    assert_eq!(query(&client, select).await, ["0"]);
    assert_eq!(client.query_one(select, &[]).await.unwrap().get::<_, i64>(0), 0);
    query(&client, "CREATE TEMP TABLE t AS SELECT 1 AS n").await;
    assert_eq!(query(&client, select).await, ["1"]);
    assert_eq!(client.query_one(select, &[]).await.unwrap().get::<_, i64>(0), 1);
    query(&client, "DROP TABLE t").await;
    assert_eq!(client.query_one(select, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[test]
fn tables_that_were_left_are_not_there_for_the_next_server() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open_or_create(folder.path().join("db"), Options::small()).unwrap();
    let table = onrush::TableDefinition::builder("pg_temp_1.left")
        .column(onrush::ColumnDefinition::new("n", onrush::DataType::Int32).not_null())
        .primary_key(["n"])
        .unlogged();
    database.create_table(table.build().unwrap()).unwrap();
    let listen = Some("127.0.0.1:0".parse().unwrap());
    let options = onrush_server::ServerOptions { listen, ..Default::default() };
    let server = onrush_server::Server::start(database.clone(), options).unwrap();
    assert!(temporary_tables(&database).is_empty());
    server.stop().unwrap();
}
