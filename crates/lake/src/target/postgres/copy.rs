//! Rows as the bytes of a binary COPY.
//!
//! PostgreSQL's binary form of each type, whose days begin in the year 2000. What PostgreSQL has no
//! value for is refused: the character 0 in a text.

use std::fmt::Write;

use bytes::{BufMut, Bytes, BytesMut};

use crate::batch::LakeValue;
use crate::columns::{LakeColumn, LakeKind, added_columns};
use crate::error::LakeError;
use crate::mark::NodeId;
use crate::target::RowSink;

/// Before the first row: a signature, no flags, nothing more.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Behind the last row.
const TRAILER: i16 = -1;
const NULL: i32 = -1;
/// From 1970-01-01 to 2000-01-01.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;
/// Digits of one number of a numeric.
const GROUP: usize = 4;
const POSITIVE: u16 = 0x0000;
const NEGATIVE: u16 = 0x4000;

/// Collects rows of one node until they are sent.
pub(super) struct CopyRows {
    node: NodeId,
    /// Of the node's table; the three added stand behind.
    columns: Vec<LakeColumn>,
    /// How many values stand in a row.
    width: i16,
    /// The column whose value comes next.
    next: usize,
    rows: u64,
    bytes: u64,
    buffer: BytesMut,
    digits: String,
}

impl CopyRows {
    pub(super) fn new(columns: &[LakeColumn], node: NodeId) -> Result<CopyRows, LakeError> {
        let width = i16::try_from(columns.len() + added_columns().len())
            .map_err(|_| LakeError::Internal("too many columns".to_owned()))?;
        let columns = columns.to_vec();
        let (buffer, digits) = (BytesMut::from(HEADER), String::new());
        Ok(CopyRows { node, columns, width, next: 0, rows: 0, bytes: 0, buffer, digits })
    }

    /// Rows that were ended.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// How many bytes were and are to be sent for them.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes + self.buffer.len() as u64
    }

    /// How many bytes wait.
    pub(super) fn waiting(&self) -> usize {
        self.buffer.len()
    }

    /// What waits, whole rows, to be sent.
    pub(super) fn take(&mut self) -> Bytes {
        self.bytes += self.buffer.len() as u64;
        self.buffer.split().freeze()
    }

    /// Nothing more comes.
    pub(super) fn end(&mut self) {
        self.buffer.put_i16(TRAILER);
    }

    fn refuse(&self, what: &str) -> LakeError {
        let name = self.columns.get(self.next).map_or("", |column| column.name.as_str());
        LakeError::Row(format!("{what} does not go into column {name}"))
    }

    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.buffer.put_i32(N as i32);
        self.buffer.put_slice(&bytes);
    }

    fn put_long(&mut self, bytes: &[u8]) -> Result<(), LakeError> {
        let length = i32::try_from(bytes.len()).map_err(|_| self.refuse("more than 2 GiB"))?;
        self.buffer.put_i32(length);
        self.buffer.put_slice(bytes);
        Ok(())
    }

    fn put_micros(&mut self, micros: i64) -> Result<(), LakeError> {
        let since = match micros {
            // Minus infinity and infinity.
            i64::MIN | i64::MAX => micros,
            _ => micros
                .checked_sub(EPOCH_MICROS)
                .ok_or_else(|| self.refuse("a time before all that PostgreSQL knows"))?,
        };
        self.put(since.to_be_bytes());
        Ok(())
    }

    fn put_days(&mut self, days: i32) -> Result<(), LakeError> {
        let since = match days {
            i32::MIN | i32::MAX => days,
            _ => days
                .checked_sub(EPOCH_DAYS)
                .ok_or_else(|| self.refuse("a day before all that PostgreSQL knows"))?,
        };
        self.put(since.to_be_bytes());
        Ok(())
    }

    /// Groups of four digits, parted where the point is, without noughts at both ends.
    fn put_decimal(&mut self, value: i128, scale: u8) -> Result<(), LakeError> {
        let scale = usize::from(scale);
        self.digits.clear();
        let width = scale + 1;
        write!(self.digits, "{:0width$}", value.unsigned_abs())
            .map_err(|_| LakeError::Internal("a number cannot be written".to_owned()))?;
        let (whole, part) = self.digits.split_at(self.digits.len() - scale);
        let whole_groups = whole.len().div_ceil(GROUP);
        let lead = whole_groups * GROUP - whole.len();
        let count = whole_groups + part.len().div_ceil(GROUP);
        let digit = |at: usize| {
            let digit = at.checked_sub(lead).and_then(|at| self.digits.as_bytes().get(at));
            digit.map_or(0, |digit| u16::from(digit - b'0'))
        };
        let group =
            |at: usize| (0..GROUP).fold(0, |number, place| number * 10 + digit(at * GROUP + place));
        let groups: Vec<u16> = (0..count).map(group).collect();
        let first = groups.iter().position(|group| *group != 0).unwrap_or(count);
        let last = groups.iter().rposition(|group| *group != 0).map_or(first, |last| last + 1);
        let shown = &groups[first..last];
        let weight = if shown.is_empty() { 0 } else { whole_groups as i16 - 1 - first as i16 };
        let sign = if value < 0 { NEGATIVE } else { POSITIVE };
        self.buffer.put_i32(8 + 2 * shown.len() as i32);
        self.buffer.put_i16(shown.len() as i16);
        self.buffer.put_i16(weight);
        self.buffer.put_u16(sign);
        self.buffer.put_i16(scale as i16);
        shown.iter().for_each(|group| self.buffer.put_u16(*group));
        Ok(())
    }

    fn put_value(&mut self, kind: LakeKind, value: LakeValue<'_>) -> Result<(), LakeError> {
        match (kind, value) {
            (LakeKind::Boolean, LakeValue::Boolean(value)) => self.put([value.into()]),
            (LakeKind::Int32, LakeValue::Int32(value)) => self.put(value.to_be_bytes()),
            (LakeKind::Int64, LakeValue::Int64(value)) => self.put(value.to_be_bytes()),
            (LakeKind::Float32, LakeValue::Float32(value)) => self.put(value.to_be_bytes()),
            (LakeKind::Float64, LakeValue::Float64(value)) => self.put(value.to_be_bytes()),
            (LakeKind::Decimal { scale, .. }, LakeValue::Decimal(value)) => {
                return self.put_decimal(value, scale);
            }
            (LakeKind::Text, LakeValue::Text(text)) => {
                if text.contains('\0') {
                    return Err(self.refuse("a text with the character 0"));
                }
                return self.put_long(text.as_bytes());
            }
            (LakeKind::Bytes, LakeValue::Bytes(bytes)) => return self.put_long(bytes),
            (LakeKind::Uuid, LakeValue::Uuid(uuid)) => self.put(uuid),
            (LakeKind::Date, LakeValue::Date(days)) => return self.put_days(days),
            (LakeKind::TimeMicros, LakeValue::TimeMicros(micros)) => {
                self.put(micros.to_be_bytes());
            }
            (LakeKind::TimestampMicros, LakeValue::TimestampMicros(micros))
            | (LakeKind::TimestamptzMicros, LakeValue::TimestamptzMicros(micros)) => {
                return self.put_micros(micros);
            }
            (_, value) => return Err(self.refuse(&format!("{value:?}"))),
        }
        Ok(())
    }
}

impl RowSink for CopyRows {
    fn push(&mut self, value: LakeValue<'_>) -> Result<(), LakeError> {
        let Some(column) = self.columns.get(self.next) else {
            return Err(self.refuse("one value more than the row has columns"));
        };
        let (kind, is_nullable) = (column.kind, column.is_nullable);
        if self.next == 0 {
            self.buffer.put_i16(self.width);
        }
        match value {
            LakeValue::Null if is_nullable => self.buffer.put_i32(NULL),
            LakeValue::Null => return Err(self.refuse("NULL")),
            value => self.put_value(kind, value)?,
        }
        self.next += 1;
        Ok(())
    }

    fn end_row(&mut self, lsn: u64, at: i64) -> Result<(), LakeError> {
        if self.next != self.columns.len() {
            return Err(self.refuse("the end of a row"));
        }
        let beyond = |what: String| LakeError::Row(format!("{what} is beyond what a row can hold"));
        let lsn = i64::try_from(lsn).map_err(|_| beyond(format!("LSN {lsn}")))?;
        let node = i32::try_from(self.node.0).map_err(|_| beyond(format!("node {}", self.node)))?;
        self.put(node.to_be_bytes());
        self.put(lsn.to_be_bytes());
        self.put_micros(at)?;
        self.next = 0;
        self.rows += 1;
        Ok(())
    }
}
