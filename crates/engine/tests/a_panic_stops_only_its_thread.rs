//! A thread of the caller's that panics between calls takes nobody with it: its session and its
//! open transaction end, the others go on, and the database closes well.

#![allow(clippy::unwrap_used)]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use common::{Fixture, all_rows, delayed_session, ids, note, notes};
use onrush::ScanOptions;

/// Panics without the noise of a message.
fn panic_quietly() -> ! {
    std::panic::resume_unwind(Box::new("on purpose"))
}

#[test]
fn other_sessions_go_on() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..3)
            .map(|thread| {
                let (db, table) = (&db, &table);
                scope.spawn(move || {
                    let mut session = delayed_session(db);
                    for id in (0..500).map(|n| n * 4 + thread) {
                        session.insert(table, &note(id, "fine")).unwrap();
                    }
                })
            })
            .collect();
        let panicking = scope.spawn(|| {
            let mut session = db.session().unwrap();
            session.insert(&table, &note(3, "before")).unwrap();
            let mut transaction = session.begin().unwrap();
            transaction.insert(&table, &note(7, "never")).unwrap();
            panic_quietly()
        });
        assert!(panicking.join().is_err());
        others.into_iter().for_each(|other| other.join().unwrap());
    });
    let mut expected: Vec<i64> = (0..2000).filter(|id| id % 4 != 3).chain([3]).collect();
    expected.sort_unstable();
    assert_eq!(ids(&all_rows(&mut db.session().unwrap(), &table)), expected);
    db.close().unwrap();
    let db = fixture.open();
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(ids(&rows), expected);
}

/// The caller's own code runs inside some calls: the visitor of a scan, the iterator of a batch.
#[test]
fn a_panic_in_code_that_a_call_runs() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    for id in 0..100 {
        session.insert(&table, &note(id, "text")).unwrap();
    }
    let scan = session.scan(&table, &ScanOptions::default()).unwrap();
    let visited = catch_unwind(AssertUnwindSafe(|| scan.visit_raw(|_, _| panic_quietly())));
    assert!(visited.is_err());
    let row = note(200, "batch");
    let rows = (0..).map(|n| if n < 3 { row.as_slice() } else { panic_quietly() });
    let inserted = catch_unwind(AssertUnwindSafe(|| session.insert_many(&table, rows)));
    assert!(inserted.is_err());
    session.insert(&table, &note(300, "after")).unwrap();
    assert_eq!(all_rows(&mut session, &table).len(), 101);
    drop(session);
    db.close().unwrap();
}
