//! With every key strategy, 24 threads insert at once: all rows are there, no key is given twice,
//! also after closing, after opening without closing, and with more sessions.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashSet;

use common::{Fixture, all_rows, delayed_session, generated};
use onrush::{Database, KeyStrategy, SequentialKeys, Value};

const THREADS: usize = 24;
const ROWS: usize = 150;

/// Inserts from many threads; the keys that were handed out.
fn insert_from_all(db: &Database, note: &str) -> Vec<String> {
    let table = db.table("log").unwrap();
    let insert = || {
        let mut session = delayed_session(db);
        let row = [Value::Default, note.into()];
        let key = |_| session.insert_returning_key(&table, &row).unwrap().remove(0).to_string();
        (0..ROWS).map(key).collect::<Vec<String>>()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(insert)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn check(strategy: KeyStrategy, sequential_keys: SequentialKeys) {
    let mut fixture = Fixture::in_memory();
    fixture.options.sequential_keys = sequential_keys;
    let (mut db, _) = fixture.create_with(generated(strategy));
    let mut given = Vec::new();
    for round in ["first", "again", "after close", "after no close"] {
        given.extend(insert_from_all(&db, round));
        let table = db.table("log").unwrap();
        let rows = all_rows(&mut db.session().unwrap(), &table);
        assert_eq!(rows.len(), given.len(), "{strategy} {round}");
        let stored: HashSet<String> = rows.iter().map(|row| row[0].to_string()).collect();
        assert_eq!(stored.len(), given.len(), "{strategy} {round}: a key was given twice");
        assert!(given.iter().all(|key| stored.contains(key)), "{strategy} {round}");
        match round {
            "again" => {
                db.close().unwrap();
                db = fixture.open();
            }
            "after close" => {
                drop(db);
                db = fixture.open();
            }
            _ => {}
        }
    }
}

#[test]
fn by_every_strategy() {
    for strategy in KeyStrategy::ALL {
        check(strategy, SequentialKeys::Blocks);
    }
}

#[test]
fn by_strict_identity() {
    check(KeyStrategy::Identity { start: -50, strict: true }, SequentialKeys::Blocks);
}

#[test]
fn where_all_sessions_meet_on_the_last_leaf() {
    check(KeyStrategy::Identity { start: 1, strict: false }, SequentialKeys::SharedEdge);
}

/// A key that was handed out and whose row was lost, or rolled back, is not handed out again.
#[test]
fn also_keys_of_rows_that_never_came_to_be() {
    for strategy in KeyStrategy::ALL {
        let fixture = Fixture::in_memory();
        let (db, table) = fixture.create_with(generated(strategy));
        let mut session = db.session().unwrap();
        let mut seen = HashSet::new();
        let mut transaction = session.begin().unwrap();
        for _ in 0..10 {
            transaction.insert(&table, &[]).unwrap();
        }
        let scan = transaction.scan(&table, &onrush::ScanOptions::default()).unwrap();
        seen.extend(scan.map(|row| row.unwrap()[0].to_string()));
        transaction.rollback();
        assert_eq!(seen.len(), 10);
        drop((session, db));
        let db = fixture.open();
        let given = insert_from_all(&db, "later");
        assert!(given.into_iter().all(|key| seen.insert(key)), "{strategy}");
    }
}
