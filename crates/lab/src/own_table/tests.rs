//! What owners write, and the table that it becomes.

use std::sync::Arc;

use onrush::{DataType, Decimal, DefaultValue, KeyStrategy, Schema, Value};

use super::sql::read;
use super::*;

fn types(table: &OwnTable) -> Vec<(String, DataType)> {
    table.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect()
}

#[test]
fn a_statement_of_another_database_becomes_a_table_with_defaults_everywhere() {
    let table = read(
        "CREATE TABLE dbo.[Orders] (
            id bigserial PRIMARY KEY,
            customer uniqueidentifier NOT NULL,
            placed datetime2 NOT NULL DEFAULT GETDATE(),
            price numeric(10, 2) DEFAULT 9.95,
            note nvarchar(40) NULL,
            CONSTRAINT positive CHECK (price > 0)
        );",
    )
    .unwrap();
    assert_eq!(table.name, "Orders");
    let price = DataType::Decimal { precision: 10, scale: 2 };
    let expected = [
        ("id", DataType::Int64),
        ("customer", DataType::Uuid),
        ("placed", DataType::Timestamp),
        ("price", price),
        ("note", DataType::Varchar(40)),
    ];
    assert_eq!(types(&table), expected.map(|(name, data_type)| (name.to_owned(), data_type)));
    let definition = table.definition(KeyStrategy::SessionOffset, "t").unwrap();
    let defaults: Vec<_> = definition.columns().iter().map(|column| &column.default).collect();
    assert_eq!(*defaults[0], DefaultValue::Key(KeyStrategy::SessionOffset));
    assert_eq!(*defaults[2], DefaultValue::Now);
    assert_eq!(*defaults[3], DefaultValue::Constant(Value::Decimal(Decimal::new(995, 2))));
    assert!(defaults.iter().all(|default| **default != DefaultValue::None));
    Schema::new(Arc::new(definition)).unwrap();
}

#[test]
fn the_last_number_or_uuid_of_the_key_is_the_one_that_is_made() {
    let table =
        read("CREATE TABLE t (region varchar(8), n int, x text, PRIMARY KEY (region, n))").unwrap();
    assert_eq!(table.columns[table.generated].name, "n");
    assert_eq!(table.strategies()[0].name(), "identity");
    let definition = table.definition(KeyStrategy::UuidV4, "t").unwrap();
    assert_eq!(definition.columns()[1].data_type, DataType::Uuid);
    assert_eq!(definition.primary_key(), [0, 1]);
    let uuid = read("CREATE TABLE t (id uuid PRIMARY KEY)").unwrap();
    assert_eq!(uuid.strategies()[0], KeyStrategy::UuidV4);
}

#[test]
fn what_cannot_be_a_table_is_told_with_its_cure() {
    for (sql, words) in [
        ("CREATE TABLE t (id int", "no SQL that can be read"),
        ("SELECT 1", "no CREATE TABLE"),
        ("CREATE TABLE t (id int)", "has no primary key"),
        ("CREATE TABLE t (name text PRIMARY KEY)", "of type bigint or uuid"),
        ("CREATE TABLE t (id int PRIMARY KEY, place geometry)", "column place has type"),
        ("CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT 'many')", "default 'many'"),
        ("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY)", "several"),
    ] {
        let reason = read(sql).unwrap_err();
        assert!(reason.contains(words), "{sql}: {reason}");
    }
}

#[test]
fn a_sample_gets_the_narrowest_types_and_a_typical_row() {
    let rows = [
        ["1", "2026-01-05", "true", "3", "", "7.5", "it's short"],
        ["2", "2026-01-06", "false", "0", "", "8", "a note that is longer"],
        ["3", "2026-01-07", "true", "1", "x", "9", "between"],
    ];
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect();
    let header = ["id", "day", "paid", "items", "flag", "weight", "note"].map(String::from);
    let sql = sample::statement("orders", &header, &rows).unwrap();
    let table = read(&sql).unwrap();
    let found: Vec<DataType> = table.columns.iter().map(|column| column.data_type).collect();
    let expected = [
        DataType::Int64,
        DataType::Date,
        DataType::Boolean,
        DataType::Int64,
        DataType::Varchar(1),
        DataType::Float64,
        DataType::Varchar(32),
    ];
    assert_eq!(found, expected, "{sql}");
    assert_eq!(table.columns[6].default, DefaultValue::Constant("it's short".into()), "{sql}");
    assert!(table.columns[4].nullable && !table.columns[5].nullable, "{sql}");
}

#[test]
fn a_sample_without_rows_or_with_a_short_one_is_refused() {
    let header = ["a".to_owned(), "b".to_owned()];
    let refused = |rows: &[Vec<String>]| sample::statement("t", &header, rows).unwrap_err();
    assert!(refused(&[]).contains("no rows"));
    assert!(refused(&[vec!["1".into()]]).contains("row 1 has 1 columns, the header 2"));
    assert!(sample::statement("t", &[], &[]).unwrap_err().contains("no header"));
}

#[test]
fn a_table_that_is_not_logged_stays_so() {
    let logged = |sql: &str| read(sql).unwrap().logged;
    assert!(!logged("CREATE UNLOGGED TABLE t (id bigint PRIMARY KEY)"));
    assert!(logged("CREATE TABLE unlogged (id bigint PRIMARY KEY)"));
}
