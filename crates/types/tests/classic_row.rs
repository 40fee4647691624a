//! Promise: the classic table's row has these bytes, and the log takes nine of them.

use std::sync::Arc;

use onrush_types::{
    ColumnDefinition, DataType, DefaultValue, EncodedRow, KeyStrategy, Schema, TableDefinition,
    TypeError, Value,
};

fn classic_table() -> Schema {
    let key = KeyStrategy::SessionOffset;
    let definition = TableDefinition::builder("MyBigTable")
        .column(ColumnDefinition::new("c1", DataType::Int64).default_key(key))
        .column(ColumnDefinition::new("c2", DataType::Timestamp).default_now())
        .column(ColumnDefinition::new("c3", DataType::Char(111)).default_value("a"))
        .column(ColumnDefinition::new("c4", DataType::Int32).default_value(1))
        .column(ColumnDefinition::new("c5", DataType::Int32).default_value(2))
        .column(ColumnDefinition::new("c6", DataType::Int64).default_value(42i64))
        .primary_key(["c1"])
        .build()
        .expect("sound");
    Schema::new(Arc::new(definition)).expect("sound")
}

fn generate(column: usize, default: &DefaultValue) -> Result<Value<'static>, TypeError> {
    match default {
        DefaultValue::Now => Ok(Value::Timestamp(0x0102_0304)),
        _ => Ok(Value::Int64(i64::try_from(column).expect("small") + 5)),
    }
}

fn encode(values: &[Value<'_>]) -> EncodedRow {
    let mut out = EncodedRow::new();
    classic_table().encode_row(values, generate, &mut out).expect("fits");
    out
}

#[test]
fn the_bytes_of_key_row_and_log_do_not_change() {
    let out = encode(&[]);
    assert_eq!(out.key, [0x80, 0, 0, 0, 0, 0, 0, 5]);
    let mut row = vec![1, 0, 0, 4, 3, 2, 1, 0, 0, 0, 0, b'a'];
    row.extend([b' '; 110]);
    row.extend([1, 0, 0, 0, 2, 0, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(out.row, row);
    assert_eq!(out.elided, [0b10, 4, 3, 2, 1, 0, 0, 0, 0]);
}

#[test]
fn all_defaults_by_name_are_the_same_row_as_no_values() {
    let (none, named) = (encode(&[]), encode(&vec![Value::Default; 6]));
    assert_eq!((none.key, none.row, none.elided), (named.key, named.row, named.elided));
}

#[test]
fn a_value_equal_to_its_default_is_not_logged() {
    let mut values = vec![Value::Default; 6];
    values[2] = Value::from("a  ");
    values[5] = Value::Int32(42);
    assert_eq!(encode(&values).elided.len(), 9);
    values[2] = Value::from("bc");
    values[3] = Value::Null;
    // Bitmap, NULL bitmap, c2, length and text of c3.
    assert_eq!(encode(&values).elided, [0b1111, 0b100, 4, 3, 2, 1, 0, 0, 0, 0, 2, b'b', b'c']);
}

#[test]
fn a_computed_default_may_be_null() {
    let mut out = EncodedRow::new();
    let schema = classic_table();
    let generate = |_, default: &DefaultValue| match default {
        DefaultValue::Now => Ok::<_, TypeError>(Value::Null),
        _ => Ok(Value::Int64(1)),
    };
    schema.encode_row(&[], generate, &mut out).expect("fits");
    let mut row = Vec::new();
    schema.expand_elided(&out.elided, false, &mut row).expect("sound");
    assert_eq!(row, out.row);
    assert_eq!(schema.view(&out.key, &row).and_then(|view| view.column(1)), Ok(Value::Null));
}
