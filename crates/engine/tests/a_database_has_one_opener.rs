//! A database that is open cannot be opened again: not in this process, not in another one. When
//! its owner is gone, in whatever way, it can.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use common::{Fixture, notes, refused};
use onrush::{Database, Error, Options};

const FOLDER: &str = "ONRUSH_TEST_FOLDER";

/// What the other process does: opens the database, says so, and waits to be told to end.
#[test]
fn child_holds_the_database() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let _db = Database::open(folder, Options::small()).unwrap();
    println!("open");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read_line(&mut String::new());
}

fn start_child(fixture: &Fixture) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_holds_the_database", "--nocapture"])
        .env(FOLDER, fixture.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.as_mut().unwrap());
    let mut lines = output.lines().map(|line| line.unwrap());
    assert!(lines.any(|line| line.contains("open")), "the other process has ended");
    child
}

#[test]
fn a_second_opener_in_this_process_is_refused() {
    let fixture = Fixture::new();
    let db = fixture.create();
    let error = refused(fixture.try_open(), &["in use", "close"]);
    assert!(matches!(error, Error::InUse { .. }));
    assert!(matches!(refused(fixture.try_create(), &["in use"]), Error::InUse { .. }));
    drop(db);
    fixture.open().close().unwrap();
    fixture.open();
}

#[test]
fn a_second_opener_in_another_process_is_refused_until_the_first_is_gone() {
    let fixture = Fixture::new();
    fixture.create().create_table(notes()).unwrap();
    let mut child = start_child(&fixture);
    let error = refused(fixture.try_open(), &["in use"]);
    assert!(matches!(error, Error::InUse { .. }));
    drop(child.stdin.take());
    child.wait().unwrap();
    fixture.open().table("notes").unwrap();

    // A process that is killed does not keep the folder either.
    let mut child = start_child(&fixture);
    refused(fixture.try_open(), &["in use"]);
    child.kill().unwrap();
    child.wait().unwrap();
    fixture.open().table("notes").unwrap();
}
