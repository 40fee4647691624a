//! ALTER TABLE ... ADD PRIMARY KEY copies the table. Wherever that ends, the rows are there.

use crate::common::World;
use onrush::{ColumnDefinition, DataType, Database, Options, TableBuilder, TableDefinition, Value};
use onrush_server::{Server, ServerOptions};

/// What a table is called while it is copied, and its copy.
const BEFORE: &str = "onrush.before readings";
const AFTER: &str = "onrush.after readings";

fn columns(name: &str) -> TableBuilder {
    let id = ColumnDefinition::new("id", DataType::Int64);
    TableDefinition::builder(name).column(id.not_null())
}

/// A table of that name without a key, and with these rows.
fn without_key(database: &Database, name: &str, rows: i64) {
    fill(database, columns(name).keyed_by_row_id(), rows);
}

fn with_key(database: &Database, name: &str, rows: i64) {
    fill(database, columns(name).primary_key(["id"]), rows);
}

fn fill(database: &Database, table: TableBuilder, rows: i64) {
    let table = database.create_table(table.build().unwrap()).unwrap();
    let mut session = database.session().unwrap();
    for id in 0..rows {
        let mut row = vec![Value::from(id)];
        row.resize(table.definition().columns().len(), Value::Default);
        session.insert(&table, &row).unwrap();
    }
}

/// Starts a server on what a crash has left, and tells whether `readings` has a key then, and how many
/// rows. No other table is left.
fn after_a_crash(leave: impl Fn(&Database)) -> (bool, usize) {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("db"), Options::small()).unwrap();
    leave(&database);
    let listen = Some("127.0.0.1:0".parse().unwrap());
    let options = ServerOptions { listen, threads: 2, ..ServerOptions::default() };
    let server = Server::start(database.clone(), options).unwrap();
    let names: Vec<_> = database.tables().iter().map(|it| it.name().to_owned()).collect();
    assert_eq!(names, ["readings"]);
    let table = database.table("readings").unwrap();
    let mut session = database.session().unwrap();
    let rows = session.scan(&table, &onrush::ScanOptions::default()).unwrap().count();
    server.stop().unwrap();
    (table.definition().row_id().is_none(), rows)
}

#[test]
fn a_crash_before_the_first_row_is_copied_leaves_the_table() {
    let left = after_a_crash(|database| {
        without_key(database, "readings", 5);
        with_key(database, AFTER, 0);
    });
    assert_eq!(left, (false, 5));
}

#[test]
fn a_crash_while_rows_are_copied_leaves_the_table() {
    let left = after_a_crash(|database| {
        without_key(database, BEFORE, 5);
        with_key(database, AFTER, 3);
    });
    assert_eq!(left, (false, 5));
}

#[test]
fn a_crash_after_all_rows_are_copied_leaves_the_table_with_its_key() {
    let left = after_a_crash(|database| {
        without_key(database, BEFORE, 5);
        with_key(database, "readings", 5);
    });
    assert_eq!(left, (true, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_the_table_while_it_is_copied_is_told_to_try_again() {
    let world = World::new();
    let client = world.client().await;
    without_key(&world.database, BEFORE, 5);
    for text in [
        "SELECT * FROM readings",
        "CREATE TABLE readings (id int)",
        "INSERT INTO readings VALUES (1)",
    ] {
        let error = client.simple_query(text).await.expect_err(text);
        assert_eq!(error.code().unwrap().code(), "55006", "{text}: {error}");
    }
}

/// A copy that goes wrong is undone at once: nothing is left that a restart would have to mend.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_rows_do_not_have_leaves_no_trace() {
    let world = World::new();
    let client = world.client().await;
    client.simple_query("CREATE TABLE readings (id int)").await.unwrap();
    client.simple_query("INSERT INTO readings VALUES (1), (1)").await.unwrap();
    client.simple_query("ALTER TABLE readings ADD PRIMARY KEY (id)").await.unwrap_err();
    let names: Vec<_> = world.database.tables().iter().map(|it| it.name().to_owned()).collect();
    assert_eq!(names, ["readings"]);
}
