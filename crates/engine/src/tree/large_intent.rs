//! Intents of large transactions: swept behind their outcome, looked for and taken back by their owner; and the rows
//! that such a transaction keeps for itself.

use onrush_log::Lsn;
use onrush_waits::Recorder;

use super::Trees;
use super::intent::{OwnIntent, resolvable, resolve_intents};
use super::write::{Placing, make_dirty};
use super::{Blocked, Refusal, Seat, Tree};
use crate::fault::{Fault, planted};
use crate::node::fence::head;
use crate::node::leaf::{LargeOwner, Owner};
use crate::space::Purpose;
use crate::storage::OnDisk;
use crate::units::{LeafId, ObjectId};

/// Key bytes and value bytes.
pub(crate) type FoundRow = (Box<[u8]>, Box<[u8]>);

/// What became of the leaf that a sweep has looked at.
pub(crate) enum Swept {
    /// Where the next one begins; none behind the last.
    Next(Option<Vec<u8>>),
    /// Its rows must be loaded first.
    OnDisk(LeafId),
    /// There is no slot for its next image.
    NoSlot,
    /// The table was emptied or dropped.
    Gone,
}

impl Tree {
    /// Resolves the intents of the leaf of `key` that have an outcome. Takes no LSN, so it needs no permit.
    pub(crate) fn sweep_leaf(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        object: ObjectId,
        key: &[u8],
    ) -> Swept {
        let at = (head(key), key);
        let latched = self.latch_exclusive(trees, recorder, None, at, object);
        let Ok((id, mut leaf)) = latched else { return Swept::Gone };
        let next = leaf.high.as_ref().map(|high| high.bytes().to_vec());
        let Some(rows) = leaf.rows.as_ref() else {
            return if leaf.image.is_some() { Swept::OnDisk(id) } else { Swept::Next(next) };
        };
        if rows.intents() == 0 || resolvable(trees, rows, trees.horizon()).is_empty() {
            return Swept::Next(next);
        }
        let permit = trees.background_permit();
        if !planted(Fault::SweepNotDirty)
            && make_dirty(trees, permit, id, &mut leaf, Purpose::Removal).is_err()
        {
            return Swept::NoSlot;
        }
        if let Some(rows) = leaf.rows.as_mut() {
            resolve_intents(trees, self, rows);
        }
        trees.note_emptied(id, &leaf);
        Swept::Next(next)
    }

    /// Keys of the leaf of `key` on which the large transaction has placed something in `piece` or a later
    /// one, and where the next leaf begins.
    pub(crate) fn own_keys(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        object: ObjectId,
        key: &[u8],
        from: LargeOwner,
    ) -> Result<(Vec<Box<[u8]>>, Option<Vec<u8>>), Refusal> {
        let (id, leaf) = self.latch_shared(trees, recorder, key, object)?;
        let next = leaf.high.as_ref().map(|high| high.bytes().to_vec());
        let rows = leaf.rows_in_memory().map_err(|OnDisk| Blocked::LoadToRead(id))?;
        let Some(rows) = rows else { return Ok((Vec::new(), next)) };
        let is_own = |owner: Owner| matches!(owner, Owner::Large(own) if own.id == from.id && own.piece >= from.piece);
        let keys = (0..rows.len())
            .map(|index| rows.entry(index))
            .filter(|entry| entry.stamp.as_intent().is_some_and(|(owner, _)| is_own(owner)))
            .map(|entry| entry.key.into());
        Ok((if rows.intents() == 0 { Vec::new() } else { keys.collect() }, next))
    }

    /// What the large transaction `id` has placed on a key.
    pub(crate) fn own_intent(
        &self,
        trees: &Trees,
        seat: &Seat<'_>,
        object: ObjectId,
        key: &[u8],
        id: u64,
    ) -> Result<Option<OwnIntent>, Refusal> {
        let (leaf_id, leaf) = self.latch_shared(trees, seat.recorder, key, object)?;
        let rows = leaf.rows_in_memory().map_err(|OnDisk| Blocked::LoadToRead(leaf_id))?;
        let Some(rows) = rows else { return Ok(None) };
        let Some(index) = rows.find(key).intent else { return Ok(None) };
        let entry = rows.entry(index);
        Ok(match entry.stamp.as_intent() {
            Some((Owner::Large(LargeOwner { id: there, piece }), removes)) if there == id => {
                Some(OwnIntent { piece, value: (!removes).then(|| entry.value.into()) })
            }
            _ => None,
        })
    }

    /// Puts a row that nobody else knows and the log does not take, unless it is there already.
    pub(crate) fn put_unlogged(
        &self,
        trees: &Trees,
        seat: &mut Seat<'_>,
        object: ObjectId,
        (key, value): (&[u8], &[u8]),
    ) -> Result<(), Refusal> {
        let at = (head(key), key);
        let (id, leaf) = self.latch_exclusive(trees, seat.recorder, None, at, object)?;
        let mut placing = Placing { trees, id, leaf, half: None, purpose: Purpose::NewRows };
        let result = placing.redo(self, seat, (key, Some(value)), Lsn::FIRST);
        let Placing { leaf, half, .. } = placing;
        drop(leaf);
        if let Some(half) = half {
            self.link(trees, seat.recorder, object, &half.separator, half.leaf);
        }
        Ok(result?)
    }

    /// The first row from `low` on.
    pub(crate) fn first_from(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        object: ObjectId,
        low: &[u8],
    ) -> Result<Option<FoundRow>, Refusal> {
        let mut at = low.to_vec();
        loop {
            let (id, leaf) = self.latch_shared(trees, recorder, &at, object)?;
            if leaf.rows.is_none() && leaf.image.is_some() {
                return Err(Blocked::LoadToRead(id).into());
            }
            let rows = leaf.rows.iter();
            let entries = rows.flat_map(|rows| (0..rows.len()).map(|index| rows.entry(index)));
            let first = entries.filter(|entry| entry.key >= low).min_by_key(|entry| entry.key);
            if let Some(entry) = first {
                return Ok(Some((entry.key.into(), entry.value.into())));
            }
            match &leaf.high {
                Some(high) => at = high.bytes().to_vec(),
                None => return Ok(None),
            }
        }
    }

    /// Gives a key back what the large transaction had placed there before, or nothing.
    pub(crate) fn restore_intent(
        &self,
        trees: &Trees,
        seat: &mut Seat<'_>,
        object: ObjectId,
        key: &[u8],
        id: u64,
        before: Option<&OwnIntent>,
    ) -> Result<(), Refusal> {
        let at = (head(key), key);
        let (leaf_id, leaf) = self.latch_exclusive(trees, seat.recorder, None, at, object)?;
        let mut placing =
            Placing { trees, id: leaf_id, leaf, half: None, purpose: Purpose::Removal };
        let result = match before {
            Some(OwnIntent { piece, value }) => {
                let owner = Owner::Large(LargeOwner { id, piece: *piece });
                placing.replace_intent(self, seat, owner, (key, value.as_deref()))
            }
            None => placing.remove_intent(self, seat, key, id),
        };
        let Placing { id, leaf, half, .. } = placing;
        trees.note_emptied(id, &leaf);
        drop(leaf);
        if let Some(half) = half {
            self.link(trees, seat.recorder, object, &half.separator, half.leaf);
        }
        Ok(result?)
    }
}

impl Placing<'_> {
    /// Takes the intent of a large transaction away.
    pub(super) fn remove_intent(
        &mut self,
        tree: &Tree,
        seat: &mut Seat<'_>,
        key: &[u8],
        id: u64,
    ) -> Result<(), Blocked> {
        let Some(index) = self.find(tree, seat, key)?.intent else { return Ok(()) };
        if self.is_own(index, Owner::Large(LargeOwner { id, piece: 0 })) {
            self.make_dirty(seat)?;
            self.rows().remove(index);
        }
        Ok(())
    }
}
