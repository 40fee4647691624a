//! Whatever transactions create and drop, with savepoints and crashes in between: there are the tables that
//! a map says, each with the row that it was created with.

use std::collections::{BTreeMap, BTreeSet};

use onrush::{Database, ScanOptions};
use onrush_files::MemoryDisk;
use proptest::prelude::*;
use tokio_postgres::Client;

use crate::common::{World, query};

const NAMES: [&str; 2] = ["a", "b"];

/// The number in the only row of each table.
type Tables = BTreeMap<&'static str, i32>;

#[derive(Clone, Copy, Debug)]
enum Step {
    Begin,
    Create(usize),
    Drop(usize),
    Savepoint,
    RollbackTo,
    Commit,
    Rollback,
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => Just(Step::Begin),
        6 => (0..NAMES.len()).prop_map(Step::Create),
        6 => (0..NAMES.len()).prop_map(Step::Drop),
        2 => Just(Step::Savepoint),
        2 => Just(Step::RollbackTo),
        1 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        2 => Just(Step::Crash),
    ];
    prop::collection::vec(step, 1..60)
}

#[derive(Default)]
struct Model {
    committed: Tables,
    now: Tables,
    is_open: bool,
    savepoint: Option<Tables>,
    /// By the transaction; a second time that is refused.
    created: BTreeSet<&'static str>,
    last_number: i32,
}

impl Model {
    /// The statement of a step, where it is one that is not refused.
    fn take(&mut self, step: Step) -> Option<String> {
        match step {
            Step::Begin if !self.is_open => {
                self.is_open = true;
                Some("BEGIN".to_owned())
            }
            Step::Create(at) if !self.now.contains_key(NAMES[at]) => {
                let name = NAMES[at];
                if self.is_open && !self.created.insert(name) {
                    return None;
                }
                self.last_number += 1;
                self.now.insert(name, self.last_number);
                Some(format!("CREATE TABLE {name} (n int)"))
            }
            Step::Drop(at) => {
                self.now.remove(NAMES[at])?;
                Some(format!("DROP TABLE {}", NAMES[at]))
            }
            Step::Savepoint if self.is_open => {
                self.savepoint = Some(self.now.clone());
                Some("SAVEPOINT s".to_owned())
            }
            Step::RollbackTo => {
                self.now = self.savepoint.clone()?;
                Some("ROLLBACK TO s".to_owned())
            }
            Step::Commit if self.is_open => Some("COMMIT".to_owned()),
            Step::Rollback if self.is_open => {
                self.now = self.committed.clone();
                Some("ROLLBACK".to_owned())
            }
            _ => None,
        }
    }

    fn end(&mut self, statement: &str) {
        if matches!(statement, "COMMIT" | "ROLLBACK") {
            self.is_open = false;
        }
        if !self.is_open {
            self.savepoint = None;
            self.created.clear();
            self.committed = self.now.clone();
        }
    }
}

/// What the engine has, of users.
fn stored(database: &Database) -> Tables {
    let mut session = database.session().unwrap();
    let mut tables = Tables::new();
    for definition in database.tables() {
        if definition.name() == "onrush.definitions" {
            continue;
        }
        let name = NAMES.iter().find(|name| **name == definition.name()).expect("no other table");
        let table = database.table(name).unwrap();
        let rows: Vec<_> = session.scan(&table, &ScanOptions::default()).unwrap().collect();
        assert_eq!(rows.len(), 1, "{name}");
        tables.insert(*name, rows[0].as_ref().unwrap()[0].as_i64().unwrap() as i32);
    }
    tables
}

async fn seen(client: &Client) -> Tables {
    let mut tables = Tables::new();
    for name in NAMES {
        if let Ok(rows) = client.query(&format!("SELECT n FROM {name}"), &[]).await {
            tables.insert(name, rows[0].get(0));
        }
    }
    tables
}

async fn run(steps: Vec<Step>) {
    let disk = MemoryDisk::default();
    let world = World::on(disk.clone());
    let (client, mut model) = (world.client().await, Model::default());
    for step in steps {
        if matches!(step, Step::Crash) {
            let (server, database) = world.after_a_crash(&disk);
            assert_eq!(stored(&database), model.committed);
            server.stop().unwrap();
        }
        let Some(statement) = model.take(step) else { continue };
        query(&client, &statement).await;
        if let Step::Create(at) = step {
            // Outside of a transaction, by itself.
            query(&client, &format!("INSERT INTO {} VALUES ({})", NAMES[at], model.last_number))
                .await;
        }
        model.end(&statement);
        if !model.is_open {
            assert_eq!(stored(&world.database), model.committed);
            assert_eq!(seen(&client).await, model.committed);
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
