//! The changes of a transaction appear together at its commit, in all tables, or not at all.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, accounts, all_rows, note, noted, notes, refused};
use onrush::{Database, Error, Session, Table};

fn two_tables(fixture: &Fixture) -> (Database, Table, Table, Session) {
    let (db, notes) = fixture.create_with(notes());
    let accounts = db.create_table(accounts()).unwrap();
    let session = db.session().unwrap();
    (db, notes, accounts, session)
}

#[test]
fn a_commit_shows_all_changes_of_all_tables() {
    let fixture = Fixture::in_memory();
    let (db, notes, accounts, mut session) = two_tables(&fixture);
    session.insert(&notes, &note(1, "one")).unwrap();
    session.insert(&notes, &note(2, "two")).unwrap();
    let mut other = db.session().unwrap();

    let mut transaction = session.begin().unwrap();
    transaction.insert(&notes, &note(3, "three")).unwrap();
    assert!(transaction.delete(&notes, &[1i64.into()]).unwrap());
    assert!(transaction.update(&notes, &[2i64.into()], &[("note", "TWO".into())]).unwrap());
    transaction.upsert(&accounts, &[7i64.into(), 100i64.into()]).unwrap();
    assert_eq!(all_rows(&mut other, &notes), [noted(1, "one"), noted(2, "two")]);
    assert!(all_rows(&mut other, &accounts).is_empty());
    transaction.commit().unwrap();

    let check = |session: &mut Session, notes: &Table, accounts: &Table| {
        assert_eq!(all_rows(session, notes), [noted(2, "TWO"), noted(3, "three")]);
        assert_eq!(all_rows(session, accounts), [vec![7i64.into(), 100i64.into()]]);
    };
    check(&mut other, &notes, &accounts);
    drop((session, other, db));
    let db = fixture.open();
    let (notes, accounts) = (db.table("notes").unwrap(), db.table("accounts").unwrap());
    check(&mut db.session().unwrap(), &notes, &accounts);
}

#[test]
fn a_dropped_transaction_changes_nothing() {
    let fixture = Fixture::in_memory();
    let (_db, notes, accounts, mut session) = two_tables(&fixture);
    session.insert(&notes, &note(1, "one")).unwrap();
    for explicitly in [false, true] {
        let mut transaction = session.begin().unwrap();
        transaction.insert(&accounts, &[1i64.into(), 1i64.into()]).unwrap();
        transaction.delete(&notes, &[1i64.into()]).unwrap();
        if explicitly {
            transaction.rollback();
        } else {
            drop(transaction);
        }
        assert_eq!(all_rows(&mut session, &notes), [noted(1, "one")]);
        assert!(all_rows(&mut session, &accounts).is_empty());
    }
}

#[test]
fn a_transaction_that_cannot_commit_leaves_nothing_behind() {
    let fixture = Fixture::in_memory();
    let (db, notes, accounts, mut session) = two_tables(&fixture);
    let mut transaction = session.begin().unwrap();
    transaction.insert(&accounts, &[1i64.into(), 1i64.into()]).unwrap();
    transaction.insert(&notes, &note(5, "mine")).unwrap();
    db.session().unwrap().insert(&notes, &note(5, "theirs")).unwrap();
    let error = refused(transaction.commit(), &["notes", "id = 5"]);
    assert!(matches!(error, Error::DuplicateKey { .. } | Error::Conflict { .. }), "{error}");
    assert_eq!(all_rows(&mut session, &notes), [noted(5, "theirs")]);
    assert!(all_rows(&mut session, &accounts).is_empty());
    // The session and the keys are as free as before.
    session.insert(&accounts, &[1i64.into(), 2i64.into()]).unwrap();
}

#[test]
fn insert_many_is_one_transaction() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let rows: Vec<_> = (0..500).map(|id| noted(id, "many")).collect();
    session.insert_many(&table, rows.iter().map(Vec::as_slice)).unwrap();
    assert_eq!(all_rows(&mut session, &table), rows);

    // One duplicate in the middle, of an older row or within the batch: none is inserted.
    for duplicate in [250, 1001] {
        let mut batch: Vec<_> = (1000..1100).map(|id| noted(id, "more")).collect();
        batch.insert(50, noted(duplicate, "again"));
        let result = session.insert_many(&table, batch.iter().map(Vec::as_slice));
        let error = refused(result, &[&format!("id = {duplicate}")]);
        assert!(matches!(error, Error::DuplicateKey { .. }));
        assert_eq!(all_rows(&mut session, &table), rows);
    }
    session.insert_many(&table, std::iter::empty()).unwrap();
    drop((session, db));
    let db = fixture.open();
    let table = db.table("notes").unwrap();
    assert_eq!(all_rows(&mut db.session().unwrap(), &table), rows);
}
