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

/// What a look at a key came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Look {
    pub(crate) is_there: bool,
    /// The LSN that wrote the version, or that removed the row; 0 if nobody remembers such a removal,
    /// which is durable then.
    pub(crate) lsn: u64,
}

impl Look {
    /// The LSN of the version, if there is one.
    pub(crate) fn version(self) -> Option<u64> {
        self.is_there.then_some(self.lsn)
    }
}

impl Tree {
    /// What `view` sees at `key`; the bytes of the row are left in `value`.
    pub(crate) fn get(
        &self,
        engine: &Engine,
        seat: &Seat<'_>,
        object: ObjectId,
        key: &[u8],
        view: View,
        value: &mut Vec<u8>,
    ) -> Result<Look, Refusal> {
        let mut take = |lsn: u64, bytes: &[u8]| {
            value.clear();
            value.extend_from_slice(bytes);
            Look { is_there: true, lsn }
        };
        let (id, leaf) = self.latch_shared(engine, seat.recorder, key, object)?;
        let rows = leaf.rows.as_ref().ok_or(Blocked::LoadToRead(id))?;
        let found = rows.find(key);
        if let Some(slot) = found.intent
            && let Some(seen) = resolved_intent(engine, rows, slot, view)
        {
            return Ok(match seen {
                (lsn, Some(bytes)) => take(lsn, bytes),
                (lsn, None) => Look { is_there: false, lsn },
            });
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
        let (older, below) = match view {
            View::Newest => (None, Lsn(u64::MAX)),
            View::Before(snapshot) => (self.versions.get(key, snapshot), snapshot),
        };
        Ok(match older {
            Some(seen) => take(seen.lsn, &seen.value),
            None => Look { is_there: false, lsn: self.versions.removed_below(key, below) },
        })
    }
}

/// What an intent means for `view`: `None` if it is not (yet) committed there; else the LSN, and the
/// bytes of the row if it is not removed.
fn resolved_intent<'r>(
    engine: &Engine,
    rows: &'r LeafRows,
    slot: usize,
    view: View,
) -> Option<(u64, Option<&'r [u8]>)> {
    let entry = rows.entry(slot);
    let (transaction, removal) = entry.stamp.as_intent()?;
    match engine.transactions.state(transaction) {
        TransactionState::Committed(lsn) if view.sees(lsn) => {
            Some((lsn, (!removal).then_some(entry.value)))
        }
        _ => None,
    }
}
