//! `insert_many` inserts all rows or none, whichever way its leaves lie.

#![allow(clippy::unwrap_used)]

mod common;

use std::ops::Range;

use common::{Fixture, all_rows, generated, ids, note, notes};
use onrush::{Error, KeyStrategy, Session, Table, Value};
use onrush_waits::Counter;

fn with_space_for_large_batches() -> Fixture {
    let mut fixture = Fixture::in_memory();
    fixture.options.log_ring_bytes = 64 << 20;
    fixture.options.log_capacity_bytes = 256 << 20;
    fixture.options.leaf_memory_bytes = 64 << 20;
    fixture
}

/// One batch of rows of which two fill a leaf: 600 need more leaves than a batch may hold latched.
fn insert_long(session: &mut Session, table: &Table, ids: Range<i64>) {
    let text = "x".repeat(7000);
    let rows: Vec<_> = ids.map(|id| note(id, &text)).collect();
    session.insert_many(table, rows.iter().map(|row| &row[..])).unwrap();
}

#[test]
fn ascending_batches_over_many_leaves_are_all_there() {
    let db_fixture = Fixture::new();
    let db = db_fixture.create();
    let table = db.create_table(generated(KeyStrategy::SessionOffset)).unwrap();
    let mut session = db.session().unwrap();
    for _ in 0..50 {
        session.insert_many(&table, std::iter::repeat_n(&[][..], 700)).unwrap();
    }
    assert_eq!(all_rows(&mut session, &table).len(), 35_000);
}

#[test]
fn scattered_batches_are_all_there() {
    let fixture = Fixture::new();
    let db = fixture.create();
    let table = db.create_table(notes()).unwrap();
    let mut session = db.session().unwrap();
    for batch in 0..40i64 {
        let rows: Vec<_> =
            (0..100i64).map(|n| note((n * 7919 + batch * 31) % 1_000_003, "a note")).collect();
        session.insert_many(&table, rows.iter().map(|row| &row[..])).unwrap();
    }
    let found = ids(&all_rows(&mut session, &table));
    assert_eq!(found.len(), 4000);
    assert!(found.is_sorted());
}

#[test]
fn a_batch_over_hundreds_of_new_leaves_is_all_there() {
    let db = with_space_for_large_batches().create();
    let table = db.create_table(notes()).unwrap();
    let mut session = db.session().unwrap();
    insert_long(&mut session, &table, 0..600);
    assert_eq!(ids(&all_rows(&mut session, &table)), (0..600).collect::<Vec<_>>());
}

#[test]
fn rows_of_a_batch_are_counted_once_whichever_way_they_go() {
    let db = with_space_for_large_batches().create();
    let table = db.create_table(notes()).unwrap();
    let mut session = db.session().unwrap();
    insert_long(&mut session, &table, 0..3);
    insert_long(&mut session, &table, 1000..1600);
    assert_eq!(db.statistics().totals.counter(Counter::RowsInserted), 603);
}

#[test]
fn one_taken_key_refuses_the_whole_batch() {
    let fixture = Fixture::new();
    let db = fixture.create();
    let table = db.create_table(notes()).unwrap();
    let mut session = db.session().unwrap();
    session.insert(&table, &note(50, "first")).unwrap();
    let rows: Vec<_> = (0..100).map(|id| note(id, "batch")).collect();
    let error = session.insert_many(&table, rows.iter().map(|row| &row[..])).unwrap_err();
    assert!(
        matches!(&error, Error::DuplicateKey { key, .. } if key.to_string().contains("50")),
        "{error}"
    );
    assert_eq!(ids(&all_rows(&mut session, &table)), [50]);
}

#[test]
fn a_key_twice_in_a_batch_is_refused() {
    let fixture = Fixture::new();
    let db = fixture.create();
    let table = db.create_table(notes()).unwrap();
    let mut session = db.session().unwrap();
    let rows = [note(1, "a"), note(2, "b"), note(1, "c")];
    let error = session.insert_many(&table, rows.iter().map(|row| &row[..])).unwrap_err();
    assert!(matches!(error, Error::DuplicateKey { .. }), "{error}");
    assert!(session.get(&table, &[Value::Int64(2)]).unwrap().is_none());
}

#[test]
fn batches_survive_a_reopen() {
    let fixture = Fixture::new();
    let db = fixture.create();
    let table = db.create_table(notes()).unwrap();
    let mut session = db.session().unwrap();
    for batch in 0..20i64 {
        let rows: Vec<_> = (0..50i64).map(|n| note(n * 20 + batch, "a note")).collect();
        session.insert_many(&table, rows.iter().map(|row| &row[..])).unwrap();
    }
    drop((session, table, db));
    let db = fixture.open();
    let table = db.table("notes").unwrap();
    let rows = all_rows(&mut db.session().unwrap(), &table);
    assert_eq!(ids(&rows), (0..1000).collect::<Vec<_>>());
}
