//! Columns of composite types: records are kept as text, fields get other names and come behind the others while rows
//! stay as they are, and all of it is there after a reopen, with and without a checkpoint.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, all_rows};
use onrush::{
    CheckProgress, ColumnDefinition, CompositeType, DataType, Database, Error, OnlineOptions,
    Table, TableChange, TableDefinition, TypeError, Value,
};

fn place(db: &Database) -> CompositeType {
    let table = db.table("place").unwrap();
    let definition = table.definition();
    let field = |at: usize| {
        let column = &definition.columns()[at];
        (column.name.as_str().into(), column.data_type)
    };
    CompositeType::new(table.id(), table.name(), definition.shown_columns().map(field).collect())
}

/// A type, and a table with a column of it.
fn houses(db: &Database) -> Table {
    let place_type = TableDefinition::builder("place")
        .column(ColumnDefinition::new("street", DataType::Text))
        .column(ColumnDefinition::new("number", DataType::Int32));
    db.create_table(place_type.composite().build().unwrap()).unwrap();
    let table = TableDefinition::builder("houses")
        .column(ColumnDefinition::new("id", DataType::Int32).not_null())
        .column(ColumnDefinition::new("stands", DataType::Composite(place(db))))
        .primary_key(["id"]);
    db.create_table(table.build().unwrap()).unwrap()
}

fn insert(db: &Database, id: i32, stands: Option<&str>) -> Result<(), Error> {
    let stands = stands.map_or(Value::Null, Value::from);
    let table = db.table("houses").unwrap();
    db.session().unwrap().insert(&table, &[id.into(), stands]).map(drop)
}

fn rows(db: &Database) -> Vec<String> {
    let rows = all_rows(&mut db.session().unwrap(), &db.table("houses").unwrap());
    rows.iter().map(|row| row[1].to_string()).collect()
}

fn checks_out(db: &Database) {
    let report = db.check(&OnlineOptions::default(), &CheckProgress::default()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn what_is_no_record_of_the_type_is_refused() {
    let fixture = Fixture::in_memory();
    let db = fixture.create();
    houses(&db);
    for bad in ["x", "(a", "(a,b)", "(a,1,2)"] {
        let refused = insert(&db, 1, Some(bad));
        assert!(matches!(refused, Err(Error::Type(TypeError::OutOfRange { .. }))), "{refused:?}");
    }
    assert_eq!(rows(&db), Vec::<String>::new());
}

#[test]
fn a_type_takes_no_rows_and_a_key_no_records() {
    let fixture = Fixture::in_memory();
    let db = fixture.create();
    houses(&db);
    let of_type = db.table("place").unwrap();
    let refused = db.session().unwrap().insert(&of_type, &["a".into(), 1i32.into(), 1i64.into()]);
    assert!(matches!(refused, Err(Error::IsView { .. })), "{refused:?}");
    let stands = ColumnDefinition::new("stands", DataType::Composite(place(&db))).not_null();
    let keyed = TableDefinition::builder("keyed").column(stands).primary_key(["stands"]).build();
    assert!(keyed.is_err());
}

#[test]
fn rows_stay_when_fields_come_and_get_other_names() {
    for checkpoints in [false, true] {
        let fixture = Fixture::in_memory();
        let db = fixture.create();
        houses(&db);
        insert(&db, 1, Some("(\"Long Lane\",7)")).unwrap();
        insert(&db, 2, None).unwrap();
        if checkpoints {
            db.checkpoint().unwrap();
        }
        let city = ColumnDefinition::new("city", DataType::Text);
        db.alter_table("place", &[TableChange::AddColumn(city)]).unwrap();
        db.alter_table("houses", &[TableChange::SetCompositeOfColumns(place(&db))]).unwrap();
        insert(&db, 3, Some("(Broadway,1,\"New York\")")).unwrap();
        let expected = ["(\"Long Lane\",7)", "NULL", "(Broadway,1,\"New York\")"];
        assert_eq!(rows(&db), expected);
        checks_out(&db);
        drop(db);
        let db = fixture.open();
        assert_eq!(rows(&db), expected, "checkpoints: {checkpoints}");
        let column = db.table("houses").unwrap().definition().columns()[1].data_type;
        assert_eq!(column, DataType::Composite(place(&db)));
        assert_eq!(place(&db).fields().len(), 3);
        checks_out(&db);
    }
}
