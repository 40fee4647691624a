//! What was committed is there after close and open, and after open without close.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, all_rows, ids, note, notes};

#[test]
fn rows_are_there_after_close_and_open() {
    let fixture = Fixture::new();
    let db = fixture.create();
    let table = db.create_table(notes()).unwrap();
    let mut session = db.session().unwrap();
    for id in 0..2000 {
        session.insert(&table, &note(id, "text")).unwrap();
    }
    drop(session);
    db.close().unwrap();

    let db = fixture.open();
    assert_eq!(db.recovery().records, 0, "a closed database needs no redo");
    let table = db.table("notes").unwrap();
    let rows = all_rows(&mut db.session().unwrap(), &table);
    assert_eq!(ids(&rows), (0..2000).collect::<Vec<_>>());
}

#[test]
fn opening_tells_how_much_of_the_log_it_has_redone() {
    let mut fixture = Fixture::new();
    fixture.options.log_capacity_bytes = 64 << 20; // no checkpoint comes in between
    let db = fixture.create();
    let table = db.create_table(notes()).unwrap();
    let mut session = db.session().unwrap();
    for id in 0..500 {
        session.insert(&table, &note(id, "text")).unwrap();
    }
    drop(session);
    drop(table);
    drop(db);

    let progress = onrush::OpenProgress::default();
    assert_eq!(progress.state().phase, onrush::OpenPhase::Waiting);
    assert_eq!(progress.state().left, None);
    let options = fixture.options.clone();
    let db = onrush::Database::open_observed(fixture.path(), options, &progress).unwrap();
    let state = progress.state();
    assert_eq!(state.phase, onrush::OpenPhase::Open);
    assert_eq!(state.left, Some(std::time::Duration::ZERO));
    assert_eq!(state.redone_bytes, state.redo_bytes);
    assert_eq!(db.recovery().rows, 500);
    assert!(state.redone_bytes >= db.recovery().log_bytes, "{state:?}");
}

#[test]
fn rows_are_there_without_close() {
    let mut fixture = Fixture::new();
    fixture.options.log_capacity_bytes = 64 << 20;
    let db = fixture.create();
    let table = db.create_table(notes()).unwrap();
    let mut session = db.session().unwrap();
    for id in (0..1000).rev() {
        session.insert(&table, &note(id, "text")).unwrap();
    }
    db.checkpoint().unwrap();
    for id in 1000..1500 {
        session.insert(&table, &note(id, "text")).unwrap();
    }
    assert!(session.delete(&table, &[7i64.into()]).unwrap());
    drop(session);
    drop(db);

    let db = fixture.open();
    assert_eq!(db.recovery().rows, 501);
    let table = db.table("notes").unwrap();
    let rows = all_rows(&mut db.session().unwrap(), &table);
    assert_eq!(ids(&rows), (0..1500).filter(|id| *id != 7).collect::<Vec<_>>());
}
