//! Many threads insert, change, delete and scan at once in a table that is far larger than memory,
//! while checkpoints run: each thread's rows are at every moment what that thread made them.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Fixture, Random, all_rows, assert_same_rows, delayed_session, note, noted, notes};
use onrush::{Database, Direction, Row, ScanOptions, Session, Table};

const THREADS: i64 = 8;
const OPERATIONS: u64 = 2500;
const KEYS: i64 = 4000;

fn range(thread: i64, backward: bool) -> ScanOptions<'static> {
    let direction = if backward { Direction::Backward } else { Direction::Forward };
    ScanOptions {
        from: Bound::Included(vec![(thread * KEYS).into()]),
        to: Bound::Excluded(vec![((thread + 1) * KEYS).into()]),
        direction,
        limit: None,
    }
}

fn rows_of_model(model: &BTreeMap<i64, String>) -> Vec<Row> {
    model.iter().map(|(key, text)| noted(*key, text)).collect()
}

/// One thread's work on its own keys, checked against its own map.
fn work(session: &mut Session, table: &Table, thread: i64, model: &mut BTreeMap<i64, String>) {
    let mut random = Random(thread.unsigned_abs());
    for number in 0..OPERATIONS {
        let key = thread * KEYS + random.id_below(KEYS);
        let text = format!("{number} ").repeat(random.below(120) as usize + 1);
        match random.below(100) {
            0..50 => {
                session.upsert(table, &note(key, &text)).unwrap();
                model.insert(key, text);
            }
            50..70 => {
                let deleted = session.delete(table, &[key.into()]).unwrap();
                assert_eq!(deleted, model.remove(&key).is_some());
            }
            70..80 => {
                let set = [("note", text.as_str().into())];
                let updated = session.update(table, &[key.into()], &set).unwrap();
                assert_eq!(updated, model.contains_key(&key));
                if updated {
                    model.insert(key, text);
                }
            }
            80..99 => {
                let row = session.get(table, &[key.into()]).unwrap();
                assert_eq!(row, model.get(&key).map(|text| noted(key, text)));
            }
            _ => {
                let backward = number % 2 == 0;
                let scan = session.scan(table, &range(thread, backward)).unwrap();
                let rows: Vec<Row> = scan.map(|row| row.unwrap()).collect();
                let mut expected = rows_of_model(model);
                if backward {
                    expected.reverse();
                }
                let when = format!("thread {thread}, operation {number}");
                assert_same_rows(&rows, &expected, &when);
            }
        }
    }
}

fn run(db: &Database, table: &Table) -> Vec<Row> {
    let left = AtomicU64::new(THREADS.unsigned_abs());
    let mut models: Vec<BTreeMap<i64, String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let left = &left;
                scope.spawn(move || {
                    let mut model = BTreeMap::new();
                    work(&mut delayed_session(db), table, thread, &mut model);
                    left.fetch_sub(1, Ordering::AcqRel);
                    model
                })
            })
            .collect();
        scope.spawn(|| {
            while left.load(Ordering::Acquire) > 0 {
                db.checkpoint().unwrap();
            }
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    models.iter_mut().flat_map(|model| rows_of_model(model)).collect()
}

#[test]
fn each_thread_finds_what_it_made() {
    let fixture = Fixture::in_memory().with_little_memory();
    let (db, table) = fixture.create_with(notes());
    let expected = run(&db, &table);
    assert_same_rows(&all_rows(&mut db.session().unwrap(), &table), &expected, "before closing");
    drop((table, db));
    for opening in ["after no close", "after close"] {
        let db = fixture.open();
        let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
        assert_same_rows(&rows, &expected, opening);
        db.close().unwrap();
    }
}

/// Readers find every row that was there before they began, while leaves split around them.
#[test]
fn readers_miss_nothing_while_leaves_split() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let (inserted, text) = (AtomicU64::new(0), "x".repeat(400));
    const ROWS: u64 = 6000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = delayed_session(&db);
            // Scattered, so that leaves split in the middle.
            for number in 0..ROWS {
                let key = (number * 2_654_435_761 % ROWS).cast_signed();
                session.upsert(&table, &note(key, &text)).unwrap();
                inserted.store(number + 1, Ordering::Release);
            }
        });
        for backward in [false, true] {
            let (db, table, inserted) = (&db, &table, &inserted);
            scope.spawn(move || {
                let mut session = db.session().unwrap();
                let (mut random, mut done) = (Random(3), 0);
                while done < ROWS {
                    done = inserted.load(Ordering::Acquire);
                    let direction = if backward { Direction::Backward } else { Direction::Forward };
                    let options = ScanOptions { direction, ..ScanOptions::default() };
                    let scan = session.scan(table, &options).unwrap();
                    let rows = scan.visit_raw(|_, _| {}).unwrap();
                    assert!(rows >= done, "{rows} rows of {done}");
                    for _ in 0..20 {
                        let number = random.below(done.max(1));
                        let key = (number * 2_654_435_761 % ROWS).cast_signed();
                        let row = session.get(table, &[key.into()]).unwrap();
                        assert!(row.is_some() || done == 0, "row {number} of {done}");
                    }
                }
            });
        }
    });
}

/// A leaf that splits while a checkpoint is about to image it: both halves need an image.
#[test]
fn leaves_that_split_during_a_checkpoint_lose_nothing() {
    for round in 0..12 {
        let fixture = Fixture::in_memory();
        let (db, table) = fixture.create_with(notes());
        let text = format!("{round} ").repeat(200);
        let left = AtomicU64::new(2);
        std::thread::scope(|scope| {
            for thread in 0..2u64 {
                let (db, table, text, left) = (&db, &table, &text, &left);
                scope.spawn(move || {
                    let mut session = delayed_session(db);
                    for number in 0..1500 {
                        let key = ((number * 2 + thread) * 7919 % 3000).cast_signed();
                        session.insert(table, &note(key, text)).unwrap();
                    }
                    left.fetch_sub(1, Ordering::AcqRel);
                });
            }
            while left.load(Ordering::Acquire) > 0 {
                db.checkpoint().unwrap();
            }
        });
        drop((table, db));
        let db = fixture.open();
        let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
        let expected: Vec<Row> = (0..3000).map(|key| noted(key, &text)).collect();
        assert_same_rows(&rows, &expected, "after no close");
    }
}
