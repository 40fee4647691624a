//! The numbers behind generated keys: from a stored value back to the number that made it, and the
//! highest one met.

use onrush_types::{DataType, KeyStrategy};

use crate::decode::definition::Definition;
use crate::decode::key::{KeyPlan, integer};
use crate::decode::row::RowPlan;

/// Keys of one node or one session.
const NODE_ROWS: i64 = 100_000_000_000_000;
const SESSION_ROWS: i64 = 10_000_000_000;
/// Ranges of sessions that fit 63 bits.
const SESSIONS: u64 = (i64::MAX / SESSION_ROWS).unsigned_abs();
/// Bits of the number in a hash-prefix key.
const HASHED_BITS: u32 = 55;

/// A generated column, and where its values stand.
#[derive(Clone, Debug)]
pub(crate) struct Generated {
    /// Its number among all columns that there ever were.
    pub(crate) column: usize,
    pub(crate) name: String,
    /// Numbers below make keys; after them inserts are refused.
    pub(crate) numbers_end: u64,
    strategy: KeyStrategy,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// Position in the key.
    Key(usize),
    /// Index among the columns outside the key.
    Stored(usize),
}

impl Generated {
    /// The generated columns of a table whose values tell their number.
    pub(crate) fn of(definition: &Definition) -> Vec<Generated> {
        let mut outside = 0;
        let mut found = Vec::new();
        for (column, declared) in definition.columns.iter().enumerate() {
            let place = match definition.key.iter().position(|key| *key == column) {
                Some(position) => Place::Key(position),
                None => {
                    outside += 1;
                    Place::Stored(outside - 1)
                }
            };
            if let Some(strategy) = declared.strategy()
                && !matches!(strategy, KeyStrategy::UuidV4 | KeyStrategy::UuidV7)
            {
                let numbers_end = numbers_end(strategy, declared.data_type);
                let name = declared.name.clone();
                let column = definition.column_number(column);
                found.push(Generated { column, name, numbers_end, strategy, place });
            }
        }
        found
    }

    /// Whether its values stand in the key.
    pub(crate) fn is_in_key(&self) -> bool {
        matches!(self.place, Place::Key(_))
    }

    /// The number behind the value of this column in a sound row; None if no number makes it.
    #[inline(always)]
    pub(crate) fn number(
        &self,
        key_plan: &KeyPlan,
        row_plan: &RowPlan,
        key: &[u8],
        row: &[u8],
    ) -> Option<u64> {
        match self.place {
            Place::Key(position) => {
                let bytes = key_plan.column(key, position)?;
                match self.strategy {
                    KeyStrategy::SequentialGuid => guid_number(bytes),
                    _ => number_of(self.strategy, ordered_integer(bytes)),
                }
            }
            Place::Stored(index) => {
                let bytes = row_plan.fixed(row, index)?;
                match self.strategy {
                    KeyStrategy::SequentialGuid => guid_number(bytes),
                    _ => number_of(self.strategy, plain_integer(bytes)?),
                }
            }
        }
    }
}

/// How many keys a strategy has, by the rules of `docs/data-file.md`.
fn numbers_end(strategy: KeyStrategy, data_type: DataType) -> u64 {
    let largest = match data_type {
        DataType::Int16 => i64::from(i16::MAX),
        DataType::Int32 => i64::from(i32::MAX),
        _ => i64::MAX,
    };
    match strategy {
        KeyStrategy::Identity { start, .. } => {
            // All 2^64 integers are one more than can be counted to.
            u64::try_from(i128::from(largest) - i128::from(start) + 1).unwrap_or(u64::MAX)
        }
        KeyStrategy::SessionOffset => SESSIONS,
        KeyStrategy::NodeOffset { .. } => NODE_ROWS.unsigned_abs(),
        KeyStrategy::BitReversed => 1 << 63,
        KeyStrategy::HashPrefix => 1 << HASHED_BITS,
        KeyStrategy::UuidV4 | KeyStrategy::UuidV7 | KeyStrategy::SequentialGuid => u64::MAX,
    }
}

/// An integer of a key: the usual width without a loop.
#[inline(always)]
fn ordered_integer(bytes: &[u8]) -> i64 {
    match bytes.as_array::<8>() {
        Some(bytes) => (u64::from_be_bytes(*bytes) ^ (1 << 63)).cast_signed(),
        None => integer(bytes) as i64,
    }
}

#[inline]
fn plain_integer(bytes: &[u8]) -> Option<i64> {
    match bytes.len() {
        2 => Some(i64::from(i16::from_le_bytes(*bytes.as_array()?))),
        4 => Some(i64::from(i32::from_le_bytes(*bytes.as_array()?))),
        _ => Some(i64::from_le_bytes(*bytes.as_array()?)),
    }
}

#[inline(always)]
fn number_of(strategy: KeyStrategy, value: i64) -> Option<u64> {
    let from_zero = u64::try_from(value).ok();
    match strategy {
        KeyStrategy::Identity { start, .. } => {
            (value >= start).then(|| value.wrapping_sub(start).cast_unsigned())
        }
        KeyStrategy::NodeOffset { node } => {
            let number = value.checked_sub(i64::from(node) * NODE_ROWS)?;
            (0..NODE_ROWS).contains(&number).then_some(number.unsigned_abs())
        }
        KeyStrategy::SessionOffset => from_zero.map(|value| value / SESSION_ROWS.unsigned_abs()),
        KeyStrategy::BitReversed => from_zero.map(|value| (value << 1).reverse_bits()),
        KeyStrategy::HashPrefix => {
            let number = from_zero? & ((1 << HASHED_BITS) - 1);
            // Multiplication by 2^64 over the golden ratio.
            let prefix = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
            (from_zero? == prefix << HASHED_BITS | number).then_some(number)
        }
        KeyStrategy::UuidV4 | KeyStrategy::UuidV7 | KeyStrategy::SequentialGuid => None,
    }
}

/// Bits 127 to 80, 75 to 64 and 61 to 58 of a UUID of version 8.
#[inline]
fn guid_number(bytes: &[u8]) -> Option<u64> {
    let bits = u128::from_be_bytes(*bytes.as_array::<16>()?);
    let is_ours = (bits >> 76) & 0xF == 8 && (bits >> 62) & 0b11 == 0b10;
    let number = (bits >> 80) << 16 | ((bits >> 64) & 0xFFF) << 4 | (bits >> 58) & 0xF;
    is_ours.then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use onrush_types::{ColumnName, KeyGenerator, TypeError, Value};

    use super::*;

    #[test]
    fn numbers_come_back_from_the_keys_that_they_made() {
        for strategy in KeyStrategy::ALL {
            let data_type = strategy.natural_type();
            let column = ColumnName::new("t", "c");
            let mut generator = KeyGenerator::new(strategy, data_type, column).unwrap();
            let mut lease = |_| Ok::<Range<u64>, TypeError>(9_000_000..9_000_001);
            let found = match generator.next(&mut lease).unwrap() {
                Value::Uuid(uuid) => guid_number(uuid.as_bytes()),
                value => number_of(strategy, value.as_i64().unwrap()),
            };
            let expected = match strategy {
                KeyStrategy::UuidV4 | KeyStrategy::UuidV7 => None,
                _ => Some(9_000_000),
            };
            assert_eq!(found, expected, "{strategy}");
        }
    }

    #[test]
    fn the_last_number_makes_a_key_and_the_next_one_does_not() {
        let identity = |start| KeyStrategy::Identity { start, strict: false };
        let mut cases: Vec<(KeyStrategy, DataType)> =
            [(1, DataType::Int16), (-5, DataType::Int32), (9, DataType::Int64)]
                .map(|(start, data_type)| (identity(start), data_type))
                .into();
        let others = [KeyStrategy::SessionOffset, KeyStrategy::HashPrefix];
        cases.extend(others.map(|strategy| (strategy, DataType::Int64)));
        let others = [KeyStrategy::NodeOffset { node: 3 }, KeyStrategy::BitReversed];
        cases.extend(others.map(|strategy| (strategy, DataType::Int64)));
        for (strategy, data_type) in cases {
            let makes_key = |number: u64| {
                let column = ColumnName::new("t", "c");
                let mut generator = KeyGenerator::new(strategy, data_type, column).unwrap();
                let mut lease = |_| Ok::<Range<u64>, TypeError>(number..number + 1);
                generator.next(&mut lease).is_ok()
            };
            let end = numbers_end(strategy, data_type);
            assert!(makes_key(end - 1) && !makes_key(end), "{strategy} of {data_type}");
        }
    }
}
