//! What a transaction has changed, and the way back to a savepoint.
//!
//! Rows are kept by their place, so what a row was is gone once it changes again. While there is a
//! savepoint, each change first puts away what it replaces; going back puts those rows in again,
//! the newest first.

use std::collections::BTreeMap;

use crate::database::Table;
use crate::units::ObjectId;

/// One row of the write set.
pub(super) struct Write {
    pub(super) table: Table,
    /// Value bytes; `None` removes the row.
    pub(super) value: Option<Vec<u8>>,
    /// The key must not be there when the transaction commits.
    pub(super) must_be_absent: bool,
    /// Others may have changed the row since the transaction began.
    pub(super) is_unguarded: bool,
    /// The row's log record, with its length in front; empty where rows are not logged.
    pub(super) record: Vec<u8>,
}

/// Where a row is: object and key bytes.
pub(super) type Place = (ObjectId, Vec<u8>);

/// The changed rows in the order in which their intents are placed.
pub(super) type Writes = BTreeMap<Place, Write>;

/// See the module.
#[derive(Default)]
pub(super) struct WriteSet {
    writes: Writes,
    /// What changes since the oldest savepoint have replaced, in their order.
    replaced: Vec<(Place, Option<Write>)>,
    /// The number of each savepoint, and how long `replaced` was then.
    savepoints: Vec<(u64, usize)>,
}

impl WriteSet {
    pub(super) fn get(&self, at: &Place) -> Option<&Write> {
        self.writes.get(at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Place, &Write)> {
        self.writes.iter()
    }

    pub(super) fn put(&mut self, at: Place, write: Write) {
        if self.savepoints.is_empty() {
            self.writes.insert(at, write);
            return;
        }
        let before = self.writes.insert(at.clone(), write);
        self.replaced.push((at, before));
    }

    /// The change stands whoever changed the row since the transaction began.
    pub(super) fn let_anyone_be_first(&mut self, at: &Place) {
        if let Some(write) = self.writes.get_mut(at) {
            write.is_unguarded = true;
        }
    }

    pub(super) fn remove(&mut self, at: &Place) {
        let before = self.writes.remove(at);
        if before.is_some() && !self.savepoints.is_empty() {
            self.replaced.push((at.clone(), before));
        }
    }

    /// All changed rows, for the commit; nothing is left.
    pub(super) fn take(&mut self) -> Writes {
        std::mem::take(self).writes
    }

    pub(super) fn set_savepoint(&mut self, number: u64) {
        self.savepoints.push((number, self.replaced.len()));
    }

    /// The numbers of the savepoints, the oldest first.
    pub(super) fn savepoints(&self) -> impl Iterator<Item = u64> {
        self.savepoints.iter().map(|(number, _)| *number)
    }

    /// Takes back what was changed since the savepoint, which stays. False if there is none such.
    pub(super) fn roll_back_to(&mut self, number: u64) -> bool {
        let Some(index) = self.index_of(number) else { return false };
        self.savepoints.truncate(index + 1);
        for (at, before) in self.replaced.drain(self.savepoints[index].1..).rev() {
            match before {
                Some(write) => self.writes.insert(at, write),
                None => self.writes.remove(&at),
            };
        }
        true
    }

    /// Forgets the savepoint and all later ones; the changes stay. False if there is none such.
    pub(super) fn release(&mut self, number: u64) -> bool {
        let Some(index) = self.index_of(number) else { return false };
        self.savepoints.truncate(index);
        if index == 0 {
            self.replaced.clear();
        }
        true
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        self.savepoints.iter().position(|(known, _)| *known == number)
    }
}
