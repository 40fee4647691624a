//! Changes that a session commits by themselves, of a table with indexes: a row and its entries are one transaction.

use std::sync::Arc;

use onrush_log::Lsn;
use onrush_types::Value;

use super::session::Session;
use super::transaction::Transaction;
use crate::catalog::Table;
use crate::error::{Error, Result};

impl Session {
    /// Inserts a row; the end of its record. Nothing is read before: whether keys are free the commit finds out.
    pub(super) fn insert_indexed(&mut self, table: &Table, values: &[Value<'_>]) -> Result<Lsn> {
        let inserted = self.insert_all_indexed(table, [values])?;
        inserted.ok_or_else(|| Error::Internal("a row was lost".into()))
    }

    /// Inserts rows as one transaction; the end of its record, none without rows.
    pub(super) fn insert_all_indexed<'v>(
        &mut self,
        table: &Table,
        rows: impl IntoIterator<Item = &'v [Value<'v>]>,
    ) -> Result<Option<Lsn>> {
        let entry = Arc::clone(&table.entry);
        let _strict = entry.strict_order(&self.worker.recorder);
        let mut transaction = Transaction::new(self, None);
        for values in rows {
            transaction.insert_row(table, values)?;
        }
        let committed = transaction.commit_writes()?;
        Ok(committed.map(|commit| commit.end))
    }

    /// Makes a change in a transaction of its own, again where another one was first, and waits for it.
    pub(super) fn change_indexed<T>(
        &mut self,
        change: impl Fn(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        loop {
            let held = self.hold_now()?;
            let mut transaction = Transaction::new(self, Some(held));
            let changed = change(&mut transaction)?;
            match transaction.commit_and_wait() {
                Ok(()) => return Ok(changed),
                Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
