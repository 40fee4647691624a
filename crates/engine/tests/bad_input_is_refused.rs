//! Input that cannot be is refused with its cause and its cure, and changes nothing.

#![allow(clippy::unwrap_used)]

mod common;

use std::ops::Bound;

use common::{Fixture, all_rows, note, noted, notes, refused};
use onrush::{
    ColumnDefinition, DataType, Error, KeyStrategy, ScanOptions, TableChange, TableDefinition,
    TypeError, Value, ViewDefinition, ViewRows,
};

#[test]
fn a_value_of_the_wrong_type() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "one")).unwrap();
    let text_as_id: [Value<'_>; 2] = ["one".into(), "one".into()];
    let words = ["notes.id", "bigint", "text", "convert"];
    let error = refused(session.insert(&table, &text_as_id), &words);
    assert!(matches!(error, Error::Type(TypeError::WrongType { .. })));
    refused(session.upsert(&table, &text_as_id), &words);
    refused(session.get(&table, &["one".into()]), &["notes.id"]);
    refused(session.delete(&table, &["one".into()]), &["notes.id"]);
    let set = session.update(&table, &[1i64.into()], &[("note", 5i64.into())]);
    refused(set, &["notes.note", "text"]);
    let from = Bound::Included(vec!["one".into()]);
    let options = ScanOptions { from, ..ScanOptions::default() };
    refused(session.scan(&table, &options), &["notes.id"]);
    assert_eq!(all_rows(&mut session, &table), [noted(1, "one")]);
}

#[test]
fn a_value_that_does_not_fit() {
    let table = TableDefinition::builder("t")
        .column(ColumnDefinition::new("id", DataType::Int16).not_null())
        .column(ColumnDefinition::new("code", DataType::Varchar(3)))
        .primary_key(["id"])
        .build()
        .unwrap();
    let (db, table) = Fixture::in_memory().create_with(table);
    let mut session = db.session().unwrap();
    refused(session.insert(&table, &[40_000i64.into()]), &["t"]);
    refused(session.insert(&table, &[1i16.into(), "four".into()]), &["t.code", "varchar(3)"]);
    assert!(all_rows(&mut session, &table).is_empty());
}

#[test]
fn null_where_it_is_not_allowed() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    let error = refused(session.insert(&table, &[Value::Null, "x".into()]), &["notes.id", "NULL"]);
    assert!(matches!(error, Error::Type(TypeError::NullValue(_))));
    let error = refused(session.insert(&table, &[]), &["notes.id", "default"]);
    assert!(matches!(error, Error::Type(TypeError::MissingValue(_))));
    session.insert(&table, &note(1, "one")).unwrap();
    refused(session.update(&table, &[1i64.into()], &[("id", Value::Null)]), &["notes.id", "NULL"]);
}

#[test]
fn too_many_or_too_few_values() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    let three = [1i64.into(), "x".into(), "y".into()];
    refused(session.insert(&table, &three), &["notes", "3", "2"]);
    refused(session.get(&table, &[]), &["notes"]);
    refused(session.get(&table, &[1i64.into(), 2i64.into()]), &["notes"]);
}

#[test]
fn a_row_over_the_limit_and_the_limit_is_named() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    // Fixed width does not stand elsewhere.
    let wide = TableDefinition::builder("wide")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("one", DataType::Char(4000)))
        .column(ColumnDefinition::new("two", DataType::Char(3000)))
        .column(ColumnDefinition::new("three", DataType::Varchar(1500)))
        .primary_key(["id"]);
    let wide = db.create_table(wide.build().unwrap()).unwrap();
    let row = |bytes: usize| [1i64.into(), "a".into(), "b".into(), "x".repeat(bytes).into()];
    let error = refused(session.insert(&wide, &row(1500)), &["wide", "8000"]);
    assert!(matches!(error, Error::Type(TypeError::RowTooLarge { .. })));
    session.insert(&wide, &row(1)).unwrap();
    let text = "x".repeat(1500);
    let set = session.update(&wide, &[1i64.into()], &[("three", text.as_str().into())]);
    refused(set, &["8000"]);

    // The largest row that fits does fit, many times.
    let largest = "x".repeat(7900);
    for id in 2..50 {
        session.insert(&table, &note(id, &largest)).unwrap();
    }
    assert_eq!(all_rows(&mut session, &table).len(), 48);
}

#[test]
fn a_key_over_the_limit() {
    let table = TableDefinition::builder("t")
        .column(ColumnDefinition::new("name", DataType::Text).not_null())
        .primary_key(["name"])
        .build()
        .unwrap();
    let (db, table) = Fixture::in_memory().create_with(table);
    let mut session = db.session().unwrap();
    let long = "k".repeat(2000);
    refused(session.insert(&table, &[long.as_str().into()]), &["t", "key", "1024"]);
    refused(session.get(&table, &[long.as_str().into()]), &["1024"]);
    for n in 0..200 {
        let key = format!("{}{n:03}", "k".repeat(1000));
        session.insert(&table, &[key.as_str().into()]).unwrap();
    }
    assert_eq!(all_rows(&mut session, &table).len(), 200);
}

#[test]
fn a_duplicate_key_and_the_key_is_named() {
    let table = TableDefinition::builder("places")
        .column(ColumnDefinition::new("country", DataType::Text).not_null())
        .column(ColumnDefinition::new("number", DataType::Int32).not_null())
        .primary_key(["country", "number"])
        .build()
        .unwrap();
    let (db, table) = Fixture::in_memory().create_with(table);
    let mut session = db.session().unwrap();
    let row: [Value<'_>; 2] = ["fi".into(), 7i32.into()];
    session.insert(&table, &row).unwrap();
    let words = ["places", "country = fi", "number = 7", "upsert"];
    let error = refused(session.insert(&table, &row), &words);
    assert!(matches!(error, Error::DuplicateKey { .. }) && !error.is_retryable());
    refused(session.insert_token(&table, &row), &words);
    refused(session.begin().unwrap().insert(&table, &row), &words);
}

#[test]
fn an_unknown_table_or_column() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    let error = refused(db.table("nodes"), &["nodes", "spelling"]);
    assert!(matches!(error, Error::UnknownTable { .. }));
    let set = session.update(&table, &[1i64.into()], &[("not", "x".into())]);
    let error = refused(set, &["notes", "not", "id, note"]);
    assert!(matches!(error, Error::Type(TypeError::UnknownColumn { .. })));
}

#[test]
fn a_table_of_another_database() {
    let (_other, strange) = Fixture::in_memory().create_with(notes());
    let (db, own) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&own, &note(1, "own")).unwrap();
    refused(session.insert(&strange, &note(2, "strange")), &["notes"]);
    refused(session.get(&strange, &[1i64.into()]), &["notes"]);
    refused(session.scan(&strange, &ScanOptions::default()), &["notes"]);
    refused(session.delete(&strange, &[1i64.into()]), &["notes"]);
    let mut transaction = session.begin().unwrap();
    refused(transaction.insert(&strange, &note(2, "strange")), &["notes"]);
    refused(transaction.get(&strange, &[1i64.into()]), &["notes"]);
    drop(transaction);
    refused(session.snapshot().unwrap().get(&strange, &[1i64.into()]), &["notes"]);
    assert_eq!(all_rows(&mut session, &own), [noted(1, "own")]);
}

#[test]
fn a_row_for_a_view() {
    let db = Fixture::in_memory().create();
    let (sources, kinds, rows) = (Vec::new(), Vec::new(), ViewRows::None);
    let view = ViewDefinition { query: "SELECT 1".into(), sources, kinds, rows };
    let number = ColumnDefinition::new("number", DataType::Int32);
    let ones = TableDefinition::builder("ones").column(number).view(view).build().unwrap();
    let ones = db.create_table(ones).unwrap();
    let (row, key) = ([Value::Int32(1)], [1i64.into()]);
    let words = ["ones", "view", "write to the tables"];
    let mut session = db.session().unwrap();
    refused(session.insert(&ones, &row), &words);
    refused(session.upsert(&ones, &row), &words);
    refused(session.insert_many(&ones, [&row[..]]), &words);
    refused(session.delete(&ones, &key), &words);
    let mut transaction = session.begin().unwrap();
    refused(transaction.insert(&ones, &row), &words);
    refused(transaction.delete(&ones, &key), &words);
}

#[test]
fn more_rows_in_a_table_that_is_altered_than_a_record_takes_and_the_limit_is_named() {
    let fixture = Fixture::in_memory();
    let (db, _) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let text = "x".repeat(5000);
    let limit = (fixture.options.log_ring_bytes / 8).to_string();
    let mut transaction = session.begin().unwrap();
    let change = TableChange::Rename { to: "letters".into() };
    let table = transaction.alter_table("notes", &[change]).unwrap();
    let inserted = (10..60).try_for_each(|id| transaction.insert(&table, &note(id, &text)));
    for refusal in [inserted, transaction.commit()] {
        let error = refused(refusal, &[limit.as_str(), "log_ring_bytes"]);
        assert!(matches!(error, Error::TransactionTooLarge { .. }));
    }
    let table = db.table("notes").unwrap();
    session.insert(&table, &note(10, "after")).unwrap();
}

#[test]
fn a_definition_that_cannot_be() {
    let column = |name: &str| ColumnDefinition::new(name, DataType::Int64).not_null();
    let key = |_: ()| TableDefinition::builder("t").column(column("id")).primary_key(["id"]);
    assert!(TableDefinition::builder("t").column(column("id")).build().is_err());
    assert!(key(()).column(column("id")).build().is_err());
    assert!(TableDefinition::builder("t").primary_key(["id"]).build().is_err());
    assert!(TableDefinition::builder("").column(column("id")).primary_key(["id"]).build().is_err());
    let text = ColumnDefinition::new("text", DataType::Text).default_key(KeyStrategy::UuidV4);
    assert!(key(()).column(text).build().is_err());
}
