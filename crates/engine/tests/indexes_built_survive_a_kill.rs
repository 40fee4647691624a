//! A process that builds an index again and again while its sessions write is killed; each time the database is sound,
//! the index is there as a whole or not at all, and every acknowledged row is there.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use common::Fixture;
use onrush::{
    ColumnDefinition, DataType, Database, Error, NewIndex, OnlineOptions, Options, Session, Table,
    TableDefinition,
};
use onrush_check::Progress;

const FOLDER: &str = "ONRUSH_TEST_FOLDER";
const THREADS: i64 = 3;
const ROUNDS: u64 = 8;
/// Rows that are there from the beginning.
const ROWS: i64 = 20_000;

fn options() -> Options {
    Options { checkpoint_log_bytes: 400_000, ..Options::small() }
}

fn by_number(is_unique: bool) -> NewIndex {
    let index = NewIndex::new("by_number", ["number"]);
    if is_unique { index.unique() } else { index }
}

fn write(
    db: &Database,
    session: &mut Session,
    change: impl Fn(&mut Session, &Table) -> Result<(), Error>,
) {
    while let Err(error) = change(session, &db.table("items").unwrap()) {
        assert!(matches!(error, Error::TableChanged { .. }), "{error}");
    }
}

/// What the killed process does: writes rows, and says so once they are durable.
#[test]
fn child_builds_until_it_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let db = Database::open(folder, options()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let db = &db;
            scope.spawn(move || {
                let mut session = db.session().unwrap();
                let first = db.table("items").unwrap();
                let mut next = ROWS + thread;
                while session.get(&first, &[next.into()]).unwrap().is_some() {
                    next += THREADS;
                }
                for id in (next..).step_by(THREADS as usize) {
                    let old = [((id * 31) % ROWS).into()];
                    write(db, &mut session, |session, table| {
                        session.insert(table, &[id.into(), id.into()])
                    });
                    write(db, &mut session, |session, table| session.delete(table, &old).map(drop));
                    write(db, &mut session, |session, table| {
                        session.insert(table, &[old[0].clone(), (-id).into()])
                    });
                    let line = format!("acknowledged {id}\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
        for round in 0.. {
            let _ = db.drop_index("by_number");
            db.create_index("items", &by_number(round % 2 == 0)).unwrap();
        }
    });
}

/// Runs one process to its death; the rows that it was told are durable.
fn run_and_kill(fixture: &Fixture, after: u64) -> Vec<i64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_builds_until_it_is_killed", "--nocapture"])
        .env(FOLDER, fixture.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged = Vec::new();
    for line in output.lines() {
        let line = line.unwrap();
        let Some(id) = line.strip_prefix("acknowledged ") else { continue };
        acknowledged.push(id.parse().unwrap());
        if acknowledged.len() as u64 == after {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    acknowledged
}

#[test]
fn an_index_is_whole_or_absent_after_a_kill() {
    let mut fixture = Fixture::new();
    fixture.options = options();
    let column = |name| ColumnDefinition::new(name, DataType::Int64).not_null();
    let items = TableDefinition::builder("items").column(column("id")).column(column("number"));
    let (db, table) = fixture.create_with(items.primary_key(["id"]).build().unwrap());
    let mut session = db.session().unwrap();
    for id in 0..ROWS {
        session.insert_token(&table, &[id.into(), id.into()]).unwrap();
    }
    drop((session, table));
    db.close().unwrap();
    for round in 0..ROUNDS {
        let acknowledged = run_and_kill(&fixture, 7 + round * 23);
        let db = fixture.open();
        let table = db.table("items").unwrap();
        assert!(table.definition().indexes().iter().all(|index| !index.is_building));
        let options = OnlineOptions { busy_percent: 100, ..OnlineOptions::default() };
        let report = db.check(&options, &Progress::default()).unwrap();
        assert_eq!(report.findings, [], "round {round}");
        let mut session = db.session().unwrap();
        for id in acknowledged {
            assert!(session.get(&table, &[id.into()]).unwrap().is_some(), "row {id}");
        }
        drop(session);
        db.close().unwrap();
    }
}
