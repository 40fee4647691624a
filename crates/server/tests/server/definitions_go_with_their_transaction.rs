//! What a transaction creates, alters, empties, drops and says of tables comes and goes with it, whatever ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onrush::Database;
use onrush_files::MemoryDisk;
use tokio_postgres::Client;

use crate::common::{World, client_of, failure, query};

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
    // Until the server has seen that, the name is taken, and waited for.
    query(&other, CREATE).await;
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
    all(&one, &["ROLLBACK", "INSERT INTO t VALUES (1, 'a')", "BEGIN", "DROP TABLE t"]).await;
    query(&one, "DROP TABLE IF EXISTS t").await;
    assert_eq!(query(&other, "SELECT * FROM t").await, ["1|a"]);
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

/// What others say of a table while a transaction defines it, and what comes of it when that has ended.
#[tokio::test(flavor = "multi_thread")]
async fn others_wait_with_what_they_would_define_or_write_until_the_transaction_ends() {
    for (end, state) in [("ROLLBACK", None), ("COMMIT", Some("42P01"))] {
        for statement in [
            "DROP TABLE t",
            "ALTER TABLE t ADD COLUMN n int",
            "TRUNCATE t",
            "COMMENT ON TABLE t IS 'waited'",
            "GRANT SELECT ON t TO ann",
            "INSERT INTO t VALUES (2, 'b')",
            "UPDATE t SET note = 'c' WHERE id = 1",
        ] {
            let world = World::new();
            let (one, other) = (world.client().await, world.client().await);
            all(&one, &[CREATE, "CREATE ROLE ann", "INSERT INTO t VALUES (1, 'a')"]).await;
            all(&one, &["BEGIN", "DROP TABLE t"]).await;
            let waiting = tokio::spawn(async move { outcome(&other, statement).await });
            until_somebody_waits(&world).await;
            query(&one, end).await;
            assert_eq!(waiting.await.unwrap().as_deref(), state, "{statement} after {end}");
        }
    }
}

/// A transaction that writes to a table which another one alters goes on behind it, as in PostgreSQL.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_writes_waits_for_a_definition_and_sees_what_came_of_it() {
    for (statement, after) in [
        ("INSERT INTO t VALUES (2, 'b')", vec!["1|a|7", "2|b|7"]),
        ("UPDATE t SET note = 'c' WHERE id = 1", vec!["1|c|7"]),
        ("DELETE FROM t WHERE note = 'a'", vec![]),
    ] {
        let world = World::new();
        let (one, other) = (world.client().await, world.client().await);
        all(&one, &[CREATE, "INSERT INTO t VALUES (1, 'a')"]).await;
        all(&one, &["BEGIN", "ALTER TABLE t ADD COLUMN n int DEFAULT 7"]).await;
        query(&other, "BEGIN").await;
        let waiting = tokio::spawn(async move {
            (outcome(&other, statement).await, outcome(&other, "COMMIT").await)
        });
        until_somebody_waits(&world).await;
        query(&one, "COMMIT").await;
        assert_eq!(waiting.await.unwrap(), (None, None), "{statement}");
        assert_eq!(query(&one, "SELECT * FROM t ORDER BY id").await, after, "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wants_a_name_waits_for_the_transaction_that_gives_it_to_a_table() {
    for (end, state) in [("ROLLBACK", None), ("COMMIT", Some("42P07"))] {
        let world = World::new();
        let (one, other) = (world.client().await, world.client().await);
        all(&one, &["BEGIN", CREATE]).await;
        let waiting = tokio::spawn(async move { outcome(&other, CREATE).await });
        until_somebody_waits(&world).await;
        query(&one, end).await;
        assert_eq!(waiting.await.unwrap().as_deref(), state, "{end}");
    }
}

/// The SQLSTATE that a statement fails with.
async fn outcome(client: &Client, statement: &str) -> Option<String> {
    let error = client.simple_query(statement).await.err()?;
    Some(error.code().unwrap().code().to_owned())
}

/// Until a session waits for the definition of another one.
async fn until_somebody_waits(world: &World) {
    let waits = |session: &onrush::LiveSummary| {
        matches!(
            session.waits_now,
            Some(onrush::Wait::LockSchemaExclusive | onrush::Wait::LockSchemaShared)
        )
    };
    while !world.database.sessions().iter().any(waits) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_by_lock_timeout_statement_timeout_or_cancel() {
    let world = World::new();
    let (one, other) = (world.client().await, world.client().await);
    all(&one, &[CREATE, "BEGIN", "DROP TABLE t"]).await;
    all(&other, &["SET lock_timeout = '10ms'"]).await;
    assert_eq!(failure(&other, "DROP TABLE t").await, "55P03");
    assert_eq!(failure(&other, "INSERT INTO t VALUES (1, 'a')").await, "55P03");
    all(&other, &["SET lock_timeout = 0", "SET statement_timeout = '10ms'"]).await;
    assert_eq!(failure(&other, "ALTER TABLE t ADD COLUMN n int").await, "57014");
    query(&other, "SET statement_timeout = 0").await;
    let token = other.cancel_token();
    let waiting = tokio::spawn(async move { outcome(&other, "TRUNCATE t").await });
    until_somebody_waits(&world).await;
    token.cancel_query(tokio_postgres::NoTls).await.unwrap();
    assert_eq!(waiting.await.unwrap().as_deref(), Some("57014"));
    query(&one, "ROLLBACK").await;
}

/// Each has what the other wants; one of them is refused, and the other goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock_of_two_transactions_is_found_and_one_of_them_goes_on() {
    for last in ["DROP TABLE a", "INSERT INTO a VALUES (2)", "COMMIT"] {
        let world = World::new();
        let (one, other) = (world.client().await, world.client().await);
        all(&one, &["CREATE TABLE a (n int)", "CREATE TABLE b (n int)"]).await;
        all(&other, &["BEGIN", "INSERT INTO a VALUES (1)"]).await;
        all(&one, &["BEGIN", "ALTER TABLE a ADD COLUMN m int"]).await;
        all(&other, &["ALTER TABLE b ADD COLUMN m int"]).await;
        let waiting = tokio::spawn(async move { outcome(&one, "DROP TABLE b; COMMIT").await });
        until_somebody_waits(&world).await;
        assert_eq!(outcome(&other, last).await.as_deref(), Some("40P01"), "{last}");
        query(&other, "ROLLBACK").await;
        assert_eq!(waiting.await.unwrap(), None, "{last}");
    }
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

/// A definition, a question, its answer before and after.
const DEFINITIONS: [(&str, &str, &str, &str); 9] = [
    (
        "ALTER TABLE t ADD COLUMN n int DEFAULT 7",
        "SELECT count(*) FROM information_schema.columns WHERE table_name = 't'",
        "2",
        "3",
    ),
    (
        "ALTER TABLE t RENAME TO u",
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'",
        "t",
        "u",
    ),
    (
        "ALTER TABLE t RENAME COLUMN note TO said",
        "SELECT column_name FROM information_schema.columns WHERE ordinal_position = 2 AND table_name = 't'",
        "note",
        "said",
    ),
    (
        "COMMENT ON TABLE t IS 'new'",
        "SELECT obj_description('t'::regclass, 'pg_class')",
        "∅",
        "new",
    ),
    ("COMMENT ON COLUMN t.note IS 'new'", "SELECT col_description('t'::regclass, 2)", "∅", "new"),
    ("TRUNCATE t", "SELECT count(*) FROM t", "1", "0"),
    ("CREATE SCHEMA s", "SELECT count(*) FROM pg_namespace WHERE nspname = 's'", "0", "1"),
    ("CREATE ROLE bob", "SELECT count(*) FROM pg_roles WHERE rolname = 'bob'", "0", "1"),
    (
        "GRANT SELECT ON t TO ann",
        "SELECT relacl IS NOT NULL FROM pg_class WHERE relname = 't'",
        "f",
        "t",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_definition_is_seen_by_its_transaction_and_goes_with_it() {
    for (statement, question, before, after) in DEFINITIONS {
        let world = World::new();
        let (one, other) = (world.client().await, world.client().await);
        all(&one, &[CREATE, "CREATE ROLE ann", "INSERT INTO t VALUES (1, 'a')"]).await;
        all(&one, &["BEGIN", statement]).await;
        assert_eq!(query(&one, question).await, [after], "{statement}");
        assert_eq!(query(&other, question).await, [before], "{statement}");
        query(&one, "ROLLBACK").await;
        assert_eq!(query(&one, question).await, [before], "{statement}");
        all(&one, &["BEGIN", "SAVEPOINT s", statement, "ROLLBACK TO s"]).await;
        assert_eq!(query(&one, question).await, [before], "{statement}");
        all(&one, &[statement, "COMMIT"]).await;
        assert_eq!(query(&other, question).await, [after], "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_leaves_each_definition_whole_or_nothing_of_it() {
    for (statement, question, before, after) in DEFINITIONS {
        let disk = MemoryDisk::default();
        let world = World::on(disk.clone());
        let client = world.client().await;
        all(&client, &[CREATE, "CREATE ROLE ann", "INSERT INTO t VALUES (1, 'a')"]).await;
        all(&client, &["BEGIN", statement]).await;
        for expected in [before, after] {
            let (server, _database) = world.after_a_crash(&disk);
            let again = client_of(&server).await;
            assert_eq!(query(&again, question).await, [expected], "{statement}");
            drop(again);
            server.stop().unwrap();
            query(&client, "COMMIT").await;
        }
    }
}

/// A name passed on, whatever comes to stand under it: what was granted and said goes with the table.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_granted_and_said_goes_with_the_table_and_never_with_its_name() {
    let world = World::new();
    let client = world.client().await;
    let granted = |name: &str| {
        format!(
            "SELECT relacl IS NOT NULL, obj_description(oid, 'pg_class') FROM pg_class WHERE relname = '{name}'"
        )
    };
    all(&client, &[CREATE, "CREATE ROLE ann", "GRANT SELECT ON t TO ann"]).await;
    all(&client, &["COMMENT ON TABLE t IS 'first'", "ALTER TABLE t RENAME TO u", CREATE]).await;
    assert_eq!(query(&client, &granted("u")).await, ["t|first"]);
    assert_eq!(query(&client, &granted("t")).await, ["f|∅"]);
    all(&client, &["DROP TABLE u", "ALTER TABLE t RENAME TO u"]).await;
    assert_eq!(query(&client, &granted("u")).await, ["f|∅"]);
    // A role of the same name is another one.
    all(&client, &["GRANT SELECT ON u TO ann", "DROP OWNED BY ann", "DROP ROLE ann"]).await;
    all(&client, &["CREATE ROLE ann"]).await;
    assert_eq!(query(&client, &granted("u")).await, ["f|∅"]);
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
        assert_eq!(query(&other, "SELECT * FROM t").await, ["1|old"]);
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

/// As PostgreSQL has it: what comes in one message is one transaction.
#[tokio::test(flavor = "multi_thread")]
async fn definitions_and_rows_of_one_message_come_together_or_not_at_all() {
    let world = World::new();
    let client = world.client().await;
    let broken = "CREATE TABLE t (id int); INSERT INTO t VALUES (1); CREATE ROLE ann; SELECT 1 / 0";
    assert_eq!(failure(&client, broken).await, "22012");
    assert_eq!(tables(&world.database), [""; 0]);
    assert_eq!(query(&client, "SELECT count(*) FROM pg_roles WHERE rolname = 'ann'").await, ["0"]);
    query(&client, "CREATE TABLE t (id int); INSERT INTO t VALUES (1); CREATE ROLE ann").await;
    assert_eq!(query(&client, "SELECT * FROM t").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_table_is_not_written_by_others_until_the_transaction_is_over() {
    let world = World::new();
    let (one, two) = (world.client().await, world.client().await);
    query(&one, "CREATE TABLE t (id int PRIMARY KEY)").await;
    query(&two, "SET lock_timeout = '5ms'").await;
    for (mode, is_written, is_altered) in [
        ("ACCESS SHARE", true, false),
        ("ROW EXCLUSIVE", true, false),
        ("SHARE UPDATE EXCLUSIVE", true, false),
        ("SHARE", false, false),
        ("ACCESS EXCLUSIVE", false, false),
    ] {
        query(&one, "BEGIN").await;
        query(&one, &format!("LOCK TABLE t IN {mode} MODE")).await;
        let refusal = |is_taken: bool| if is_taken { "no error" } else { "55P03" };
        let written = failure(&two, "INSERT INTO t VALUES (1)").await;
        assert_eq!(written, refusal(is_written), "INSERT under {mode}");
        let altered = failure(&two, "ALTER TABLE t ADD COLUMN n int").await;
        assert_eq!(altered, refusal(is_altered), "ALTER TABLE under {mode}");
        query(&two, "BEGIN").await;
        let locked = failure(&two, "LOCK TABLE t NOWAIT").await;
        assert_eq!(locked, "55P03", "LOCK TABLE under {mode}");
        query(&two, "ROLLBACK").await;
        // Readers see what was committed, whatever is locked.
        query(&two, "SELECT * FROM t").await;
        query(&one, "ROLLBACK").await;
        query(&two, "DELETE FROM t").await;
    }
}
