//! A process that writes long values durably from several threads is killed, again and again; each time the database is
//! sound, and every acknowledged row is there as a whole, as it was written last.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use common::{Fixture, Random};
use onrush::{Database, Options, Value};
use onrush_check::{CheckOptions, Progress, check};
use onrush_files::OsDisk;

const FOLDER: &str = "ONRUSH_TEST_FOLDER";
const THREADS: i64 = 4;
const ROUNDS: u64 = 12;
/// Keys of a thread.
const KEYS: i64 = 5;

fn options() -> Options {
    Options { checkpoint_log_bytes: 200_000, large_transaction_bytes: 300_000, ..Options::small() }
}

/// What a thread writes as its change of this number, under one of its keys.
fn body(thread: i64, number: i64) -> String {
    let lengths = [10, 9_000, 40_000, 7_900, 700_000, 100_000];
    let unit = format!("{thread}:{number} ");
    unit.repeat(1 + lengths[(number * 7 + thread) as usize % lengths.len()] / unit.len())
}

/// What the killed process does: puts rows, and says so once they are durable.
#[test]
fn child_writes_until_it_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let db = Database::open(folder, options()).unwrap();
    let table = db.table("notes").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                let mut session = db.session().unwrap();
                for number in 0.. {
                    let id = Value::Int64(thread * KEYS + number % KEYS);
                    if number % 11 == 10 {
                        session.delete(table, &[id]).unwrap();
                    } else {
                        session.upsert(table, &[id, body(thread, number).into()]).unwrap();
                    }
                    let line = format!("acknowledged {thread} {number}\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

/// Runs one process to its death; for each thread, how many changes it was told are durable.
fn run_and_kill(fixture: &Fixture, after: u64) -> Vec<i64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_writes_until_it_is_killed", "--nocapture"])
        .env(FOLDER, fixture.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (mut acknowledged, mut seen) = (vec![0; THREADS as usize], 0);
    // After the kill, what was written before it is still in the pipe.
    for line in output.lines() {
        let line = line.unwrap();
        let Some(numbers) = line.strip_prefix("acknowledged ") else { continue };
        let (thread, number) = numbers.split_once(' ').unwrap();
        acknowledged[thread.parse::<usize>().unwrap()] = number.parse::<i64>().unwrap() + 1;
        seen += 1;
        if seen == after {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(seen >= after, "the process ended by itself");
    acknowledged
}

/// The row of a key behind the first `count` changes of its thread.
fn expected(thread: i64, key: i64, count: i64, before: Option<String>) -> Option<String> {
    let last = (0..count).rev().find(|number| number % KEYS == key);
    match last {
        None => before,
        Some(number) if number % 11 == 10 => None,
        Some(number) => Some(body(thread, number)),
    }
}

#[test]
fn every_acknowledged_row_is_whole() {
    let mut fixture = Fixture::new();
    fixture.options = options();
    let (db, _) = fixture.create_with(common::notes());
    db.close().unwrap();
    let mut random = Random(7);
    let mut known = vec![None::<String>; (THREADS * KEYS) as usize];
    for round in 0..ROUNDS {
        let acknowledged = run_and_kill(&fixture, 1 + random.below(120));
        let disk = Arc::new(OsDisk::new());
        let path: &Path = &fixture.path();
        let report = check(disk, path, &CheckOptions::default(), &Progress::default()).unwrap();
        assert!(report.is_sound(), "round {round}: {report}");
        let db = fixture.open();
        let (mut session, table) = (db.session().unwrap(), db.table("notes").unwrap());
        for (thread, acknowledged) in (0i64..).zip(acknowledged) {
            let keys = 0..KEYS;
            let rows: Vec<Option<String>> = keys
                .map(|key| {
                    let row = session.get(&table, &[(thread * KEYS + key).into()]).unwrap();
                    row.map(|row| row[1].as_str().unwrap().to_owned())
                })
                .collect();
            let own = (thread * KEYS) as usize..((thread + 1) * KEYS) as usize;
            // The change that was under way was made, or was not.
            let fits = (acknowledged..=acknowledged + 1).any(|count| {
                (0..KEYS).all(|key| {
                    let before = known[own.clone()][key as usize].clone();
                    rows[key as usize] == expected(thread, key, count, before)
                })
            });
            assert!(fits, "round {round}, thread {thread}: {acknowledged} acknowledged");
            known[own].clone_from_slice(&rows);
        }
        drop(session);
        db.close().unwrap();
    }
}
