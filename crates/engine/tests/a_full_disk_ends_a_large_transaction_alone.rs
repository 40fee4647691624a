//! The disk gets full in the middle of a large transaction: its statement fails, it rolls back, and what stood
//! before and beside it stands. The space that it took is there again.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{Fixture, all_rows, ids, note, notes};
use onrush::{Database, Error, OnlineOptions, Table, Transaction};
use onrush_check::Progress;
use onrush_files::MemoryDisk;

/// Space for the log, and for some growths of the data file.
const CAPACITY: u64 = 40 << 20;
const BEFORE: i64 = 2000;
/// Far more than the disk has space for.
const TOO_MANY: i64 = 200_000;

fn text() -> String {
    "x".repeat(1000)
}

/// Inserts until the disk is full: how many rows found space.
fn fill(transaction: &mut Transaction<'_>, table: &Table) -> i64 {
    for id in BEFORE..TOO_MANY {
        match transaction.insert(table, &note(id, &text())) {
            Ok(()) => {}
            Err(Error::DiskFull { .. }) => return id - BEFORE,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the disk holds all rows");
}

fn full() -> (Fixture, MemoryDisk, Database, Table) {
    let disk = MemoryDisk::with_capacity(CAPACITY);
    let fixture = Fixture::on(Arc::new(disk.clone())).with_little_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    for id in 0..BEFORE {
        session.insert(&table, &note(id, &text())).unwrap();
    }
    (fixture, disk, db, table)
}

fn check(db: &Database) {
    let options = OnlineOptions { busy_percent: 100, ..OnlineOptions::default() };
    let report = db.check(&options, &Progress::default()).unwrap();
    assert_eq!(report.findings, []);
}

#[test]
fn it_rolls_back_and_the_next_one_finds_as_much_space() {
    let (_fixture, _disk, db, table) = full();
    let (mut one, mut two) = (db.session().unwrap(), db.session().unwrap());
    let mut found_space = Vec::new();
    for _ in 0..3 {
        let mut transaction = one.begin().unwrap();
        found_space.push(fill(&mut transaction, &table));
        // Reads go on, those of the transaction too, and it can still not be committed by half.
        assert_eq!(all_rows(&mut two, &table).len() as i64, BEFORE);
        assert!(matches!(transaction.commit(), Err(Error::DiskFull { .. })));
        assert_eq!(all_rows(&mut two, &table).len() as i64, BEFORE);
        db.checkpoint().unwrap();
        check(&db);
    }
    let least = found_space[0] / 2;
    assert!(found_space.iter().all(|rows| *rows > least.max(1000)), "{found_space:?}");
    // And so does a small one.
    two.insert(&table, &note(BEFORE, "after")).unwrap();
    assert_eq!(ids(&all_rows(&mut two, &table)), (0..=BEFORE).collect::<Vec<_>>());
}

#[test]
fn with_more_space_it_is_done_again_and_commits() {
    let (fixture, disk, db, table) = full();
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    let rows = fill(&mut transaction, &table);
    drop(transaction);
    disk.set_capacity(u64::MAX);
    let mut transaction = session.begin().unwrap();
    for id in BEFORE..BEFORE + 2 * rows {
        transaction.insert(&table, &note(id, &text())).unwrap();
    }
    transaction.commit().unwrap();
    drop(session);
    check(&db);
    drop((table, db));
    let db = fixture.open();
    let rows_found = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap()).len() as i64;
    assert_eq!(rows_found, BEFORE + 2 * rows);
}

#[test]
fn after_a_crash_with_the_disk_full_what_was_committed_is_there() {
    let (fixture, disk, db, table) = full();
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    fill(&mut transaction, &table);
    let crashed = disk.copy();
    drop(transaction);
    drop((session, table, db));
    let db = Database::open_on(Arc::new(crashed), fixture.path(), fixture.options.clone()).unwrap();
    check(&db);
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(ids(&rows), (0..BEFORE).collect::<Vec<_>>());
}
