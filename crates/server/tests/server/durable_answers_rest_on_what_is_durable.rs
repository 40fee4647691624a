//! A client that waits for durability is never told anything that a power cut could make untrue: rows,
//! counts and errors wait for the commits of others that they tell of.
//!
//! One client, or a program in the same process, inserts row 1, deletes row 2 and changes row 3, and the
//! disk is held, so that nothing of it is durable. Then another client asks. Whoever is told at once hears
//! of what a power cut would take.

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, pin_mut};
use onrush::{Database, Durability, Options};
use onrush_waits::Wait;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::common::{World, code, query};
use crate::held_disk::HeldDisk;

const CHANGES: &str = "BEGIN; INSERT INTO t VALUES (1, 10, 0); DELETE FROM t WHERE id = 2; \
                       UPDATE t SET a = 31 WHERE id = 3; COMMIT";

/// How a client asks.
#[derive(Clone, Copy, Debug)]
enum By {
    Simple,
    Extended,
    /// Three times at once, in one stretch of messages.
    Pipeline,
    CopyIn,
    CopyOut,
}

#[derive(Clone, Debug)]
struct Case {
    /// Said before anything has changed.
    before: &'static str,
    /// Said then, and told at once: it rests on nothing new.
    first: &'static str,
    asked: &'static str,
    by: By,
    /// Rows by spaces, then the count; or the SQLSTATE. Empty: whatever it is.
    told: &'static str,
}

fn case(first: &'static str, asked: &'static str, told: &'static str) -> Case {
    Case { before: "", first, asked, by: By::Simple, told }
}

/// Statements that are asked alone and in a transaction, by each protocol.
const STATEMENTS: &[(&str, &str)] = &[
    ("INSERT INTO t VALUES (1, 0, 0) ON CONFLICT DO NOTHING", "0"),
    ("INSERT INTO t VALUES (1, 0, 0) ON CONFLICT (id) DO UPDATE SET b = 9 WHERE false", "0"),
    ("INSERT INTO t VALUES (1, 0, 0) ON CONFLICT DO NOTHING RETURNING id", "0"),
    ("INSERT INTO t SELECT * FROM u ON CONFLICT DO NOTHING", "0"),
    ("INSERT INTO t SELECT * FROM u", "23505"),
    ("INSERT INTO t VALUES (1, 0, 0)", "23505"),
    ("INSERT INTO t VALUES (7, 0, 0), (1, 0, 0)", "23505"),
    ("INSERT INTO t SELECT id + 10, a, b FROM t WHERE a = 20", "0"),
    ("UPDATE t SET b = 1 WHERE id = 2", "0"),
    ("UPDATE t SET b = 1 WHERE id = 2 RETURNING a", "0"),
    ("UPDATE t SET b = b + 1 WHERE id = 2", "0"),
    ("UPDATE t SET b = 1 WHERE a = 30", "0"),
    ("UPDATE t SET id = 1 WHERE id = 4", "23505"),
    ("DELETE FROM t WHERE id = 2", "0"),
    ("DELETE FROM t WHERE a = 20 RETURNING id", "0"),
    ("SELECT a FROM t WHERE id = 1", "10 1"),
    ("SELECT a FROM t WHERE id = 2", "0"),
    ("SELECT a FROM t WHERE id = 3", "31 1"),
    ("SELECT count(*) FROM t", "3 1"),
    ("SELECT id FROM t WHERE a < 35 ORDER BY id", "1 3 2"),
    ("SELECT 1 / (a - 31) FROM t WHERE id = 3", "22012"),
    ("EXPLAIN ANALYZE SELECT a FROM t WHERE id = 1", ""),
    ("EXPLAIN ANALYZE SELECT count(*) FROM t", ""),
];

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (asked, told) in STATEMENTS {
        for first in ["", "BEGIN", "BEGIN; SAVEPOINT s"] {
            for by in [By::Simple, By::Extended] {
                cases.push(Case { by, ..case(first, asked, told) });
            }
        }
    }
    // What the client writes itself comes later than what it rests on, and waits anyway.
    cases.extend([
        case("", "UPDATE t SET b = 1 WHERE a = 31", "1"),
        case("", "INSERT INTO t VALUES (1, 0, 0) ON CONFLICT (id) DO UPDATE SET b = 9", "1"),
        case("", "SELECT id FROM t WHERE id = 4; SELECT id FROM t WHERE id = 1", "4 1 1 1"),
        case("BEGIN", "DECLARE c CURSOR FOR SELECT id FROM t", "0"),
        case("BEGIN", "DECLARE c CURSOR FOR SELECT id FROM t; FETCH 2 FROM c", "0 1 3 2"),
        case("PREPARE p AS SELECT a FROM t WHERE id = $1", "EXECUTE p (1)", "10 1"),
        case(
            "SET synchronous_commit = off; SELECT a FROM t WHERE id = 1",
            "SELECT onrush.wait_durable()",
            "∅ 1",
        ),
    ]);
    let asked = "INSERT INTO t VALUES (1, 0, 0) ON CONFLICT DO NOTHING";
    cases.push(Case { by: By::Pipeline, ..case("", asked, "0, 0, 0") });
    let asked = "INSERT INTO t VALUES (1, 0, 0)";
    cases.push(Case { by: By::Pipeline, ..case("", asked, "23505, 23505, 23505") });
    cases.push(Case { by: By::CopyIn, ..case("", "COPY t FROM STDIN", "23505") });
    cases.push(Case { by: By::CopyIn, ..case("BEGIN", "COPY t FROM STDIN", "23505") });
    cases.push(Case { by: By::CopyOut, ..case("", "COPY t TO STDOUT", "") });
    // A transaction that is older than the changes and cannot go on because of them.
    let before = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t";
    cases.push(Case { before, ..case("", "UPDATE t SET b = 1 WHERE id = 3", "40001") });
    cases.push(Case { before, ..case("", "DELETE FROM t WHERE id = 2", "40001") });
    let before = "BEGIN; SELECT count(*) FROM t";
    cases.push(Case { before, ..case("", "INSERT INTO t VALUES (1, 0, 0)", "23505") });
    cases
}

async fn ask(client: &Client, by: By, text: &str) -> String {
    match by {
        By::Simple => simple(client, text).await,
        By::Extended => extended(client, text).await,
        By::Pipeline => {
            let one = || extended(client, text);
            let (first, second, third) = tokio::join!(one(), one(), one());
            [first, second, third].join(", ")
        }
        By::CopyIn => {
            let sink = client.copy_in::<_, Bytes>(text).await.unwrap();
            pin_mut!(sink);
            sink.send(Bytes::from_static(b"1\t0\t0\n")).await.unwrap();
            sink.finish().await.map_or_else(|error| code(&error), |rows| rows.to_string())
        }
        By::CopyOut => {
            let rows = client.copy_out(text).await.unwrap();
            pin_mut!(rows);
            let mut lines = String::new();
            while let Some(line) = rows.next().await {
                lines.push_str(std::str::from_utf8(&line.unwrap()).unwrap());
            }
            lines
        }
    }
}

async fn simple(client: &Client, text: &str) -> String {
    let messages = match client.simple_query(text).await {
        Ok(messages) => messages,
        Err(error) => return code(&error),
    };
    let mut told = Vec::new();
    for message in messages {
        match message {
            SimpleQueryMessage::Row(row) => told.push(row.get(0).unwrap_or("∅").to_owned()),
            SimpleQueryMessage::CommandComplete(count) => told.push(count.to_string()),
            _ => {}
        }
    }
    told.join(" ")
}

/// As [`simple`], by a prepared statement; values as text, and the count of the tag.
async fn extended(client: &Client, text: &str) -> String {
    let statement = match client.prepare(text).await {
        Ok(statement) => statement,
        Err(error) => return code(&error),
    };
    if statement.columns().is_empty() {
        let count = client.execute(&statement, &[]).await;
        return count.map_or_else(|error| code(&error), |count| count.to_string());
    }
    let rows = match client.query(&statement, &[]).await {
        Ok(rows) => rows,
        Err(error) => return code(&error),
    };
    let value = |row: &tokio_postgres::Row| {
        let as_int = row.try_get::<_, i32>(0).map(|value| value.to_string());
        as_int.or_else(|_| row.try_get::<_, i64>(0).map(|value| value.to_string()))
    };
    let mut told: Vec<String> = rows.iter().filter_map(|row| value(row).ok()).collect();
    told.push(rows.len().to_string());
    told.join(" ")
}

/// Sessions that wait for the log at this moment.
fn waiting(database: &Database) -> usize {
    let of_log = |session: &&onrush::LiveSummary| session.waits_now == Some(Wait::WriteLog);
    database.sessions().iter().filter(of_log).count()
}

async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

/// Who makes the changes that are not durable.
#[derive(Clone, Copy, Debug)]
enum Changer {
    /// A client, by one transaction, which it waits for.
    Client,
    /// A program that does not wait, row by row.
    Program,
}

struct Stage {
    disk: HeldDisk,
    world: World,
    changes: Vec<tokio::task::JoinHandle<()>>,
}

impl Stage {
    async fn new() -> Stage {
        let disk = HeldDisk::default();
        // The disk is held for longer than any delayed commit would wait.
        let options = Options { delayed_window_ms: 600_000, ..Options::small() };
        let world = World::on_disk(std::sync::Arc::new(disk.clone()), options);
        let client = world.client().await;
        query(&client, "CREATE TABLE t (id int PRIMARY KEY, a int, b int)").await;
        query(&client, "CREATE TABLE u (id int PRIMARY KEY, a int, b int)").await;
        query(&client, "INSERT INTO t VALUES (2, 20, 0), (3, 30, 0), (4, 40, 0)").await;
        query(&client, "INSERT INTO u VALUES (1, 0, 0)").await;
        Stage { disk, world, changes: Vec::new() }
    }

    /// What is told of from now on is not durable.
    async fn change(&mut self, by: Changer) {
        self.disk.hold();
        let database = &self.world.database;
        match by {
            Changer::Client => {
                let client = self.world.client().await;
                let told = async move { drop(client.simple_query(CHANGES).await.unwrap()) };
                self.changes.push(tokio::spawn(told));
                until(|| waiting(database) == 1).await;
            }
            Changer::Program => {
                let table = database.table("t").unwrap();
                let mut session = database.session().unwrap();
                session.set_durability(Durability::Delayed);
                session.insert(&table, &[1.into(), 10.into(), 0.into()]).unwrap();
                session.delete(&table, &[2.into()]).unwrap();
                session.update(&table, &[3.into()], &[("a", 31.into())]).unwrap();
            }
        }
    }
}

/// Whether a database on this disk has the changes.
fn has_changes(disk: onrush_files::MemoryDisk, world: &World) -> bool {
    let database = world.open_on(disk);
    let table = database.table("t").unwrap();
    let mut session = database.session().unwrap();
    let is_there = session.get(&table, &[1.into()]).unwrap().is_some();
    let is_gone = session.get(&table, &[2.into()]).unwrap().is_none();
    let changed = session.get(&table, &[3.into()]).unwrap().unwrap();
    is_there && is_gone && changed[1] == 31.into()
}

/// What is wrong with what a client was told.
async fn judge(case: &Case, changer: Changer) -> Option<String> {
    let mut stage = Stage::new().await;
    let client = stage.world.client().await;
    if !case.before.is_empty() {
        simple(&client, case.before).await;
    }
    stage.change(changer).await;
    let waiting_before = waiting(&stage.world.database);
    if !case.first.is_empty() {
        simple(&client, case.first).await;
    }
    let (by, asked, disk) = (case.by, case.asked, stage.disk.clone());
    let told = tokio::spawn(async move {
        let told = ask(&client, by, asked).await;
        (told, disk.after_a_power_cut(), client)
    });
    until(|| told.is_finished() || waiting(&stage.world.database) > waiting_before).await;
    stage.disk.release();
    let (told, left, _client) = told.await.unwrap();
    let what = format!("{changer:?}: {} {:?} {}", case.first, case.by, case.asked);
    if !has_changes(left, &stage.world) {
        return Some(format!("{what}: told {told:?} of what a power cut took"));
    }
    for change in stage.changes {
        change.await.unwrap();
    }
    let is_right = case.told.is_empty() || told == case.told;
    (!is_right).then(|| format!("{what}: told {told:?} and not {:?}", case.told))
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_durable_client_is_told_survives_a_power_cut() {
    let mut wrong = Vec::new();
    for case in cases() {
        for changer in [Changer::Client, Changer::Program] {
            wrong.extend(judge(&case, changer).await);
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

/// Who does not ask for durability is told at once, and so is who only begins a transaction behind a commit
/// that was not to be waited for.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_for_no_durability_is_told_at_once() {
    let mut stage = Stage::new().await;
    let (client, local) = (stage.world.client().await, stage.world.client().await);
    query(&client, "SET synchronous_commit = off").await;
    stage.change(Changer::Program).await;
    assert_eq!(simple(&client, "SELECT a FROM t WHERE id = 1").await, "10 1");
    assert_eq!(simple(&client, "INSERT INTO t VALUES (1, 0, 0)").await, "23505");
    query(&local, "BEGIN; SET LOCAL synchronous_commit = off; INSERT INTO t VALUES (8, 0, 0)")
        .await;
    query(&local, "COMMIT").await;
    query(&local, "BEGIN").await;
    assert_eq!(simple(&local, "SELECT a FROM t WHERE id = 4").await, "40 1");
    assert!(!has_changes(stage.disk.after_a_power_cut(), &stage.world));
    stage.disk.release();
}
