//! The table of the classic insert studies: six columns, every one with a default.
//!
//! 163 bytes a row with a 16-byte key, as the studies count it: 151 bytes of data and some 12 of
//! row header. An insert gives no value at all; key and clock are computed for every row.

use onrush_types::{
    ColumnDefinition, DataType, KeyStrategy, TableBuilder, TableDefinition, TypeError, Value,
};

use crate::load::client_keys::Key;

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

/// What the columns c4, c5 and c6 hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NumberColumns {
    /// Their defaults.
    #[default]
    Constant,
    /// Numbers that look random, made from the key: so each row can be told from its key alone.
    Random,
}

impl NumberColumns {
    /// c4, c5 and c6 of the row with this key.
    #[inline]
    pub fn of(self, key: Key) -> (i32, i32, i64) {
        if self == NumberColumns::Constant {
            return (1, 2, 42);
        }
        let (high, low) = match key {
            Key::Number(number) => (0, number as u64),
            Key::Uuid(bytes) => {
                let bits = u128::from_be_bytes(bytes);
                ((bits >> 64) as u64, bits as u64)
            }
        };
        let long = scattered(scattered(high) ^ low);
        let halves = scattered(long);
        ((halves >> 32) as i32, halves as i32, long as i64)
    }
}

/// The output function of the generator SplitMix64: each number once, in no order.
#[inline]
fn scattered(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The row of a key that is inserted at a moment, in microseconds since 1970-01-01 00:00:00 UTC; of constant numbers
/// the one that an insert of defaults makes.
#[inline]
pub fn classic_row(key: Key, numbers: NumberColumns, now_micros: i64) -> [Value<'static>; 6] {
    let (clock, (c4, c5, c6)) = (Value::Timestamp(now_micros), numbers.of(key));
    [key.value(), clock, Value::from("a"), Value::Int32(c4), Value::Int32(c5), Value::Int64(c6)]
}

/// What is wrong with a row of the classic table that was inserted between two moments
/// (microseconds since 1970-01-01 00:00:00 UTC) with these numbers in c4, c5 and c6; None if nothing is.
pub fn fault_of(
    values: &[Value<'_>],
    (c4, c5, c6): (i32, i32, i64),
    inserted_micros: (i64, i64),
) -> Option<String> {
    let [_, clock, text, four, five, six] = values else {
        return Some(format!("it has {} columns, not 6", values.len()));
    };
    let padded = text.as_str().unwrap_or_default();
    if padded.len() != 111 || padded.trim_end_matches(' ') != "a" {
        return Some(format!("c3 is {text}, not 'a' filled up to 111 bytes"));
    }
    for (name, found, wanted) in [("c4", four, c4.into()), ("c5", five, c5.into()), ("c6", six, c6)]
    {
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
        let constant = NumberColumns::Constant.of(Key::Number(7));
        let fault = |row: &[Value<'_>]| fault_of(row, constant, (1000, 2000));
        assert_eq!(fault(&row(1000, 1)), None);
        assert!(fault(&row(999, 1)).unwrap().contains("c2"));
        assert!(fault(&row(1000, 3)).unwrap().contains("c4 is 3, not 1"));
        assert!(fault(&row(1000, 1)[..5]).is_some());
    }

    #[test]
    fn random_numbers_are_others_for_each_key_and_the_same_again() {
        // The key 7 and the UUID that ends in 7 have the same numbers.
        let uuid = |n: u128| Key::Uuid((n << 64).to_be_bytes());
        let keys = (0..1000).map(Key::Number).chain((1..=1000).map(uuid));
        let numbers = |key| NumberColumns::Random.of(key);
        let all: Vec<(i32, i32, i64)> = keys.clone().map(numbers).collect();
        let long: std::collections::BTreeSet<i64> = all.iter().map(|(_, _, c6)| *c6).collect();
        assert_eq!(long.len(), 2000);
        let short: std::collections::BTreeSet<i32> = all.iter().map(|(c4, _, _)| *c4).collect();
        assert!(short.len() > 1990, "{} of 2000 are different", short.len());
        assert_eq!(keys.map(numbers).collect::<Vec<_>>(), all);
    }
}
