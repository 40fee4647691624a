//! Steps 4 and 5 of an insert: one change into a latched leaf, and its record into the log.
//! [before: the session](crate::session) [after: commit](onrush_log)
//!
//! The order is what keeps the promise that log order is the order of each key:
//! latch; check; make dirty (push on the list of the epoch); reserve the LSN; place the row with
//! that LSN; unlatch; copy the record; clear the in-flight mark. From the reservation to the clear
//! mark there are only memory copies.

use onrush_latch::ExclusiveGuard;
use onrush_log::{Lsn, Reservation};
use onrush_types::Schema;
use onrush_waits::{Phase, Recorder, Spin};

use super::Trees;
use super::split::{HalfSplit, open_edge, split};
use super::{Blocked, Hint, Refusal, SPARE_FRAMES, Seat, Tree};
use crate::fault::{Fault, panic_if_planted, planted};
use crate::node::fence::head;
use crate::node::leaf::{Entry, Found, LargeOwner, Owner, Stamp};
use crate::space::Purpose;
use crate::status::NO_OWNER;
use crate::storage::LeafState;
use crate::units::{LeafId, ObjectId};

/// What must be true of the key for the change to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expect {
    /// Not there: an insert.
    Absent,
    /// Not there, and nobody has removed it at or after this LSN: what a snapshot of this LSN makes needful. Nobody's
    /// lock is in the way.
    AbsentSince(Lsn),
    /// There, in the version written at this LSN: an update or delete of a row that was read.
    Version(Lsn),
    /// Whatever it is: an upsert.
    Anything,
}

/// One change of one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    pub(crate) object: ObjectId,
    pub(crate) key: &'a [u8],
    /// The whole value bytes; `None` removes the row.
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) expect: Expect,
    /// The log record, in pieces.
    pub(crate) record: [&'a [u8]; 3],
}

impl Tree {
    /// Makes the change, or tells why not; then nothing has happened.
    pub(crate) fn write(
        &self,
        trees: &Trees,
        seat: &mut Seat<'_>,
        hint: &mut Option<Hint>,
        change: &Change<'_>,
    ) -> Result<Reservation, Refusal> {
        let key_head = head(change.key);
        let at = (key_head, change.key);
        let (id, leaf) =
            self.latch_exclusive(trees, seat.recorder, hint.as_ref(), at, change.object)?;
        seat.recorder.mark(Phase::Seek);
        let purpose = if change.value.is_some() { Purpose::NewRows } else { Purpose::Removal };
        let mut placing = Placing { trees, id, leaf, half: None, purpose };
        let result = placing.change(self, seat, change);
        panic_if_planted(Fault::PanicInWrite);
        let Placing { id, leaf, half, .. } = placing;
        if result.is_ok() {
            *hint = Some(Hint::of(id, &leaf));
            if change.value.is_none() {
                trees.note_emptied(id, &leaf);
            }
        }
        drop(leaf);
        seat.recorder.mark(Phase::Write);
        if let Some(half) = half {
            self.link(trees, seat.recorder, change.object, &half.separator, half.leaf);
            seat.recorder.mark(Phase::Split);
        }
        let reservation = result?;
        trees.log.fill(&reservation, &change.record);
        trees.log.complete(seat.permit);
        seat.recorder.mark(Phase::Copy);
        Ok(reservation)
    }

    /// Opens a leaf at the right edge for keys from `boundary` on. Only a matter of speed: where
    /// it does not fit, inserts find their way without it.
    pub(crate) fn open_edge(
        &self,
        trees: &Trees,
        seat: &mut Seat<'_>,
        hint: &mut Option<Hint>,
        object: ObjectId,
        boundary: &[u8],
    ) -> Result<(), Refusal> {
        let at = (head(boundary), boundary);
        let (id, mut leaf) = self.latch_exclusive(trees, seat.recorder, None, at, object)?;
        if leaf.rows.is_none() {
            return Err(Blocked::Load(id).into());
        }
        make_dirty(trees, seat.permit, id, &mut leaf, Purpose::NewRows)?;
        let opened = open_edge(trees, seat, &mut leaf, boundary)?;
        drop(leaf);
        if let Some((half, right)) = opened {
            *hint = Some(Hint::of(half.leaf, &right));
            drop(right);
            self.link(trees, seat.recorder, object, &half.separator, half.leaf);
        }
        Ok(())
    }
}

/// Of the few calls that are timed: the time of the reservation, and whether somebody else took log space between
/// a look at the tail and the reservation.
#[cold]
fn note_reservation(recorder: &Recorder, tail_before: Lsn, reservation: &Reservation) {
    recorder.mark(Phase::Reserve);
    if reservation.lsn != tail_before {
        recorder.spin_sampled(Spin::LogReservation);
    }
}

/// Makes sure that the next checkpoint images the leaf.
pub(crate) fn make_dirty(
    trees: &Trees,
    permit: usize,
    id: LeafId,
    leaf: &mut LeafState,
    purpose: Purpose,
) -> Result<(), Blocked> {
    if !leaf.is_dirty() {
        if !trees.space.try_reserve(1, purpose) {
            return Err(Blocked::Slot);
        }
        leaf.dirty_epoch = Some(trees.dirty.epoch());
        if !planted(Fault::DirtyNoList) {
            trees.list_dirty(permit, id, leaf);
        }
    }
    Ok(())
}

/// A latched leaf in which a change is being placed.
pub(super) struct Placing<'e> {
    pub(super) trees: &'e Trees,
    pub(super) id: LeafId,
    pub(super) leaf: ExclusiveGuard<'e, LeafState>,
    /// A split on the way, of which the parent must be told after the latch is let go.
    pub(super) half: Option<HalfSplit>,
    /// What slots are reserved for.
    pub(super) purpose: Purpose,
}

impl Placing<'_> {
    fn change(
        &mut self,
        tree: &Tree,
        seat: &mut Seat<'_>,
        change: &Change<'_>,
    ) -> Result<Reservation, Refusal> {
        let must_be_absent = matches!(change.expect, Expect::Absent | Expect::AbsentSince(_));
        let found = self.find_or_fetch(tree, seat, change.key, must_be_absent)?;
        if let Some(index) = found.intent {
            return Err(self.refusal_of(index));
        }
        self.check(tree, found, change)?;
        let looks_for_locks = change.expect != Expect::Absent || tree.has_locked_inserts();
        if looks_for_locks && !matches!(change.expect, Expect::AbsentSince(_)) {
            self.check_not_locked(NO_OWNER, (change.object, change.key), change.value.is_none())?;
        }
        self.make_dirty(seat)?;
        match (change.value, found.committed) {
            (Some(value), None) => {
                self.make_space(seat, change.key, Entry::bytes(change.key, value))?;
                seat.recorder.mark(Phase::Split);
                Ok(self.insert(seat, change, value))
            }
            (Some(value), Some(_)) => self.replace(tree, seat, change, value),
            (None, Some(index)) => {
                let kept = self.keep_version(tree, index);
                let reservation = self.reserve(seat, change);
                kept.ends_at(reservation.lsn);
                self.rows().remove_at(index, reservation.lsn);
                Ok(reservation)
            }
            (None, None) => Err(Refusal::Missing(None)),
        }
    }

    pub(super) fn make_dirty(&mut self, seat: &Seat<'_>) -> Result<(), Blocked> {
        make_dirty(self.trees, seat.permit, self.id, &mut self.leaf, self.purpose)
    }

    /// The key in this leaf, an intent on it resolved; a leaf on disk must be loaded first.
    #[inline]
    pub(super) fn find(
        &mut self,
        tree: &Tree,
        seat: &Seat<'_>,
        key: &[u8],
    ) -> Result<Found, Blocked> {
        let rows = self.leaf.rows.as_mut().ok_or(Blocked::Load(self.id))?;
        if rows.is_above_all(key) {
            return Ok(Found::default());
        }
        let found = rows.find(key);
        if found.intent.is_none() {
            return Ok(found);
        }
        self.resolve_found(tree, seat, key)?;
        Ok(self.rows().find(key))
    }

    pub(super) fn rows(&mut self) -> &mut crate::node::leaf::LeafRows {
        self.leaf.rows.as_mut().expect("`find` has seen the rows under this latch")
    }

    fn check(&mut self, tree: &Tree, found: Found, change: &Change<'_>) -> Result<(), Refusal> {
        let lsn = found.committed.and_then(|index| self.rows().entry(index).stamp.lsn());
        match (change.expect, lsn) {
            (Expect::Absent | Expect::AbsentSince(_), Some(lsn)) => Err(Refusal::Exists(lsn)),
            (Expect::AbsentSince(since), None) => {
                self.check_unchanged(tree, found, change.key, since)
            }
            (Expect::Version(_), None) => {
                Err(Refusal::Missing(tree.versions.removed_at(change.key)))
            }
            (Expect::Version(wanted), Some(lsn)) if lsn != wanted => Err(Refusal::Changed(lsn)),
            // What it points to has to go with it, and must be looked at.
            (Expect::Anything, Some(_)) if self.is_wide(found) => Err(Refusal::Locked),
            _ => Ok(()),
        }
    }

    /// Whether there is a row that may point elsewhere.
    pub(super) fn is_wide(&mut self, found: Found) -> bool {
        found.committed.is_some_and(|index| Schema::is_wide(self.rows().entry(index).value))
    }

    /// Makes sure an entry of `bytes` fits: squeezes dead bytes out, or splits, and then goes on
    /// in the half that holds the key.
    pub(super) fn make_space(
        &mut self,
        seat: &mut Seat<'_>,
        key: &[u8],
        bytes: usize,
    ) -> Result<(), Blocked> {
        if self.rows().fits(bytes) {
            return Ok(());
        }
        if self.rows().fits_compacted(bytes) {
            if seat.spares.len() < SPARE_FRAMES {
                return Err(Blocked::Spares);
            }
            self.rows().compact(&mut seat.spares[0]);
            return Ok(());
        }
        if self.half.is_some() {
            // The half that holds the key is still too full; tell the parent of the first split
            // before the second.
            return Err(Blocked::Split);
        }
        let (half, right) = split(self.trees, seat, &mut self.leaf, key, self.purpose)?;
        if right.low.at_or_below(head(key), key) {
            self.id = half.leaf;
            self.leaf = right;
        }
        self.half = Some(half);
        self.make_space(seat, key, bytes)
    }

    fn insert(&mut self, seat: &mut Seat<'_>, change: &Change<'_>, value: &[u8]) -> Reservation {
        let keeps_order = self.rows().is_above_all(change.key);
        let tail_before = seat.recorder.is_timing().then(|| self.trees.log.tail());
        let reservation = self.reserve(seat, change);
        if let Some(tail_before) = tail_before {
            note_reservation(seat.recorder, tail_before, &reservation);
        }
        let stamp = Stamp::committed(reservation.lsn);
        if !keeps_order && self.leaf.range.is_some() {
            self.forget_removal(change.key);
        }
        self.rows().append_in_order(stamp, change.key, value, keeps_order);
        reservation
    }

    fn replace(
        &mut self,
        tree: &Tree,
        seat: &mut Seat<'_>,
        change: &Change<'_>,
        value: &[u8],
    ) -> Result<Reservation, Refusal> {
        self.make_space(seat, change.key, Entry::bytes(change.key, value))?;
        // Making space may have moved the row.
        let index = self
            .find(tree, seat, change.key)?
            .committed
            .expect("a row stays in the half of its key");
        let kept = self.keep_version(tree, index);
        let reservation = self.reserve(seat, change);
        kept.ends_at(reservation.lsn);
        let stamp = Stamp::committed(reservation.lsn);
        if !self.rows().overwrite(index, stamp, value) {
            self.rows().remove(index);
            self.rows().append(stamp, change.key, value);
        }
        Ok(reservation)
    }

    fn keep_version(
        &mut self,
        tree: &Tree,
        index: usize,
    ) -> std::sync::Arc<super::versions::OldVersion> {
        let all = &self.trees.old_versions;
        let entry = self.rows().entry(index);
        let written_at = entry.stamp.lsn().expect("a committed row has an LSN");
        tree.versions.keep(all, entry.key, written_at, entry.value)
    }

    #[inline]
    fn reserve(&self, seat: &Seat<'_>, change: &Change<'_>) -> Reservation {
        let bytes = change.record.iter().map(|part| part.len()).sum();
        self.trees.log.reserve(seat.permit, bytes)
    }
}

impl Tree {
    /// Redoes one change of the log, unless the leaf has it already. `hint` is the leaf of the change
    /// before. What a large transaction has placed is an intent again; whose outcome came is a row.
    pub(crate) fn redo(
        &self,
        trees: &Trees,
        seat: &mut Seat<'_>,
        hint: &mut Option<Hint>,
        object: ObjectId,
        (key, value): (&[u8], Option<&[u8]>),
        (lsn, as_what): (Lsn, RedoneAs),
    ) -> Result<(), Blocked> {
        let at = (head(key), key);
        let latched = self.latch_exclusive(trees, seat.recorder, hint.as_ref(), at, object);
        // A barrier keeps truncation away while rows are redone.
        let Ok((id, leaf)) = latched else { return Ok(()) };
        // What was there before the crash had its slots.
        let purpose = Purpose::Checkpoint;
        let mut placing = Placing { trees, id, leaf, half: None, purpose };
        let result = match as_what {
            RedoneAs::Row => placing.redo(self, seat, (key, value), lsn),
            RedoneAs::Intent(owner) => placing.redo_intent(self, seat, (key, value), (lsn, owner)),
            RedoneAs::NoIntent(_) if placing.is_flushed(lsn) => Ok(()),
            RedoneAs::NoIntent(owner) => placing.remove_intent(self, seat, key, owner.id),
        };
        let Placing { id, leaf, half, .. } = placing;
        *hint = Some(Hint::of(id, &leaf));
        drop(leaf);
        if let Some(half) = half {
            self.link(trees, seat.recorder, object, &half.separator, half.leaf);
        }
        result
    }
}

/// What a change of the log is redone as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RedoneAs {
    Row,
    /// Of a large transaction, of which it is not known yet whether it was committed.
    Intent(LargeOwner),
    /// A large transaction took back what it had placed.
    NoIntent(LargeOwner),
}

impl Placing<'_> {
    /// A row that is as new as the piece came from an image, in which the transaction was resolved already.
    /// Whatever intent is there came earlier, or will be redone later.
    fn redo_intent(
        &mut self,
        tree: &Tree,
        seat: &mut Seat<'_>,
        (key, value): (&[u8], Option<&[u8]>),
        (lsn, owner): (Lsn, LargeOwner),
    ) -> Result<(), Blocked> {
        if self.is_flushed(lsn) {
            return Ok(());
        }
        let found = self.find(tree, seat, key)?;
        let known = found.decided().and_then(|index| self.rows().entry(index).stamp.decided_at());
        if known.is_some_and(|known| known >= lsn) {
            return Ok(());
        }
        self.replace_intent(tree, seat, Owner::Large(owner), (key, value))
    }

    /// Whether the stock has what a record says. What it has else is not looked at: what comes later goes before it.
    fn is_flushed(&self, lsn: Lsn) -> bool {
        self.leaf.range.as_ref().is_some_and(|range| lsn < range.stock().flushed_below())
    }

    pub(super) fn redo(
        &mut self,
        tree: &Tree,
        seat: &mut Seat<'_>,
        (key, value): (&[u8], Option<&[u8]>),
        lsn: Lsn,
    ) -> Result<(), Blocked> {
        if self.is_flushed(lsn) {
            return Ok(());
        }
        let found = self.find(tree, seat, key)?;
        let known = found.decided().and_then(|index| self.rows().entry(index).stamp.decided_at());
        if known.is_some_and(|known| known >= lsn) {
            return Ok(());
        }
        let is_front = self.leaf.range.is_some() && !planted(Fault::RedoneRemovalLost);
        match (value, found.decided()) {
            (None, None) if !is_front => return Ok(()),
            (None, Some(index)) => {
                self.make_dirty(seat)?;
                self.rows().remove_at(index, lsn);
            }
            (value, _) => {
                self.make_dirty(seat)?;
                let stamp = value.map_or(Stamp::removed(lsn), |_| Stamp::committed(lsn));
                let value = value.unwrap_or_default();
                self.make_space(seat, key, Entry::bytes(key, value))?;
                if let Some(index) = self.find(tree, seat, key)?.decided() {
                    self.rows().remove(index);
                }
                self.rows().append(stamp, key, value);
            }
        }
        Ok(())
    }
}
