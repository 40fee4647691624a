//! What intents mean: the status of the transactions that placed them, which snapshots are open, and which rows are
//! locked.
//!
//! Trees ask the [`IntentResolver`]; transactions above them set what it answers.

mod large;
mod row_locks;
mod snapshots;
mod states;

use std::sync::Arc;

use onrush_log::Lsn;

pub(crate) use large::{LargeTable, LargeTransactions};
pub use row_locks::RowLock;
pub(crate) use row_locks::{LockOwnerNumber, LockedRow, NO_OWNER, Queued, RowLocks};
pub(crate) use snapshots::Snapshots;
pub(crate) use states::{PendingTransaction, TransactionStates, TransactionStatus};

use crate::node::leaf::Owner;
use crate::runtime::LogCell;

/// See the module. `O` is what an open large transaction keeps of its own.
pub(crate) struct IntentResolver<O> {
    pub(crate) transactions: Arc<TransactionStates>,
    pub(crate) large: LargeTransactions<O>,
    pub(crate) snapshots: Snapshots,
    pub(crate) row_locks: Arc<RowLocks>,
}

impl<O> IntentResolver<O> {
    /// `transactions` is one of those that the runtime stops.
    pub(crate) fn new(transactions: Arc<TransactionStates>) -> IntentResolver<O> {
        let (large, snapshots) = (LargeTransactions::default(), Snapshots::default());
        IntentResolver { transactions, large, snapshots, row_locks: Arc::default() }
    }

    /// What an intent of this owner means.
    pub(crate) fn status(&self, owner: Owner) -> TransactionStatus {
        match owner {
            Owner::Small(number) => self.transactions.status(number),
            Owner::Large(large) => self.large.status(large.id),
        }
    }

    /// No snapshot, open or to be opened, is below this LSN. There is none during recovery.
    pub(crate) fn horizon(&self, log: &LogCell) -> Lsn {
        log.get().map_or(Lsn::MAX, |log| self.snapshots.horizon(log))
    }
}
