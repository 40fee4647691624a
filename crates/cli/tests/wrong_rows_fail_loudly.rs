//! Somebody else changes the database after it was loaded and closed, and before it is opened again and
//! compared: the command must say so, keep the database as evidence, and fail.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use common::{Ran, World};
use onrush::{Database, Options, ScanOptions, Session, Table, Value};

/// Enough that the sync time is measured for most of a second between closing and opening again: that
/// is when the database is nobody's.
const LOAD: &[&str] =
    &["--rows", "21k", "--durability", "delayed", "--leaf-memory", "64MiB", "--dir", "db"];
/// A machine may be so busy that this moment is missed; then it is waited for again.
const TRIES: usize = 20;

/// Runs the load and lets `change` do its work on the closed database.
fn run_with(world: &World, command: &[&str], change: fn(&mut Session, &Table)) -> Ran {
    for _ in 0..TRIES {
        let mut child = Command::new(env!("CARGO_BIN_EXE_onrush"))
            .args(command)
            .args(LOAD)
            .current_dir(world.path(""))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        skip_past(&mut told, "closing");
        skip_past(&mut told, "measuring the sync time");
        signal(&child, "STOP");
        let is_changed = changed(world, change);
        signal(&child, "CONT");
        let mut err = String::new();
        told.read_to_string(&mut err).unwrap();
        let out = child.wait_with_output().unwrap();
        if is_changed {
            let code = out.status.code().unwrap();
            return Ran { code, out: String::from_utf8(out.stdout).unwrap(), err };
        }
    }
    panic!("the database was never seen closed");
}

fn skip_past(lines: &mut impl BufRead, words: &str) {
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it ended before {words:?}");
    }
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
}

/// Whether the change was made: not if the command has the database open again.
fn changed(world: &World, change: fn(&mut Session, &Table)) -> bool {
    let options = Options { leaf_memory_bytes: 64 << 20, ..Options::default() };
    let Ok(database) = Database::open(world.path("db"), options) else { return false };
    let table = database.table("my_big_table").unwrap();
    change(&mut database.session().unwrap(), &table);
    database.close().unwrap();
    true
}

/// The key of some row.
fn some_key(session: &mut Session, table: &Table) -> Value<'static> {
    let row = session.scan(table, &ScanOptions::default()).unwrap().nth(10_000).unwrap().unwrap();
    row.into_iter().next().unwrap()
}

fn assert_fails_loudly(ran: &Ran, world: &World, words: &str) {
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("VERIFICATION FAILED"), "{}", ran.err);
    assert!(ran.err.contains(words), "{}", ran.err);
    assert!(ran.err.contains("is kept in") && world.exists("db"), "{}", ran.err);
}

#[test]
fn a_row_that_is_missing() {
    let world = World::new();
    let ran = run_with(&world, &["lab", "insert"], |session, table| {
        let key = some_key(session, table);
        assert!(session.delete(table, &[key]).unwrap());
    });
    assert_fails_loudly(&ran, &world, "1 acknowledged rows are missing");
    assert!(ran.out.contains("NO, SEE BELOW"), "{}", ran.out);
}

#[test]
fn a_row_that_is_another() {
    let world = World::new();
    let ran = run_with(&world, &["lab", "run", "singleton"], |session, table| {
        let key = some_key(session, table);
        assert!(session.update(table, &[key], &[("c5", Value::Int32(9))]).unwrap());
    });
    assert_fails_loudly(&ran, &world, "c5 is 9, not 2");
}

#[test]
fn a_row_that_nobody_inserted() {
    let world = World::new();
    let ran = run_with(&world, &["lab", "insert", "--json"], |session, table| {
        session.insert(table, &[]).unwrap();
    });
    assert_fails_loudly(&ran, &world, "1 rows too many");
    let result: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(result["verification"]["passed"], false);
}
