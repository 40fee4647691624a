//! After close every call says so, everything acknowledged is there at the next open, and close
//! may meet sessions in the middle of their work.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, all_rows, delayed_session, ids, note, notes};
use onrush::{Error, Lsn, ScanOptions};

#[test]
fn every_call_after_close_says_closed() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let (mut session, other) = (db.session().unwrap(), db.clone());
    session.insert(&table, &note(1, "one")).unwrap();
    let mut snapshot = session.snapshot().unwrap();
    db.close().unwrap();
    let results = [
        session.insert(&table, &note(2, "two")).err(),
        session.insert_token(&table, &note(2, "two")).err(),
        session.upsert(&table, &note(1, "two")).err(),
        session.get(&table, &[1i64.into()]).err(),
        session.delete(&table, &[1i64.into()]).err(),
        session.update(&table, &[1i64.into()], &[("note", "x".into())]).err(),
        session.scan(&table, &ScanOptions::default()).err(),
        session.begin().err(),
        session.snapshot().err(),
        snapshot.get(&table, &[1i64.into()]).err(),
        other.session().err(),
        other.create_table(notes().renamed("more").unwrap()).err(),
        other.drop_table("notes").err(),
        other.truncate_table("notes").err(),
        other.checkpoint().err(),
    ];
    for (number, result) in results.into_iter().enumerate() {
        assert!(matches!(result, Some(Error::Closed)), "call {number}: {result:?}");
    }
    other.close().unwrap();
    // Sessions that still live do not keep the folder.
    let db = fixture.open();
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(ids(&rows), [1]);
}

#[test]
fn what_was_acknowledged_while_closing_is_there() {
    for round in 0..20u64 {
        let fixture = Fixture::in_memory();
        let (db, table) = fixture.create_with(notes());
        let mut acknowledged: Vec<i64> = std::thread::scope(|scope| {
            let insert = |thread: i64| {
                let mut session =
                    if thread == 0 { db.session().unwrap() } else { delayed_session(&db) };
                let table = &table;
                scope.spawn(move || {
                    let mut acknowledged = Vec::new();
                    for id in (0..100_000).map(|n| n * 4 + thread) {
                        match session.insert(table, &note(id, "race")) {
                            Ok(()) => acknowledged.push(id),
                            Err(Error::Closed) => break,
                            Err(error) => panic!("{error}"),
                        }
                    }
                    acknowledged
                })
            };
            let threads: Vec<_> = (0..4).map(insert).collect();
            while db.durable_lsn() < Lsn(round * 5000) {
                db.barrier().unwrap();
            }
            db.close().unwrap();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        acknowledged.sort_unstable();
        let db = fixture.open();
        let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
        assert_eq!(ids(&rows), acknowledged, "round {round}");
    }
}

#[test]
fn dropping_the_last_handle_keeps_everything() {
    let fixture = Fixture::new();
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    for id in 0..100 {
        session.insert(&table, &note(id, "delayed")).unwrap();
    }
    drop(db);
    assert!(matches!(session.insert(&table, &note(100, "late")), Err(Error::Closed)));
    let db = fixture.open();
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(ids(&rows), (0..100).collect::<Vec<_>>());
}
