//! Going back to an earlier moment of a transaction without ending it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Transaction;
use crate::error::{Error, Result};

/// Savepoints are numbered across all transactions, so that none is taken for another's.
static SAVEPOINTS: AtomicU64 = AtomicU64::new(0);

/// A moment of a transaction that it can go back to; see [`Transaction::savepoint`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Savepoint(u64);

impl Savepoint {
    pub(super) fn number(self) -> u64 {
        self.0
    }
}

impl Transaction<'_> {
    /// Remembers this moment, for [`rollback_to`](Self::rollback_to). Savepoints can follow each
    /// other; from the first one on, the transaction also keeps what its changes replace.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let notes = TableDefinition::builder("notes").column(id).primary_key(["id"]);
    /// # let notes = db.create_table(notes.build()?)?;
    /// let mut session = db.session()?;
    /// let mut transaction = session.begin()?;
    /// transaction.insert(&notes, &[1i64.into()])?;
    /// let one_row = transaction.savepoint();
    /// transaction.insert(&notes, &[2i64.into()])?;
    /// transaction.rollback_to(one_row)?;
    /// transaction.commit()?;
    /// assert_eq!(session.scan(&notes, &ScanOptions::default())?.count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn savepoint(&mut self) -> Savepoint {
        let savepoint = self.set_savepoint();
        self.set_row_locks_savepoint(savepoint.0);
        savepoint
    }

    /// As [`savepoint`](Self::savepoint), for a statement that may have to begin again because rows have been changed
    /// since its snapshot: going back keeps the rows [locked](Self::lock_row), so nobody comes first again. To be
    /// [released](Self::release) before the next one.
    pub fn statement_savepoint(&mut self) -> Savepoint {
        let savepoint = self.set_savepoint();
        self.statement = Some(savepoint.0);
        savepoint
    }

    fn set_savepoint(&mut self) -> Savepoint {
        let number = SAVEPOINTS.fetch_add(1, Ordering::Relaxed);
        self.writes.set_savepoint(number);
        self.set_references_savepoint(number);
        if let Some(own) = &mut self.definitions {
            own.set_savepoint(number);
        }
        Savepoint(number)
    }

    /// Takes back everything that the transaction has changed since the savepoint. The savepoint
    /// stays, later ones are gone. Generated keys are not given again.
    ///
    /// # Errors
    /// [`NoSavepoint`](Error::NoSavepoint): the savepoint is another transaction's, or gone. Those of
    /// writing to leaves, for a large transaction, which then can only be rolled back.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.writes.roll_back_to(savepoint.0).then_some(()).ok_or(Error::NoSavepoint)?;
        if let Some(own) = &mut self.definitions {
            own.roll_back_to(savepoint.0);
        }
        self.roll_references_back_to(savepoint.0);
        self.roll_row_locks_back_to(savepoint.0);
        self.count_changes();
        self.undo_pieces(savepoint.0)
    }

    /// Forgets the savepoint and all later ones. What was changed since stays changed.
    ///
    /// # Errors
    /// [`NoSavepoint`](Error::NoSavepoint): the savepoint is another transaction's, or gone.
    pub fn release(&mut self, savepoint: Savepoint) -> Result<()> {
        self.writes.release(savepoint.0).then_some(()).ok_or(Error::NoSavepoint)?;
        if let Some(own) = &mut self.definitions {
            own.release(savepoint.0);
        }
        self.release_references_savepoint(savepoint.0);
        self.release_row_locks_savepoint(savepoint.0);
        self.count_changes();
        self.release_marks(savepoint.0);
        Ok(())
    }
}
