//! What the changes of one transaction take in memory: counted for the bound of all, and written to leaves and log
//! once they are too much.
//!
//! Rows of a table that the transaction has altered itself cannot be written before the commit. They are refused
//! as soon as they cannot be committed.

use super::transaction::Transaction;
use crate::error::{Error, Result};
use crate::transaction::STEP_BYTES;

impl Transaction<'_> {
    /// Behind each change: counts it, now and then, and spills the write set once it takes too much memory.
    #[inline]
    pub(super) fn spill_if_large(&mut self) -> Result<()> {
        if self.writes.held_bytes() >= self.counted_bytes + STEP_BYTES {
            self.count_changes();
            self.check_kept()?;
        }
        // Whoever reads nothing could not tell his spilled rows from others': the commit writes them all.
        if self.held.is_none() && !self.is_one_row {
            return Ok(());
        }
        let engine = &self.session.worker.engine;
        let has_some = self.writes.bytes() >= STEP_BYTES;
        let is_large = self.writes.bytes() >= engine.options.piece_bytes_max();
        if !(is_large || has_some && engine.open_changes.is_over()) {
            return Ok(());
        }
        self.secure_references(false)?;
        let spilled = self.spill();
        self.count_changes();
        spilled
    }

    /// Counts what the write set has now.
    pub(super) fn count_changes(&mut self) {
        let open = &self.session.worker.engine.open_changes;
        self.counted_bytes = open.count(self.counted_bytes, self.writes.held_bytes());
    }

    /// Refuses to grow what cannot be spilled and does not fit into the record of the commit. Looks each time
    /// when the write set has doubled.
    #[cold]
    fn check_kept(&mut self) -> Result<()> {
        let limit = self.session.worker.engine.options.record_bytes_max();
        let held = self.writes.held_bytes();
        if self.definitions.is_none() || held < limit.max(2 * self.kept_looked_at) {
            return Ok(());
        }
        let kept = self.writes.iter().filter(|(_, write)| !self.is_public(&write.table));
        let bytes = kept.map(|(_, write)| write.record.len()).sum();
        if bytes > limit {
            return Err(Error::TransactionTooLarge { bytes, limit });
        }
        self.kept_looked_at = held;
        Ok(())
    }
}
