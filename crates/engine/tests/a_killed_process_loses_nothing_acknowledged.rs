//! A process that inserts durably from 16 threads is killed, again and again; each time every
//! acknowledged row is there, and what is there of each thread is a prefix of what it did.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use common::{Fixture, Random, all_rows};
use onrush::{ColumnDefinition, DataType, Database, Options, TableDefinition};

const FOLDER: &str = "ONRUSH_TEST_FOLDER";
const ROUND: &str = "ONRUSH_TEST_ROUND";
const THREADS: i64 = 16;
const ROUNDS: i64 = 50;

/// `done (round, thread, number, primary key of all)`.
fn done() -> TableDefinition {
    let column = |name: &str| ColumnDefinition::new(name, DataType::Int64).not_null();
    TableDefinition::builder("done")
        .column(column("round"))
        .column(column("thread"))
        .column(column("number"))
        .primary_key(["round", "thread", "number"])
        .build()
        .unwrap()
}

/// What the killed process does: inserts, and says so once it is durable.
#[test]
fn child_inserts_until_it_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let round: i64 = std::env::var(ROUND).unwrap().parse().unwrap();
    let db = Database::open(folder, options()).unwrap();
    let table = db.table("done").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                let mut session = db.session().unwrap();
                for number in 0.. {
                    let row = [round.into(), thread.into(), number.into()];
                    session.insert(table, &row).unwrap();
                    let line = format!("acknowledged {thread} {number}\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

/// Small enough that rounds are killed inside of checkpoints, too.
fn options() -> Options {
    Options { checkpoint_log_bytes: 8192, ..Options::small() }
}

/// Runs one process to its death; for each thread, how many rows it was told are durable.
fn run_and_kill(fixture: &Fixture, round: i64, after: u64) -> Vec<i64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_inserts_until_it_is_killed", "--nocapture"])
        .env(FOLDER, fixture.path())
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged = vec![0; THREADS as usize];
    let mut seen = 0;
    let mut line = String::new();
    // After the kill, what was written before it is still in the pipe.
    while output.read_line(&mut line).unwrap() > 0 {
        if let Some(numbers) = line.strip_suffix('\n').and_then(|l| l.strip_prefix("acknowledged "))
        {
            let (thread, number) = numbers.split_once(' ').unwrap();
            acknowledged[thread.parse::<usize>().unwrap()] = number.parse::<i64>().unwrap() + 1;
            seen += 1;
            if seen == after {
                child.kill().unwrap();
            }
        }
        line.clear();
    }
    child.wait().unwrap();
    assert!(seen >= after, "the process ended by itself");
    acknowledged
}

#[test]
fn every_acknowledged_row_is_there() {
    let mut fixture = Fixture::new();
    fixture.options = options();
    fixture.create_with(done());
    let mut random = Random(2024);
    let mut expected = Vec::new();
    for round in 0..ROUNDS {
        let acknowledged = run_and_kill(&fixture, round, 1 + random.below(200));
        let db = fixture.open();
        let rows = all_rows(&mut db.session().unwrap(), &db.table("done").unwrap());
        let earlier = expected.len();
        assert_eq!(rows[..earlier], expected, "round {round}: earlier rounds have changed");
        for (thread, acknowledged) in (0i64..).zip(acknowledged) {
            let own = rows[earlier..].iter().filter(|row| row[1] == thread.into());
            let numbers: Vec<i64> = own.map(|row| row[2].as_i64().unwrap()).collect();
            let count = numbers.len() as i64;
            assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "round {round} has a hole");
            let fits = count == acknowledged || count == acknowledged + 1;
            assert!(fits, "round {round}: {acknowledged} acknowledged, {count} there");
        }
        expected = rows;
    }
}
