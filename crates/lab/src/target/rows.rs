//! Rows of the classic table as the lab makes them, for targets that do not make keys and defaults
//! themselves: six columns, 151 bytes with a 16-byte key and 143 with an 8-byte one.
//!
//! Their keys are those of any client: see [`ClientKeys`].

use onrush::{KeyStrategy, TypeError, Value};
use onrush_measure::classic_table;
pub(super) use onrush_measure::load::client_keys::{ClientKeys, Key, KeySpread, Numbers};
use onrush_measure::stand::unix_micros;

/// Bytes of the columns beside the key.
pub(super) const VALUE_BYTES: usize = 8 + 111 + 4 + 4 + 8;

/// One row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) key: Key,
    encoded: [u8; 16],
    value: [u8; VALUE_BYTES],
}

impl Row {
    fn template() -> Row {
        let mut value = [b' '; VALUE_BYTES];
        value[8] = b'a';
        value[119..123].copy_from_slice(&1_i32.to_le_bytes());
        value[123..127].copy_from_slice(&2_i32.to_le_bytes());
        value[127..135].copy_from_slice(&42_i64.to_le_bytes());
        Row { key: Key::Number(0), encoded: [0; 16], value }
    }

    /// The key as bytes whose order is that of the keys.
    #[inline]
    pub(super) fn key_bytes(&self) -> &[u8] {
        match self.key {
            Key::Number(_) => &self.encoded[..8],
            Key::Uuid(_) => &self.encoded,
        }
    }

    /// All other columns: the moment, the text, three numbers.
    #[inline]
    pub(super) fn value_bytes(&self) -> &[u8] {
        &self.value
    }

    #[inline]
    fn set_key(&mut self, key: Key) {
        self.key = key;
        match key {
            Key::Number(number) => {
                let ordered = (number as u64) ^ (1 << 63);
                self.encoded[..8].copy_from_slice(&ordered.to_be_bytes());
            }
            Key::Uuid(bytes) => self.encoded = bytes,
        }
    }
}

/// Columns beside the key, for targets that keep columns.
pub(super) struct Columns<'r> {
    pub(super) clock_micros: i64,
    pub(super) text: &'r str,
    pub(super) c4: i32,
    pub(super) c5: i32,
    pub(super) c6: i64,
}

impl Row {
    /// The columns of the row.
    pub(super) fn columns(&self) -> Columns<'_> {
        Columns {
            clock_micros: i64::from_le_bytes(part(&self.value, 0)),
            text: std::str::from_utf8(&self.value[8..119]).unwrap_or_default(),
            c4: i32::from_le_bytes(part(&self.value, 119)),
            c5: i32::from_le_bytes(part(&self.value, 123)),
            c6: i64::from_le_bytes(part(&self.value, 127)),
        }
    }

    /// The row with this key and these columns.
    pub(super) fn of(key: Key, columns: &Columns<'_>) -> Row {
        let mut row = Row::template();
        row.set_key(key);
        row.value[..8].copy_from_slice(&columns.clock_micros.to_le_bytes());
        let text = columns.text.as_bytes();
        let length = text.len().min(111);
        row.value[8..119].fill(b' ');
        row.value[8..8 + length].copy_from_slice(&text[..length]);
        row.value[119..123].copy_from_slice(&columns.c4.to_le_bytes());
        row.value[123..127].copy_from_slice(&columns.c5.to_le_bytes());
        row.value[127..135].copy_from_slice(&columns.c6.to_le_bytes());
        row
    }
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

/// What is wrong with the bytes of a row, inserted between two moments; None if nothing is.
pub(super) fn fault_of(value: &[u8], inserted_micros: (i64, i64)) -> Option<String> {
    if value.len() != VALUE_BYTES {
        return Some(format!("its columns take {} bytes, not {VALUE_BYTES}", value.len()));
    }
    let text = std::str::from_utf8(&value[8..119]).unwrap_or_default();
    let values = [
        Value::Null,
        Value::Timestamp(i64::from_le_bytes(part(value, 0))),
        Value::from(text),
        Value::Int32(i32::from_le_bytes(part(value, 119))),
        Value::Int32(i32::from_le_bytes(part(value, 123))),
        Value::Int64(i64::from_le_bytes(part(value, 127))),
    ];
    classic_table::fault_of(&values, inserted_micros)
}

/// Makes the rows of one session.
pub(super) struct RowMaker<'n> {
    keys: ClientKeys<'n>,
    row: Row,
}

impl<'n> RowMaker<'n> {
    pub(super) fn new(
        strategy: KeyStrategy,
        spread: KeySpread,
        numbers: &'n Numbers,
    ) -> Result<Self, TypeError> {
        Ok(RowMaker { keys: ClientKeys::new(strategy, spread, numbers)?, row: Row::template() })
    }

    /// The next row. Valid until the one after it.
    #[inline]
    pub(super) fn next(&mut self) -> Result<&Row, TypeError> {
        let key = self.keys.draw()?;
        Ok(self.of(key))
    }

    /// The row of a key, as it is inserted now.
    #[inline]
    pub(super) fn of(&mut self, key: Key) -> &Row {
        self.row.set_key(key);
        self.row.value[..8].copy_from_slice(&unix_micros().to_le_bytes());
        &self.row
    }
}

#[cfg(test)]
mod tests {
    use onrush::DataType;

    use super::*;

    #[test]
    fn every_strategy_makes_distinct_keys_and_sound_rows() {
        for strategy in KeyStrategy::ALL {
            let numbers = Numbers::default();
            let before = unix_micros();
            let mut makers =
                [(); 2].map(|()| RowMaker::new(strategy, KeySpread::Even, &numbers).unwrap());
            let mut keys = std::collections::BTreeSet::new();
            for number in 0..600 {
                let row = makers[number % 2].next().unwrap();
                assert!(keys.insert(row.key_bytes().to_vec()), "{strategy}");
                assert_eq!(fault_of(row.value_bytes(), (before, unix_micros())), None);
                let again = Row::of(row.key, &row.columns());
                assert_eq!(again.value_bytes(), row.value_bytes());
                assert_eq!(again.key_bytes(), row.key_bytes());
            }
            let is_uuid = strategy.natural_type() == DataType::Uuid;
            assert_eq!(keys.first().unwrap().len() == 16, is_uuid, "{strategy}");
        }
    }

    #[test]
    fn identity_ascends_over_all_sessions() {
        let numbers = Numbers::default();
        let strategy = KeyStrategy::Identity { start: 1, strict: false };
        let mut makers =
            [(); 2].map(|()| RowMaker::new(strategy, KeySpread::Even, &numbers).unwrap());
        let keys: Vec<_> = (0..6).map(|number| makers[number % 2].next().unwrap().key).collect();
        assert_eq!(keys, (1..7).map(Key::Number).collect::<Vec<_>>());
    }

    #[test]
    fn a_damaged_row_is_named() {
        let mut value = *RowMaker::new(KeyStrategy::UuidV4, KeySpread::Even, &Numbers::default())
            .unwrap()
            .next()
            .unwrap()
            .value_bytes()
            .first_chunk::<VALUE_BYTES>()
            .unwrap();
        value[8] = b'b';
        assert!(fault_of(&value, (0, i64::MAX)).unwrap().contains("c3"));
        assert!(fault_of(&value[1..], (0, i64::MAX)).is_some());
    }
}
