//! A backup of an open database holds all that was committed before it, and nothing by halves.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use common::faulty_disk::{Failure, FaultyDisk, Operation};
use common::{Fixture, all_rows, ids, note, noted, notes, refused};
use onrush::{CheckProgress, Database, Durability, Error, KeyStrategy, OnlineOptions, Options};
use onrush_files::{DiskErrorKind, MemoryDisk, OpenMode};

fn full_speed() -> OnlineOptions {
    OnlineOptions { busy_percent: 100, ..OnlineOptions::default() }
}

#[test]
fn what_was_committed_before_is_in_it_and_what_comes_later_is_a_prefix() {
    const THREADS: i64 = 3;
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let stop = AtomicBool::new(false);
    let acknowledged: Vec<AtomicI64> = (0..THREADS).map(|_| AtomicI64::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, table, stop, acknowledged) = (&db, &table, &stop, &acknowledged);
            scope.spawn(move || {
                let mut session = db.session().unwrap();
                session.set_durability(Durability::Delayed);
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    session.insert(table, &note(number * THREADS + thread, "n")).unwrap();
                    acknowledged[thread as usize].store(number + 1, Ordering::Release);
                    if number % 1000 == 999 {
                        db.checkpoint().unwrap();
                    }
                }
            });
        }
        for round in 0..4 {
            let before: Vec<i64> =
                acknowledged.iter().map(|count| count.load(Ordering::Acquire)).collect();
            let copy = fixture.folder.path().join(format!("copy-{round}"));
            db.backup(&copy, &full_speed(), &CheckProgress::default()).unwrap();
            let copied =
                Database::open_on(Arc::clone(&fixture.disk), &copy, Options::small()).unwrap();
            let rows = all_rows(&mut copied.session().unwrap(), &copied.table("notes").unwrap());
            for thread in 0..THREADS {
                let own = ids(&rows).into_iter().filter(|id| id % THREADS == thread);
                let numbers: Vec<i64> = own.map(|id| id / THREADS).collect();
                let count = numbers.len() as i64;
                assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "a prefix of thread {thread}");
                assert!(count >= before[thread as usize], "{count} of {before:?}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_copy_of_a_database_on_several_paths_is_one_folder_that_can_be_moved() {
    let mut fixture = Fixture::in_memory();
    let elsewhere = |name: &str| fixture.folder.path().join(name);
    fixture.options.data_folders = vec![elsewhere("fast"), elsewhere("large")];
    fixture.options.log_folder = Some(elsewhere("journal"));
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    for id in 0..2000 {
        session.insert(&table, &note(id, "somewhere")).unwrap();
    }
    db.checkpoint().unwrap();
    let copy = fixture.folder.path().join("copy");
    db.backup(&copy, &full_speed(), &CheckProgress::default()).unwrap();
    let names = fixture.disk.list(&copy).unwrap();
    let expected = ["backup.json", "data-00.onrush", "data-01.onrush", "log", "superblock.onrush"];
    assert_eq!(names, expected);
    let copied = Database::open_on(Arc::clone(&fixture.disk), &copy, Options::small()).unwrap();
    let table = copied.table("notes").unwrap();
    assert_eq!(all_rows(&mut copied.session().unwrap(), &table).len(), 2000);
}

#[test]
fn generated_keys_of_the_copy_go_on_beyond_those_it_has() {
    let fixture = Fixture::in_memory();
    let strategy = KeyStrategy::Identity { start: 1, strict: false };
    let (db, table) = fixture.create_with(common::generated(strategy));
    let mut session = db.session().unwrap();
    for _ in 0..100 {
        session.insert(&table, &[onrush::Value::Default, onrush::Value::Default]).unwrap();
    }
    let copy = fixture.folder.path().join("copy");
    db.backup(&copy, &full_speed(), &CheckProgress::default()).unwrap();
    let copied = Database::open_on(Arc::clone(&fixture.disk), &copy, Options::small()).unwrap();
    let table = copied.table("log").unwrap();
    let mut session = copied.session().unwrap();
    session.insert(&table, &[onrush::Value::Default, onrush::Value::Default]).unwrap();
    assert_eq!(all_rows(&mut session, &table).len(), 101);
}

#[test]
fn a_folder_with_something_in_it_is_not_touched() {
    let fixture = Fixture::in_memory();
    let db = fixture.create();
    let taken = fixture.folder.path().join("taken");
    fixture.disk.create_folder(&taken).unwrap();
    fixture.disk.open(&taken.join("precious"), OpenMode::CreateNew).unwrap();
    let backup = db.backup(&taken, &full_speed(), &CheckProgress::default());
    refused(backup, &["taken", "exists already"]);
    assert_eq!(fixture.disk.list(&taken).unwrap(), ["precious"]);
    let inside = db.backup(fixture.path().join("in"), &full_speed(), &CheckProgress::default());
    refused(inside, &["inside the database"]);
}

#[test]
fn a_full_disk_leaves_no_half_a_copy_and_the_database_goes_on() {
    let memory = MemoryDisk::new();
    let fixture = Fixture::on(Arc::new(memory.clone()));
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&table, &note(0, "makes the data file grow")).unwrap();
    memory.set_capacity(memory.used_bytes() + (64 << 10));
    let copy = fixture.folder.path().join("copy");
    let backup = db.backup(&copy, &full_speed(), &CheckProgress::default());
    refused(backup, &["cannot write the copy", "nothing of it is kept"]);
    let left = fixture.disk.list(&copy).unwrap();
    let in_log = fixture.disk.list(&copy.join("log")).unwrap_or_default();
    assert!(left.iter().all(|name| name == "log") && in_log.is_empty(), "{left:?}, {in_log:?}");
    session.insert(&table, &note(1, "goes on")).unwrap();
    memory.set_capacity(u64::MAX);
    db.backup(&copy, &full_speed(), &CheckProgress::default()).unwrap();
}

#[test]
fn a_failed_sync_of_the_copy_stops_the_copy_and_not_the_database() {
    let faulty = FaultyDisk::default();
    let fixture = Fixture::on(Arc::new(faulty.clone()));
    let (db, table) = fixture.create_with(notes());
    faulty.fail(Failure {
        operation: Operation::Sync,
        path: "copy/",
        skip: 0,
        kind: DiskErrorKind::Failed,
    });
    let copy = fixture.folder.path().join("copy");
    let backup = db.backup(&copy, &full_speed(), &CheckProgress::default());
    assert!(matches!(refused(backup, &["cannot write the copy"]), Error::Backup(_)));
    faulty.repair();
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "durable")).unwrap();
    assert_eq!(all_rows(&mut session, &table), [noted(1, "durable")]);
}

#[test]
fn damage_is_not_copied() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    db.session().unwrap().insert(&table, &note(1, "a row to be damaged")).unwrap();
    db.checkpoint().unwrap();
    let path = fixture.path().join("data-00.onrush");
    let file = fixture.disk.open(&path, OpenMode::ReadWrite).unwrap();
    file.write_at(b"!", (16 << 10) + 100).unwrap();
    let copy = fixture.folder.path().join("copy");
    let backup = db.backup(&copy, &full_speed(), &CheckProgress::default());
    refused(backup, &["damaged", "no copy", "onrush repair"]);
    assert_eq!(fixture.disk.list(&copy).unwrap(), ["log"]);
}
