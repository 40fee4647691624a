//! What a transaction has changed, and the way back to a savepoint.
//!
//! Rows are kept by their place, so what a row was is gone once it changes again. While there is a
//! savepoint, each change first puts away what it replaces; going back puts those rows in again,
//! the newest first.
//!
//! A transaction that gets large takes its rows out from time to time (`large.rs`).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use onrush_log::Lsn;

use super::row_record::framed_row;
use crate::catalog::Table;
use crate::logging::RecordKind;
use crate::tree::{Bounds, Look};
use crate::units::ObjectId;

/// One row of the write set.
pub(super) struct Write {
    pub(super) table: Table,
    /// Value bytes; `None` removes the row.
    pub(super) value: Option<Vec<u8>>,
    /// The key must not be there when the transaction commits.
    pub(super) must_be_absent: bool,
    /// Nobody may have changed the row at or after this LSN, which is the snapshot's that the change rests on; none if
    /// it stands whoever did.
    pub(super) unchanged_since: Option<Lsn>,
    /// The row's log record, with its length in front; empty where rows are not logged.
    pub(super) record: Vec<u8>,
}

impl Write {
    /// The removal of what was inserted and removed again.
    fn removal(of: &Write, at: &RowKey) -> Write {
        let record = framed_row(&of.table, RecordKind::Remove, at.0, &at.1, &[]);
        let (table, unchanged_since) = (of.table.clone(), of.unchanged_since);
        Write { table, value: None, must_be_absent: false, unchanged_since, record }
    }
}

/// Where a row is: object and key bytes.
pub(super) type RowKey = (ObjectId, Vec<u8>);

/// The changed rows in the order in which their intents are placed.
pub(super) type Writes = BTreeMap<RowKey, Write>;

/// See the module.
#[derive(Default)]
pub(super) struct WriteSet {
    writes: Writes,
    /// What changes since the oldest savepoint have replaced, in their order.
    replaced: Vec<(RowKey, Option<Write>)>,
    /// The number of each savepoint, and how long `replaced` was then.
    savepoints: Vec<(u64, usize)>,
    /// What was put since rows were last taken out, but for those of private tables.
    bytes: usize,
    /// What the changed rows take in memory, about.
    held_bytes: usize,
    /// The same of those that were replaced.
    replaced_bytes: usize,
}

/// What a changed row takes beside its bytes: its place among the others, and three pieces of the allocator's.
const ROW_BYTES: usize = (size_of::<RowKey>() + size_of::<Write>()) * 3 / 2 + 48;

fn row_bytes(at: &RowKey, write: &Write) -> usize {
    let value_bytes = write.value.as_ref().map_or(0, Vec::capacity);
    ROW_BYTES + at.1.len() + value_bytes + write.record.capacity()
}

fn replaced_bytes(at: &RowKey, write: Option<&Write>) -> usize {
    write.map_or(ROW_BYTES, |write| row_bytes(at, write))
}

/// Changes that belong together: behind a savepoint and before the next one.
type Generation = (Option<u64>, Writes);

impl WriteSet {
    pub(super) fn get(&self, at: &RowKey) -> Option<&Write> {
        self.writes.get(at)
    }

    /// What the transaction itself has put there, as it is stored; none where it has changed nothing.
    pub(super) fn look(&self, at: &RowKey) -> Option<(Look, Vec<u8>)> {
        let value = &self.get(at)?.value;
        let look = Look { is_there: value.is_some(), lsn: None };
        Some((look, value.clone().unwrap_or_default()))
    }

    /// The changed rows of an object between these bounds, in key order: keys, and whether there is a row.
    pub(super) fn within<'w>(
        &'w self,
        object: ObjectId,
        bounds: &'w Bounds,
    ) -> impl Iterator<Item = (&'w [u8], bool)> {
        let is_within = |key: &[u8]| bounds.high.as_deref().is_none_or(|high| key < high);
        let from_low = self.writes.range((object, bounds.low.clone())..);
        from_low
            .take_while(move |((own, key), _)| *own == object && is_within(key))
            .map(|((_, key), write)| (key.as_slice(), write.value.is_some()))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&RowKey, &Write)> {
        self.writes.iter()
    }

    /// Bytes that were put since rows were last taken out.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// As [`put`](Self::put), of a row that can be taken out before the commit.
    pub(super) fn put_public(&mut self, at: RowKey, write: Write) {
        self.bytes += at.1.len() + write.record.len() + write.value.as_ref().map_or(0, Vec::len);
        self.put(at, write);
    }

    /// What all of it takes in memory, about.
    #[inline]
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes + self.replaced_bytes
    }

    pub(super) fn put(&mut self, at: RowKey, write: Write) {
        let replaced = (!self.savepoints.is_empty()).then(|| at.clone());
        let before = self.insert(at, write);
        if let Some(at) = replaced {
            self.replace((at, before));
        }
    }

    /// The change takes the place of an earlier one of the row, and rests on the snapshot that that one rested on.
    fn insert(&mut self, at: RowKey, mut write: Write) -> Option<Write> {
        self.held_bytes += row_bytes(&at, &write);
        match self.writes.entry(at) {
            Entry::Vacant(free) => {
                free.insert(write);
                None
            }
            Entry::Occupied(mut taken) => {
                self.held_bytes -= row_bytes(taken.key(), taken.get());
                write.unchanged_since = taken.get().unchanged_since;
                Some(taken.insert(write))
            }
        }
    }

    fn take_out(&mut self, at: &RowKey) -> Option<Write> {
        let write = self.writes.remove(at)?;
        self.held_bytes -= row_bytes(at, &write);
        Some(write)
    }

    fn replace(&mut self, (at, before): (RowKey, Option<Write>)) {
        self.replaced_bytes += replaced_bytes(&at, before.as_ref());
        self.replaced.push((at, before));
    }

    /// The change stands whoever changed the row since the transaction began.
    pub(super) fn let_anyone_be_first(&mut self, at: &RowKey) {
        if let Some(write) = self.writes.get_mut(at) {
            write.unchanged_since = None;
        }
    }

    pub(super) fn remove(&mut self, at: &RowKey) {
        let before = self.take_out(at);
        if before.is_some() && !self.savepoints.is_empty() {
            self.replace((at.clone(), before));
        }
    }

    /// All changed rows, for the commit; nothing is left.
    pub(super) fn take(&mut self) -> Writes {
        std::mem::take(self).writes
    }

    /// Takes out all rows of tables that `is_public`, by savepoints: first what was changed before the oldest
    /// one, then behind each what was changed since, as it was before the next one.
    pub(super) fn take_generations(
        &mut self,
        is_public: impl Fn(&Table) -> bool,
    ) -> Vec<Generation> {
        self.bytes = 0;
        let (mut now, private): (Writes, Writes) = std::mem::take(&mut self.writes)
            .into_iter()
            .partition(|(_, write)| is_public(&write.table));
        self.writes = private;
        let mut generations = Vec::new();
        let (mut kept, mut kept_behind) = (Vec::new(), Vec::new());
        for (number, first) in self.savepoints.iter().rev() {
            let mut changed = Writes::new();
            for (at, before) in self.replaced.drain(*first..).rev() {
                let table = before.as_ref().or(now.get(&at)).or(changed.get(&at));
                if !table.is_some_and(|write| is_public(&write.table)) {
                    kept.push((at, before));
                    continue;
                }
                let after = now.remove(&at);
                if !changed.contains_key(&at)
                    && let Some(write) =
                        after.or_else(|| Some(Write::removal(before.as_ref()?, &at)))
                {
                    changed.insert(at.clone(), write);
                }
                before.into_iter().for_each(|before| drop(now.insert(at.clone(), before)));
            }
            generations.push((Some(*number), changed));
            kept_behind.push(kept.len());
        }
        for ((_, first), behind) in self.savepoints.iter_mut().rev().zip(kept_behind) {
            *first = kept.len() - behind;
        }
        generations.push((None, now));
        generations.reverse();
        self.replaced = kept;
        self.replaced.reverse();
        self.held_bytes = self.writes.iter().map(|(at, write)| row_bytes(at, write)).sum();
        let replaced = self.replaced.iter();
        self.replaced_bytes = replaced.map(|(at, write)| replaced_bytes(at, write.as_ref())).sum();
        generations
    }

    pub(super) fn set_savepoint(&mut self, number: u64) {
        self.savepoints.push((number, self.replaced.len()));
    }

    /// The numbers of the savepoints, the oldest first.
    pub(super) fn savepoints(&self) -> impl Iterator<Item = u64> {
        self.savepoints.iter().map(|(number, _)| *number)
    }

    /// The rows that were changed first since the savepoint, so many at most, in their order.
    pub(super) fn changed_since(&self, number: u64, limit: usize) -> BTreeSet<RowKey> {
        let first = self.index_of(number).map_or(self.replaced.len(), |at| self.savepoints[at].1);
        self.replaced[first..].iter().take(limit).map(|(at, _)| at.clone()).collect()
    }

    /// Takes back what was changed since the savepoint, which stays. False if there is none such.
    pub(super) fn roll_back_to(&mut self, number: u64) -> bool {
        let Some(index) = self.index_of(number) else { return false };
        self.savepoints.truncate(index + 1);
        for (at, before) in self.replaced.split_off(self.savepoints[index].1).into_iter().rev() {
            self.replaced_bytes -= replaced_bytes(&at, before.as_ref());
            self.take_out(&at);
            if let Some(write) = before {
                self.insert(at, write);
            }
        }
        true
    }

    /// Forgets the savepoint and all later ones; the changes stay. False if there is none such.
    pub(super) fn release(&mut self, number: u64) -> bool {
        let Some(index) = self.index_of(number) else { return false };
        self.savepoints.truncate(index);
        if index == 0 {
            self.replaced = Vec::new();
            self.replaced_bytes = 0;
        }
        true
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        self.savepoints.iter().position(|(known, _)| *known == number)
    }
}
