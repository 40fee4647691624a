//! A table whose rows are not logged costs no log and is empty after every open; its rows can be
//! moved to one that is logged, each once, and no snapshot sees a row twice or not at all.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use common::faulty_disk::FaultyDisk;
use common::{Fixture, all_rows, delayed_session, ids, note, notes, refused};
use onrush::{
    CheckProgress, ColumnDefinition, DataType, Database, DrainOptions, Error, OnlineOptions,
    ScanOptions, Table, TableDefinition,
};
use onrush_waits::Counter;

/// As `notes`, without a log.
fn front() -> TableDefinition {
    TableDefinition::builder("front")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("note", DataType::Text))
        .primary_key(["id"])
        .unlogged()
        .build()
        .unwrap()
}

fn front_and_notes(fixture: &Fixture) -> (Database, Table, Table) {
    let (db, front) = fixture.create_with(front());
    let notes = db.create_table(notes()).unwrap();
    (db, front, notes)
}

const QUICK: DrainOptions = DrainOptions { interval: Duration::from_millis(1), rows_max: 50 };

#[test]
fn a_commit_of_rows_that_are_not_logged_waits_for_no_disk() {
    let disk = FaultyDisk::default();
    let (db, front, _) = front_and_notes(&Fixture::on(Arc::new(disk.clone())));
    let mut session = db.session().unwrap();
    disk.hold_syncs();
    session.insert(&front, &note(1, "inserted")).unwrap();
    session.insert_many(&front, [&note(2, "of two")[..], &note(3, "of two")]).unwrap();
    session.update(&front, &[1i64.into()], &[("note", "changed".into())]).unwrap();
    session.upsert(&front, &note(4, "upserted")).unwrap();
    assert!(session.delete(&front, &[2i64.into()]).unwrap());
    let mut transaction = session.begin().unwrap();
    transaction.insert(&front, &note(5, "in a transaction")).unwrap();
    transaction.commit().unwrap();
    assert_eq!(ids(&all_rows(&mut session, &front)), [1, 3, 4, 5]);
    disk.release_syncs();
}

#[test]
fn a_row_that_is_not_logged_leaves_two_bytes_in_the_log() {
    let (db, front, _) = front_and_notes(&Fixture::in_memory());
    let mut session = db.session().unwrap();
    session.insert(&front, &note(0, "first")).unwrap();
    let before = session.last_commit_lsn().unwrap();
    for id in 1..=1000 {
        session.insert(&front, &note(id, "a note that the log does not take")).unwrap();
    }
    assert_eq!(session.last_commit_lsn().unwrap() - before, 2000);
}

#[test]
fn the_table_is_there_and_empty_after_a_close() {
    let fixture = Fixture::new();
    let (db, front, _) = front_and_notes(&fixture);
    let mut session = db.session().unwrap();
    (0..5000).for_each(|id| session.insert(&front, &note(id, "gone soon")).unwrap());
    db.checkpoint().unwrap();
    drop(session);
    db.close().unwrap();
    let db = fixture.open();
    let front = db.table("front").unwrap();
    assert!(!front.definition().is_logged());
    let mut session = db.session().unwrap();
    assert!(all_rows(&mut session, &front).is_empty());
    session.insert(&front, &note(1, "again")).unwrap();
    assert_eq!(ids(&all_rows(&mut session, &front)), [1]);
}

#[test]
fn no_checkpoint_writes_rows_that_are_not_logged() {
    let (db, front, _) = front_and_notes(&Fixture::in_memory());
    let mut session = db.session().unwrap();
    (0..5000).for_each(|id| session.insert(&front, &note(id, "only in memory")).unwrap());
    assert_eq!(db.checkpoint().unwrap().images, 0);
    assert_eq!(db.checkpoint().unwrap().segments, 0);
    assert_eq!(all_rows(&mut session, &front).len(), 5000);
}

#[test]
fn a_leaf_in_the_place_of_a_dropped_logged_one_is_not_written() {
    let (db, front, notes) = front_and_notes(&Fixture::in_memory());
    let mut session = db.session().unwrap();
    (0..5000).for_each(|id| session.insert(&notes, &note(id, "listed for a checkpoint")).unwrap());
    db.drop_table("notes").unwrap();
    (0..5000).for_each(|id| session.insert(&front, &note(id, "only in memory")).unwrap());
    assert_eq!(db.checkpoint().unwrap().images, 0);
    let report = db.check(&OnlineOptions::default(), &CheckProgress::default()).unwrap();
    assert!(report.is_sound(), "{report}");
    assert_eq!(all_rows(&mut session, &front).len(), 5000);
}

#[test]
fn a_front_larger_than_memory_is_drained_whole() {
    let fixture = Fixture::new().with_little_memory();
    let (db, front, notes) = front_and_notes(&fixture);
    let mut session = delayed_session(&db);
    let text = "x".repeat(1000);
    // Scattered, so that leaves are loaded and dropped again while it grows.
    (0..6000i64).for_each(|n| session.insert(&front, &note(n * 7919 % 6007, &text)).unwrap());
    assert!(db.statistics().totals.counter(Counter::ImagesEviction) > 0, "it fitted into memory");
    while session.move_rows(&front, &notes, 500).unwrap() > 0 {}
    assert!(all_rows(&mut session, &front).is_empty());
    assert_eq!(all_rows(&mut session, &notes).len(), 6000);
    drop(session);
    db.close().unwrap();
    let db = fixture.open();
    let notes = db.table("notes").unwrap();
    assert_eq!(all_rows(&mut db.session().unwrap(), &notes).len(), 6000);
}

#[test]
fn every_snapshot_sees_each_row_in_one_of_the_two_tables() {
    const SESSIONS: i64 = 3;
    const ROWS: i64 = 2000;
    let (db, front, notes) = front_and_notes(&Fixture::in_memory());
    let drain = db.start_drain(&front, &notes, QUICK).unwrap();
    std::thread::scope(|scope| {
        let inserter = |number: i64| {
            let mut session = db.session().unwrap();
            let front = &front;
            move || {
                for row in 0..ROWS {
                    session.insert(front, &note(number * ROWS + row, "on its way")).unwrap();
                }
            }
        };
        let inserters: Vec<_> = (0..SESSIONS).map(|number| scope.spawn(inserter(number))).collect();
        let mut session = db.session().unwrap();
        while !inserters.iter().all(|inserter| inserter.is_finished()) {
            let snapshot = session.snapshot().unwrap();
            let seen = |table: &Table| -> Vec<i64> {
                let rows = snapshot.scan(table, &ScanOptions::default()).unwrap();
                rows.map(|row| row.unwrap()[0].as_i64().unwrap()).collect()
            };
            let all: Vec<i64> = [seen(&front), seen(&notes)].concat();
            let distinct: BTreeSet<i64> = all.iter().copied().collect();
            assert_eq!(distinct.len(), all.len(), "a row in both tables");
            for number in 0..SESSIONS {
                // Each session inserts in order, so what is seen of it has no holes.
                let own: Vec<i64> =
                    distinct.range(number * ROWS..(number + 1) * ROWS).copied().collect();
                let last = own.last().map_or(0, |last| last - number * ROWS + 1);
                assert_eq!(own.len() as i64, last, "a row in neither table");
            }
        }
    });
    let progress = drain.stop().unwrap();
    assert_eq!(progress.rows, (SESSIONS * ROWS).unsigned_abs());
    let mut session = db.session().unwrap();
    assert!(all_rows(&mut session, &front).is_empty());
    assert_eq!(ids(&all_rows(&mut session, &notes)), (0..SESSIONS * ROWS).collect::<Vec<_>>());
    assert_eq!(db.statistics().totals.counter(Counter::RowsMoved), progress.rows);
}

#[test]
fn rows_of_a_durable_move_survive_and_the_rest_of_the_front_does_not() {
    let fixture = Fixture::new();
    let (db, front, notes) = front_and_notes(&fixture);
    let mut session = db.session().unwrap();
    (0..100).for_each(|id| session.insert(&front, &note(id, "text")).unwrap());
    assert_eq!(session.move_rows(&front, &notes, 60).unwrap(), 60);
    drop(session);
    // No checkpoint, as after a crash: the log must bring them back.
    drop((db, front, notes));
    let db = fixture.open();
    let mut session = db.session().unwrap();
    assert!(all_rows(&mut session, &db.table("front").unwrap()).is_empty());
    let rows = all_rows(&mut session, &db.table("notes").unwrap());
    assert_eq!(ids(&rows), (0..60).collect::<Vec<_>>());
}

#[test]
fn a_key_that_the_target_has_ends_the_drain_and_moves_nothing_of_its_transaction() {
    let (db, front, notes) = front_and_notes(&Fixture::in_memory());
    let mut session = db.session().unwrap();
    session.insert(&notes, &note(7, "was here first")).unwrap();
    (0..10).for_each(|id| session.insert(&front, &note(id, "new")).unwrap());
    let drain = db.start_drain(&front, &notes, QUICK).unwrap();
    let error = refused(drain.stop(), &["notes", "id = 7"]);
    assert!(matches!(error, Error::DuplicateKey { .. }), "{error}");
    assert_eq!(all_rows(&mut session, &front).len(), 10);
    assert_eq!(ids(&all_rows(&mut session, &notes)), [7]);
}

#[test]
fn tables_that_differ_are_refused_by_name() {
    let (db, front, _) = front_and_notes(&Fixture::in_memory());
    let other = db.create_table(common::accounts()).unwrap();
    let mut session = db.session().unwrap();
    refused(session.move_rows(&front, &other, 1), &["front", "accounts", "columns must agree"]);
    refused(session.move_rows(&front, &front, 1), &["they are the same table"]);
    refused(db.start_drain(&front, &other, QUICK).map(|_| ()), &["accounts"]);
}
