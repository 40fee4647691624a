//! Front leaves: a key that is not in the leaf is looked for in the stock of its range, under the latch.
//!
//! First the leaf, then the stock: a flush publishes the stock before it takes rows out of the leaf. Memory tells
//! of nearly every new key that it is nowhere. For another one the latch is given back, the stock is read, and
//! the next try finds what was read, if the range has the same stock still. A row that is to change is taken into
//! the leaf first, as if it had never left: what snapshots need of it is kept as for any other. The intent of a large
//! transaction on it is taken along.
//!
//! Invariant: a row or a removal in a front leaf says all of its key but for the intent beside it, so the stock is not
//! looked at.

use super::stock_intents::Taken;
use super::write::Placing;
use super::{Blocked, Refusal, Seat, Tree};
use crate::node::leaf::{CHUNK_BYTES, Entry, Found, Stamp};

impl Placing<'_> {
    /// As [`find`](Self::find), in the stock too: a row that is only there is in the leaf afterwards, unless the
    /// key must be absent.
    #[inline]
    pub(super) fn find_or_fetch(
        &mut self,
        tree: &Tree,
        seat: &mut Seat<'_>,
        key: &[u8],
        must_be_absent: bool,
    ) -> Result<Found, Refusal> {
        let found = self.find(tree, seat, key)?;
        // What an intent is about was taken into the leaf before it.
        if self.leaf.range.is_none() || found.decided().is_some() || found.intent.is_some() {
            return Ok(found);
        }
        match self.in_stock(seat, key)? {
            None => Ok(found),
            Some(taken) => match taken.settled.row_lsn().filter(|_| must_be_absent) {
                Some(lsn) => Err(Refusal::Exists(lsn)),
                None => Ok(self.take(tree, seat, key, &taken)?),
            },
        }
    }

    /// As [`find_or_fetch`](Self::find_or_fetch), of a key that may be there.
    pub(super) fn fetch(
        &mut self,
        tree: &Tree,
        seat: &mut Seat<'_>,
        key: &[u8],
    ) -> Result<Found, Blocked> {
        let found = self.find(tree, seat, key)?;
        if self.leaf.range.is_none() || found.decided().is_some() || found.intent.is_some() {
            return Ok(found);
        }
        match self.in_stock(seat, key)? {
            None => Ok(found),
            Some(taken) => self.take(tree, seat, key, &taken),
        }
    }

    /// The row or removal in the stock that intents there stand on.
    pub(super) fn below_in_stock(
        &self,
        seat: &Seat<'_>,
        key: &[u8],
    ) -> Result<Option<(Stamp, Vec<u8>)>, Blocked> {
        Ok(self.in_stock(seat, key)?.and_then(|taken| taken.settled.below))
    }

    fn in_stock(&self, seat: &Seat<'_>, key: &[u8]) -> Result<Option<Taken>, Blocked> {
        let Some(range) = &self.leaf.range else { return Ok(None) };
        let part = seat.spares.part.as_ref();
        Ok(range.look(part, key, |found| Taken::of(self.trees, &found?))?)
    }

    fn take(
        &mut self,
        tree: &Tree,
        seat: &mut Seat<'_>,
        key: &[u8],
        taken: &Taken,
    ) -> Result<Found, Blocked> {
        let entries = [&taken.settled.below, &taken.settled.open].into_iter().flatten();
        self.make_dirty(seat)?;
        // At once: a row without the intent on it would say that there is none.
        let bytes = entries.clone().map(|(_, value)| Entry::bytes(key, value)).sum::<usize>();
        self.make_space(seat, key, bytes + CHUNK_BYTES)?;
        for (stamp, value) in entries {
            self.rows().append(*stamp, key, value);
        }
        taken.keep_replaced(self.trees, tree, key);
        self.find(tree, seat, key)
    }

    /// Takes the entry out that says that the key was removed.
    pub(super) fn forget_removal(&mut self, key: &[u8]) {
        if let Some(index) = self.rows().find(key).removal {
            self.rows().remove(index);
        }
    }
}
