//! The table of the classic insert studies: six columns, every one with a default.
//!
//! 163 bytes a row with a 16-byte key, as the studies count it: 151 bytes of data and some 12 of
//! row header. An insert gives no value at all; key and clock are computed for every row.

use onrush_types::{
    ColumnDefinition, DataType, KeyStrategy, TableBuilder, TableDefinition, TypeError, Value,
};

/// The name of the classic table.
pub const CLASSIC_TABLE: &str = "my_big_table";
/// Bytes of a row, as the studies count it.
pub const CLASSIC_ROW_BYTES: u64 = 163;
/// The name of its front.
pub const CLASSIC_FRONT: &str = "my_big_front";
/// The position of the column that holds the moment of the insert.
pub const CLOCK_COLUMN: usize = 1;

/// The classic table, its key made by `strategy`: `uuid` for the strategies that make GUIDs,
/// `bigint` for all others.
///
/// # Errors
/// A parameter of the strategy out of its range.
pub fn classic_table(name: &str, strategy: KeyStrategy) -> Result<TableDefinition, TypeError> {
    builder(name, strategy).build()
}

/// The same table, not logged: where rows are inserted that a drain moves to the classic table.
///
/// # Errors
/// As [`classic_table`].
pub fn classic_front(strategy: KeyStrategy) -> Result<TableDefinition, TypeError> {
    builder(CLASSIC_FRONT, strategy).unlogged().build()
}

fn builder(name: &str, strategy: KeyStrategy) -> TableBuilder {
    TableDefinition::builder(name)
        .column(ColumnDefinition::new("c1", strategy.natural_type()).default_key(strategy))
        .column(ColumnDefinition::new("c2", DataType::Timestamp).not_null().default_now())
        .column(ColumnDefinition::new("c3", DataType::Char(111)).not_null().default_value("a"))
        .column(ColumnDefinition::new("c4", DataType::Int32).not_null().default_value(1))
        .column(ColumnDefinition::new("c5", DataType::Int32).not_null().default_value(2))
        .column(ColumnDefinition::new("c6", DataType::Int64).not_null().default_value(42_i64))
        .primary_key(["c1"])
}

/// The row that an insert of defaults makes of a key and a moment, in microseconds since 1970-01-01 00:00:00 UTC.
pub fn classic_row(key: Value<'static>, now_micros: i64) -> [Value<'static>; 6] {
    let clock = Value::Timestamp(now_micros);
    [key, clock, Value::from("a"), Value::Int32(1), Value::Int32(2), Value::Int64(42)]
}

/// What is wrong with a row of the classic table that was inserted between two moments
/// (microseconds since 1970-01-01 00:00:00 UTC); None if nothing is.
pub fn fault_of(values: &[Value<'_>], inserted_micros: (i64, i64)) -> Option<String> {
    let [_, clock, text, one, two, forty_two] = values else {
        return Some(format!("it has {} columns, not 6", values.len()));
    };
    let padded = text.as_str().unwrap_or_default();
    if padded.len() != 111 || padded.trim_end_matches(' ') != "a" {
        return Some(format!("c3 is {text}, not 'a' filled up to 111 bytes"));
    }
    for (name, found, wanted) in [("c4", one, 1), ("c5", two, 2), ("c6", forty_two, 42)] {
        if found.as_i64() != Some(wanted) {
            return Some(format!("{name} is {found}, not {wanted}"));
        }
    }
    match clock {
        Value::Timestamp(at) if (inserted_micros.0..=inserted_micros.1).contains(at) => None,
        other => Some(format!("c2 is {other}, which is not within the time of the load")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use onrush_types::Schema;

    use super::*;

    #[test]
    fn every_strategy_makes_a_sound_table_and_uuids_take_sixteen_bytes() {
        for strategy in KeyStrategy::ALL {
            let table = classic_table(CLASSIC_TABLE, strategy).unwrap();
            let is_uuid = table.columns()[0].data_type == DataType::Uuid;
            assert_eq!(is_uuid, strategy.name().contains("uid"), "{strategy}");
            Schema::new(Arc::new(table)).unwrap();
        }
    }

    #[test]
    fn a_row_as_inserted_has_no_fault_and_any_other_has() {
        let text = format!("{:<111}", "a");
        let row = |clock, four: i32| {
            [
                Value::Int64(7),
                Value::Timestamp(clock),
                Value::from(text.clone()),
                Value::Int32(four),
                Value::Int32(2),
                Value::Int64(42),
            ]
        };
        assert_eq!(fault_of(&row(1000, 1), (1000, 2000)), None);
        assert!(fault_of(&row(999, 1), (1000, 2000)).unwrap().contains("c2"));
        assert!(fault_of(&row(1000, 3), (1000, 2000)).unwrap().contains("c4 is 3, not 1"));
        assert!(fault_of(&row(1000, 1)[..5], (1000, 2000)).is_some());
    }
}
