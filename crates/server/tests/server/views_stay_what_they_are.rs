//! A view is there as long as a table is, for those who may read it. What its rows are is written down in
//! `slt/view.slt`.

use onrush_files::MemoryDisk;
use tokio_postgres::{Client, Config, NoTls};

use crate::common::{World, client_of, failure, query};

async fn come_in(world: &World, user: &str) -> Client {
    let mut config = Config::new();
    config.host("127.0.0.1").port(world.address.port()).user(user).password("a secret");
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_is_there_after_a_crash() {
    let disk = MemoryDisk::default();
    let world = World::on(disk.clone());
    let client = world.client().await;
    query(&client, "CREATE TABLE t (a int PRIMARY KEY, b text)").await;
    query(&client, "INSERT INTO t VALUES (1, 'one'), (2, 'two')").await;
    query(&client, "CREATE VIEW v AS SELECT * FROM t WHERE a > 1").await;
    query(&client, "CREATE VIEW w (x) AS SELECT b || '!' FROM v").await;
    query(&client, "ALTER TABLE t RENAME COLUMN b TO c").await;
    query(&client, "BEGIN").await;
    query(&client, "DROP VIEW w").await;
    let (server, _database) = world.after_a_crash(&disk);
    let client = client_of(&server).await;
    assert_eq!(query(&client, "SELECT x FROM w").await, ["two!"]);
    assert_eq!(query(&client, "SELECT a, b FROM v").await, ["2|two"]);
    assert_eq!(failure(&client, "DROP TABLE t").await, "2BP01");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_follows_a_table_that_is_written_anew() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (gone int, a int, b text)").await;
    query(&client, "INSERT INTO t VALUES (0, 1, 'one')").await;
    query(&client, "CREATE VIEW v AS SELECT a, b FROM t").await;
    query(&client, "ALTER TABLE t DROP COLUMN gone").await;
    query(&client, "ALTER TABLE t ADD PRIMARY KEY (a)").await;
    assert_eq!(query(&client, "SELECT a, b FROM v").await, ["1|one"]);
    assert_eq!(failure(&client, "ALTER TABLE t ALTER COLUMN b TYPE varchar(9)").await, "0A000");
    query(&client, "TRUNCATE t").await;
    query(&client, "INSERT INTO t VALUES (7, 'seven')").await;
    assert_eq!(query(&client, "SELECT a, b FROM v").await, ["7|seven"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn others_see_a_view_when_it_is_committed() {
    let world = World::new();
    let (one, two) = (world.client().await, world.client().await);
    query(&one, "CREATE TABLE t (a int)").await;
    query(&one, "CREATE VIEW v AS SELECT a FROM t").await;
    let prepared = two.prepare("SELECT * FROM v").await.unwrap();
    query(&one, "BEGIN").await;
    query(&one, "CREATE OR REPLACE VIEW v AS SELECT 5 AS a").await;
    assert_eq!(query(&one, "SELECT a FROM v").await, ["5"]);
    assert!(two.query(&prepared, &[]).await.unwrap().is_empty());
    query(&one, "COMMIT").await;
    // Planned anew.
    let rows = two.query(&prepared, &[]).await.unwrap();
    assert_eq!(rows[0].get::<_, i32>(0), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_on_a_view_is_enough_to_read_it() {
    let world = World::new();
    let owner = world.client().await;
    query(&owner, "CREATE TABLE t (a int, secret text)").await;
    query(&owner, "INSERT INTO t VALUES (1, 'hidden')").await;
    query(&owner, "CREATE VIEW v AS SELECT a FROM t").await;
    query(&owner, "CREATE VIEW w AS SELECT a + 1 AS b FROM v").await;
    query(&owner, "CREATE ROLE admin SUPERUSER LOGIN PASSWORD 'a secret'").await;
    query(&owner, "CREATE USER clerk PASSWORD 'a secret'").await;
    let clerk = come_in(&world, "clerk").await;
    assert_eq!(failure(&clerk, "SELECT * FROM w").await, "42501");
    query(&owner, "GRANT SELECT ON w TO clerk").await;
    assert_eq!(query(&clerk, "SELECT b FROM w").await, ["2"]);
    assert_eq!(failure(&clerk, "SELECT * FROM v").await, "42501");
    assert_eq!(failure(&clerk, "SELECT * FROM t").await, "42501");
    assert_eq!(failure(&clerk, "CREATE VIEW x AS SELECT 1 AS one").await, "42501");
    // One of his own gives nobody more than he has.
    query(&clerk, "CREATE TEMP VIEW x AS SELECT b FROM w").await;
    assert_eq!(query(&clerk, "SELECT b FROM x").await, ["2"]);
    query(&clerk, "CREATE TEMP VIEW y AS SELECT secret FROM t").await;
    assert_eq!(failure(&clerk, "SELECT * FROM y").await, "42501");
    query(&owner, "REVOKE SELECT ON w FROM clerk").await;
    assert_eq!(failure(&clerk, "SELECT b FROM x").await, "42501");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_on_a_view_is_enough_to_write_by_it() {
    let world = World::new();
    let owner = world.client().await;
    query(&owner, "CREATE TABLE t (a int PRIMARY KEY, b text)").await;
    query(&owner, "CREATE TABLE other (a int, secret text)").await;
    query(&owner, "INSERT INTO other VALUES (1, 'hidden')").await;
    query(&owner, "CREATE VIEW v AS SELECT a, b FROM t").await;
    query(&owner, "CREATE ROLE admin SUPERUSER LOGIN PASSWORD 'a secret'").await;
    query(&owner, "CREATE USER clerk PASSWORD 'a secret'").await;
    let clerk = come_in(&world, "clerk").await;
    query(&owner, "GRANT SELECT, INSERT, UPDATE ON v TO clerk").await;
    query(&clerk, "INSERT INTO v VALUES (1, 'one')").await;
    query(&clerk, "UPDATE v SET b = b || '!' WHERE a > 0").await;
    assert_eq!(query(&clerk, "SELECT b FROM v").await, ["one!"]);
    for refused in [
        "DELETE FROM v",
        "INSERT INTO t VALUES (2, 'two')",
        "UPDATE v SET b = o.secret FROM other o WHERE o.a = v.a",
        "UPDATE v SET b = t.b FROM t WHERE t.a = v.a",
        "UPDATE v SET b = 'x' WHERE a IN (SELECT a FROM other)",
    ] {
        assert_eq!(failure(&clerk, refused).await, "42501", "{refused}");
    }
    query(&clerk, "CREATE TEMP VIEW own AS SELECT a, b FROM t").await;
    assert_eq!(failure(&clerk, "INSERT INTO own VALUES (3, 'three')").await, "42501");
}

/// What an UPDATE or a DELETE reads beside its table is read by right, too.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_change_looks_at_is_asked_for() {
    let world = World::new();
    let owner = world.client().await;
    query(&owner, "CREATE TABLE t (a int PRIMARY KEY, b text)").await;
    query(&owner, "CREATE TABLE other (a int, secret text)").await;
    query(&owner, "CREATE ROLE admin SUPERUSER LOGIN PASSWORD 'a secret'").await;
    query(&owner, "CREATE USER clerk PASSWORD 'a secret'").await;
    query(&owner, "GRANT SELECT, UPDATE, DELETE ON t TO clerk").await;
    let clerk = come_in(&world, "clerk").await;
    for text in [
        "UPDATE t SET b = o.secret FROM other o WHERE o.a = t.a",
        "DELETE FROM t USING other o WHERE o.a = t.a",
        "DELETE FROM t WHERE b IN (SELECT secret FROM other)",
    ] {
        assert_eq!(failure(&clerk, text).await, "42501", "{text}");
    }
    query(&owner, "GRANT SELECT ON other TO clerk").await;
    query(&clerk, "UPDATE t SET b = o.secret FROM other o WHERE o.a = t.a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_reads_a_view_waits_for_nobody_who_makes_another() {
    let world = World::new();
    let (one, two) = (world.client().await, world.client().await);
    query(&one, "CREATE TABLE t (a int)").await;
    query(&one, "BEGIN").await;
    query(&one, "CREATE VIEW v AS SELECT a FROM t").await;
    query(&two, "INSERT INTO t VALUES (1)").await;
    assert_eq!(query(&two, "SELECT a FROM t").await, ["1"]);
    query(&two, "SET lock_timeout = '50ms'").await;
    assert_eq!(failure(&two, "DROP TABLE t").await, "55P03");
    query(&one, "COMMIT").await;
    assert_eq!(failure(&two, "DROP TABLE t").await, "2BP01");
    query(&two, "DROP TABLE t CASCADE").await;
    assert_eq!(failure(&one, "SELECT * FROM v").await, "42P01");
}
