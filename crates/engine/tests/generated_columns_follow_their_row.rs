//! A column that is computed of others is what they make of it, however a row is written.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, all_rows, refused};
use onrush::expression::{Arithmetic, Expression};
use onrush::{
    ColumnDefinition, DataType, Database, Error, NewIndex, RowExpression, Table, TableChange,
    TableDefinition, TypeError, Value,
};

/// `area` is `width * height`, and `id` the key.
fn boxes() -> TableDefinition {
    let bare = TableDefinition::builder("boxes")
        .column(ColumnDefinition::new("id", DataType::Int32).not_null())
        .column(ColumnDefinition::new("width", DataType::Int32))
        .column(ColumnDefinition::new("area", DataType::Int64))
        .column(ColumnDefinition::new("height", DataType::Int32))
        .primary_key(["id"])
        .build()
        .unwrap();
    let area = RowExpression::new(&product("width", "height"), &bare).unwrap();
    bare.with_generated("area", area).unwrap()
}

fn product(one: &str, other: &str) -> Expression {
    Expression::column(one).arithmetic(Arithmetic::Multiply, Expression::column(other))
}

fn created() -> (Database, Table) {
    Fixture::in_memory().create_with(boxes())
}

fn row(id: i32, width: i32, height: i32) -> [Value<'static>; 4] {
    [Value::Int32(id), Value::Int32(width), Value::Default, Value::Int32(height)]
}

fn whole(id: i32, width: i32, area: i64, height: i32) -> Vec<Value<'static>> {
    vec![Value::Int32(id), Value::Int32(width), Value::Int64(area), Value::Int32(height)]
}

#[test]
fn it_is_computed_however_a_row_is_inserted() {
    let (db, table) = created();
    let mut session = db.session().unwrap();
    session.insert(&table, &row(1, 2, 3)).unwrap();
    session.insert_many(&table, [&row(2, 4, 5)[..], &row(3, 6, 7)[..]]).unwrap();
    session.upsert(&table, &row(1, 3, 3)).unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.insert(&table, &row(4, 8, 9)).unwrap();
    transaction.commit().unwrap();
    let expected = [whole(1, 3, 9, 3), whole(2, 4, 20, 5), whole(3, 6, 42, 7), whole(4, 8, 72, 9)];
    assert_eq!(all_rows(&mut session, &table), expected);
}

#[test]
fn it_follows_what_is_updated() {
    let (db, table) = created();
    let mut session = db.session().unwrap();
    session.insert(&table, &row(1, 2, 3)).unwrap();
    session.update(&table, &[Value::Int32(1)], &[("width", Value::Int32(10))]).unwrap();
    assert_eq!(all_rows(&mut session, &table), [whole(1, 10, 30, 3)]);
    let mut transaction = session.begin().unwrap();
    let to_null = [("height", Value::Null), ("area", Value::Default)];
    transaction.update(&table, &[Value::Int32(1)], &to_null).unwrap();
    transaction.commit().unwrap();
    let without = vec![Value::Int32(1), Value::Int32(10), Value::Null, Value::Null];
    assert_eq!(all_rows(&mut session, &table), [without]);
}

#[test]
fn a_value_that_is_given_is_the_computed_one_or_refused() {
    let (db, table) = created();
    let mut session = db.session().unwrap();
    session.insert(&table, &whole(1, 2, 6, 3)).unwrap();
    let words = ["boxes.area", "computed", "DEFAULT"];
    refused(session.insert(&table, &whole(2, 2, 7, 3)), &words);
    let one = [Value::Int32(1)];
    let error = refused(session.update(&table, &one, &[("area", Value::Int64(7))]), &words);
    assert!(matches!(error, Error::Type(TypeError::GeneratedValue(_))));
    assert_eq!(all_rows(&mut session, &table), [whole(1, 2, 6, 3)]);
}

#[test]
fn a_row_of_which_it_cannot_be_computed_is_refused() {
    let (db, table) = created();
    let mut session = db.session().unwrap();
    assert!(session.insert(&table, &row(1, i32::MAX, 2)).is_err());
    assert!(all_rows(&mut session, &table).is_empty());
}

#[test]
fn an_index_has_it() {
    let (db, _) = created();
    let table = db.create_index("boxes", &NewIndex::new("areas", ["area"]).unique()).unwrap();
    let mut session = db.session().unwrap();
    session.insert(&table, &row(1, 2, 6)).unwrap();
    let same_area = session.insert(&table, &row(2, 3, 4));
    assert!(matches!(same_area, Err(Error::UniqueViolated { .. })));
    session.update(&table, &[Value::Int32(1)], &[("width", Value::Int32(1))]).unwrap();
    session.insert(&table, &row(2, 3, 4)).unwrap();
}

#[test]
fn what_it_is_computed_of_is_dropped_after_it() {
    let (db, _) = created();
    let drop = |name: &str| [TableChange::DropColumn { name: name.into() }];
    refused(db.alter_table("boxes", &drop("height")), &["area", "height", "drop"]);
    let renamed = TableChange::RenameColumn { from: "height".into(), to: "depth".into() };
    let table = db.alter_table("boxes", &[renamed]).unwrap();
    let mut session = db.session().unwrap();
    session.insert(&table, &row(1, 2, 3)).unwrap();
    assert_eq!(all_rows(&mut session, &table), [whole(1, 2, 6, 3)]);
    db.alter_table("boxes", &drop("area")).unwrap();
    db.alter_table("boxes", &drop("depth")).unwrap();
}

#[test]
fn it_is_computed_after_the_database_was_opened_again() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(boxes());
    db.session().unwrap().insert(&table, &row(1, 2, 3)).unwrap();
    drop((table, db));
    let db = fixture.open();
    let table = db.table("boxes").unwrap();
    let mut session = db.session().unwrap();
    session.update(&table, &[Value::Int32(1)], &[("height", Value::Int32(4))]).unwrap();
    session.insert(&table, &row(2, 2, 2)).unwrap();
    assert_eq!(all_rows(&mut session, &table), [whole(1, 2, 8, 4), whole(2, 2, 4, 2)]);
}

#[test]
fn a_key_is_not_computed() {
    let bare = boxes();
    let id = RowExpression::new(&product("width", "height"), &bare).unwrap();
    assert!(matches!(bare.with_generated("id", id), Err(TypeError::GeneratedKey(_))));
}
