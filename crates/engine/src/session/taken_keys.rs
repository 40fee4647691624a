//! Keys of UNIQUE constraints that are DEFERRABLE. Their indexes take any entry; who has put one there looks behind the
//! statement, or at the commit, whether another row has the same indexed columns.
//!
//! The rules are those of foreign keys (`references.rs`): what a statement has done is noted, *settled* behind it
//! unless that is put off, and *secured* by the commit, which looks once more under a lock of the key that it holds
//! until its own changes are committed. So of two transactions that take one key the later to lock sees the other's
//! entry.

use std::sync::Arc;

use onrush_types::{DeferrableUnique, Deferral, EncodedRow};

use super::scan::{KeyRange, ScanOptions};
use super::snapshot::{HeldLsn, Snapshot};
use super::transaction::Transaction;
use crate::catalog::{Index, ReferenceLocks, Table};
use crate::error::{Error, Result};
use crate::tree::Direction;

/// An entry of a deferrable UNIQUE constraint that the transaction has made.
#[derive(Clone)]
pub(super) struct TakenKey {
    pub(super) number: u64,
    /// Whether it was found alone right behind its statement.
    pub(super) is_settled: bool,
    /// The number of the indexed table.
    table: u32,
    /// The number of the table of the entries.
    entries: u32,
    /// The key of the entry, and the part of it that has the indexed columns.
    entry_key: Vec<u8>,
    prefix: Vec<u8>,
    deferral: Deferral,
    /// The lock of the indexed columns.
    pub(super) stripe: usize,
}

impl TakenKey {
    /// The number of the indexed table.
    pub(super) fn table(&self) -> u32 {
        self.table
    }
}

impl Transaction<'_> {
    /// Notes an entry that is to be the only one with its indexed columns in the end.
    pub(super) fn note_taken_key(
        &mut self,
        table: &Table,
        index: &Index,
        entry: &EncodedRow,
    ) -> Result<()> {
        // Beside an index that is built anew stands the one whose place it takes.
        let Some(deferrable) = index.deferrable().filter(|_| !index.is_building()) else {
            return Ok(());
        };
        let Some(prefix) = index.key_in_the_end(entry)? else { return Ok(()) };
        let number = self.references.next_number();
        self.references.taken.push(TakenKey {
            number,
            is_settled: false,
            table: table.id(),
            entries: index.entries.id,
            entry_key: entry.key.clone(),
            deferral: deferral(deferrable),
            stripe: ReferenceLocks::taken_stripe(index.entries.id, &prefix),
            prefix,
        });
        Ok(())
    }

    /// Refuses what has not ended alone behind its statement, but for constraints whose look is put off. What was
    /// looked at before, and what is put off, is not looked at again.
    pub(super) fn settle_taken_keys(&mut self) -> Result<()> {
        let mut newest = None;
        while let Some(taken) = self.references.taken.get(self.references.taken_looked_at) {
            if !taken.is_settled {
                let taken = taken.clone();
                self.settle_taken_key(&taken, &mut newest)?;
            }
            self.references.taken_looked_at += 1;
        }
        Ok(())
    }

    fn settle_taken_key(&mut self, taken: &TakenKey, newest: &mut Option<Snapshot>) -> Result<()> {
        // A constraint is called as its index.
        let Some(entries) = self.as_seen(taken.entries) else { return Ok(()) };
        if !self.references.is_deferred(taken.table, entries.name(), taken.deferral) {
            self.look_at_taken_key(taken, newest)?;
            let at = self.references.taken_looked_at;
            self.references.taken[at].is_settled = true;
        }
        Ok(())
    }

    /// Looks at all of them once more, behind the locks of their keys. Returns those that are to be looked at again.
    pub(super) fn secure_taken_keys(&mut self, at_commit: bool) -> Result<Vec<TakenKey>> {
        let (mut left, mut newest) = (Vec::new(), None);
        for taken in std::mem::take(&mut self.references.taken) {
            match self.look_at_taken_key(&taken, &mut newest) {
                Err(Error::UniqueViolated { .. }) if !at_commit => left.push(taken),
                Ok(()) if self.references.has_savepoint_behind(taken.number) => left.push(taken),
                outcome => outcome?,
            }
        }
        self.references.taken_looked_at = 0;
        Ok(left)
    }

    /// Whether it is the only entry with its indexed columns, if it is there still: by the transaction's own changes,
    /// else as entries were committed last.
    fn look_at_taken_key(&mut self, taken: &TakenKey, newest: &mut Option<Snapshot>) -> Result<()> {
        let Some(entries) = self.as_seen(taken.entries) else { return Ok(()) };
        let entries = self.handle(entries);
        let object = entries.entry.object()?;
        let alike = KeyRange::with_prefix(&taken.prefix);
        let own = self.writes.within(object, &alike.bounds).filter(|(_, is_there)| *is_there);
        let mut count = own.take(2).count();
        if count < 2 {
            let snapshot = newest.get_or_insert_with(|| self.newest_committed());
            let mut scan = snapshot.scan_range(&entries, &alike, Direction::Forward)?;
            let (writes, mut is_own) = (&self.writes, false);
            while count < 2
                && let Some(()) = scan.with_next(|key, _| {
                    is_own = writes.get(&(object, key.to_vec())).is_some();
                })?
            {
                count += usize::from(!is_own);
            }
        }
        match count {
            0 | 1 => Ok(()),
            _ => Err(self.session.unique_violated(&entries, &taken.entry_key)),
        }
    }

    /// What is committed now, and what the transaction has written to the leaves.
    pub(super) fn newest_committed(&self) -> Snapshot {
        let worker = &self.session.worker;
        worker.wait_complete(worker.engine.log.tail());
        let held = HeldLsn::open(&worker.engine, &worker.recorder);
        Snapshot::new(held).with_large(self.large.as_ref().map(|large| large.view()))
    }

    /// Refuses an index that the transaction has filled where two entries have the same indexed columns.
    pub(super) fn check_keys_differ(&mut self, index: &Index) -> Result<()> {
        let entries = self.handle(Arc::clone(&index.entries));
        let mut scan = self.scan(&entries, &ScanOptions::default())?;
        let mut before: Option<Vec<u8>> = None;
        let mut read = |key: &[u8], row: &[u8]| -> Result<Option<Vec<u8>>> {
            let entry = EncodedRow { key: key.to_vec(), row: row.to_vec(), ..EncodedRow::new() };
            let prefix = index.key_in_the_end(&entry)?;
            let is_doubled = prefix.is_some() && prefix == before;
            before = prefix;
            Ok(is_doubled.then_some(entry.key))
        };
        while let Some(doubled) = scan.with_next(&mut read)? {
            if let Some(key) = doubled? {
                return Err(self.session.unique_violated(&entries, &key));
            }
        }
        Ok(())
    }
}

fn deferral(of: DeferrableUnique) -> Deferral {
    match of.is_deferred {
        true => Deferral::InitiallyDeferred,
        false => Deferral::InitiallyImmediate,
    }
}
