//! Several new rows of one table as one transaction: the quick way of
//! [`Session::insert_many`](super::Session::insert_many).

use onrush_log::Lsn;
use onrush_types::EncodedRow;

use super::worker::Worker;
use crate::catalog::Table;
use crate::error::Result;
use crate::logging::{RecordKind, RowHeader, push_varint};
use crate::tree::{
    Blocked, GROUP_SLOTS_TRIES_MAX, GROUP_TRIES_MAX, GroupRefusal, GroupRow, GroupRows, Hint,
    Refusal, Tree, write_group,
};
use crate::units::ObjectId;

/// The encoded rows of a batch. Kept by the session and used again, so that its buffers grow once.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    rows: Vec<RowSpan>,
    /// The row records, each with its length in front.
    record: Vec<u8>,
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
        let header = RowHeader::new(kind, object, encoded.key.len());
        let payload = header.as_bytes().len() + encoded.key.len() + body.len();
        push_varint(payload as u64, &mut self.record);
        self.record.extend_from_slice(header.as_bytes());
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

impl Worker {
    /// Inserts all rows with one record, and returns its end; none if their leaves cannot be latched
    /// together or are never all in memory, or if slots lack for them again after some were made. Unless
    /// there is an end nothing was written. Whoever shares the table is waited for by definitions, and so
    /// must not wait for them.
    pub(super) fn write_group(
        &mut self,
        table: &Table,
        hint: &mut Option<Hint>,
        rows: &impl GroupRows,
        record: [&[u8]; 2],
        is_shared: bool,
    ) -> Result<std::result::Result<Option<Lsn>, Refusal>> {
        let payload = record[0].len() + record[1].len();
        self.take_spares_for(rows.leaves())?;
        let (mut slots_lacked, mut tries) = (0, 0);
        let outcome = self.inside_with_log_space(payload, |engine, seat| {
            match is_shared {
                true => table.entry.check_shared_version()?,
                false => table.entry.check_version()?,
            }
            match write_group(engine, seat, hint, rows, record) {
                Ok(written) => Ok(Some(written.end)),
                Err(GroupRefusal::Refused(refusal)) => {
                    let Refusal::Blocked(blocked) = &refusal else { return Err(refusal) };
                    // On a full disk a checkpoint may free some slots and never enough for all leaves:
                    // the next try, undone like this one, would find as many again. So it is with memory
                    // where each leaf that is read takes the place of another of them. The general way
                    // keeps what it has placed, so it gets on or finds the disk or the memory full.
                    tries += 1;
                    slots_lacked += usize::from(*blocked == Blocked::Slot);
                    let gives_up = slots_lacked > GROUP_SLOTS_TRIES_MAX || tries > GROUP_TRIES_MAX;
                    if gives_up { Ok(None) } else { Err(refusal) }
                }
                Err(GroupRefusal::NotThisWay) => Ok(None),
            }
        });
        self.give_back_spares();
        outcome
    }
}
