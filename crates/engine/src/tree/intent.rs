//! Intents: the rows of a transaction that is being committed, or that is too large for the memory of its
//! session, placed before its LSN is known.
//!
//! A reader asks the transaction what an intent means; a writer waits for the outcome. After the
//! outcome anyone who has the leaf's latch exclusive may *resolve* the intent: turn it into a row
//! with the transaction's LSN, or take it out.
//!
//! Invariants
//! 1. Intents are placed in (object, key) order, so two transactions never wait for each other.
//! 2. A transaction's number is given back only after all its intents are resolved, so the number
//!    in an intent always means the transaction that placed it.
//! 3. Placing may wait and may fail; the commit is logged after all intents stand.
//! 4. Who meets an intent of a large transaction that is open does not wait, but is refused: it may stay
//!    open for long, and nobody who waits for it can be waited for by it.
//! 5. The number of a large transaction is never given again, so its intents may stay in leaves and images
//!    after the outcome. A leaf becomes dirty before such an intent is resolved, unless it is being imaged:
//!    else the intent would come back from the image when its outcome is forgotten.

use onrush_log::Lsn;
use onrush_types::Schema;

use super::Trees;
use super::own_versions::OwnValue;
use super::write::Placing;
use super::{Blocked, Refusal, SPARE_FRAMES, Seat, Tree};
use crate::fault::{Fault, panic_if_planted, planted};
use crate::node::fence::head;
use crate::node::leaf::{Entry, Found, LeafRows, Owner, Stamp};
use crate::space::Purpose;
use crate::status::{LockOwnerNumber, RowLock, TransactionStatus};
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
    /// What an index that is being built has there, if it has anything.
    pub(crate) former_entry: Option<&'a [u8]>,
    /// Whose it is.
    pub(crate) owner: Owner,
    /// Under which number that one has locked rows.
    pub(crate) lock_owner: LockOwnerNumber,
}

/// What a transaction had placed on a key itself.
pub(crate) struct OwnIntent {
    pub(crate) piece: u32,
    pub(crate) value: OwnValue,
}

impl Tree {
    /// Places an intent, or tells why not. It replaces an earlier one of the same large transaction.
    pub(crate) fn place_intent(
        &self,
        trees: &Trees,
        seat: &mut Seat<'_>,
        intent: &Intent<'_>,
    ) -> Result<(), Refusal> {
        let at = (head(intent.key), intent.key);
        let (id, leaf) = self.latch_exclusive(trees, seat.recorder, None, at, intent.object)?;
        let purpose = if intent.value.is_some() { Purpose::NewRows } else { Purpose::Removal };
        let mut placing = Placing { trees, id, leaf, half: None, purpose };
        let result = placing.intent(self, seat, intent);
        panic_if_planted(Fault::PanicInCommit);
        let Placing { leaf, half, .. } = placing;
        drop(leaf);
        if let Some(half) = half {
            self.link(trees, seat.recorder, intent.object, &half.separator, half.leaf);
        }
        result
    }

    /// Whether nobody has changed the key at or after `since`, nor is about to. `own` is the large transaction that
    /// asks: what it has placed itself is no change.
    pub(crate) fn check_unchanged(
        &self,
        trees: &Trees,
        seat: &mut Seat<'_>,
        (object, key): (ObjectId, &[u8]),
        since: Lsn,
        own: Option<u64>,
    ) -> Result<(), Refusal> {
        let (id, leaf) =
            self.latch_exclusive(trees, seat.recorder, None, (head(key), key), object)?;
        let mut placing = Placing { trees, id, leaf, half: None, purpose: Purpose::NewRows };
        let found = placing.find_or_fetch(self, seat, key, false)?;
        match found.intent {
            None => placing.check_unchanged(self, found, key, since),
            Some(index) => match placing.rows().entry(index).stamp.as_intent() {
                Some((Owner::Large(there), _)) if Some(there.id) == own => Ok(()),
                _ => Err(placing.refusal_of(index)),
            },
        }
    }

    /// Resolves the intents on `key` that have an outcome; the transaction calls this for each of
    /// its keys once it has one.
    pub(crate) fn resolve_key(
        &self,
        trees: &Trees,
        seat: &mut Seat<'_>,
        object: ObjectId,
        key: &[u8],
    ) -> Result<(), Refusal> {
        let at = (head(key), key);
        let (id, mut leaf) = self.latch_exclusive(trees, seat.recorder, None, at, object)?;
        // A leaf that holds such an intent is never evicted: without rows there is nothing to resolve.
        if let Some(rows) = leaf.rows.as_mut() {
            resolve_key(trees, self, rows, key);
            trees.note_emptied(id, &leaf);
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
        let found = self.find_or_fetch(tree, seat, intent.key, intent.must_be_absent)?;
        if let Some(index) = found.intent
            && !self.is_own(index, intent.owner)
        {
            return Err(self.refusal_of(index));
        }
        if let Some(former) = intent.former_entry {
            self.check_former_entry(tree, found, (intent.key, former));
        }
        if found.intent.is_some() {
            return Ok(self.replace_intent(
                tree,
                seat,
                intent.owner,
                (intent.key, intent.value),
            )?);
        }
        if intent.must_be_absent
            && let Some(lsn) = self.written_at(found)
        {
            return Err(Refusal::Exists(lsn));
        }
        match (intent.unchanged_since, self.written_at(found)) {
            (Some(since), _) => self.check_unchanged(tree, found, intent.key, since)?,
            // Who has not looked at it does not know what it points to.
            (None, Some(lsn)) if self.is_wide(found) => return Err(Refusal::Changed(lsn)),
            (None, _) => {}
        }
        if !intent.must_be_absent || tree.has_locked_inserts() {
            let key = (intent.object, intent.key);
            self.check_not_locked(intent.lock_owner, key, intent.value.is_none())?;
        }
        self.make_dirty(seat)?;
        let value = intent.value.unwrap_or(&[]);
        self.make_space(seat, intent.key, Entry::bytes(intent.key, value))?;
        let stamp = Stamp::intent(intent.owner, intent.value.is_none());
        self.rows().append(stamp, intent.key, value);
        Ok(())
    }

    /// A unique index that is being built may have the entry of another row where that of a changed one is to be.
    fn check_former_entry(&mut self, tree: &Tree, found: Found, (key, former): (&[u8], &[u8])) {
        let Some(index) = found.intent.or(found.committed) else { return };
        let there = self.rows().entry(index);
        let is_removal = there.stamp.as_intent().is_some_and(|(_, removes)| removes);
        if !is_removal && !Schema::is_same_row(there.value, former) {
            tree.note_doubled(key);
        }
    }

    fn written_at(&mut self, found: Found) -> Option<Lsn> {
        found.committed.and_then(|index| self.rows().entry(index).stamp.lsn())
    }

    /// First committer wins: nobody may have changed the key at or after this LSN.
    pub(super) fn check_unchanged(
        &mut self,
        tree: &Tree,
        found: Found,
        key: &[u8],
        since: Lsn,
    ) -> Result<(), Refusal> {
        let written_at = self.written_at(found);
        // Whoever removed the row may be forgotten, if the snapshot was given up.
        if written_at.is_none() && tree.versions.lacks(since) {
            return Err(Refusal::TooOld);
        }
        match written_at.or_else(|| tree.versions.removed_at(key)) {
            Some(changed_at) if changed_at >= since && !planted(Fault::ConflictIgnored) => {
                Err(Refusal::Changed(changed_at))
            }
            _ => Ok(()),
        }
    }

    /// Nobody changes a row that another one has locked.
    pub(super) fn check_not_locked(
        &self,
        lock_owner: LockOwnerNumber,
        (object, key): (ObjectId, &[u8]),
        is_removal: bool,
    ) -> Result<(), Refusal> {
        let lock = if is_removal { RowLock::Update } else { RowLock::NoKeyUpdate };
        match self.trees.resolver.row_locks.keeps_off(lock_owner, object, key, lock)
            && !planted(Fault::RowLockIgnored)
        {
            true => Err(Refusal::Locked),
            false => Ok(()),
        }
    }

    /// Whether the intent at `index` is of the same large transaction as `owner`.
    pub(super) fn is_own(&mut self, index: usize, owner: Owner) -> bool {
        let there = self.rows().entry(index).stamp.as_intent();
        match (there, owner) {
            (Some((Owner::Large(there), _)), Owner::Large(own)) => there.id == own.id,
            _ => false,
        }
    }

    /// Puts an intent in place of the one on its key, whosever that is, or where there is none.
    pub(super) fn replace_intent(
        &mut self,
        tree: &Tree,
        seat: &mut Seat<'_>,
        owner: Owner,
        (key, value): (&[u8], Option<&[u8]>),
    ) -> Result<(), Blocked> {
        self.make_dirty(seat)?;
        let stamp = Stamp::intent(owner, value.is_none());
        let value = value.unwrap_or(&[]);
        let bytes = Entry::bytes(key, value);
        // A row and two intents of its key may be more than a leaf holds, and no split parts them.
        if let Some(index) = self.find(tree, seat, key)?.intent
            && !self.rows().fits(bytes)
            && self.rows().fits_in_place_of(index, bytes)
        {
            if seat.spares.len() < SPARE_FRAMES {
                return Err(Blocked::Spares);
            }
            self.rows().remove(index);
            self.rows().compact(&mut seat.spares[0]);
            self.rows().append(stamp, key, value);
            return Ok(());
        }
        self.make_space(seat, key, bytes)?;
        // Making space may have moved it.
        if let Some(index) = self.find(tree, seat, key)?.intent {
            if self.rows().overwrite(index, stamp, value) {
                return Ok(());
            }
            self.rows().remove(index);
        }
        self.rows().append(stamp, key, value);
        Ok(())
    }

    /// Why nobody else may change the key of the intent at `index`, which has no outcome.
    pub(super) fn refusal_of(&self, index: usize) -> Refusal {
        let rows = self.leaf.rows.as_ref().expect("`find` has seen the rows under this latch");
        let (owner, _) = rows.entry(index).stamp.as_intent().expect("the index of an intent");
        match owner {
            Owner::Small(number) => {
                Blocked::Transaction(self.trees.resolver.transactions.pending(number)).into()
            }
            Owner::Large(_) => Refusal::Held,
        }
    }

    /// As [`resolve_key`]. A leaf that loses an intent that its image may have becomes dirty first.
    #[cold]
    pub(super) fn resolve_found(
        &mut self,
        tree: &Tree,
        seat: &Seat<'_>,
        key: &[u8],
    ) -> Result<(), Blocked> {
        let rows = self.rows();
        let found = rows.find(key).intent.and_then(|index| rows.entry(index).stamp.as_intent());
        if let Some((owner @ Owner::Large(_), _)) = found
            && self.trees.resolver.status(owner) != TransactionStatus::Pending
        {
            self.make_dirty(seat)?;
        }
        let trees = self.trees;
        resolve_key(trees, tree, self.rows(), key);
        Ok(())
    }
}

/// Resolves the intent on `key` if its transaction has an outcome. The leaf is latched exclusive.
pub(super) fn resolve_key(trees: &Trees, tree: &Tree, rows: &mut LeafRows, key: &[u8]) {
    let Some(index) = rows.find(key).intent else { return };
    let Some((owner, removal)) = rows.entry(index).stamp.as_intent() else { return };
    match trees.resolver.status(owner) {
        TransactionStatus::Pending => {}
        TransactionStatus::Aborted => rows.remove(index),
        TransactionStatus::Committed(lsn) => {
            let keeps = matches!(owner, Owner::Small(_)) || trees.horizon() <= lsn;
            if removal {
                rows.remove_at(index, lsn);
            } else {
                rows.restamp(index, Stamp::committed(lsn));
            }
            let was_there = remove_older(trees, tree, rows, key, (lsn, keeps));
            if removal && !was_there && !planted(Fault::RemovalLeavesNoTrace) {
                note_removal(trees, tree, key, (lsn, keeps));
            }
        }
    }
}

/// Takes the row that a resolved intent replaces out, into the version store if a snapshot may need it. Whether there
/// was one.
fn remove_older(
    trees: &Trees,
    tree: &Tree,
    rows: &mut LeafRows,
    key: &[u8],
    (ended_at, keeps): (Lsn, bool),
) -> bool {
    let older = rows.decided_below(key, ended_at);
    let mut was_there = false;
    if let Some(index) = older {
        let entry = rows.entry(index);
        if let Some(written_at) = entry.stamp.lsn() {
            was_there = true;
            keep_or_let_go(trees, tree, (entry.key, entry.value), written_at, (ended_at, keeps));
        }
        rows.remove(index);
    }
    was_there
}

/// A row was replaced or removed: the version store gets it if a snapshot may need it.
pub(super) fn keep_or_let_go(
    trees: &Trees,
    tree: &Tree,
    (key, value): (&[u8], &[u8]),
    written_at: Lsn,
    (ended_at, keeps): (Lsn, bool),
) {
    match keeps {
        true => {
            tree.versions.keep(&trees.old_versions, key, written_at, value).ends_at(ended_at);
        }
        false => tree.versions.let_go(ended_at),
    }
}

/// What was not there was removed. Who fills an index puts no entry there that a snapshot before the removal wants: a
/// version that no snapshot sees tells of the removal, as long as there are such snapshots.
pub(super) fn note_removal(
    trees: &Trees,
    tree: &Tree,
    key: &[u8],
    (removed_at, keeps): (Lsn, bool),
) {
    match keeps {
        true => {
            tree.versions.keep(&trees.old_versions, key, removed_at, &[]).ends_at(removed_at);
        }
        false => tree.versions.let_go(removed_at),
    }
}

/// Resolves every intent of the leaf whose transaction has an outcome; before a checkpoint images it. Those of large
/// transactions stay as long as a snapshot may need what they replace, which is kept beside them.
pub(crate) fn resolve_intents(trees: &Trees, tree: &Tree, rows: &mut LeafRows) {
    if rows.intents() == 0 {
        return;
    }
    let horizon = trees.horizon();
    for key in resolvable(trees, rows, horizon) {
        resolve_key(trees, tree, rows, &key);
    }
}

/// Keys of intents that can be resolved, those of large transactions only without a version to be kept.
pub(super) fn resolvable(trees: &Trees, rows: &LeafRows, horizon: Lsn) -> Vec<Box<[u8]>> {
    let is_resolvable = |owner: Owner| match (owner, trees.resolver.status(owner)) {
        (_, TransactionStatus::Pending) => false,
        (Owner::Large(_), TransactionStatus::Committed(lsn)) => lsn < horizon,
        _ => true,
    };
    (0..rows.len())
        .map(|index| rows.entry(index))
        .filter(|entry| entry.stamp.as_intent().is_some_and(|(owner, _)| is_resolvable(owner)))
        .map(|entry| entry.key.into())
        .collect()
}
