//! Intents of large transactions: swept behind their outcome, looked for and taken back by their owner; and the rows
//! that such a transaction keeps for itself.

use onrush_log::Lsn;
use onrush_waits::Recorder;

use super::Trees;
use super::intent::{OwnIntent, resolvable, resolve_intents};
use super::scan::{Bounds, Direction, hold_stock, lower, stock_part};
use super::write::{Placing, make_dirty};
use super::{Blocked, Refusal, Seat, Tree};
use crate::fault::{Fault, planted};
use crate::node::fence::{Fence, head};
use crate::node::leaf::{Entry, Found, LargeOwner, Owner, Stamp};
use crate::space::Purpose;
use crate::storage::{OnDisk, StockKey, StockPart};
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

    /// Keys from `key` on, of its leaf and of a part of the stock behind it, on which the large transaction has placed
    /// something in `piece` or a later one, and where the next ones begin.
    pub(crate) fn own_keys(
        &self,
        trees: &Trees,
        seat: &Seat<'_>,
        object: ObjectId,
        key: &[u8],
        from: LargeOwner,
    ) -> Result<(Vec<Box<[u8]>>, Option<Vec<u8>>), Refusal> {
        let (id, leaf) = self.latch_shared(trees, seat.recorder, key, object)?;
        let rows = leaf.rows_in_memory().map_err(|OnDisk| Blocked::LoadToRead(id))?;
        let is_own = |entry: &Entry<'_>| {
            let owner = entry.stamp.as_intent().map(|(owner, _)| owner);
            matches!(owner, Some(Owner::Large(own)) if own.id == from.id && own.piece >= from.piece)
        };
        let rows = rows.filter(|rows| rows.intents() > 0);
        let entries = rows.iter().flat_map(|rows| (0..rows.len()).map(|index| rows.entry(index)));
        let mut keys: Vec<Box<[u8]>> =
            entries.filter(is_own).map(|entry| entry.key.into()).collect();
        let stock = hold_stock(&leaf).filter(|it| it.owners().any(|owner| owner == from.id));
        let bounds = Bounds { low: key.to_vec(), high: None };
        let part = stock_part(seat, &leaf, stock.as_deref(), &bounds, Direction::Forward)?;
        let leaf_high = leaf.high.as_ref().map(Fence::bytes);
        let next = lower(leaf_high, part.and_then(StockPart::high));
        // Where the leaf has the key, too, it says what counts: then nothing is found to be taken back.
        let is_here =
            |found: &StockKey<'_>| found.key() >= key && next.is_none_or(|next| found.key() < next);
        let in_stock = part.into_iter().flat_map(StockPart::keys).filter(is_here);
        let in_stock = in_stock.filter(|found| found.intents().any(|intent| is_own(&intent)));
        keys.extend(in_stock.map(|found| found.key().into()));
        keys.sort_unstable();
        keys.dedup();
        Ok((keys, next.map(<[u8]>::to_vec)))
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
        let found = rows.map_or_else(Found::default, |rows| rows.find(key));
        let own = |entry: Entry<'_>| match entry.stamp.as_intent() {
            Some((Owner::Large(LargeOwner { id: there, piece }), removes)) if there == id => {
                Some(OwnIntent { piece, value: (!removes).then(|| entry.value.into()) })
            }
            _ => None,
        };
        if let Some(entry) = found.intent.and_then(|index| rows.map(|rows| rows.entry(index))) {
            return Ok(own(entry));
        }
        let Some(range) = leaf.range.as_ref().filter(|_| found.decided().is_none()) else {
            return Ok(None);
        };
        let in_stock = |found: Option<StockKey<'_>>| found?.intents().find_map(own);
        let part = seat.spares.part.as_ref();
        Ok(range.look(part, key, in_stock).map_err(Blocked::from)?)
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
        let result = placing.restore(self, seat, (key, id), before);
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
    fn restore(
        &mut self,
        tree: &Tree,
        seat: &mut Seat<'_>,
        (key, id): (&[u8], u64),
        before: Option<&OwnIntent>,
    ) -> Result<(), Blocked> {
        let Some(OwnIntent { piece, value }) = before else {
            return self.remove_intent(tree, seat, key, id);
        };
        self.fetch(tree, seat, key)?;
        let owner = Owner::Large(LargeOwner { id, piece: *piece });
        self.replace_intent(tree, seat, owner, (key, value.as_deref()))
    }

    /// Takes the intent of a large transaction away. A front leaf has from then on the row that is below it, or says
    /// that there is none: the stock may have the intent, too.
    pub(super) fn remove_intent(
        &mut self,
        tree: &Tree,
        seat: &mut Seat<'_>,
        key: &[u8],
        id: u64,
    ) -> Result<(), Blocked> {
        let found = self.fetch(tree, seat, key)?;
        let Some(index) = found.intent else { return Ok(()) };
        if self.is_own(index, Owner::Large(LargeOwner { id, piece: 0 })) {
            self.make_dirty(seat)?;
            let is_front = self.leaf.range.is_some() && !planted(Fault::TakenBackShowsThrough);
            // Redo places intents without a look at the stock.
            let hides = planted(Fault::RedoneTakeBackHides);
            let below = match is_front && found.decided().is_none() && !hides {
                true => self.below_in_stock(seat, key)?,
                false => None,
            };
            match below {
                Some((stamp, value)) => {
                    self.make_space(seat, key, Entry::bytes(key, &value))?;
                    if let Some(index) = self.find(tree, seat, key)?.intent {
                        self.rows().remove(index);
                    }
                    self.rows().append(stamp, key, &value);
                }
                None if is_front && found.decided().is_none() => {
                    self.rows().restamp(index, Stamp::removed(Lsn::FIRST));
                }
                None => self.rows().remove(index),
            }
            self.rows().set_taken_back(is_front);
        }
        Ok(())
    }
}
