//! CREATE TABLE and DROP TABLE in a transaction come and go with it, whatever ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onrush::{ColumnDefinition, DataType, Database, Durability, Table, TableDefinition};
use onrush_files::MemoryDisk;
use tokio_postgres::Client;

use crate::common::{World, failure, query};

/// The tables of users, as the engine has them.
fn tables(database: &Database) -> Vec<String> {
    let names = database.tables().into_iter().map(|table| table.name().to_owned());
    names.filter(|name| !name.starts_with("onrush.")).collect()
}

async fn all(client: &Client, statements: &[&str]) {
    for statement in statements {
        query(client, statement).await;
    }
}

const CREATE: &str = "CREATE TABLE t (id int PRIMARY KEY, note text)";

#[tokio::test(flavor = "multi_thread")]
async fn a_created_table_comes_with_its_rows_when_the_transaction_commits() {
    let world = World::new();
    let (one, other) = (world.client().await, world.client().await);
    all(&one, &["BEGIN", CREATE, "INSERT INTO t VALUES (1, 'a'), (2, 'b')"]).await;
    assert_eq!(query(&one, "SELECT * FROM t ORDER BY id").await, ["1|a", "2|b"]);
    for statement in ["SELECT * FROM t", "SELECT * FROM t WHERE id = 1", "INSERT INTO t VALUES (3)"]
    {
        assert_eq!(failure(&other, statement).await, "42P01", "{statement}");
    }
    query(&one, "COMMIT").await;
    assert_eq!(query(&other, "SELECT * FROM t ORDER BY id").await, ["1|a", "2|b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_created_table_goes_when_the_transaction_is_rolled_back() {
    let world = World::new();
    let client = world.client().await;
    all(&client, &["BEGIN", CREATE, "INSERT INTO t VALUES (1, 'a')", "ROLLBACK"]).await;
    assert_eq!(tables(&world.database), [""; 0]);
    assert_eq!(failure(&client, "SELECT * FROM t").await, "42P01");
    query(&client, CREATE).await;
    assert_eq!(query(&client, "SELECT * FROM t").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_created_table_goes_when_the_transaction_fails() {
    let world = World::new();
    let client = world.client().await;
    all(&client, &["BEGIN", CREATE]).await;
    assert_eq!(failure(&client, "SELECT 1 / 0").await, "22012");
    query(&client, "COMMIT").await;
    assert_eq!(tables(&world.database), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_created_table_goes_when_the_client_goes() {
    let world = World::new();
    let (one, other) = (world.client().await, world.client().await);
    all(&one, &["BEGIN", CREATE]).await;
    drop(one);
    // Until the server has seen that, the name is taken.
    while let Err(error) = other.simple_query(CREATE).await {
        assert_eq!(error.code().unwrap().code(), "55006", "{error}");
    }
    assert_eq!(query(&other, "SELECT * FROM t").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_savepoint_goes_back_to_the_tables_that_there_were() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE old (id int PRIMARY KEY)").await;
    let before = ["BEGIN", "CREATE TABLE first (id int)", "SAVEPOINT s"];
    all(&client, &before).await;
    all(&client, &["CREATE TABLE second (id int)", "DROP TABLE old", "DROP TABLE first"]).await;
    assert_eq!(failure(&client, "INSERT INTO first VALUES (1)").await, "42P01");
    all(&client, &["ROLLBACK TO s", "INSERT INTO first VALUES (1)"]).await;
    all(&client, &["INSERT INTO old VALUES (1)", "COMMIT"]).await;
    assert_eq!(tables(&world.database), ["first", "old"]);
    assert_eq!(query(&client, "SELECT * FROM first").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_table_is_there_for_others_until_the_transaction_commits() {
    let world = World::new();
    let (one, other) = (world.client().await, world.client().await);
    all(&one, &[CREATE, "BEGIN", "DROP TABLE t"]).await;
    assert_eq!(failure(&one, "ROLLBACK; BEGIN; DROP TABLE t; SELECT * FROM t").await, "42P01");
    all(&one, &["ROLLBACK", "BEGIN", "DROP TABLE t", "DROP TABLE IF EXISTS t"]).await;
    query(&other, "INSERT INTO t VALUES (1, 'a')").await;
    query(&one, "ROLLBACK").await;
    assert_eq!(query(&one, "SELECT * FROM t").await, ["1|a"]);
    all(&one, &["BEGIN", "DROP TABLE t", "COMMIT"]).await;
    assert_eq!(failure(&other, "SELECT * FROM t").await, "42P01");
    assert_eq!(tables(&world.database), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_created_and_dropped_was_never_there() {
    let world = World::new();
    let client = world.client().await;
    all(&client, &["BEGIN", CREATE, "INSERT INTO t VALUES (1, 'a')", "DROP TABLE t"]).await;
    assert_eq!(failure(&client, "SELECT * FROM t").await, "42P01");
    query(&client, "ROLLBACK").await;
    all(&client, &["BEGIN", CREATE, "DROP TABLE t", "COMMIT"]).await;
    assert_eq!(tables(&world.database), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn others_wait_with_what_they_would_define_under_the_name() {
    let world = World::new();
    let (one, other) = (world.client().await, world.client().await);
    query(&one, "CREATE TABLE old (id int PRIMARY KEY)").await;
    all(&one, &["BEGIN", CREATE, "DROP TABLE old"]).await;
    for statement in [
        CREATE,
        "CREATE TABLE IF NOT EXISTS t (id int)",
        "DROP TABLE old",
        "ALTER TABLE old ADD COLUMN n int",
        "TRUNCATE old",
    ] {
        assert_eq!(failure(&other, statement).await, "55006", "{statement}");
    }
    query(&one, "ROLLBACK").await;
    query(&other, "DROP TABLE old").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_created_table_can_be_altered_and_commented() {
    let world = World::new();
    let client = world.client().await;
    let define = [
        "BEGIN",
        CREATE,
        "ALTER TABLE t ADD COLUMN n int DEFAULT 7",
        "COMMENT ON TABLE t IS 'new'",
        "INSERT INTO t VALUES (1, 'a')",
    ];
    all(&client, &define).await;
    query(&client, "COMMIT").await;
    assert_eq!(query(&client, "SELECT * FROM t").await, ["1|a|7"]);
    let comment = "SELECT obj_description('t'::regclass, 'pg_class')";
    assert_eq!(query(&client, comment).await, ["new"]);
    all(&client, &["DROP TABLE t"]).await;
    all(&client, &define).await;
    all(&client, &["ROLLBACK", CREATE]).await;
    assert_eq!(query(&client, comment).await, ["∅"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_undone_is_refused() {
    let world = World::new();
    let client = world.client().await;
    query(&client, CREATE).await;
    for (statement, state) in [
        ("ALTER TABLE t ADD COLUMN n int", "25001"),
        ("COMMENT ON TABLE t IS 'old'", "25001"),
        ("CREATE SCHEMA s", "25001"),
        ("DROP TABLE t; CREATE TABLE t (id int); DROP TABLE t; CREATE TABLE t (id int)", "0A000"),
        ("CREATE TABLE u (id int); ALTER TABLE u RENAME TO v", "25001"),
        ("CREATE TABLE u (id int); SAVEPOINT s; ALTER TABLE u ADD COLUMN n int", "25001"),
    ] {
        query(&client, "BEGIN").await;
        assert_eq!(failure(&client, statement).await, state, "{statement}");
        query(&client, "ROLLBACK").await;
    }
    assert_eq!(tables(&world.database), ["t"]);
}

/// What scripts begin with that are run again and again.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_can_take_the_place_of_a_dropped_one() {
    let world = World::new();
    let (one, other) = (world.client().await, world.client().await);
    all(&one, &[CREATE, "INSERT INTO t VALUES (1, 'old')", "COMMENT ON TABLE t IS 'old'"]).await;
    let replace =
        ["BEGIN", "DROP TABLE IF EXISTS t", "CREATE TABLE t (n int)", "INSERT INTO t VALUES (7)"];
    let comment = "SELECT obj_description('t'::regclass, 'pg_class')";
    for end in ["ROLLBACK", "COMMIT"] {
        all(&one, &replace).await;
        assert_eq!(query(&one, "SELECT * FROM t").await, ["7"]);
        assert_eq!(failure(&other, "SELECT * FROM t").await, "42P01");
        query(&one, end).await;
        let expected = if end == "ROLLBACK" { ("1|old", "old") } else { ("7", "∅") };
        assert_eq!(query(&other, "SELECT * FROM t").await, [expected.0]);
        assert_eq!(query(&other, comment).await, [expected.1]);
        assert_eq!(tables(&world.database), ["t"]);
    }
    // Again, and back to where it was dropped.
    all(&one, &["BEGIN", "DROP TABLE t", "SAVEPOINT s", CREATE, "ROLLBACK TO s"]).await;
    assert_eq!(failure(&one, "SELECT * FROM t").await, "42P01");
    query(&one, "ROLLBACK").await;
    assert_eq!(query(&one, "SELECT * FROM t").await, ["7"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_in_the_transaction_leaves_what_was_there_before() {
    let disk = MemoryDisk::default();
    let world = World::on(disk.clone());
    let client = world.client().await;
    all(&client, &["CREATE TABLE old (id int PRIMARY KEY)", "BEGIN", CREATE]).await;
    all(&client, &["INSERT INTO t VALUES (1, 'a')", "DROP TABLE old"]).await;
    let (server, database) = world.after_a_crash(&disk);
    assert_eq!(tables(&database), ["old"]);
    server.stop().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_leaves_the_dropped_table_or_the_one_in_its_place() {
    let disk = MemoryDisk::default();
    let world = World::on(disk.clone());
    let client = world.client().await;
    all(&client, &[CREATE, "INSERT INTO t VALUES (1, 'old')"]).await;
    all(&client, &["BEGIN", "DROP TABLE t", "CREATE TABLE t (id int)"]).await;
    for columns in [2, 1] {
        let (server, database) = world.after_a_crash(&disk);
        assert_eq!(tables(&database), ["t"]);
        assert!(database.table("onrush.dropped t").is_err());
        let table = database.table("t").unwrap();
        assert_eq!(table.definition().shown_columns().count(), columns);
        server.stop().unwrap();
        query(&client, "COMMIT").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_after_the_commit_leaves_what_it_says() {
    let disk = MemoryDisk::default();
    let world = World::on(disk.clone());
    let client = world.client().await;
    all(&client, &["CREATE TABLE old (id int PRIMARY KEY)", "BEGIN", CREATE]).await;
    all(&client, &["INSERT INTO t VALUES (1, 'a')", "DROP TABLE old", "COMMIT"]).await;
    let (server, database) = world.after_a_crash(&disk);
    assert_eq!(tables(&database), ["t"]);
    let mut session = database.session().unwrap();
    assert!(session.get(&database.table("t").unwrap(), &[1i32.into()]).unwrap().is_some());
    server.stop().unwrap();
}

/// Commits that are on their way beside the transaction must not hide it from whoever looks how it ended.
#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_as_acknowledged_while_others_insert() {
    const DEFINERS: usize = 4;
    const INSERTERS: usize = 12;
    const TABLES: usize = 150;
    let world = World::on(MemoryDisk::default());
    query(
        &world.client().await,
        "CREATE TABLE rows (id uuid DEFAULT gen_random_uuid() PRIMARY KEY)",
    )
    .await;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut inserters = Vec::new();
    for _ in 0..INSERTERS {
        let (client, is_over) = (world.client().await, Arc::clone(&is_over));
        inserters.push(tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                query(&client, "INSERT INTO rows DEFAULT VALUES").await;
            }
        }));
    }
    let mut definers = Vec::new();
    for definer in 0..DEFINERS {
        let client = world.client().await;
        definers.push(tokio::spawn(async move {
            for number in 0..TABLES {
                let table = format!("t_{definer}_{number}");
                let create = format!(
                    "BEGIN; CREATE TABLE {table} (id int); INSERT INTO {table} VALUES (7); COMMIT"
                );
                query(&client, &create).await;
                assert_eq!(query(&client, &format!("SELECT id FROM {table}")).await, ["7"]);
                query(&client, &format!("BEGIN; DROP TABLE {table}; COMMIT")).await;
                assert_eq!(failure(&client, &format!("SELECT id FROM {table}")).await, "42P01");
            }
        }));
    }
    for definer in definers {
        definer.await.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    for inserter in inserters {
        inserter.await.unwrap();
    }
}

/// What a server has written down of tables when it ends between a commit and what follows from it.
fn write_down(database: &Database, table: &Table, steps: &[&'static str]) {
    let text = |name: &str| ColumnDefinition::new(name, DataType::Text).not_null();
    let number = ColumnDefinition::new("number", DataType::Int64).not_null();
    let notes = TableDefinition::builder("onrush.definitions").column(text("table")).column(number);
    let notes = notes.column(text("step")).primary_key(["table", "number", "step"]);
    let notes = database
        .table("onrush.definitions")
        .or_else(|_| database.create_table(notes.build().unwrap()))
        .unwrap();
    let mut session = database.session().unwrap();
    session.set_durability(Durability::Durable);
    for step in steps {
        let row = [table.name().to_owned().into(), i64::from(table.id()).into(), (*step).into()];
        session.insert(&notes, &row).unwrap();
    }
}

fn created(database: &Database, name: &str) -> Table {
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let table = TableDefinition::builder(name).column(id).primary_key(["id"]);
    database.create_table(table.build().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_behind_the_commit_is_made_up_for() {
    let disk = MemoryDisk::default();
    let world = World::on(disk.clone());
    let database = &world.database;
    write_down(database, &created(database, "created"), &["creating", "created"]);
    write_down(database, &created(database, "not_created"), &["creating"]);
    write_down(database, &created(database, "dropped"), &["dropped"]);
    write_down(database, &created(database, "both"), &["creating", "created", "dropped"]);
    // A table that got the name of one that is gone.
    write_down(database, &created(database, "again"), &["creating"]);
    database.drop_table("again").unwrap();
    created(database, "again");
    let (server, database) = world.after_a_crash(&disk);
    assert_eq!(tables(&database), ["again", "created"]);
    let notes = database.table("onrush.definitions").unwrap();
    let mut session = database.session().unwrap();
    assert_eq!(session.scan(&notes, &onrush::ScanOptions::default()).unwrap().count(), 0);
    server.stop().unwrap();
}
