//! Update, delete and upsert of single rows: what they change, and what they answer.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, all_rows, note, noted, notes, refused};
use onrush::{Error, Value};

#[test]
fn an_update_sets_the_named_columns() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "old")).unwrap();
    assert!(session.update(&table, &[1i64.into()], &[("note", "new".into())]).unwrap());
    assert_eq!(session.get(&table, &[1i64.into()]).unwrap(), Some(noted(1, "new")));
    assert!(session.update(&table, &[1i64.into()], &[("note", Value::Null)]).unwrap());
    assert_eq!(session.get(&table, &[1i64.into()]).unwrap().unwrap()[1], Value::Null);
    assert!(session.update(&table, &[1i64.into()], &[]).unwrap());
    assert!(!session.update(&table, &[2i64.into()], &[("note", "new".into())]).unwrap());
}

#[test]
fn an_update_of_the_key_moves_the_row() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "one")).unwrap();
    session.insert(&table, &note(2, "two")).unwrap();
    let moved = [("id", 9i64.into()), ("note", "nine".into())];
    assert!(session.update(&table, &[1i64.into()], &moved).unwrap());
    assert_eq!(all_rows(&mut session, &table), [noted(2, "two"), noted(9, "nine")]);

    let taken = session.update(&table, &[9i64.into()], &[("id", 2i64.into())]);
    assert!(matches!(refused(taken, &["id = 2"]), Error::DuplicateKey { .. }));
    assert!(session.update(&table, &[9i64.into()], &[("id", 9i64.into())]).unwrap());
    assert!(!session.update(&table, &[1i64.into()], &moved).unwrap());

    drop((session, db));
    let db = fixture.open();
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(rows, [noted(2, "two"), noted(9, "nine")]);
}

#[test]
fn a_deleted_row_is_gone_and_its_key_is_free() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "one")).unwrap();
    assert!(session.delete(&table, &[1i64.into()]).unwrap());
    assert!(!session.delete(&table, &[1i64.into()]).unwrap());
    assert_eq!(session.get(&table, &[1i64.into()]).unwrap(), None);
    session.insert(&table, &note(1, "again")).unwrap();
    assert_eq!(all_rows(&mut session, &table), [noted(1, "again")]);
}

#[test]
fn an_upsert_inserts_or_replaces() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    for text in ["first", "second", "third"] {
        session.upsert(&table, &note(1, text)).unwrap();
        assert_eq!(all_rows(&mut session, &table), [noted(1, text)]);
    }
}

#[test]
fn rows_may_grow_and_shrink_in_full_leaves() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = common::delayed_session(&db);
    for id in 0..200 {
        session.insert(&table, &note(id, "x")).unwrap();
    }
    for bytes in [2000usize, 10, 4000, 0] {
        let text = "y".repeat(bytes);
        for id in 0..200 {
            let set = [("note", text.as_str().into())];
            assert!(session.update(&table, &[id.into()], &set).unwrap());
        }
        let rows = all_rows(&mut session, &table);
        assert_eq!(rows, (0..200).map(|id| noted(id, &text)).collect::<Vec<_>>());
    }
}

/// The leaf is full of an ascending run, and the row right above the run grows.
#[test]
fn a_row_above_a_run_may_grow() {
    for run in 20..60 {
        let (db, table) = Fixture::in_memory().create_with(notes());
        let mut session = common::delayed_session(&db);
        let text = "x".repeat(400);
        session.insert(&table, &note(1000, "above")).unwrap();
        for id in 0..run {
            session.insert(&table, &note(id, &text)).unwrap();
        }
        session.upsert(&table, &note(1000, &text.repeat(8))).unwrap();
        let mut transaction = session.begin().unwrap();
        transaction.update(&table, &[1000i64.into()], &[("note", text.as_str().into())]).unwrap();
        transaction.commit().unwrap();
        let expected = (0..run).chain([1000]).map(|id| noted(id, &text)).collect::<Vec<_>>();
        assert_eq!(all_rows(&mut session, &table), expected);
    }
}
