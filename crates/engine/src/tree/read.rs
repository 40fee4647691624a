//! One row by its key.

use std::borrow::Cow;

use onrush_log::Lsn;

use super::Trees;
use super::own_versions::OwnValue;
use super::stock_intents::seen_in_stock;
use super::{Blocked, Refusal, Seat, Tree};
use crate::node::leaf::{Entry, Found, Owner};
use crate::status::TransactionStatus;
use crate::storage::OnDisk;
use crate::units::ObjectId;

/// Which versions a reader sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum View {
    /// The newest committed version.
    Newest,
    /// What was committed before this LSN.
    Before(Lsn),
    /// The same, and what the large transaction `id` itself has placed in the pieces below `pieces`.
    Own { before: Lsn, id: u64, pieces: u32 },
}

impl View {
    /// Visible means below the snapshot, not at it: the prefix is the first LSN not complete.
    #[inline]
    pub(crate) fn sees(self, lsn: Lsn) -> bool {
        match self {
            View::Newest => true,
            View::Before(snapshot) | View::Own { before: snapshot, .. } => lsn < snapshot,
        }
    }

    /// The LSN that it is of; none for the newest.
    pub(crate) fn lsn(self) -> Option<Lsn> {
        match self {
            View::Newest => None,
            View::Before(lsn) | View::Own { before: lsn, .. } => Some(lsn),
        }
    }
}

/// A row that a reader sees, and the LSN that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) lsn: Lsn,
    pub(crate) value: Vec<u8>,
}

/// What a look at a key came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Look {
    pub(crate) is_there: bool,
    /// The LSN that wrote the version, or that removed the row; none if nobody remembers such a removal,
    /// which is durable then, and for the own rows of an open transaction.
    pub(crate) lsn: Option<Lsn>,
}

impl Look {
    /// The LSN of the version, if there is one.
    pub(crate) fn version(self) -> Option<Lsn> {
        self.lsn.filter(|_| self.is_there)
    }
}

impl Tree {
    /// What `view` sees at `key`; the bytes of the row are left in `value`.
    pub(crate) fn get(
        &self,
        trees: &Trees,
        seat: &Seat<'_>,
        object: ObjectId,
        key: &[u8],
        view: View,
        value: &mut Vec<u8>,
    ) -> Result<Look, Refusal> {
        let mut take = |lsn: Option<Lsn>, bytes: &[u8]| {
            value.clear();
            value.extend_from_slice(bytes);
            Look { is_there: true, lsn }
        };
        let (id, leaf) = self.latch_shared(trees, seat.recorder, key, object)?;
        let rows = leaf.rows_in_memory().map_err(|OnDisk| Blocked::LoadToRead(id))?;
        let found = rows.map_or_else(Found::default, |rows| rows.find(key));
        let entry = |index: usize| rows.map(|rows| rows.entry(index));
        if let Some(intent) = found.intent.and_then(entry)
            && let Some((lsn, row)) = resolved_intent(trees, object, intent, view)?
        {
            return Ok(match row {
                Some(bytes) => take(lsn, &bytes),
                None => Look { is_there: false, lsn },
            });
        }
        if let Some(entry) = found.committed.and_then(entry)
            && let Some(lsn) = entry.stamp.lsn()
            && view.sees(lsn)
        {
            return Ok(take(Some(lsn), entry.value));
        }
        if let Some(range) = leaf.range.as_ref().filter(|_| found.decided().is_none()) {
            let seen = range.look(seat.spares.part.as_ref(), key, |found| match found {
                Some(found) => seen_in_stock(trees, object, &found, view),
                None => Ok(None),
            });
            if let Some((lsn, row)) = seen.map_err(Blocked::from)?? {
                return Ok(match row {
                    Some(bytes) => take(lsn, &bytes),
                    None => Look { is_there: false, lsn },
                });
            }
        }
        // The leaf's version is too new or gone; an older one may be kept. The latch is still
        // held, so no version moves between leaf and store meanwhile.
        let older = view.lsn().and_then(|snapshot| self.versions.get(key, snapshot));
        if let Some(seen) = older {
            return Ok(take(Some(seen.lsn), &seen.value));
        }
        let below = view.lsn().unwrap_or(Lsn::MAX);
        let look = Look { is_there: false, lsn: self.versions.removed_below(key, below) };
        // After the look, not before: what is not there may have gone.
        if view.lsn().is_some_and(|snapshot| self.versions.lacks(snapshot)) {
            return Err(Refusal::TooOld);
        }
        Ok(look)
    }
}

/// What an intent means: its LSN, which the own rows of an open transaction have not yet, and the row, if it
/// is not removed.
pub(super) type SeenIntent<'r> = (Option<Lsn>, Option<Cow<'r, [u8]>>);

/// What an intent means for `view`: `None` if it is not (yet) there.
pub(super) fn resolved_intent<'r>(
    trees: &Trees,
    object: ObjectId,
    entry: Entry<'r>,
    view: View,
) -> Result<Option<SeenIntent<'r>>, Blocked> {
    let Some((owner, removal)) = entry.stamp.as_intent() else { return Ok(None) };
    let row = || (!removal).then_some(Cow::Borrowed(entry.value));
    if let (Owner::Large(large), View::Own { id, pieces, .. }) = (owner, view)
        && large.id == id
    {
        if large.piece < pieces {
            return Ok(Some((None, row())));
        }
        let Some(own) = trees.resolver.large.own(id) else { return Ok(None) };
        let earlier = own.before(trees, (object, entry.key), pieces)?.map(|(_, value)| value);
        let row = |value: OwnValue| (None, value.map(|value| Cow::Owned(value.into_vec())));
        return Ok(earlier.map(row));
    }
    Ok(match trees.resolver.status(owner) {
        TransactionStatus::Committed(lsn) if view.sees(lsn) => Some((Some(lsn), row())),
        _ => None,
    })
}
