//! Intents: the rows of a transaction that is being committed, placed before its LSN is known.
//!
//! A reader asks the transaction what an intent means; a writer waits for the verdict. After the
//! verdict anyone who has the leaf's latch exclusive may *fold* the intent: turn it into a row
//! with the transaction's LSN, or take it out.
//!
//! Invariants
//! 1. Intents are placed in (object, key) order, so two transactions never wait for each other.
//! 2. A transaction's slot is given back only after all its intents are folded, so the slot
//!    number in an intent always means the transaction that placed it.
//! 3. Placing may wait and may fail; nothing is logged before all intents stand.

use onrush_log::Lsn;

use super::write::Placing;
use super::{Blocked, Hint, Refusal, Seat, Tree};
use crate::engine::Engine;
use crate::fault::{Fault, panic_if_planted, planted};
use crate::node::fence::head;
use crate::node::leaf::{Entry, LeafRows, Stamp};
use crate::space::Purpose;
use crate::transaction::TransactionState;
use crate::units::ObjectId;

/// One row of a transaction that commits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intent<'a> {
    pub(crate) object: ObjectId,
    pub(crate) key: &'a [u8],
    /// `None` removes the row.
    pub(crate) value: Option<&'a [u8]>,
    /// The key must not be there: an insert.
    pub(crate) must_be_absent: bool,
    /// Nobody may have changed the key at or after this LSN: first committer wins.
    pub(crate) unchanged_since: Option<Lsn>,
    /// The transaction's slot.
    pub(crate) transaction: u32,
}

impl Tree {
    /// Places an intent, or tells why not.
    pub(crate) fn place_intent(
        &self,
        engine: &Engine,
        seat: &mut Seat<'_>,
        intent: &Intent<'_>,
    ) -> Result<(), Refusal> {
        let at = (head(intent.key), intent.key);
        let (id, leaf) =
            self.latch_exclusive(engine, seat.recorder, &Hint::NONE, at, intent.object)?;
        let purpose = if intent.value.is_some() { Purpose::NewRows } else { Purpose::Removal };
        let mut placing = Placing { engine, id, leaf, half: None, purpose };
        let result = placing.intent(self, seat, intent);
        panic_if_planted(Fault::PanicInCommit);
        let Placing { leaf, half, .. } = placing;
        drop(leaf);
        if let Some(half) = half {
            self.link(engine, seat.recorder, intent.object, &half.separator, half.leaf);
        }
        result
    }

    /// Folds the intents on `key` that have a verdict; the transaction calls this for each of
    /// its keys once it has one.
    pub(crate) fn fold_key(
        &self,
        engine: &Engine,
        seat: &mut Seat<'_>,
        object: ObjectId,
        key: &[u8],
    ) -> Result<(), Refusal> {
        let at = (head(key), key);
        let (id, mut leaf) =
            self.latch_exclusive(engine, seat.recorder, &Hint::NONE, at, object)?;
        // A leaf that holds an intent is never evicted: without rows there is nothing to fold.
        if let Some(rows) = leaf.rows.as_mut() {
            fold_key(engine, self, rows, key);
            engine.note_emptied(id, &leaf);
        }
        Ok(())
    }
}

impl Placing<'_> {
    fn intent(
        &mut self,
        tree: &Tree,
        seat: &mut Seat<'_>,
        intent: &Intent<'_>,
    ) -> Result<(), Refusal> {
        let found = self.find(tree, intent.key)?;
        if let Some(slot) = found.intent {
            return Err(self.transaction_of(slot).into());
        }
        let lsn = found.committed.and_then(|slot| self.rows().entry(slot).stamp.lsn());
        if intent.must_be_absent
            && let Some(lsn) = lsn
        {
            return Err(Refusal::Exists(lsn));
        }
        let changed_at = lsn.unwrap_or_else(|| tree.versions.removed_at(intent.key));
        if intent.unchanged_since.is_some_and(|since| changed_at >= since.0)
            && !planted(Fault::ConflictIgnored)
        {
            return Err(Refusal::Changed(changed_at));
        }
        self.make_dirty(seat)?;
        let value = intent.value.unwrap_or(&[]);
        self.make_room(seat, intent.key, Entry::bytes(intent.key, value))?;
        let stamp = Stamp::intent(intent.transaction, intent.value.is_none());
        self.rows().append(stamp, intent.key, value);
        Ok(())
    }

    pub(super) fn transaction_of(&self, slot: usize) -> Blocked {
        let rows = self.leaf.rows.as_ref().expect("`find` has seen the rows under this latch");
        let (transaction, _) = rows.entry(slot).stamp.as_intent().expect("the slot of an intent");
        Blocked::Transaction(transaction)
    }
}

/// Folds the intent on `key` if its transaction has a verdict. The leaf is latched exclusive.
pub(super) fn fold_key(engine: &Engine, tree: &Tree, rows: &mut LeafRows, key: &[u8]) {
    let Some(slot) = rows.find(key).intent else { return };
    let Some((transaction, removal)) = rows.entry(slot).stamp.as_intent() else { return };
    match engine.transactions.state(transaction) {
        TransactionState::Pending => {}
        TransactionState::Aborted => rows.remove(slot),
        TransactionState::Committed(lsn) => {
            if removal {
                rows.remove(slot);
            } else {
                rows.restamp(slot, Stamp::committed(lsn));
            }
            remove_older(tree, rows, key, lsn);
        }
    }
}

/// Moves the row that a folded intent replaces to the version store.
fn remove_older(tree: &Tree, rows: &mut LeafRows, key: &[u8], ended_at: u64) {
    let older = rows.committed_below(key, ended_at);
    if let Some(slot) = older {
        let entry = rows.entry(slot);
        let written_at = Lsn(entry.stamp.lsn().unwrap_or(0));
        tree.versions.keep(entry.key, written_at, entry.value).ends_at(Lsn(ended_at));
        rows.remove(slot);
    }
}

/// Folds every intent of the leaf whose transaction has a verdict; before an image is made.
pub(crate) fn fold_resolved(engine: &Engine, tree: &Tree, rows: &mut LeafRows) {
    if rows.intents() == 0 {
        return;
    }
    let keys: Vec<Box<[u8]>> = (0..rows.len())
        .map(|slot| rows.entry(slot))
        .filter(|entry| entry.stamp.as_intent().is_some())
        .map(|entry| entry.key.into())
        .collect();
    for key in keys {
        fold_key(engine, tree, rows, &key);
    }
}
