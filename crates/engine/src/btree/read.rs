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
    /// The LSN of the version of the row at `key` that `view` sees; its bytes are left in `value`.
    pub(crate) fn get(
        &self,
        engine: &Engine,
        seat: &Seat<'_>,
        object: ObjectId,
        key: &[u8],
        view: View,
        value: &mut Vec<u8>,
    ) -> Result<Option<u64>, Refusal> {
        let mut take = |lsn: u64, bytes: &[u8]| {
            value.clear();
            value.extend_from_slice(bytes);
            Some(lsn)
        };
        let (id, leaf) = self.latch_shared(engine, seat.recorder, key, object)?;
        let rows = leaf.rows.as_ref().ok_or(Blocked::LoadToRead(id))?;
        let found = rows.find(key);
        if let Some(slot) = found.intent
            && let Some(seen) = resolved_intent(engine, rows, slot, view)
        {
            return Ok(seen.and_then(|(lsn, bytes)| take(lsn, bytes)));
        }
        if let Some(slot) = found.committed {
            let entry = rows.entry(slot);
            let lsn = entry.stamp.lsn().unwrap_or(0);
            if view.sees(lsn) {
                return Ok(take(lsn, entry.value));
            }
        }
        // The leaf's version is too new or gone; an older one may be kept. The latch is still
        // held, so no version moves between leaf and store meanwhile.
        Ok(match view {
            View::Newest => None,
            View::Before(snapshot) => {
                self.versions.get(key, snapshot).and_then(|seen| take(seen.lsn, &seen.value))
            }
        })
    }
}

/// What an intent means for `view`: `None` if it is not (yet) committed there; else the LSN and the
/// bytes of the row, if it is not removed.
fn resolved_intent<'r>(
    engine: &Engine,
    rows: &'r LeafRows,
    slot: usize,
    view: View,
) -> Option<Option<(u64, &'r [u8])>> {
    let entry = rows.entry(slot);
    let (transaction, removal) = entry.stamp.as_intent()?;
    match engine.transactions.state(transaction) {
        TransactionState::Committed(lsn) if view.sees(lsn) => {
            Some((!removal).then_some((lsn, entry.value)))
        }
        _ => None,
    }
}
