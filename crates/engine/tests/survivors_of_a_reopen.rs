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
