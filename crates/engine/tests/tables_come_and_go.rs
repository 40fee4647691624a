//! Tables are created, emptied and dropped while others use them; what was done is there after
//! a reopen, with and without a checkpoint.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, accounts, all_rows, definition_of, generated, ids, note, notes, refused};
use onrush::{Error, KeyStrategy};

#[test]
fn tables_are_found_by_name() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    db.create_table(accounts()).unwrap();
    let names: Vec<_> = db.tables().iter().map(|table| table.name().to_owned()).collect();
    assert_eq!(names, ["accounts", "notes"]);
    assert_eq!(table.name(), "notes");
    assert_eq!(definition_of(&table), notes());
    let twice = refused(db.create_table(notes()), &["notes", "exists"]);
    assert!(matches!(twice, Error::TableExists { .. }));
}

#[test]
fn a_dropped_table_is_gone_and_its_name_is_free() {
    let fixture = Fixture::in_memory();
    let (db, old) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&old, &note(1, "old")).unwrap();
    db.drop_table("notes").unwrap();
    refused(db.table("notes"), &["notes"]);
    refused(db.drop_table("notes"), &["notes"]);
    let gone = refused(session.insert(&old, &note(2, "late")), &["notes", "dropped"]);
    assert!(matches!(gone, Error::TableChanged { .. }));
    assert!(matches!(session.get(&old, &[1i64.into()]), Err(Error::TableChanged { .. })));

    let new = db.create_table(notes()).unwrap();
    session.insert(&new, &note(3, "new")).unwrap();
    assert_eq!(ids(&all_rows(&mut session, &new)), [3]);
    drop((session, db));
    for _ in 0..2 {
        let db = fixture.open();
        let table = db.table("notes").unwrap();
        assert_eq!(ids(&all_rows(&mut db.session().unwrap(), &table)), [3]);
        db.close().unwrap();
    }
}

#[test]
fn a_truncated_table_is_empty_and_counts_on() {
    let fixture = Fixture::in_memory();
    let identity = KeyStrategy::Identity { start: 1, strict: true };
    let (db, table) = fixture.create_with(generated(identity));
    let mut session = db.session().unwrap();
    for _ in 0..1000 {
        session.insert(&table, &[]).unwrap();
    }
    db.checkpoint().unwrap();
    db.truncate_table("log").unwrap();
    assert!(all_rows(&mut session, &table).is_empty());
    let key = session.insert_returning_key(&table, &[]).unwrap();
    assert_eq!(key, [1001i64.into()]);
    drop((session, db));
    for _ in 0..2 {
        let db = fixture.open();
        let table = db.table("log").unwrap();
        assert_eq!(ids(&all_rows(&mut db.session().unwrap(), &table)), [1001]);
        db.close().unwrap();
    }
}

#[test]
fn a_transaction_on_a_table_that_goes_away_changes_nothing() {
    for drop_it in [false, true] {
        let fixture = Fixture::in_memory();
        let (db, gone) = fixture.create_with(notes());
        let other = db.create_table(accounts()).unwrap();
        let mut session = db.session().unwrap();
        let mut transaction = session.begin().unwrap();
        transaction.insert(&other, &[1i64.into(), 1i64.into()]).unwrap();
        transaction.insert(&gone, &note(1, "late")).unwrap();
        if drop_it {
            db.drop_table("notes").unwrap();
        } else {
            db.truncate_table("notes").unwrap();
        }
        let error = refused(transaction.commit(), &["notes", "retry"]);
        assert!(matches!(error, Error::TableChanged { .. }));
        assert!(all_rows(&mut session, &other).is_empty());
    }
}

#[test]
fn sessions_meet_tables_that_are_truncated_and_dropped() {
    let fixture = Fixture::in_memory().with_little_memory();
    let db = fixture.create();
    std::thread::scope(|scope| {
        for thread in 0..4i64 {
            let db = &db;
            scope.spawn(move || {
                let mut session = common::delayed_session(db);
                let text = "t".repeat(500);
                for id in (0..2000).map(|n| n * 4 + thread) {
                    let Ok(table) = db.table("notes") else { continue };
                    let inserted = session.insert(&table, &note(id, &text));
                    let read = session.get(&table, &[id.into()]);
                    for error in [inserted.err(), read.err()].into_iter().flatten() {
                        assert!(matches!(error, Error::TableChanged { .. }), "{error}");
                    }
                }
            });
        }
        scope.spawn(|| {
            for round in 0..60 {
                match round % 6 {
                    0 => drop(db.create_table(notes()).unwrap()),
                    5 => db.drop_table("notes").unwrap(),
                    2 => drop(db.checkpoint().unwrap()),
                    _ => db.truncate_table("notes").unwrap(),
                }
            }
        });
    });
    assert!(db.tables().is_empty());
    db.checkpoint().unwrap();
    assert_eq!(db.statistics().leaves, 0, "a dropped table leaves nothing behind");
}
