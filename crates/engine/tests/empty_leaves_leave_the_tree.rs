//! Leaves whose rows were all deleted are taken out of the tree: memory, data files and directory
//! follow the rows that are there, not those that ever were.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{
    Fixture, Random, all_rows, assert_same_rows, delayed_session, ids, note, noted, notes,
};
use onrush::{
    ColumnDefinition, DataType, Database, Direction, Row, ScanOptions, Session, Table,
    TableDefinition,
};

/// Some forty rows of it fill a leaf.
fn text() -> String {
    "t".repeat(400)
}

fn insert(session: &mut Session, table: &Table, range: std::ops::Range<i64>) {
    let text = text();
    range.for_each(|id| session.insert(table, &note(id, &text)).unwrap());
}

fn delete(session: &mut Session, table: &Table, range: std::ops::Range<i64>) {
    range
        .for_each(|id| assert!(session.delete(table, &[id.into()]).unwrap(), "row {id} was there"));
}

fn rows(range: impl Iterator<Item = i64>) -> Vec<Row> {
    let text = text();
    range.map(|id| noted(id, &text)).collect()
}

/// What a checkpoint of the background thread was about to miss, the second one finds.
fn checkpoint_twice(db: &Database) {
    db.checkpoint().unwrap();
    db.checkpoint().unwrap();
}

#[test]
fn a_window_that_moves_over_the_keys_keeps_its_size() {
    const WINDOW: i64 = 2000;
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    insert(&mut session, &table, 0..WINDOW);
    db.checkpoint().unwrap();
    let leaves = db.statistics().leaves;
    for first in (0..20 * WINDOW).step_by(WINDOW as usize) {
        insert(&mut session, &table, first + WINDOW..first + 2 * WINDOW);
        delete(&mut session, &table, first..first + WINDOW);
        checkpoint_twice(&db);
        let now = db.statistics().leaves;
        assert!(now <= leaves + 3, "{now} leaves instead of {leaves} after key {first}");
    }
    assert_same_rows(
        &all_rows(&mut session, &table),
        &rows(20 * WINDOW..21 * WINDOW),
        "after twenty windows",
    );
}

/// A split leaves two leaves with one image. When the right one is emptied and joined to the left,
/// that image must not bring its rows back.
#[test]
fn rows_deleted_before_a_join_stay_deleted() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    insert(&mut session, &table, 0..30);
    db.checkpoint().unwrap();
    // Between the others: the one leaf splits, and both halves share its image.
    (0..30).for_each(|id| session.upsert(&table, &note(id, &"u".repeat(700))).unwrap());
    assert!(db.statistics().leaves > 1, "no leaf was split");
    delete(&mut session, &table, 1..30);
    db.checkpoint().unwrap();
    drop((session, table, db));
    let db = fixture.open();
    let table = db.table("notes").unwrap();
    assert_eq!(ids(&all_rows(&mut db.session().unwrap(), &table)), [0]);
}

#[test]
fn the_range_of_joined_leaves_takes_rows_again() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    insert(&mut session, &table, 0..3000);
    db.checkpoint().unwrap();
    delete(&mut session, &table, 100..2900);
    db.checkpoint().unwrap();
    insert(&mut session, &table, 500..700);
    let expected = rows((0..100).chain(500..700).chain(2900..3000));
    assert_same_rows(&all_rows(&mut session, &table), &expected, "forward");
    let backward = ScanOptions { direction: Direction::Backward, ..ScanOptions::default() };
    let mut found = common::rows_of(&mut session, &table, &backward);
    found.reverse();
    assert_same_rows(&found, &expected, "backward");
    drop((session, table, db));
    let db = fixture.open();
    let table = db.table("notes").unwrap();
    assert_same_rows(&all_rows(&mut db.session().unwrap(), &table), &expected, "after no close");
}

/// Inner nodes of several levels, and directory segments that vanish with all their leaves.
#[test]
fn a_large_table_that_is_emptied_has_one_leaf() {
    for from_below in [true, false] {
        let fixture = Fixture::in_memory();
        let (db, table) = fixture.create_with(notes());
        let mut session = delayed_session(&db);
        insert(&mut session, &table, 0..40_000);
        db.checkpoint().unwrap();
        let before = db.statistics().leaves;
        assert!(before > 900, "{before} leaves are too few for two levels");
        let half = if from_below { 0..20_000 } else { 20_000..40_000 };
        let rest = if from_below { 20_000..40_000 } else { 0..20_000 };
        delete(&mut session, &table, half);
        db.checkpoint().unwrap();
        assert_same_rows(&all_rows(&mut session, &table), &rows(rest.clone()), "one half");
        delete(&mut session, &table, rest);
        checkpoint_twice(&db);
        // And the table of its long values has one.
        assert_eq!(db.statistics().leaves, 2, "emptied from below: {from_below}");
        db.close().unwrap();
        let db = fixture.open();
        assert_eq!(db.statistics().leaves, 2, "after a close");
        assert!(all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap()).is_empty());
    }
}

/// With memory for a fraction of the leaves, most are evicted when their neighbour is emptied.
#[test]
fn leaves_on_disk_are_joined_too() {
    let fixture = Fixture::in_memory().with_little_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    insert(&mut session, &table, 0..8000);
    // Every other hundred keys, so that the left neighbours of empty leaves have rows.
    let deleted = |id: &i64| id / 100 % 2 == 1;
    // A checkpoint that the log asks for may come while keys are deleted.
    let before = db.statistics().leaves;
    for id in (0..8000).filter(deleted) {
        session.delete(&table, &[id.into()]).unwrap();
    }
    checkpoint_twice(&db);
    let now = db.statistics().leaves;
    assert!(now < before * 4 / 5, "{now} leaves of {before} are left");
    drop((session, table, db));
    let db = fixture.open();
    let found = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_same_rows(&found, &rows((0..8000).filter(|id| !deleted(id))), "after no close");
}

#[test]
fn leaves_of_a_table_that_is_not_logged_are_joined_without_a_checkpoint() {
    let fixture = Fixture::in_memory();
    let definition = TableDefinition::builder("front")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("note", DataType::Text))
        .primary_key(["id"])
        .unlogged()
        .build()
        .unwrap();
    let (db, front) = fixture.create_with(definition);
    let target = db.create_table(notes()).unwrap();
    let mut session = delayed_session(&db);
    insert(&mut session, &front, 0..4000);
    let before = db.statistics().leaves;
    while session.move_rows(&front, &target, 500).unwrap() > 0 {}
    // The background thread looks every few milliseconds.
    let joined = |db: &Database| db.statistics().leaves <= before + 2;
    let begun = std::time::Instant::now();
    while !joined(&db) && begun.elapsed().as_secs() < 60 {
        std::thread::yield_now();
    }
    let now = db.statistics().leaves;
    assert!(joined(&db), "{now} leaves of both tables; the first alone had {before}");
    insert(&mut session, &front, 1000..1010);
    assert_eq!(ids(&all_rows(&mut session, &front)), (1000..1010).collect::<Vec<_>>());
    assert_eq!(all_rows(&mut session, &target).len(), 4000);
}

/// Threads insert and delete ranges of their own while checkpoints join leaves under their hands.
#[test]
fn joins_lose_nothing_beside_inserts_deletes_and_scans() {
    const THREADS: i64 = 3;
    for round in 0..4u64 {
        let fixture = Fixture::in_memory().with_little_memory();
        let (db, table) = fixture.create_with(notes());
        let stop = AtomicBool::new(false);
        let mut expected: BTreeMap<i64, Row> = BTreeMap::new();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (db, table) = (&db, &table);
                    scope.spawn(move || one_thread(db, table, thread, round))
                })
                .collect();
            let (db, table, stop) = (&db, &table, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Acquire) {
                    db.checkpoint().unwrap();
                }
            });
            scope.spawn(move || {
                let mut session = db.session().unwrap();
                while !stop.load(Ordering::Acquire) {
                    let ids = ids(&all_rows(&mut session, table));
                    assert!(ids.is_sorted(), "a scan gives its rows in the order of their keys");
                }
            });
            for worker in workers {
                expected.extend(worker.join().unwrap());
            }
            stop.store(true, Ordering::Release);
        });
        let expected: Vec<Row> = expected.into_values().collect();
        assert_same_rows(&all_rows(&mut db.session().unwrap(), &table), &expected, "at the end");
        drop((table, db));
        let db = fixture.open();
        let found = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
        assert_same_rows(&found, &expected, "after no close");
    }
}

/// Inserts and deletes runs of keys that are its own, among those of the others.
fn one_thread(db: &Database, table: &Table, thread: i64, round: u64) -> BTreeMap<i64, Row> {
    let mut session = delayed_session(db);
    let mut random = Random(round * 100 + thread.unsigned_abs());
    let mut mine: BTreeMap<i64, Row> = BTreeMap::new();
    let text = text();
    for _ in 0..60 {
        let first = random.id_below(5000);
        let is_insert = random.below(2) == 0;
        for key in (first..first + 150).map(|number| number * 3 + thread) {
            if is_insert {
                session.upsert(table, &note(key, &text)).unwrap();
                mine.insert(key, noted(key, &text));
            } else if mine.remove(&key).is_some() {
                session.delete(table, &[key.into()]).unwrap();
            }
        }
    }
    // Most of what is left goes, so that leaves are emptied to the end.
    let gone: Vec<i64> = mine.keys().copied().filter(|key| key % 7 != 0).collect();
    for key in gone {
        session.delete(table, &[key.into()]).unwrap();
        mine.remove(&key);
    }
    mine
}
