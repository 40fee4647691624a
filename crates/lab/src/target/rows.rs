//! Rows of the classic table as the lab makes them, for targets that do not make keys and defaults
//! themselves: six columns, 151 bytes with a 16-byte key and 143 with an 8-byte one.
//!
//! Their keys are those of any client: see [`ClientKeys`].

use onrush::{KeyStrategy, TypeError, Value};
use onrush_measure::classic_table::{self, NumberColumns};
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

    /// The entry of the row in an index of this column: the number, its bytes in the order of numbers, and the key.
    #[inline]
    pub(super) fn entry(&self, column: &str) -> Entry {
        let Columns { c4, c5, c6, .. } = self.columns();
        let number = match column {
            "c4" => i64::from(c4),
            "c5" => i64::from(c5),
            _ => c6,
        };
        let mut entry = Entry { bytes: [0; 24], length: 8 + self.key_bytes().len() };
        entry.bytes[..8].copy_from_slice(&((number as u64) ^ (1 << 63)).to_be_bytes());
        entry.bytes[8..entry.length].copy_from_slice(self.key_bytes());
        entry
    }

    #[inline]
    fn set(&mut self, key: Key, numbers: NumberColumns) {
        let (c4, c5, c6) = numbers.of(key);
        self.value[119..123].copy_from_slice(&c4.to_le_bytes());
        self.value[123..127].copy_from_slice(&c5.to_le_bytes());
        self.value[127..135].copy_from_slice(&c6.to_le_bytes());
        self.set_key(key);
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

/// An entry of an index that a target without indexes of its own keeps as a key.
pub(super) struct Entry {
    bytes: [u8; 24],
    length: usize,
}

impl Entry {
    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
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

/// The key of these bytes.
fn key_of(bytes: &[u8]) -> Option<Key> {
    if let Ok(number) = bytes.try_into() {
        return Some(Key::Number((u64::from_be_bytes(number) ^ (1 << 63)) as i64));
    }
    bytes.try_into().ok().map(Key::Uuid)
}

/// What is wrong with the bytes of a row, inserted between two moments; None if nothing is.
pub(super) fn fault_of(
    key: &[u8],
    value: &[u8],
    numbers: NumberColumns,
    inserted_micros: (i64, i64),
) -> Option<String> {
    let Some(key) = key_of(key) else {
        return Some(format!("its key takes {} bytes", key.len()));
    };
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
    classic_table::fault_of(&values, numbers.of(key), inserted_micros)
}

/// Makes the rows of one session.
pub(super) struct RowMaker<'n> {
    keys: ClientKeys<'n>,
    columns: NumberColumns,
    row: Row,
}

impl<'n> RowMaker<'n> {
    pub(super) fn new(
        strategy: KeyStrategy,
        spread: KeySpread,
        columns: NumberColumns,
        numbers: &'n Numbers,
    ) -> Result<Self, TypeError> {
        let keys = ClientKeys::new(strategy, spread, numbers)?;
        Ok(RowMaker { keys, columns, row: Row::template() })
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
        self.row.set(key, self.columns);
        self.row.value[..8].copy_from_slice(&unix_micros().to_le_bytes());
        &self.row
    }
}

#[cfg(test)]
mod tests {
    use onrush::DataType;

    use super::*;

    fn maker(strategy: KeyStrategy, columns: NumberColumns, numbers: &Numbers) -> RowMaker<'_> {
        RowMaker::new(strategy, KeySpread::Even, columns, numbers).unwrap()
    }

    #[test]
    fn every_strategy_makes_distinct_keys_and_sound_rows() {
        for strategy in KeyStrategy::ALL {
            for columns in [NumberColumns::Constant, NumberColumns::Random] {
                let numbers = Numbers::default();
                let before = unix_micros();
                let mut makers = [(); 2].map(|()| maker(strategy, columns, &numbers));
                let mut keys = std::collections::BTreeSet::new();
                for number in 0..600 {
                    let row = makers[number % 2].next().unwrap();
                    assert!(keys.insert(row.key_bytes().to_vec()), "{strategy}");
                    let time = (before, unix_micros());
                    let fault = fault_of(row.key_bytes(), row.value_bytes(), columns, time);
                    assert_eq!(fault, None, "{strategy}");
                    let again = Row::of(row.key, &row.columns());
                    assert_eq!(again.value_bytes(), row.value_bytes());
                    assert_eq!(again.key_bytes(), row.key_bytes());
                }
                let is_uuid = strategy.natural_type() == DataType::Uuid;
                assert_eq!(keys.first().unwrap().len() == 16, is_uuid, "{strategy}");
            }
        }
    }

    #[test]
    fn entries_order_by_the_number_and_then_by_the_key() {
        let numbers = Numbers::default();
        let mut maker = maker(KeyStrategy::UuidV4, NumberColumns::Random, &numbers);
        let rows: Vec<Row> = (0..200).map(|_| maker.next().unwrap().clone()).collect();
        for column in ["c4", "c5", "c6"] {
            let number = |row: &Row| match (column, row.columns()) {
                ("c4", columns) => i64::from(columns.c4),
                ("c5", columns) => i64::from(columns.c5),
                (_, columns) => columns.c6,
            };
            let mut by_entry = rows.clone();
            by_entry.sort_by_key(|row| row.entry(column).as_bytes().to_vec());
            let mut by_number = rows.clone();
            by_number.sort_by_key(|row| (number(row), row.key_bytes().to_vec()));
            let keys = |rows: &[Row]| rows.iter().map(|row| row.key).collect::<Vec<_>>();
            assert_eq!(keys(&by_entry), keys(&by_number), "{column}");
        }
    }

    #[test]
    fn identity_ascends_over_all_sessions() {
        let numbers = Numbers::default();
        let strategy = KeyStrategy::Identity { start: 1, strict: false };
        let mut makers = [(); 2].map(|()| maker(strategy, NumberColumns::Constant, &numbers));
        let keys: Vec<_> = (0..6).map(|number| makers[number % 2].next().unwrap().key).collect();
        assert_eq!(keys, (1..7).map(Key::Number).collect::<Vec<_>>());
    }

    #[test]
    fn a_damaged_row_is_named() {
        let numbers = Numbers::default();
        let mut maker = maker(KeyStrategy::UuidV4, NumberColumns::Random, &numbers);
        let row = maker.next().unwrap();
        let fault = |value: &[u8]| {
            fault_of(row.key_bytes(), value, NumberColumns::Random, (0, i64::MAX)).unwrap()
        };
        let mut value = *row.value_bytes().first_chunk::<VALUE_BYTES>().unwrap();
        value[120] ^= 1;
        assert!(fault(&value).contains("c4"));
        value[8] = b'b';
        assert!(fault(&value).contains("c3"));
        assert!(fault(&value[1..]).contains("bytes"));
    }
}
