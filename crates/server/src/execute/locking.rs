//! SELECT ... FOR UPDATE and its kin: each row is locked before it is an answer.

use std::ops::ControlFlow;
use std::sync::Arc;

use onrush::{Row, RowLockOutcome, Transaction, Value};

use super::query::Finder;
use super::transaction::{Work, changed_meanwhile};
use super::{Backend, RowStream, in_failed_transaction};
use crate::error::{Result, SqlError, state};
use crate::sequences::as_caller;
use crate::sql::{
    Bound, LockedRows, LockedTable, LockingPlan, Operand, WhenTaken, count_of, key_of,
};

impl Backend {
    /// What is locked is read once more, from a new snapshot, where somebody has changed it since the first one; where
    /// all statements are to see the same, that fails.
    pub(super) fn lock_rows(&mut self, plan: &LockingPlan, bound: &Bound) -> Result<RowStream> {
        let finder = self.finder();
        let may_renew = self.settings.isolation.renews_snapshots();
        let sequences = Arc::clone(&self.sequences);
        let rows = as_caller(&sequences, || match &mut self.work {
            Work::Open(open) => open.with_dependent_mut(|_, transaction| {
                let transaction = transaction.as_mut().ok_or_else(in_failed_transaction)?;
                lock_all(transaction, plan, bound, &finder, may_renew)
            }),
            Work::Idle(session) => {
                let mut transaction = session.begin()?;
                let rows = lock_all(&mut transaction, plan, bound, &finder, true)?;
                transaction.commit()?;
                Ok(rows)
            }
            _ => Err(in_failed_transaction()),
        })?;
        Ok(RowStream::of_rows(Arc::clone(&plan.columns), rows, "SELECT"))
    }
}

fn lock_all(
    transaction: &mut Transaction<'_>,
    plan: &LockingPlan,
    bound: &Bound,
    finder: &Finder,
    may_renew: bool,
) -> Result<Vec<Row>> {
    loop {
        let mut locking = Locking { transaction, is_changed: false };
        let rows = match &plan.rows {
            LockedRows::Get(get) => {
                let limit = count(get.limit.as_ref(), bound, "LIMIT")?;
                let key = key_of(&get.key, bound)?.filter(|_| limit != Some(0));
                match key {
                    Some(key) => locking.get(plan, &key)?,
                    None => Vec::new(),
                }
            }
            LockedRows::Query { query, limit, offset } => {
                let limit = count(limit.as_ref(), bound, "LIMIT")?.unwrap_or(u64::MAX);
                let mut skipped = count(offset.as_ref(), bound, "OFFSET")?.unwrap_or(0);
                let mut rows = Vec::new();
                let snapshot = locking.transaction.snapshot();
                finder.for_each_until(query, bound, snapshot, |mut row| {
                    if rows.len() as u64 >= limit {
                        return Ok(ControlFlow::Break(()));
                    }
                    if !locking.lock(&plan.tables, &row)? {
                        return Ok(ControlFlow::Continue(()));
                    }
                    if skipped > 0 {
                        skipped -= 1;
                    } else {
                        if !plan.keeps_keys {
                            row.truncate(plan.columns.len());
                        }
                        rows.push(row);
                    }
                    Ok(ControlFlow::Continue(()))
                })?;
                rows
            }
        };
        match locking.is_changed {
            false => return Ok(rows),
            true if may_renew => transaction.renew_snapshot()?,
            true => return Err(changed_meanwhile()),
        }
    }
}

/// Rows are being locked.
struct Locking<'t, 's> {
    transaction: &'t mut Transaction<'s>,
    /// One is not as the snapshot sees it.
    is_changed: bool,
}

impl Locking<'_, '_> {
    fn get(&mut self, plan: &LockingPlan, key: &[Value<'_>]) -> Result<Vec<Row>> {
        let Some(locked) = plan.tables.first() else { return Ok(Vec::new()) };
        // What is not there is not locked.
        if self.transaction.get(&locked.table, key)?.is_none() || !self.lock_key(locked, key)? {
            return Ok(Vec::new());
        }
        Ok(self.transaction.get(&locked.table, key)?.into_iter().collect())
    }

    /// False if one of the tables' rows is locked by another transaction and is to be skipped then.
    fn lock(&mut self, tables: &[LockedTable], row: &[Value<'static>]) -> Result<bool> {
        for locked in tables {
            if !self.lock_key(locked, &row[locked.key.clone()])? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn lock_key(&mut self, locked: &LockedTable, key: &[Value<'_>]) -> Result<bool> {
        let waits = locked.when_taken == WhenTaken::Wait;
        match self.transaction.lock_row(&locked.table, key, locked.lock, waits)? {
            RowLockOutcome::Unchanged => Ok(true),
            RowLockOutcome::Changed => {
                self.is_changed = true;
                Ok(true)
            }
            RowLockOutcome::Taken if locked.when_taken == WhenTaken::Skip => Ok(false),
            RowLockOutcome::Taken => {
                let name = crate::schemas::own_name(locked.table.name());
                let message = format!("could not obtain lock on row in relation \"{name}\"");
                Err(SqlError::new(state::LOCK_NOT_AVAILABLE, message))
            }
            RowLockOutcome::TooMany => {
                let message = "the transaction has locked as many rows as it may";
                Err(SqlError::new(state::OUT_OF_MEMORY, message)
                    .with_hint("LOCK TABLE locks all rows of a table at once."))
            }
        }
    }
}

fn count(operand: Option<&Operand>, bound: &Bound, what: &str) -> Result<Option<u64>> {
    match operand {
        Some(operand) => count_of(&operand.value(bound)?, what),
        None => Ok(None),
    }
}
