//! One table in the place of another: for definitions that write rows anew while others go on changing them.
//!
//! 1. The table is [reserved](Transaction::reserve_table): other definitions wait. Its rows are read from a
//!    snapshot and written to a [substitute](Transaction::create_substitute).
//! 2. What has [changed since](Snapshot::changes_since) is done to the substitute, as often as it pays.
//! 3. The table is locked, and everybody waits. What has changed since is done once more, and the substitute
//!    [takes its place](Transaction::replace_table).
//!
//! It is one transaction, so a crash leaves the one table or the other.
//!
//! Invariant: a number that the old table has handed out does not come again from the new one.

use std::sync::Arc;

use super::snapshot::{HeldLsn, Snapshot};
use super::transaction::Transaction;
use crate::catalog::{Table, TableEntry};
use crate::error::{Error, Result};

impl Transaction<'_> {
    /// Drops `table`, and lets one that was [made for that](Self::create_substitute) have its name. The
    /// numbers of generated keys go on behind those that `table` has handed out, column by column of one name. The
    /// indexes of `table` are made anew, where the new one has their columns; its foreign keys, and those to it, are
    /// those of the new one.
    ///
    /// # Errors
    /// [`TableChanged`](Error::TableChanged), [`UnknownTable`](Error::UnknownTable); those of waiting for who
    /// uses the table.
    pub fn replace_table(&mut self, table: &Table, substitute: &Table) -> Result<()> {
        let entry = self.lock_entry(table.name())?;
        if !Arc::ptr_eq(&entry, &table.entry) || substitute.name() != table.name() {
            return Err(Error::TableChanged { name: table.name().to_owned() });
        }
        table.check_changeable()?;
        self.carry_numbers(&entry, &substitute.entry)?;
        let foreign_keys = self.take_foreign_keys(&entry)?;
        match self.own_definitions().substitute(&entry, &substitute.entry) {
            true => {
                if let Some(pieces) = entry.schema.definition().long_values() {
                    self.drop_entries(pieces);
                }
                self.move_indexes(&entry, substitute.name())?;
                self.make_foreign_keys_again(foreign_keys)
            }
            false => Err(Error::UnknownTable { name: substitute.name().to_owned() }),
        }
    }

    fn carry_numbers(&self, from: &TableEntry, to: &TableEntry) -> Result<()> {
        let worker = &self.session.worker;
        let (old, new) = (from.schema.definition(), to.schema.definition());
        for (column, definition) in new.columns().iter().enumerate() {
            let old_column = old.column_index(&definition.name).ok();
            let counters = (old_column.and_then(|old| from.sequence(old)), to.sequence(column));
            if let (Some(old), Some(new)) = counters {
                let column = (to.id, to.column_number(column));
                new.skip_to(&**worker.engine, column, old.handed_out(), &worker.recorder)?;
            }
        }
        Ok(())
    }

    /// Everything committed now, without the transaction's own changes.
    #[must_use]
    pub fn committed_snapshot(&self) -> Snapshot {
        let worker = &self.session.worker;
        // Those who have given a lock back may have committed just now.
        worker.wait_complete(worker.engine.log.tail());
        Snapshot::new(HeldLsn::open(&worker.engine, &worker.recorder))
    }
}
