//! Schemas over the wire: after a restart, for prepared statements, for roles. What SQL says about them is
//! written down in `slt/schema.slt`.

use crate::common::{World, code, failure, query};
use onrush::{Database, Options};
use onrush_server::{Server, ServerOptions};
use tokio_postgres::{Client, NoTls};

async fn client_with(port: u16, more: &str) -> Client {
    let settings = format!("host=127.0.0.1 port={port} user=test {more}");
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A server on the database in this folder.
fn serve(folder: &std::path::Path) -> Server {
    let database = Database::open_or_create(folder, Options::small()).unwrap();
    let listen = Some("127.0.0.1:0".parse().unwrap());
    let options = ServerOptions { listen, threads: 2, ..ServerOptions::default() };
    Server::start(database, options).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_and_their_tables_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let server = serve(&path);
    let client = client_with(server.address().unwrap().port(), "").await;
    query(&client, "CREATE SCHEMA sales").await;
    query(&client, "CREATE SCHEMA empty").await;
    query(&client, "CREATE TABLE sales.items (id int PRIMARY KEY)").await;
    query(&client, "INSERT INTO sales.items VALUES (1)").await;
    drop(client);
    server.stop().unwrap();

    let server = serve(&path);
    let client = client_with(server.address().unwrap().port(), "").await;
    assert_eq!(query(&client, "SELECT id FROM sales.items").await, ["1"]);
    assert_eq!(failure(&client, "CREATE SCHEMA empty").await, "42P06");
    query(&client, "CREATE TABLE empty.items (id int PRIMARY KEY)").await;
    drop(client);
    server.stop().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_statement_follows_the_path() {
    let world = World::new();
    let client = world.client().await;
    for schema in ["one", "two"] {
        query(&client, &format!("CREATE SCHEMA {schema}")).await;
        query(&client, &format!("CREATE TABLE {schema}.items (id int PRIMARY KEY)")).await;
    }
    query(&client, "SET search_path = one").await;
    let insert = client.prepare("INSERT INTO items VALUES ($1)").await.unwrap();
    client.execute(&insert, &[&1i32]).await.unwrap();
    query(&client, "SET search_path = two").await;
    client.execute(&insert, &[&2i32]).await.unwrap();
    assert_eq!(query(&client, "SELECT id FROM one.items").await, ["1"]);
    assert_eq!(query(&client, "SELECT id FROM two.items").await, ["2"]);
    query(&client, "SET search_path = three").await;
    let nowhere = client.execute(&insert, &[&3i32]).await.unwrap_err();
    assert_eq!(code(&nowhere), "42P01");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_can_begin_with_a_path_and_has_the_schema_of_its_name_first() {
    let world = World::new();
    let port = world.address.port();
    let client = world.client().await;
    query(&client, "CREATE SCHEMA sales").await;
    let begun = client_with(port, "options='-c search_path=sales'").await;
    query(&begun, "CREATE TABLE items (id int PRIMARY KEY)").await;
    assert_eq!(query(&client, "SELECT count(*) FROM sales.items").await, ["0"]);
    // The clients of these tests are called so.
    query(&client, "CREATE SCHEMA test").await;
    query(&client, "CREATE TABLE mine (id int PRIMARY KEY)").await;
    assert_eq!(query(&client, "SELECT current_schema()").await, ["test"]);
    assert_eq!(query(&client, "SELECT count(*) FROM test.mine").await, ["0"]);
    assert_eq!(query(&client, "SELECT current_schemas(false)").await, ["{test,public}"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_leads_to_the_tables_of_the_server() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE SCHEMA sales").await;
    query(&client, "SET search_path = onrush, public").await;
    assert_eq!(failure(&client, "SELECT * FROM schemas").await, "42P01");
    assert_eq!(failure(&client, "SELECT * FROM onrush.schemas").await, "42P01");
    assert_eq!(failure(&client, "DROP TABLE schemas").await, "42P01");
    assert_eq!(failure(&client, "DROP TABLE onrush.schemas").await, "55000");
    assert_eq!(failure(&client, "CREATE TABLE onrush.mine (id int PRIMARY KEY)").await, "55000");
    assert_eq!(failure(&client, "CREATE SCHEMA onrush").await, "42P06");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_granted_is_granted_on_the_table_of_one_schema() {
    let world = World::new();
    // Who comes in before there are roles keeps all rights.
    let admin = world.client().await;
    for statement in [
        "CREATE SCHEMA sales",
        "CREATE TABLE items (id int PRIMARY KEY)",
        "CREATE TABLE sales.items (id int PRIMARY KEY)",
        "CREATE ROLE admin SUPERUSER LOGIN PASSWORD 'a'",
        "CREATE ROLE collector LOGIN PASSWORD 'p'",
        "GRANT SELECT ON sales.items TO collector",
        "GRANT USAGE ON SCHEMA sales TO collector",
    ] {
        query(&admin, statement).await;
    }
    let settings = format!(
        "host=127.0.0.1 port={} user=collector password=p dbname=onrush",
        world.address.port()
    );
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(query(&client, "SELECT count(*) FROM sales.items").await, ["0"]);
    assert_eq!(failure(&client, "SELECT count(*) FROM items").await, "42501");
    assert_eq!(failure(&client, "INSERT INTO sales.items VALUES (1)").await, "42501");
    assert_eq!(failure(&client, "CREATE SCHEMA mine").await, "42501");
    assert_eq!(failure(&client, "DROP SCHEMA sales CASCADE").await, "42501");
    // A table that gets the name later has none of the grants.
    query(&admin, "DROP SCHEMA sales CASCADE").await;
    query(&admin, "CREATE SCHEMA sales").await;
    query(&admin, "GRANT USAGE ON SCHEMA sales TO collector").await;
    query(&admin, "CREATE TABLE sales.items (id int PRIMARY KEY)").await;
    assert_eq!(failure(&client, "SELECT count(*) FROM sales.items").await, "42501");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_gets_another_name_with_its_tables_and_what_was_granted_on_them() {
    let world = World::new();
    let client = world.client().await;
    for statement in [
        "CREATE SCHEMA sales",
        "CREATE SCHEMA other",
        "CREATE TABLE sales.items (id int PRIMARY KEY)",
        "INSERT INTO sales.items VALUES (1)",
        "CREATE ROLE ann",
        "GRANT SELECT ON sales.items TO ann",
        "BEGIN",
        "ALTER SCHEMA sales RENAME TO shop",
    ] {
        query(&client, statement).await;
    }
    assert_eq!(query(&client, "SELECT id FROM shop.items").await, ["1"]);
    query(&client, "ROLLBACK").await;
    assert_eq!(query(&client, "SELECT id FROM sales.items").await, ["1"]);
    query(&client, "ALTER SCHEMA sales RENAME TO shop").await;
    let granted = "SELECT relacl IS NOT NULL FROM pg_class WHERE oid = 'shop.items'::regclass";
    assert_eq!(query(&client, granted).await, ["t"]);
    assert_eq!(failure(&client, "SELECT id FROM sales.items").await, "42P01");
    assert_eq!(failure(&client, "ALTER SCHEMA shop RENAME TO other").await, "42P06");
    assert_eq!(failure(&client, "ALTER SCHEMA sales RENAME TO again").await, "3F000");
    assert_eq!(failure(&client, "ALTER SCHEMA shop RENAME TO pg_shop").await, "42939");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_goes_to_another_schema() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE SCHEMA s; CREATE TABLE t (id int); INSERT INTO t VALUES (1)").await;
    query(&client, "ALTER TABLE t SET SCHEMA s").await;
    assert_eq!(query(&client, "SELECT id FROM s.t").await, ["1"]);
    assert_eq!(failure(&client, "SELECT id FROM t").await, "42P01");
    query(&client, "CREATE TABLE t (id int)").await;
    assert_eq!(failure(&client, "ALTER TABLE t SET SCHEMA s").await, "42P07");
    assert_eq!(failure(&client, "ALTER TABLE t SET SCHEMA nowhere").await, "3F000");
    query(&client, "ALTER TABLE IF EXISTS missing SET SCHEMA s").await;
    query(&client, "DROP TABLE t; ALTER TABLE s.t SET SCHEMA public").await;
    assert_eq!(query(&client, "SELECT id FROM t").await, ["1"]);
}
