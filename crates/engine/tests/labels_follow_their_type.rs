//! Columns of enumerated types: values are ordered as their labels are, labels come and get other names while rows and
//! the entries of indexes stay as they are, and all of it is there after a reopen, with and without a checkpoint.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, all_rows};
use onrush::{
    CheckProgress, ColumnDefinition, DataType, Database, EnumLabels, EnumType, Error,
    NewForeignKey, NewIndex, NewLabel, OnlineOptions, Table, TableChange, TableDefinition,
    TypeError, Value,
};

fn mood(db: &Database) -> EnumType {
    let table = db.table("mood").unwrap();
    EnumType::new(table.id(), table.name(), table.definition().labels().unwrap())
}

/// A type, and a table with a column of it that is indexed beside one that is the key.
fn people(db: &Database) -> Table {
    let labels = EnumLabels::new(["sad", "ok", "happy"]).unwrap();
    db.create_table(TableDefinition::builder("mood").labels(labels).build().unwrap()).unwrap();
    let mood = DataType::Enum(mood(db));
    let table = TableDefinition::builder("people")
        .column(ColumnDefinition::new("feels", mood))
        .column(ColumnDefinition::new("was", mood).default_value("ok"))
        .primary_key(["feels"]);
    db.create_table(table.build().unwrap()).unwrap();
    db.create_index("people", &NewIndex::new("was", ["was"])).unwrap()
}

/// Gives the type and the table other labels.
fn relabel(db: &Database, labels: EnumLabels) -> Table {
    db.alter_table("mood", &[TableChange::SetLabels(labels)]).unwrap();
    db.alter_table("people", &[TableChange::SetLabelsOfColumns(mood(db))]).unwrap()
}

fn insert(db: &Database, table: &Table, feels: &str, was: Option<&str>) -> Result<(), Error> {
    let was = was.map_or(Value::Default, Value::from);
    db.session().unwrap().insert(table, &[feels.into(), was]).map(drop)
}

fn rows(db: &Database) -> Vec<(String, String)> {
    let rows = all_rows(&mut db.session().unwrap(), &db.table("people").unwrap());
    rows.iter().map(|row| (row[0].to_string(), row[1].to_string())).collect()
}

fn checks_out(db: &Database) {
    let report = db.check(&OnlineOptions::default(), &CheckProgress::default()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn keys_are_ordered_as_the_labels_are() {
    let fixture = Fixture::in_memory();
    let db = fixture.create();
    let table = people(&db);
    for feels in ["happy", "sad", "ok"] {
        insert(&db, &table, feels, Some(feels)).unwrap();
    }
    let same = |label: &str| (label.to_owned(), label.to_owned());
    assert_eq!(rows(&db), ["sad", "ok", "happy"].map(same));
    assert!(matches!(insert(&db, &table, "ok", None), Err(Error::DuplicateKey { .. })));
    checks_out(&db);
}

#[test]
fn what_is_no_label_is_refused() {
    let fixture = Fixture::in_memory();
    let db = fixture.create();
    let table = people(&db);
    let refused = insert(&db, &table, "bored", None);
    assert!(matches!(refused, Err(Error::Type(TypeError::OutOfRange { .. }))), "{refused:?}");
    let number = db.session().unwrap().insert(&table, &[1i32.into(), "ok".into()]);
    assert!(matches!(number, Err(Error::Type(TypeError::WrongType { .. }))));
    assert_eq!(rows(&db), []);
}

#[test]
fn a_type_takes_no_rows() {
    let fixture = Fixture::in_memory();
    let db = fixture.create();
    people(&db);
    let refused = db.session().unwrap().insert(&db.table("mood").unwrap(), &[1i64.into()]);
    assert!(matches!(refused, Err(Error::IsView { .. })));
}

#[test]
fn rows_and_entries_stay_when_labels_come_and_get_other_names() {
    for checkpoints in [false, true] {
        let fixture = Fixture::in_memory();
        let db = fixture.create();
        let table = people(&db);
        insert(&db, &table, "sad", Some("happy")).unwrap();
        insert(&db, &table, "happy", None).unwrap();
        if checkpoints {
            db.checkpoint().unwrap();
        }
        let labels = mood(&db).labels().clone();
        let labels = labels.with("awful", NewLabel::Before("sad")).unwrap();
        let labels = labels.with("fine", NewLabel::After("ok")).unwrap();
        let table = relabel(&db, labels.renamed("ok", "well").unwrap());
        insert(&db, &table, "fine", Some("awful")).unwrap();
        insert(&db, &table, "awful", None).unwrap();
        let expected = [("awful", "well"), ("sad", "happy"), ("fine", "awful"), ("happy", "well")];
        let expected = expected.map(|(feels, was)| (feels.to_owned(), was.to_owned()));
        assert_eq!(rows(&db), expected);
        checks_out(&db);
        drop(table);
        drop(db);
        let db = fixture.open();
        assert_eq!(rows(&db), expected, "checkpoints: {checkpoints}");
        checks_out(&db);
        let table = db.table("people").unwrap();
        assert!(matches!(insert(&db, &table, "fine", None), Err(Error::DuplicateKey { .. })));
    }
}

#[test]
fn who_knows_the_labels_from_before_writes_no_more() {
    let fixture = Fixture::in_memory();
    let db = fixture.create();
    let before = people(&db);
    relabel(&db, mood(&db).labels().clone().renamed("ok", "well").unwrap());
    assert!(matches!(insert(&db, &before, "ok", None), Err(Error::TableChanged { .. })));
}

#[test]
fn labels_of_two_types_do_not_reference_each_other() {
    let fixture = Fixture::in_memory();
    let db = fixture.create();
    people(&db);
    let labels = mood(&db).labels().clone();
    db.create_table(TableDefinition::builder("weather").labels(labels).build().unwrap()).unwrap();
    let weather = db.table("weather").unwrap();
    let weather =
        EnumType::new(weather.id(), weather.name(), weather.definition().labels().unwrap());
    for (name, of) in [("days", weather), ("others", mood(&db))] {
        let column = ColumnDefinition::new("feels", DataType::Enum(of));
        db.create_table(
            TableDefinition::builder(name).column(column).primary_key(["feels"]).build().unwrap(),
        )
        .unwrap();
    }
    let references = NewForeignKey::new("feels", ["feels"], "people");
    let refused = db.add_foreign_key("days", &references).map(drop).unwrap_err();
    assert!(matches!(refused, Error::ReferenceTypes { .. }), "{refused}");
    db.add_foreign_key("others", &references).unwrap();
}
