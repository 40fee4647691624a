//! One row by its key.

use onrush_log::Lsn;

use super::{Blocked, Refusal, Seat, Tree};
use crate::engine::Engine;
use crate::node::leaf::LeafRows;
use crate::transaction::TransactionState;
use crate::units::ObjectId;

/// Which versions a reader sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum View {
    /// The newest committed version.
    Newest,
    /// What was committed before this LSN.
    Before(Lsn),
}

impl View {
    /// Visible means below the snapshot, not at it: the prefix is the first LSN not complete.
    #[inline]
    pub(crate) fn sees(self, lsn: u64) -> bool {
        match self {
            View::Newest => true,
            View::Before(snapshot) => lsn < snapshot.0,
        }
    }
}

/// A row that a reader sees, and the LSN that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) lsn: u64,
    pub(crate) value: Vec<u8>,
}

impl Tree {
    /// The version of the row at `key` that `view` sees.
    pub(crate) fn get(
        &self,
        engine: &Engine,
        seat: &Seat<'_>,
        object: ObjectId,
        key: &[u8],
        view: View,
    ) -> Result<Option<Seen>, Refusal> {
        let (id, leaf) = self.latch_shared(engine, seat.recorder, key, object)?;
        let rows = leaf.rows.as_ref().ok_or(Blocked::Load(id))?;
        let found = rows.find(key);
        if let Some(slot) = found.intent
            && let Some(seen) = resolved_intent(engine, rows, slot, view)
        {
            return Ok(seen);
        }
        if let Some(slot) = found.committed {
            let entry = rows.entry(slot);
            let lsn = entry.stamp.lsn().unwrap_or(0);
            if view.sees(lsn) {
                return Ok(Some(Seen { lsn, value: entry.value.to_vec() }));
            }
        }
        // The leaf's version is too new or gone; an older one may be kept. The latch is still
        // held, so no version moves between leaf and store meanwhile.
        Ok(match view {
            View::Newest => None,
            View::Before(snapshot) => self.versions.get(key, snapshot),
        })
    }
}

/// What an intent means for `view`: `None` if it is not (yet) committed there.
pub(crate) fn resolved_intent(
    engine: &Engine,
    rows: &LeafRows,
    slot: usize,
    view: View,
) -> Option<Option<Seen>> {
    let entry = rows.entry(slot);
    let (transaction, removal) = entry.stamp.as_intent()?;
    match engine.transactions.state(transaction) {
        TransactionState::Committed(lsn) if view.sees(lsn) => {
            Some((!removal).then(|| Seen { lsn, value: entry.value.to_vec() }))
        }
        _ => None,
    }
}
