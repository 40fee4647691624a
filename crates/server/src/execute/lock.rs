//! LOCK TABLE.

use std::time::Duration;

use super::Backend;
use crate::access::Right;
use crate::error::{Result, SqlError, state};
use crate::sql::{LockPlan, TableLock};

impl Backend {
    pub(super) fn check_lock(&self, plan: &LockPlan) -> Result<()> {
        let rights: &[Right] = match (plan.is_to_read, plan.lock) {
            (true, _) => &[Right::Select],
            (false, TableLock::Share) => {
                &[Right::Insert, Right::Update, Right::Delete, Right::Truncate]
            }
            (false, _) => &[Right::Update, Right::Delete, Right::Truncate],
        };
        plan.tables.iter().try_for_each(|table| {
            let mut checked =
                rights.iter().map(|right| self.access.check(&self.who, *right, table));
            let first = checked.next().unwrap_or(Ok(()));
            if checked.any(|checked| checked.is_ok()) { Ok(()) } else { first }
        })
    }

    pub(super) fn lock_tables(&mut self, plan: &LockPlan) -> Result<()> {
        if !self.is_in_transaction() {
            let message = "LOCK TABLE can only be used in transaction blocks";
            let error = SqlError::new(state::NO_ACTIVE_TRANSACTION, message);
            return Err(error.with_hint("BEGIN first."));
        }
        if plan.is_impatient {
            self.patience.begin(self.settings.statement_timeout, Duration::from_micros(1));
        }
        tokio::task::block_in_place(|| {
            self.in_transaction(|transaction| {
                for table in &plan.tables {
                    match plan.lock {
                        TableLock::Share => transaction.hold_table(table)?,
                        TableLock::Definition => drop(transaction.reserve_table(table.name())?),
                        TableLock::Whole => drop(transaction.lock_table(table.name())?),
                    }
                }
                // What was waited for is seen, if nothing else was before.
                transaction.refresh();
                Ok(())
            })
        })
    }
}
