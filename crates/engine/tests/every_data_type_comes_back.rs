//! What was inserted is what is read, for every data type, at its limits, NULL and by default.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, all_rows};
use onrush::{
    Clock, ColumnDefinition, DataType, Decimal, Interval, Row, TableDefinition, Uuid, Value,
};

const DECIMAL: DataType = DataType::Decimal { precision: 12, scale: 2 };

/// A column type, its smallest and its largest value, and a default.
fn samples() -> Vec<(DataType, [Value<'static>; 3])> {
    let uuid = |number| Value::Uuid(Uuid::from_u128(number));
    let decimal = |cents| Value::Decimal(Decimal::new(cents, 2));
    vec![
        (DataType::Boolean, [false.into(), true.into(), true.into()]),
        (DataType::Int16, [i16::MIN.into(), i16::MAX.into(), 7i16.into()]),
        (DataType::Int32, [i32::MIN.into(), i32::MAX.into(), 7i32.into()]),
        (DataType::Int64, [i64::MIN.into(), i64::MAX.into(), 7i64.into()]),
        (DataType::Float32, [f32::MIN.into(), f32::INFINITY.into(), 0.5f32.into()]),
        (DataType::Float64, [f64::MIN.into(), f64::INFINITY.into(), 0.1f64.into()]),
        (DECIMAL, [decimal(-999_999_999_999), decimal(999_999_999_999), decimal(150)]),
        (DataType::Char(3), ["   ".into(), "zzz".into(), "d  ".into()]),
        (DataType::Varchar(5), ["".into(), "zzzzz".into(), "déf".into()]),
        (DataType::Text, ["".into(), "\u{10FFFF}".into(), "default".into()]),
        (DataType::Bytes, [vec![].into(), vec![255; 300].into(), vec![0, 0].into()]),
        (DataType::Json, ["0".into(), " [ ]".into(), "{\"b\":1,\"a\":1}".into()]),
        (DataType::Jsonb, ["0".into(), "[]".into(), "{\"a\": 1, \"b\": 1}".into()]),
        (
            DataType::Interval,
            [
                Interval { months: i32::MIN, days: i32::MIN, micros: i64::MIN }.into(),
                Interval { months: i32::MAX, days: i32::MAX, micros: i64::MAX }.into(),
                Interval { months: 1, days: -2, micros: 3 }.into(),
            ],
        ),
        (DataType::Name, ["".into(), "z".repeat(63).into(), "a name".into()]),
        (DataType::Oid, [0i64.into(), 4_294_967_295i64.into(), 7i64.into()]),
        (
            DataType::Rounded(Clock::TimestampTz, Some(3)),
            [Value::TimestampTz(-1000), Value::TimestampTz(1000), Value::TimestampTz(0)],
        ),
        (DataType::Uuid, [uuid(0), uuid(u128::MAX), uuid(7)]),
        (DataType::Date, [Value::Date(i32::MIN), Value::Date(i32::MAX), Value::Date(0)]),
        (DataType::Time, [Value::Time(0), Value::Time(86_400_000_000), Value::Time(1)]),
        (
            DataType::Timestamp,
            [Value::Timestamp(i64::MIN), Value::Timestamp(i64::MAX), Value::Timestamp(1)],
        ),
        (
            DataType::TimestampTz,
            [
                Value::TimestampTz(0),
                Value::TimestampTz(253_402_300_799_999_999),
                Value::TimestampTz(1),
            ],
        ),
    ]
}

/// `things (id, one nullable column a type, with its default)`.
fn things() -> TableDefinition {
    let mut table = TableDefinition::builder("things")
        .column(ColumnDefinition::new("id", DataType::Int32).not_null());
    for (number, (data_type, [_, _, default])) in samples().into_iter().enumerate() {
        let column = ColumnDefinition::new(format!("column {number}"), data_type);
        table = table.column(column.default_value(default));
    }
    table.primary_key(["id"]).build().unwrap()
}

fn row(id: i32, mut value: impl FnMut([Value<'static>; 3]) -> Value<'static>) -> Row {
    let values = samples().into_iter().map(|(_, values)| value(values));
    std::iter::once(Value::Int32(id)).chain(values).collect()
}

#[test]
fn every_type_comes_back_by_get_and_scan_and_after_a_reopen() {
    let fixture = Fixture::new();
    let (db, table) = fixture.create_with(things());
    let mut session = db.session().unwrap();
    let smallest = row(1, |[smallest, _, _]| smallest);
    let largest = row(2, |[_, largest, _]| largest);
    let defaults = row(3, |[_, _, default]| default);
    let nulls = row(4, |_| Value::Null);
    session.insert(&table, &smallest).unwrap();
    session.insert(&table, &largest).unwrap();
    session.insert(&table, &row(3, |_| Value::Default)).unwrap();
    session.insert(&table, &nulls).unwrap();
    let expected = [smallest, largest, defaults, nulls];

    for (id, row) in (1i32..).zip(&expected) {
        assert_eq!(session.get(&table, &[id.into()]).unwrap().as_ref(), Some(row));
    }
    assert_eq!(all_rows(&mut session, &table), expected);

    // Once from the log, then from the images of a checkpoint.
    drop((session, db));
    for _ in 0..2 {
        let db = fixture.open();
        let table = db.table("things").unwrap();
        assert_eq!(all_rows(&mut db.session().unwrap(), &table), expected);
        db.close().unwrap();
    }
}

#[test]
fn the_log_may_hold_all_columns_or_only_those_without_their_default() {
    for elide_defaults in [false, true] {
        let mut fixture = Fixture::new();
        fixture.options.elide_defaults = elide_defaults;
        let (db, table) = fixture.create_with(things());
        let mut session = db.session().unwrap();
        session.insert(&table, &row(1, |_| Value::Default)).unwrap();
        session.insert(&table, &row(2, |[_, largest, _]| largest)).unwrap();
        drop((session, db));
        let db = fixture.open();
        let rows = all_rows(&mut db.session().unwrap(), &db.table("things").unwrap());
        assert_eq!(rows[0], row(1, |[_, _, default]| default));
        assert_eq!(rows[1], row(2, |[_, largest, _]| largest));
    }
}

#[test]
fn the_clock_fills_a_column_that_asks_for_it() {
    let (db, table) = Fixture::in_memory().create_with(
        TableDefinition::builder("events")
            .column(ColumnDefinition::new("id", DataType::Int32).not_null())
            .column(ColumnDefinition::new("at", DataType::TimestampTz).not_null().default_now())
            .primary_key(["id"])
            .build()
            .unwrap(),
    );
    let mut session = db.session().unwrap();
    for id in 0..10i32 {
        session.insert(&table, &[id.into(), Value::Default]).unwrap();
    }
    for row in all_rows(&mut session, &table) {
        let Value::TimestampTz(micros) = row[1] else { panic!("{:?}", row[1]) };
        assert!(micros > 1_700_000_000_000_000, "the clock stands at {micros}");
    }
}

#[test]
fn what_has_more_digits_than_its_column_is_refused() {
    let milliseconds = DataType::Rounded(Clock::Timestamp, Some(3));
    let (db, table) = Fixture::in_memory().create_with(
        TableDefinition::builder("events")
            .column(ColumnDefinition::new("id", DataType::Int32).not_null())
            .column(ColumnDefinition::new("at", milliseconds).default_now())
            .primary_key(["id"])
            .build()
            .unwrap(),
    );
    let mut session = db.session().unwrap();
    let error = session.insert(&table, &[1.into(), Value::Timestamp(1_001)]).unwrap_err();
    assert!(error.to_string().contains("round it first"), "{error}");
    session.insert(&table, &[1.into(), Value::Timestamp(1_000)]).unwrap();
    session.insert(&table, &[2.into(), Value::Default]).unwrap();
    let rows = all_rows(&mut session, &table);
    assert!(matches!(rows[1][1], Value::Timestamp(micros) if micros % 1000 == 0), "{rows:?}");
}

#[test]
fn an_interval_stands_in_no_key() {
    let table = TableDefinition::builder("spans")
        .column(ColumnDefinition::new("span", DataType::Interval).not_null());
    let error = table.primary_key(["span"]).build().unwrap_err();
    assert!(error.to_string().contains("which orders no rows"), "{error}");
}

#[test]
fn json_is_looked_at_and_jsonb_brought_into_its_form() {
    let json = |name: &str, data_type| ColumnDefinition::new(name, data_type);
    let table = TableDefinition::builder("documents")
        .column(ColumnDefinition::new("id", DataType::Int32).not_null())
        .column(json("raw", DataType::Json))
        .column(json("body", DataType::Jsonb));
    let (db, table) = Fixture::in_memory().create_with(table.primary_key(["id"]).build().unwrap());
    let mut session = db.session().unwrap();
    let row = |raw: &'static str, body: &'static str| [1.into(), raw.into(), body.into()];
    for bad in [row("{", "1"), row("1", "{"), row("", "1"), row("1", "")] {
        assert!(session.insert(&table, &bad).is_err(), "{bad:?}");
    }
    session.insert(&table, &row(r#"{"b":1,"a":1}"#, r#"{"b":1,"a":1}"#)).unwrap();
    let there = all_rows(&mut session, &table);
    assert_eq!(there, [row(r#"{"b":1,"a":1}"#, r#"{"a": 1, "b": 1}"#).to_vec()]);
    let key = TableDefinition::builder("keyed").column(json("id", DataType::Jsonb).not_null());
    assert!(key.primary_key(["id"]).build().is_err());
}
