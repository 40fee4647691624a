//! What intents of large transactions in a stock mean: to a reader, to whoever takes a key into its front leaf, and
//! to a compaction. They stand on the row of their key, or on what an older run has of it.

use std::borrow::Cow;

use onrush_log::Lsn;

use super::intent::{keep_or_let_go, note_removal};
use super::read::{SeenIntent, View, resolved_intent};
use super::{Blocked, Tree, Trees};
use crate::node::leaf::Stamp;
use crate::status::TransactionStatus;
use crate::storage::StockKey;
use crate::units::ObjectId;

/// What `view` sees of a key; none if it sees nothing here, where an older version may be kept. The caller holds the
/// stock.
pub(super) fn seen_in_stock<'p>(
    trees: &Trees,
    object: ObjectId,
    found: &StockKey<'p>,
    view: View,
) -> Result<Option<SeenIntent<'p>>, Blocked> {
    for intent in found.intents() {
        if let Some(seen) = resolved_intent(trees, object, intent, view)? {
            return Ok(Some(seen));
        }
    }
    let row = found.row().and_then(|row| Some((row.stamp.lsn()?, row.value)));
    let seen = row.filter(|(lsn, _)| view.sees(*lsn));
    Ok(seen.map(|(lsn, value)| (Some(lsn), Some(Cow::Borrowed(value)))))
}

/// A key of a stock with its decided intents as rows and removals.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Settled<V> {
    /// A row or a removal.
    pub(super) below: Option<(Stamp, V)>,
    /// An intent that means nothing yet.
    pub(super) open: Option<(Stamp, V)>,
}

impl<V: AsRef<[u8]>> Settled<V> {
    /// The LSN of the row, if nothing is open.
    pub(super) fn row_lsn(&self) -> Option<Lsn> {
        self.below.as_ref().filter(|_| self.open.is_none()).and_then(|(stamp, _)| stamp.lsn())
    }
}

/// What became of the intents of a key, the oldest first.
pub(super) struct Settling<'p> {
    pub(super) settled: Settled<&'p [u8]>,
    /// Rows that were replaced, by the commits at these LSNs; none where nothing was there that was removed.
    replaced: Vec<(Option<(Lsn, &'p [u8])>, Lsn)>,
    /// Intents of two transactions must stay.
    has_two: bool,
}

impl Settling<'_> {
    /// The last commit that has replaced a row.
    pub(super) fn replaced_to(&self) -> Lsn {
        self.replaced.iter().map(|(_, ended_at)| *ended_at).max().unwrap_or_default()
    }
}

/// `stays`: whether the intent of a transaction that was committed at this LSN is to stay one.
fn settle<'p>(trees: &Trees, found: &StockKey<'p>, stays: impl Fn(Lsn) -> bool) -> Settling<'p> {
    let below = found.row().map(|row| (row.stamp, row.value));
    let settled = Settled { below, open: None };
    let mut settling = Settling { settled, replaced: Vec::new(), has_two: false };
    for intent in found.intents().rev() {
        let Some((owner, removes)) = intent.stamp.as_intent() else { continue };
        match trees.resolver.status(owner) {
            TransactionStatus::Aborted => {}
            TransactionStatus::Committed(lsn) if !stays(lsn) => {
                let Settled { below, open } = &mut settling.settled;
                let row = below.and_then(|(stamp, value)| Some((stamp.lsn()?, value)));
                if row.is_some() || removes {
                    settling.replaced.push((row, lsn));
                }
                let stamp = if removes { Stamp::removed(lsn) } else { Stamp::committed(lsn) };
                // What is still open during redo, and older, was given up: nobody else could have changed the key.
                (*below, *open) = (Some((stamp, intent.value)), None);
            }
            TransactionStatus::Committed(_) | TransactionStatus::Pending => {
                let is_other = |open: Stamp| !open.is_intent_of_same(intent.stamp);
                settling.has_two |= settling.settled.open.is_some_and(|(open, _)| is_other(open));
                settling.settled.open = Some((intent.stamp, intent.value));
            }
        }
    }
    settling
}

/// What a front leaf is to have of a key, with the rows in the version store that snapshots may need. None if there is
/// nothing. The caller holds the stock, and the latch of the leaf exclusive.
pub(super) struct Taken {
    pub(super) settled: Settled<Vec<u8>>,
    replaced: Vec<(Option<(Lsn, Vec<u8>)>, Lsn)>,
}

impl Taken {
    pub(super) fn of(trees: &Trees, found: &StockKey<'_>) -> Option<Taken> {
        let Settling { settled, replaced, .. } = settle(trees, found, |_| false);
        let own =
            |entry: Option<(Stamp, &[u8])>| entry.map(|(stamp, value)| (stamp, value.to_vec()));
        let settled = Settled { below: own(settled.below), open: own(settled.open) };
        let is_something = settled != Settled::default();
        let replaced = replaced.into_iter();
        let replaced =
            replaced.map(|(row, at)| (row.map(|(lsn, value)| (lsn, value.to_vec())), at)).collect();
        is_something.then_some(Taken { settled, replaced })
    }

    /// The rows that the decided intents have replaced: once the leaf has what replaced them.
    pub(super) fn keep_replaced(&self, trees: &Trees, tree: &Tree, key: &[u8]) {
        for (row, ended_at) in &self.replaced {
            let ended = (*ended_at, trees.horizon() <= *ended_at);
            match row {
                Some((written_at, value)) => {
                    keep_or_let_go(trees, tree, (key, value), *written_at, ended);
                }
                None => note_removal(trees, tree, key, ended),
            }
        }
    }
}

/// What a compaction writes of a key: intents stay that are open, or that replace what a snapshot may need, or whose
/// commit is not below `flushed_below`: what takes one back may be in front of the stock alone. None if there are
/// intents of two transactions, which one image cannot have; only before the log is read to its end.
pub(super) fn compacted<'p>(
    trees: &Trees,
    found: &StockKey<'p>,
    flushed_below: Lsn,
) -> Option<Settling<'p>> {
    let settled_below = trees.horizon().min(flushed_below);
    let settling = settle(trees, found, |lsn| lsn >= settled_below);
    (!settling.has_two).then_some(settling)
}
