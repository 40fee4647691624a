//! A session draws random keys some inserts ahead and looks for their leaves early. Whatever
//! happens to the table in between, each row is inserted once, under the key it was given.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, all_rows, delayed_session};
use onrush::{ColumnDefinition, DataType, Database, KeyStrategy, Row, TableDefinition, Value};
use uuid::Uuid;

fn column(name: &str) -> ColumnDefinition {
    ColumnDefinition::new(name, DataType::Uuid).not_null()
}

/// Two generated uuids, the first of them leading the key, and a note.
fn table() -> TableDefinition {
    let random = |name| column(name).default_key(KeyStrategy::UuidV4);
    TableDefinition::builder("visits")
        .column(random("visit"))
        .column(random("page"))
        .column(ColumnDefinition::new("note", DataType::Text))
        .primary_key(["visit", "page"])
        .build()
        .unwrap()
}

fn row(note: &str) -> [Value<'_>; 3] {
    [Value::Default, Value::Default, note.into()]
}

/// Notes in order of insertion, whatever the keys are.
fn notes(db: &Database) -> Vec<String> {
    let rows = all_rows(&mut db.session().unwrap(), &db.table("visits").unwrap());
    let mut notes: Vec<String> = rows.iter().map(|row: &Row| row[2].to_string()).collect();
    notes.sort();
    notes
}

fn numbered(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("{number:05}")).collect()
}

#[test]
fn own_keys_go_between_generated_ones() {
    let (db, table) = Fixture::in_memory().create_with(table());
    let mut session = delayed_session(&db);
    for note in numbered(0..3000) {
        let mut row = row(&note);
        if note.ends_with('7') {
            row[0] = Value::Uuid(Uuid::from_u128(note.parse::<u128>().unwrap() << 64));
        }
        session.insert(&table, &row).unwrap();
    }
    assert_eq!(notes(&db), numbered(0..3000));
}

#[test]
fn a_refused_row_takes_no_other_rows_key() {
    let (db, table) = Fixture::in_memory().create_with(table());
    let mut session = delayed_session(&db);
    for note in numbered(0..200) {
        let wrong = [Value::Default, Value::Default, Value::Int64(1)];
        session.insert(&table, &wrong).unwrap_err();
        session.insert(&table, &row(&note)).unwrap();
    }
    assert_eq!(notes(&db), numbered(0..200));
}

#[test]
fn batches_go_between_single_rows() {
    let (db, table) = Fixture::in_memory().create_with(table());
    let mut session = delayed_session(&db);
    for pair in numbered(0..2000).chunks(2) {
        session.insert(&table, &row(&pair[0])).unwrap();
        session.insert_many(&table, [&row(&pair[1])[..]]).unwrap();
    }
    assert_eq!(notes(&db), numbered(0..2000));
}

#[test]
fn a_truncated_table_has_other_leaves() {
    let (db, table) = Fixture::in_memory().create_with(table());
    let mut session = delayed_session(&db);
    for note in numbered(0..3000) {
        session.insert(&table, &row(&note)).unwrap();
    }
    db.truncate_table("visits").unwrap();
    for note in numbered(3000..3100) {
        session.insert(&table, &row(&note)).unwrap();
    }
    assert_eq!(notes(&db), numbered(3000..3100));
}

#[test]
fn leaves_split_by_others_are_found_again() {
    let (db, table) = Fixture::in_memory().create_with(table());
    std::thread::scope(|scope| {
        for part in 0..4 {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                let mut session = delayed_session(db);
                for note in numbered(part * 2000..(part + 1) * 2000) {
                    session.insert(table, &row(&note)).unwrap();
                }
            });
        }
    });
    assert_eq!(notes(&db), numbered(0..8000));
}
