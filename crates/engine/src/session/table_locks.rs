//! The locks of a transaction on tables and on names, which it keeps until it ends or goes back to a savepoint.
//!
//! Rows take no lock before the commit, so others may define a table between a row that the transaction has written
//! and its own lock.
//!
//! Invariant: who has locked a table has written to no earlier form of it.

use std::sync::Arc;

use super::transaction::Transaction;
use crate::catalog::{Table, TableEntry};
use crate::error::{Error, Result};

/// How much of a table a transaction keeps from others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TableLock {
    /// Others may not define it.
    Definition,
    /// Nor write to it.
    Whole,
}

impl Transaction<'_> {
    /// Keeps the table as it is until the transaction ends: whoever wants to alter, empty or drop it
    /// waits. Rows that others write are not kept off.
    ///
    /// # Errors
    /// [`TableChanged`](Error::TableChanged); those of waiting for another transaction's definition:
    /// [`Deadlock`](Error::Deadlock), [`LockTimeout`](Error::LockTimeout).
    pub fn hold_table(&mut self, table: &Table) -> Result<()> {
        let own = self.own_definitions();
        if own.holds(table.id()) {
            return Ok(());
        }
        let Transaction { session, definitions: Some(own), .. } = self else { return Ok(()) };
        own.share(&mut session.worker, &table.entry)?;
        session.worker.wait_complete(session.worker.engine.log.tail());
        if table.is_current() && self.writes_are_of(&table.entry) {
            return Ok(());
        }
        Err(Error::TableChanged { name: table.name().to_owned() })
    }

    /// Takes the table for this transaction: until it ends nobody else writes to it or defines it, and whoever
    /// wants to waits.
    ///
    /// # Errors
    /// [`UnknownTable`](Error::UnknownTable); those of waiting for who uses it: [`Deadlock`](Error::Deadlock),
    /// [`LockTimeout`](Error::LockTimeout), [`Interrupted`](Error::Interrupted).
    pub fn lock_table(&mut self, name: &str) -> Result<Table> {
        self.lock_entry(name).map(|entry| self.handle(entry))
    }

    /// Keeps others from defining the table until the transaction ends. Rows that others write are not kept
    /// off, and who waits to define the table does not keep them off, either.
    ///
    /// # Errors
    /// [`UnknownTable`](Error::UnknownTable); those of waiting for who defines it: [`Deadlock`](Error::Deadlock),
    /// [`LockTimeout`](Error::LockTimeout), [`Interrupted`](Error::Interrupted).
    pub fn reserve_table(&mut self, name: &str) -> Result<Table> {
        self.take_entry(name, TableLock::Definition).map(|entry| self.handle(entry))
    }

    /// The table of this name, which nobody else writes to or defines from now on.
    pub(super) fn lock_entry(&mut self, name: &str) -> Result<Arc<TableEntry>> {
        self.take_entry(name, TableLock::Whole)
    }

    /// The table of this name, and a lock on it; one that was locked as a whole stays so.
    pub(super) fn take_entry(&mut self, name: &str, lock: TableLock) -> Result<Arc<TableEntry>> {
        self.engine().check_open()?;
        loop {
            let entry = self.entry(name)?;
            if lock == TableLock::Whole {
                self.check_not_spilled(&entry)?;
            }
            if self.own_definitions().has_locked(entry.id) {
                return Ok(entry);
            }
            let Transaction { session, definitions: Some(own), .. } = self else {
                return Err(Error::Internal("definitions were not begun".into()));
            };
            // Others could not leave where this one keeps a permit.
            session.worker.release();
            let worker = &session.worker;
            let (engine, waiter) = (&worker.engine, worker.waiter());
            let locks = &engine.catalog.locks;
            match lock {
                TableLock::Definition => locks.reserve(&waiter, &own.owner, &entry)?,
                TableLock::Whole => {
                    locks.lock_table(&waiter, &own.owner, &entry)?;
                    own.stopped.push((entry.id, Arc::clone(&entry.tree)));
                }
            }
            worker.wait_complete(engine.log.tail());
            // While it was waited for it may have become another one.
            let is_still = self.entry(name).is_ok_and(|now| Arc::ptr_eq(&now, &entry));
            if is_still && self.writes_are_of(&entry) {
                return Ok(entry);
            }
            let own = self.own_definitions();
            let stopped = own.stopped.pop_if(|(table, _)| *table == entry.id);
            own.give_back(stopped.into_iter().collect(), &[]);
            if is_still {
                return Err(Error::TableChanged { name: name.to_owned() });
            }
        }
    }

    /// Whether the rows that the transaction has written so far to the table are in it as it is now. Others may have
    /// emptied or altered it since, as rows take no lock before the commit.
    fn writes_are_of(&self, entry: &TableEntry) -> bool {
        let (object, version) = (entry.tree.object(), entry.schema.version());
        let mut of_table = self.writes.iter().filter(|(_, write)| write.table.id() == entry.id);
        of_table.all(|((written, _), write)| {
            Some(*written) == object && write.table.entry.schema.version() == version
        })
    }

    /// Rows that were spilled are of the table as everyone knows it.
    fn check_not_spilled(&self, entry: &TableEntry) -> Result<()> {
        let large = self.large.as_ref().zip(entry.tree.object());
        if large.is_some_and(|(large, object)| large.has_written(object)) {
            return Err(Error::DefinedTooLate { table: entry.name().to_owned() });
        }
        Ok(())
    }

    /// Takes a name that no table has.
    pub(super) fn lock_free_name(&mut self, name: &str) -> Result<()> {
        self.own_definitions();
        let Transaction { session, definitions: Some(own), .. } = self else {
            return Err(Error::Internal("definitions were not begun".into()));
        };
        session.worker.release();
        let worker = &session.worker;
        worker.engine.catalog.locks.lock_name(&worker.waiter(), &own.owner, name)?;
        if !own.names.iter().any(|known| known == name) {
            own.names.push(name.to_owned());
        }
        session.rest_on_definitions();
        match self.entry(name) {
            Ok(_) => Err(Error::TableExists { name: name.to_owned() }),
            Err(Error::UnknownTable { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
