//! Several new rows of one table as one transaction: the quick way of
//! [`Session::insert_many`](super::Session::insert_many).

use onrush_types::EncodedRow;

use crate::logging::{RecordKind, push_varint, row_header};
use crate::tree::{GroupRow, GroupRows, Tree};
use crate::units::ObjectId;

/// The encoded rows of a batch. Kept by the session and used again, so that its buffers grow once.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    rows: Vec<RowSpan>,
    /// The row records, each with its length in front.
    record: Vec<u8>,
    header: Vec<u8>,
    ascends: bool,
}

#[derive(Clone, Copy)]
struct RowSpan {
    key_at: usize,
    value_at: usize,
    end: usize,
    record_at: usize,
    record_end: usize,
}

impl Batch {
    /// What its buffers take.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.record.capacity() + self.rows.capacity() * size_of::<RowSpan>()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
        self.record.clear();
        self.ascends = true;
    }

    pub(super) fn push(
        &mut self,
        object: ObjectId,
        kind: RecordKind,
        encoded: &EncodedRow,
        body: &[u8],
    ) {
        if let Some(last) = self.rows.last() {
            self.ascends &= self.bytes[last.key_at..last.value_at] < encoded.key[..];
        }
        let key_at = self.bytes.len();
        self.bytes.extend_from_slice(&encoded.key);
        let value_at = self.bytes.len();
        self.bytes.extend_from_slice(&encoded.row);
        let record_at = self.record.len();
        row_header(kind, object, encoded.key.len(), &mut self.header);
        let payload = self.header.len() + encoded.key.len() + body.len();
        push_varint(payload as u64, &mut self.record);
        self.record.extend_from_slice(&self.header);
        self.record.extend_from_slice(&encoded.key);
        self.record.extend_from_slice(body);
        let (end, record_end) = (self.bytes.len(), self.record.len());
        self.rows.push(RowSpan { key_at, value_at, end, record_at, record_end });
    }

    /// Puts the rows in key order. Returns the first key that is there twice.
    pub(super) fn sort(&mut self) -> Option<Vec<u8>> {
        if self.ascends {
            return None;
        }
        let Batch { bytes, rows, .. } = self;
        rows.sort_by(|a, b| bytes[a.key_at..a.value_at].cmp(&bytes[b.key_at..b.value_at]));
        let twice = rows.windows(2).find(|pair| {
            bytes[pair[0].key_at..pair[0].value_at] == bytes[pair[1].key_at..pair[1].value_at]
        });
        twice.map(|pair| bytes[pair[0].key_at..pair[0].value_at].to_vec())
    }

    /// All row records, in the order of arrival, each with its length in front.
    pub(super) fn record(&self) -> &[u8] {
        &self.record
    }

    /// The record of the row at `index` of the key order, with its length in front.
    pub(super) fn record_of(&self, index: usize) -> &[u8] {
        let row = self.rows[index];
        &self.record[row.record_at..row.record_end]
    }

    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    /// Key bytes and value bytes of the row at `index` of the key order.
    pub(super) fn row(&self, index: usize) -> (&[u8], &[u8]) {
        let row = self.rows[index];
        (&self.bytes[row.key_at..row.value_at], &self.bytes[row.value_at..row.end])
    }
}

/// The rows of a batch on their way to a tree.
pub(super) struct BatchRows<'b> {
    pub(super) batch: &'b Batch,
    pub(super) tree: &'b Tree,
    pub(super) object: ObjectId,
}

impl GroupRows for BatchRows<'_> {
    fn count(&self) -> usize {
        self.batch.count()
    }

    fn row(&self, index: usize) -> GroupRow<'_> {
        let (key, value) = self.batch.row(index);
        GroupRow { tree: self.tree, object: self.object, key, value }
    }

    fn bytes(&self) -> usize {
        self.batch.bytes.len()
    }
}
