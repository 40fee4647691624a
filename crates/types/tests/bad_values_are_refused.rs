//! Promise: a value that does not fit is refused with a message that names table, column, type.

use std::sync::Arc;

use onrush_types::{
    ColumnDefinition, DataType, EncodedRow, KEY_BYTES_MAX, ROW_BYTES_MAX, Schema, TableDefinition,
    TypeError, Value,
};

fn orders() -> Schema {
    let definition = TableDefinition::builder("orders")
        .column(ColumnDefinition::new("id", DataType::Text))
        .column(ColumnDefinition::new("amount", DataType::Decimal { precision: 5, scale: 2 }))
        .column(ColumnDefinition::new("code", DataType::Char(3)))
        .column(ColumnDefinition::new("count", DataType::Int64).not_null().default_value(1i64))
        .column(ColumnDefinition::new("note", DataType::Varchar(8000)))
        .column(ColumnDefinition::new("at", DataType::Timestamp).not_null())
        .primary_key(["id"])
        .build()
        .expect("sound");
    Schema::new(Arc::new(definition)).expect("sound")
}

fn row<'a>(changes: &[(usize, Value<'a>)]) -> Vec<Value<'a>> {
    let mut values = vec![Value::Default; 6];
    values[0] = Value::from("a");
    values[5] = Value::Timestamp(0);
    for (column, value) in changes {
        values[*column] = value.clone();
    }
    values
}

fn encode(values: &[Value<'_>]) -> Result<EncodedRow, TypeError> {
    let mut out = EncodedRow::new();
    orders().encode_row(values, |column, _| panic!("column {column} is not computed"), &mut out)?;
    Ok(out)
}

#[test]
fn messages_name_table_column_and_type() {
    for (column, value, expected) in [
        (0, Value::Int32(1), "column orders.id is text, but the value given is integer"),
        (0, Value::Null, "column orders.id is NOT NULL"),
        (0, Value::Default, "column orders.id is NOT NULL and has no default"),
        (1, Value::Decimal("1.005".parse().expect("decimal")), "more than 2 digits after"),
        (1, Value::Int16(1000), "more than 3 digits before the point"),
        (2, Value::from("abcd"), "column orders.code (char(3)) cannot hold the value"),
        (3, Value::Float64(1.0), "column orders.count is bigint, but the value given is double"),
        (3, Value::Null, "column orders.count is NOT NULL"),
        (5, Value::TimestampTz(0), "orders.at is timestamp, but the value given is timestamptz"),
        (5, Value::Timestamp(i64::MAX - 1), "years 4714 BC to 294246"),
        (5, Value::Default, "column orders.at is NOT NULL and has no default"),
    ] {
        let error = encode(&row(&[(column, value)])).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error} / {expected}");
    }
}

#[test]
fn integers_widen_and_blanks_do_not_count() {
    let values = row(&[(1, Value::Int16(999)), (2, "ab    ".into()), (3, Value::Int16(-1))]);
    let encoded = encode(&values).expect("fits");
    let decoded = orders().decode_row(&encoded.key, &encoded.row).expect("sound");
    assert_eq!(decoded[1].to_string(), "999.00");
    assert_eq!(decoded[2], Value::from("ab "));
    assert_eq!(decoded[3], Value::Int64(-1));
}

#[test]
fn a_wrong_number_of_values_is_refused() {
    assert!(matches!(encode(&row(&[])[..5]), Err(TypeError::ValueCount { given: 5, .. })));
    let error = encode(&[]).expect_err("the key has no default");
    assert!(matches!(error, TypeError::MissingValue(_)));
}

#[test]
fn the_largest_key_fits_and_one_byte_more_does_not() {
    let largest = "k".repeat(KEY_BYTES_MAX - 2);
    assert_eq!(encode(&row(&[(0, largest.as_str().into())])).map(|row| row.key.len()), Ok(1024));
    let error = encode(&row(&[(0, (largest.clone() + "k").into())]));
    assert!(matches!(error, Err(TypeError::KeyTooLarge { bytes: 1025, .. })));
}

#[test]
fn the_largest_row_fits_and_one_byte_more_does_not() {
    let empty = encode(&row(&[(4, "".into())])).expect("fits");
    let space = ROW_BYTES_MAX - empty.key.len() - empty.row.len();
    let note = "n".repeat(space);
    let full = encode(&row(&[(4, note.as_str().into())])).expect("fits");
    assert_eq!(full.key.len() + full.row.len(), ROW_BYTES_MAX);
    let error = encode(&row(&[(4, (note.clone() + "n").into())]));
    assert!(matches!(error, Err(TypeError::RowTooLarge { bytes: 8001, .. })));
}

#[test]
fn a_row_of_another_schema_version_is_recognised() {
    let encoded = encode(&row(&[])).expect("fits");
    assert_eq!(Schema::row_version(&encoded.row), Some(1));
    let mut other = encoded.row.clone();
    other[0] = 2;
    let read = orders().decode_row(&encoded.key, &other);
    assert!(matches!(read, Err(TypeError::WrongSchemaVersion { found: 2, expected: 1, .. })));
}
