//! Whatever clients define in transactions of their own, with savepoints, checkpoints and crashes in between: there
//! are the tables that a map says, with their columns, rows, comments and grants.
//!
//! A statement that would wait for another client's transaction is refused at once by `lock_timeout`, and its own
//! transaction rolled back; so is a commit that another one came before. The model goes by what is answered.

use std::collections::BTreeMap;
use std::thread::JoinHandle;

use onrush_files::MemoryDisk;
use proptest::prelude::*;
use tokio_postgres::Client;

use crate::common::{World, client_of, code, query};

const NAMES: [&str; 3] = ["a", "b", "c"];
const CLIENTS: usize = 2;

/// A table, by a number that only the model knows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    name: &'static str,
    columns: usize,
    rows: Vec<i32>,
    comment: Option<i32>,
    is_granted: bool,
    has_key: bool,
}

type Tables = BTreeMap<u32, Table>;

/// What a statement does to a table.
#[derive(Clone, Copy, Debug)]
enum Change {
    Create(&'static str),
    Drop,
    Rename(&'static str),
    AddColumn,
    Truncate,
    Insert(i32),
    Comment(i32),
    Grant(bool),
    AddKey,
}

fn apply(tables: &mut Tables, number: u32, change: Change) {
    if let Change::Create(name) = change {
        let (rows, comment) = (Vec::new(), None);
        let table = Table { name, columns: 1, rows, comment, is_granted: false, has_key: false };
        tables.insert(number, table);
        return;
    }
    let Some(table) = tables.get_mut(&number) else { return };
    match change {
        Change::Create(_) => {}
        Change::Drop => drop(tables.remove(&number)),
        Change::Rename(name) => table.name = name,
        Change::AddColumn => table.columns += 1,
        Change::Truncate => table.rows.clear(),
        Change::Insert(row) => table.rows.push(row),
        Change::Comment(comment) => table.comment = Some(comment),
        Change::Grant(is_granted) => table.is_granted = is_granted,
        Change::AddKey => table.has_key = true,
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Begin,
    Create(usize),
    Drop(usize),
    Rename(usize, usize),
    AddColumn(usize),
    Truncate(usize),
    Insert(usize),
    Comment(usize),
    Grant(usize, bool),
    AddKey(usize),
    Savepoint,
    RollbackTo,
    Commit,
    Rollback,
    Checkpoint,
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let name = || 0..NAMES.len();
    let step = prop_oneof![
        4 => Just(Step::Begin),
        6 => name().prop_map(Step::Create),
        4 => name().prop_map(Step::Drop),
        5 => (name(), name()).prop_map(|(from, to)| Step::Rename(from, to)),
        3 => name().prop_map(Step::AddColumn),
        3 => name().prop_map(Step::Truncate),
        4 => name().prop_map(Step::Insert),
        3 => name().prop_map(Step::Comment),
        3 => (name(), any::<bool>()).prop_map(|(name, is)| Step::Grant(name, is)),
        2 => name().prop_map(Step::AddKey),
        2 => Just(Step::Savepoint),
        2 => Just(Step::RollbackTo),
        3 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        2 => Just(Step::Checkpoint),
        2 => Just(Step::Crash),
    ];
    prop::collection::vec((0..CLIENTS, step), 1..60)
}

/// One client's open transaction.
#[derive(Default)]
struct Own {
    is_open: bool,
    changes: Vec<(u32, Change)>,
    savepoint: Option<usize>,
}

#[derive(Default)]
struct Model {
    committed: Tables,
    clients: [Own; CLIENTS],
    last_number: u32,
}

impl Model {
    fn seen(&self, client: usize) -> Tables {
        let mut tables = self.committed.clone();
        for (number, change) in &self.clients[client].changes {
            apply(&mut tables, *number, *change);
        }
        tables
    }

    /// The statement of a step, and what it changes; none where it would be refused for what the client sees.
    fn statement(&mut self, client: usize, step: Step) -> Option<(String, Option<(u32, Change)>)> {
        let seen = self.seen(client);
        let find = |at: usize| {
            let found = seen.iter().find(|(_, table)| table.name == NAMES[at])?;
            Some((*found.0, NAMES[at]))
        };
        self.last_number += 1;
        let fresh = self.last_number;
        let row = fresh as i32;
        let changed = |text: String, number, change| Some((text, Some((number, change))));
        let own = &self.clients[client];
        let plain = |is_possible: bool, text: &str| is_possible.then(|| (text.to_owned(), None));
        match step {
            Step::Begin => plain(!own.is_open, "BEGIN"),
            Step::Commit => plain(own.is_open, "COMMIT"),
            Step::Rollback => plain(own.is_open, "ROLLBACK"),
            Step::Savepoint => plain(own.is_open, "SAVEPOINT s"),
            Step::RollbackTo => plain(own.savepoint.is_some(), "ROLLBACK TO s"),
            Step::Create(at) => {
                let name = NAMES[at];
                let create = format!("CREATE TABLE {name} (n int)");
                find(at).is_none().then_some((create, Some((fresh, Change::Create(name)))))
            }
            Step::Drop(at) => {
                let (number, name) = find(at)?;
                changed(format!("DROP TABLE {name}"), number, Change::Drop)
            }
            Step::Rename(from, to) => {
                let ((number, name), to_name) = (find(from)?, NAMES[to]);
                let rename = format!("ALTER TABLE {name} RENAME TO {to_name}");
                find(to).is_none().then_some((rename, Some((number, Change::Rename(to_name)))))
            }
            Step::AddColumn(at) => {
                let (number, name) = find(at)?;
                let add = format!("ALTER TABLE {name} ADD COLUMN c{fresh} int");
                changed(add, number, Change::AddColumn)
            }
            Step::Truncate(at) => {
                let (number, name) = find(at)?;
                changed(format!("TRUNCATE {name}"), number, Change::Truncate)
            }
            Step::Insert(at) => {
                let (number, name) = find(at)?;
                let insert = format!("INSERT INTO {name} (n) VALUES ({row})");
                changed(insert, number, Change::Insert(row))
            }
            Step::Comment(at) => {
                let (number, name) = find(at)?;
                let comment = format!("COMMENT ON TABLE {name} IS '{row}'");
                changed(comment, number, Change::Comment(row))
            }
            Step::Grant(at, true) => {
                let (number, name) = find(at)?;
                changed(format!("GRANT SELECT ON {name} TO ann"), number, Change::Grant(true))
            }
            Step::Grant(at, false) => {
                let (number, name) = find(at)?;
                // Where nothing is granted nothing is taken back: what others grant until the commit comes after it.
                let change = seen[&number].is_granted.then_some((number, Change::Grant(false)));
                Some((format!("REVOKE SELECT ON {name} FROM ann"), change))
            }
            Step::AddKey(at) => {
                let (number, name) = find(at)?;
                let is_without = !seen[&number].has_key;
                let add = format!("ALTER TABLE {name} ADD PRIMARY KEY (n)");
                is_without.then_some((add, Some((number, Change::AddKey))))
            }
            Step::Checkpoint | Step::Crash => None,
        }
    }

    /// The statement was done.
    fn done(&mut self, client: usize, text: &str, change: Option<(u32, Change)>) {
        let own = &mut self.clients[client];
        own.changes.extend(change);
        match text {
            "BEGIN" => own.is_open = true,
            "SAVEPOINT s" => own.savepoint = Some(own.changes.len()),
            "ROLLBACK TO s" => own.changes.truncate(own.savepoint.unwrap_or(0)),
            "ROLLBACK" => self.clients[client] = Own::default(),
            _ => {}
        }
        if text == "COMMIT" || !self.clients[client].is_open {
            for (number, change) in std::mem::take(&mut self.clients[client]).changes {
                apply(&mut self.committed, number, change);
            }
        }
    }
}

/// Everything, as a client that has no transaction finds it.
async fn found(client: &Client) -> Vec<Table> {
    let described = query(
        client,
        "SELECT relname, obj_description(oid, 'pg_class'), relacl IS NOT NULL, relhasindex FROM pg_class \
         WHERE relkind = 'r' AND relnamespace = 2200 ORDER BY relname",
    )
    .await;
    let shape = shape(client).await;
    let mut tables = Vec::new();
    for (line, columns) in described.iter().zip(&shape) {
        let fields: Vec<&str> = line.split('|').collect();
        let name = NAMES.into_iter().find(|name| *name == fields[0]).expect("no other table");
        let rows = query(client, &format!("SELECT n FROM {name} ORDER BY n")).await;
        tables.push(Table {
            name,
            columns: columns.strip_prefix(name).unwrap()[1..].parse().unwrap(),
            rows: rows.iter().map(|row| row.parse().unwrap()).collect(),
            comment: fields[1].parse().ok(),
            is_granted: fields[2] == "t",
            has_key: fields[3] == "t",
        });
    }
    tables
}

fn expected(tables: &Tables) -> Vec<Table> {
    let mut expected: Vec<Table> = tables.values().cloned().collect();
    expected.sort_by_key(|table| table.name);
    expected.iter_mut().for_each(|table| table.rows.sort_unstable());
    expected
}

/// Names and columns, which a transaction sees of its own.
async fn shape(client: &Client) -> Vec<String> {
    let shape = "SELECT table_name, count(*) FROM information_schema.columns \
                 WHERE table_schema = 'public' GROUP BY 1 ORDER BY 1";
    query(client, shape).await
}

async fn run(steps: Vec<(usize, Step)>) {
    let disk = MemoryDisk::default();
    let world = World::on(disk.clone());
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let client = world.client().await;
        // What the model's transactions see does not change.
        query(&client, "SET default_transaction_isolation = 'repeatable read'").await;
        query(&client, "SET lock_timeout = '5ms'").await;
        clients.push(client);
    }
    query(&clients[0], "CREATE ROLE ann").await;
    let (mut model, mut checkpoint) = (Model::default(), None::<JoinHandle<()>>);
    for (at, step) in steps {
        match step {
            Step::Crash => {
                let (server, _database) = world.after_a_crash(&disk);
                let again = client_of(&server).await;
                assert_eq!(found(&again).await, expected(&model.committed));
                drop(again);
                server.stop().unwrap();
            }
            Step::Checkpoint => {
                let database = world.database.clone();
                checkpoint.take().into_iter().for_each(|before| before.join().unwrap());
                checkpoint = Some(std::thread::spawn(move || {
                    database.checkpoint().unwrap();
                }));
            }
            _ => take(&mut model, at, step, &clients[at]).await,
        }
    }
    checkpoint.into_iter().for_each(|last| last.join().unwrap());
}

async fn take(model: &mut Model, at: usize, step: Step, client: &Client) {
    let Some((text, change)) = model.statement(at, step) else { return };
    match client.simple_query(&text).await {
        Ok(_) => model.done(at, &text, change),
        Err(error) => {
            let state = code(&error);
            assert!(["55P03", "40P01", "40001"].contains(&state.as_str()), "{text}: {error:?}");
            if model.clients[at].is_open && text != "COMMIT" {
                query(client, "ROLLBACK").await;
            }
            model.clients[at] = Own::default();
        }
    }
    match model.clients[at].is_open {
        false => assert_eq!(found(client).await, expected(&model.committed), "after {text}"),
        true => {
            let line = |table: &Table| format!("{}|{}", table.name, table.columns);
            let seen: Vec<String> = expected(&model.seen(at)).iter().map(line).collect();
            assert_eq!(shape(client).await, seen, "after {text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn there_are_the_tables_that_the_model_has(steps in steps()) {
        tokio::runtime::Runtime::new().unwrap().block_on(run(steps));
    }
}

/// A case that was found once, and what came of it: the inserted row was left behind.
#[test]
fn a_row_of_a_table_that_was_emptied_meanwhile_is_not_left_behind_by_a_key() {
    let steps = vec![
        (0, Step::Create(2)),
        (1, Step::Begin),
        (1, Step::Insert(2)),
        (0, Step::Truncate(2)),
        (0, Step::Rename(2, 1)),
        (1, Step::AddKey(1)),
        (1, Step::Commit),
    ];
    tokio::runtime::Runtime::new().unwrap().block_on(run(steps));
}
