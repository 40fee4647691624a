//! ALTER TABLE ... ADD PRIMARY KEY and ALTER COLUMN copy the rows while others go on writing to them: no change is
//! lost, everyone sees how far it is, and it is whole or nothing however it ends.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{World, code, failure, message, query};
use onrush::{Database, OnlineOptions};
use onrush_check::Progress;
use onrush_files::MemoryDisk;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

/// So many that there is time to do something while they are copied.
const ROWS: i64 = 60_000;
const ADD_KEY: &str = "ALTER TABLE t ADD PRIMARY KEY (id)";
const LOOK: &str = "SELECT phase, rows_done, rows_expected FROM onrush.rewrites";

/// A table without a key, with rows 0 to `ROWS` - 1.
async fn filled(world: &World) -> Client {
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int NOT NULL, note text)").await;
    let fill = format!(
        "INSERT INTO t SELECT n, 'note ' || n FROM generate_series(0, {}) AS g(n)",
        ROWS - 1
    );
    query(&client, &fill).await;
    client
}

/// Begins a statement that nobody waits for.
fn begin(client: Client, statement: &'static str) -> JoinHandle<Result<(), String>> {
    tokio::spawn(async move {
        client.simple_query(statement).await.map(drop).map_err(|error| code(&error))
    })
}

/// How many rows were copied, if a rewrite is copying rows now.
async fn copied(client: &Client) -> Option<i64> {
    let seen = query(client, LOOK).await;
    let fields: Vec<&str> = seen.first()?.split('|').collect();
    (fields[0] == "copying").then(|| fields[1].parse().unwrap())
}

/// Waits until some rows were copied, and not all.
async fn until_copying(client: &Client, rewrite: &JoinHandle<Result<(), String>>) {
    while copied(client).await.is_none_or(|rows| rows == 0) {
        assert!(!rewrite.is_finished(), "the rewrite was over before it was seen");
    }
}

async fn ids(client: &Client) -> Vec<i64> {
    let rows = query(client, "SELECT id FROM t ORDER BY id").await;
    rows.iter().map(|id| id.parse().unwrap()).collect()
}

fn has_key(database: &Database) -> bool {
    database.table("t").unwrap().definition().row_id().is_none()
}

/// That it has all rows and no key, and nothing is left of the rewrite.
async fn assert_untouched(world: &World, client: &Client) {
    assert!(query(client, LOOK).await.is_empty());
    assert!(!has_key(&world.database));
    assert_eq!(ids(client).await, (0..ROWS).collect::<Vec<_>>());
    check(&world.database);
}

fn check(database: &Database) {
    let options = OnlineOptions { busy_percent: 100, ..OnlineOptions::default() };
    let report = database.check(&options, &Progress::default()).unwrap();
    assert_eq!(report.findings, []);
}

/// What a client has written to its rows, those with `id % CHANGERS == number`.
struct Changer {
    client: Client,
    number: i64,
    rows: BTreeMap<i64, String>,
    random: u64,
    /// Changes that were acknowledged between two looks at the same copying.
    between: u64,
}

const CHANGERS: i64 = 3;

impl Changer {
    async fn new(world: &World, number: i64) -> Changer {
        let mine = (0..ROWS).filter(|id| id % CHANGERS == number);
        let rows = mine.map(|id| (id, format!("note {id}"))).collect();
        let random = 0x9E37_79B9 + number.unsigned_abs();
        Changer { client: world.client().await, number, rows, random, between: 0 }
    }

    fn below(&mut self, end: i64) -> i64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((self.random >> 33) % end.unsigned_abs()).cast_signed()
    }

    /// Inserts, changes or deletes a row.
    async fn change(&mut self) {
        let before = copied(&self.client).await;
        let at = self.below(2 * ROWS / CHANGERS) * CHANGERS + self.number;
        let note = format!("changed {}", self.below(1_000_000));
        let statement = match (self.rows.contains_key(&at), self.below(2)) {
            (false, _) => format!("INSERT INTO t VALUES ({at}, '{note}')"),
            (true, 0) => format!("UPDATE t SET note = '{note}' WHERE id = {at}"),
            (true, _) => format!("DELETE FROM t WHERE id = {at}"),
        };
        query(&self.client, &statement).await;
        match statement.starts_with("DELETE") {
            true => drop(self.rows.remove(&at)),
            false => drop(self.rows.insert(at, note)),
        }
        let after = copied(&self.client).await;
        self.between += u64::from(before.is_some() && before <= after);
    }
}

/// Runs the statement while several clients change rows, and compares what is there with what they did.
async fn rewrite_under_changes(setup: &[&str], statement: &'static str) {
    let world = World::with_space();
    let client = filled(&world).await;
    for statement in setup {
        query(&client, statement).await;
    }
    let mut changers = Vec::new();
    for number in 0..CHANGERS {
        changers.push(Changer::new(&world, number).await);
    }
    let rewrite = begin(world.client().await, statement);
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let tasks: Vec<_> = changers
        .into_iter()
        .map(|mut changer| {
            let is_over = std::sync::Arc::clone(&is_over);
            tokio::spawn(async move {
                // A few more behind the end.
                let mut left = 20;
                while left > 0 {
                    changer.change().await;
                    left -= i32::from(is_over.load(std::sync::atomic::Ordering::Relaxed));
                }
                changer
            })
        })
        .collect();
    rewrite.await.unwrap().unwrap();
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    let (mut expected, mut between) = (BTreeMap::new(), 0);
    for task in tasks {
        let changer = task.await.unwrap();
        expected.extend(changer.rows);
        between += changer.between;
    }
    assert!(between > 0, "nothing was changed while rows were copied");
    let rows = query(&client, "SELECT id, note FROM t ORDER BY id").await;
    let expected: Vec<String> = expected.iter().map(|(id, note)| format!("{id}|{note}")).collect();
    assert_eq!(rows.len(), expected.len());
    assert!(rows == expected, "rows are others than the clients wrote");
    assert!(query(&client, LOOK).await.is_empty());
    check(&world.database);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_added_while_others_insert_change_and_delete_rows() {
    rewrite_under_changes(&[], ADD_KEY).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_type_of_a_key_changes_while_others_insert_change_and_delete_rows() {
    rewrite_under_changes(&[ADD_KEY], "ALTER TABLE t ALTER COLUMN id TYPE bigint").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_type_of_a_column_changes_while_others_insert_change_and_delete_rows() {
    rewrite_under_changes(&[ADD_KEY], "ALTER TABLE t ALTER COLUMN note TYPE varchar(100)").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_not_logged_is_rewritten_while_others_write() {
    let unlogged = [
        "DROP TABLE t",
        "CREATE UNLOGGED TABLE t (id int PRIMARY KEY, note text)",
        "INSERT INTO t SELECT n, 'note ' || n FROM generate_series(0, 59999) AS g(n)",
    ];
    rewrite_under_changes(&unlogged, "ALTER TABLE t ALTER COLUMN note TYPE varchar(100)").await;
}

/// What a statement swaps between two rows is not one key twice at any moment.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_change_hands_meanwhile_are_not_there_twice() {
    let world = World::with_space();
    let other = filled(&world).await;
    let rewrite = begin(world.client().await, ADD_KEY);
    until_copying(&other, &rewrite).await;
    let pairs = [(5, 50_000), (50_001, 6), (1, 2), (59_998, 59_997)];
    let cases: String = pairs
        .iter()
        .map(|(one, two)| format!("WHEN {one} THEN {two} WHEN {two} THEN {one} "))
        .collect();
    let swapped: Vec<String> = pairs.iter().map(|(one, two)| format!("{one}, {two}")).collect();
    let swap =
        format!("UPDATE t SET id = CASE id {cases} END WHERE id IN ({})", swapped.join(", "));
    query(&other, &swap).await;
    query(&other, "DELETE FROM t WHERE id = 7; INSERT INTO t VALUES (7, 'again')").await;
    rewrite.await.unwrap().unwrap();
    assert!(has_key(&world.database));
    assert_eq!(ids(&other).await, (0..ROWS).collect::<Vec<_>>());
    let swapped = "SELECT id, note FROM t WHERE id IN (2, 5, 6, 7)";
    let notes: BTreeSet<String> = query(&other, swapped).await.into_iter().collect();
    assert_eq!(
        notes,
        ["2|note 1", "5|note 50000", "6|note 50001", "7|again"].map(String::from).into()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_with_a_key_that_is_there_meanwhile_ends_it_and_leaves_the_table_as_it_was() {
    let world = World::with_space();
    let other = filled(&world).await;
    let rewrite = begin(world.client().await, ADD_KEY);
    until_copying(&other, &rewrite).await;
    query(&other, "INSERT INTO t VALUES (5, 'twice')").await;
    assert_eq!(rewrite.await.unwrap(), Err("23505".to_owned()));
    query(&other, "DELETE FROM t WHERE note = 'twice'").await;
    assert_untouched(&world, &other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewrite_is_seen_with_the_client_that_has_asked_for_it_and_how_far_it_is() {
    let world = World::with_space();
    let other = filled(&world).await;
    let client = world.client().await;
    let number = query(&client, "SELECT pg_backend_pid()").await.remove(0);
    let rewrite = begin(client, ADD_KEY);
    until_copying(&other, &rewrite).await;
    let columns = "SELECT client, table_name, began <= now() FROM onrush.rewrites";
    assert_eq!(query(&other, columns).await, [format!("{number}|t|t")]);
    let mut expected = 0;
    while let Some(seen) = query(&other, LOOK).await.first() {
        let fields: Vec<&str> = seen.split('|').collect();
        expected = fields[2].parse().unwrap_or(expected);
    }
    rewrite.await.unwrap().unwrap();
    assert!((ROWS * 9 / 10..=ROWS * 11 / 10).contains(&expected), "{expected} rows expected");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewrite_that_is_cancelled_or_takes_too_long_leaves_nothing() {
    let world = World::with_space();
    let other = filled(&world).await;
    let leaves = world.database.statistics().leaves;
    let client = world.client().await;
    let token = client.cancel_token();
    let rewrite = begin(client, ADD_KEY);
    until_copying(&other, &rewrite).await;
    token.cancel_query(tokio_postgres::NoTls).await.unwrap();
    assert_eq!(rewrite.await.unwrap(), Err("57014".to_owned()));
    assert_eq!(world.database.statistics().leaves, leaves);
    query(&other, "SET statement_timeout = '20ms'").await;
    assert_eq!(failure(&other, ADD_KEY).await, "57014");
    query(&other, "SET statement_timeout = 0").await;
    assert_untouched(&world, &other).await;
    assert_eq!(world.database.statistics().leaves, leaves);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewrite_ends_with_its_client() {
    let world = World::with_space();
    let other = filled(&world).await;
    let mut client = world.raw_client().await;
    let statement = format!("{ADD_KEY}\0");
    client.write_all(&message(b'Q', statement.as_bytes())).await.unwrap();
    while copied(&other).await.is_none_or(|rows| rows == 0) {}
    drop(client);
    while !query(&other, LOOK).await.is_empty() {}
    assert_untouched(&world, &other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_definition_of_the_table_waits_for_the_rewrite_and_is_not_lost() {
    let world = World::with_space();
    let (looking, other) = (filled(&world).await, world.client().await);
    let rewrite = begin(world.client().await, ADD_KEY);
    until_copying(&looking, &rewrite).await;
    query(&other, "SET lock_timeout = '1ms'").await;
    assert_eq!(failure(&other, "DROP TABLE t").await, "55P03");
    query(&other, "SET lock_timeout = 0").await;
    let added = begin(other, "ALTER TABLE t ADD COLUMN more int DEFAULT 7");
    // Neither keeps a writer off.
    query(&looking, "INSERT INTO t VALUES (-1, 'meanwhile')").await;
    rewrite.await.unwrap().unwrap();
    added.await.unwrap().unwrap();
    assert!(has_key(&world.database));
    assert_eq!(query(&looking, "SELECT * FROM t WHERE id = -1").await, ["-1|meanwhile|7"]);
    assert_eq!(query(&looking, "SELECT count(*) FROM t").await, [(ROWS + 1).to_string()]);
}

/// It waits for those who are in the middle of something, is seen to wait, and goes on when they are through.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_step_waits_for_who_holds_the_table() {
    let world = World::with_space();
    let (holder, other) = (filled(&world).await, world.client().await);
    query(&holder, "BEGIN; COMMENT ON TABLE t IS 'held'").await;
    let rewrite = begin(world.client().await, ADD_KEY);
    let waits = "SELECT phase, rounds > 0 FROM onrush.rewrites";
    while query(&other, waits).await != ["waiting for the lock|t"] {
        assert!(!rewrite.is_finished());
    }
    query(&holder, "COMMIT").await;
    rewrite.await.unwrap().unwrap();
    assert!(has_key(&world.database));
    let said = "SELECT obj_description(oid, 'pg_class') FROM pg_class WHERE relname = 't'";
    assert_eq!(query(&other, said).await, ["held"]);
}

/// Power is cut at many moments of a rewrite.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_leaves_the_old_table_or_the_new_one_whole() {
    let disk = MemoryDisk::default();
    let world = World::on(disk.clone());
    let other = filled(&world).await;
    let rewrite = begin(world.client().await, ADD_KEY);
    let (mut crashes, mut phases) = (Vec::new(), BTreeSet::new());
    while !rewrite.is_finished() {
        let seen = query(&other, LOOK).await;
        let phase = seen.first().and_then(|line| line.split('|').next()).unwrap_or_default();
        // A copy of the disk takes its time: not at every look.
        if phases.insert(phase.to_owned()) || crashes.len() < 8 {
            crashes.push(disk.copy());
        }
    }
    rewrite.await.unwrap().unwrap();
    crashes.push(disk.copy());
    assert!(phases.contains("copying"), "{phases:?}");
    let last = crashes.len() - 1;
    for (number, disk) in crashes.into_iter().enumerate() {
        let database = world.open_on(disk);
        let names: Vec<String> = database.tables().iter().map(|it| it.name().to_owned()).collect();
        assert_eq!(
            names.iter().filter(|name| !name.starts_with("onrush.")).count(),
            1,
            "{names:?}"
        );
        let (table, has_key) = (database.table("t").unwrap(), has_key(&database));
        assert!(has_key || number < last);
        let mut session = database.session().unwrap();
        let rows = session.scan(&table, &onrush::ScanOptions::default()).unwrap();
        let at = table.definition().column_index("id").unwrap();
        let ids: BTreeSet<i64> = rows.map(|row| row.unwrap()[at].as_i64().unwrap()).collect();
        assert_eq!(ids.len() as i64, ROWS);
        drop(session);
        check(&database);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_rows_that_were_deleted_do_not_come_again() {
    let world = World::new();
    let client = world.client().await;
    let identity = "CREATE TABLE t (id bigint GENERATED BY DEFAULT AS IDENTITY, note text)";
    for statement in [identity, "INSERT INTO t (note) VALUES ('a'), ('b'), ('c')"] {
        query(&client, statement).await;
    }
    let last = || query(&client, "INSERT INTO t (note) VALUES ('next') RETURNING id");
    let mut highest: i64 = last().await[0].parse().unwrap();
    for statement in [ADD_KEY, "ALTER TABLE t ALTER COLUMN id TYPE int"] {
        query(&client, "DELETE FROM t").await;
        query(&client, statement).await;
        let next: i64 = last().await[0].parse().unwrap();
        assert!(next > highest, "{statement}: {next} after {highest}");
        highest = next;
    }
}

/// The rows of a large table are not touched for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_default_and_not_null_change_without_a_copy() {
    let disk = MemoryDisk::default();
    let world = World::on(disk.clone());
    let client = world.client().await;
    let number = || world.database.table("t").unwrap().id();
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, note text, more int DEFAULT 1)").await;
    query(&client, "INSERT INTO t VALUES (1, 'one'), (2, NULL)").await;
    let before = number();
    let not_null = "ALTER TABLE t ALTER note SET NOT NULL";
    assert_eq!(failure(&client, not_null).await, "23502");
    query(&client, "UPDATE t SET note = 'two' WHERE id = 2").await;
    query(&client, not_null).await;
    assert_eq!(failure(&client, "INSERT INTO t VALUES (3, NULL)").await, "23502");
    query(&client, "ALTER TABLE t ALTER note SET DEFAULT 'new', ALTER more SET DEFAULT 2").await;
    query(&client, "INSERT INTO t (id) VALUES (3)").await;
    query(
        &client,
        "ALTER TABLE t ALTER note DROP NOT NULL, ALTER note DROP DEFAULT, ALTER more DROP DEFAULT",
    )
    .await;
    query(&client, "INSERT INTO t (id) VALUES (4)").await;
    query(
        &client,
        "ALTER TABLE t ALTER more SET DEFAULT (1 + 2), ALTER note SET DEFAULT md5(random()::text)",
    )
    .await;
    query(&client, "INSERT INTO t (id) VALUES (5)").await;
    let rows =
        query(&client, "SELECT id, CASE id WHEN 5 THEN 'made' ELSE note END, more FROM t").await;
    assert_eq!(rows, ["1|one|1", "2|two|1", "3|new|2", "4|∅|∅", "5|made|3"]);
    assert_eq!(number(), before, "the table is the same");
    let (server, database) = world.after_a_crash(&disk);
    check(&database);
    let again = crate::common::client_of(&server).await;
    let after =
        query(&again, "SELECT id, CASE id WHEN 5 THEN 'made' ELSE note END, more FROM t").await;
    assert_eq!(after, rows);
}
