//! Front leaves: a key that is not in the leaf is looked for in the stock of its range, under the latch.
//!
//! First the leaf, then the stock: a flush publishes the stock before it takes rows out of the leaf. Memory tells
//! of nearly every new key that it is nowhere. For another one the latch is given back, the stock is read, and
//! the next try finds what was read, if the range has the same stock still. A row that is to change is taken into
//! the leaf first, as if it had never left: what snapshots need of it is kept as for any other.

use super::write::Placing;
use super::{Blocked, Refusal, Seat, Tree};
use crate::node::leaf::{Entry, Found, Stamp};

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
        self.fetch(tree, seat, key, must_be_absent)
    }

    fn fetch(
        &mut self,
        tree: &Tree,
        seat: &mut Seat<'_>,
        key: &[u8],
        must_be_absent: bool,
    ) -> Result<Found, Refusal> {
        let Some(range) = &self.leaf.range else { return Ok(Found::default()) };
        let part = seat.spares.part.as_ref();
        let Some((lsn, value)) = range.find(part, key).map_err(Blocked::from)? else {
            return Ok(Found::default());
        };
        if must_be_absent {
            return Err(Refusal::Exists(lsn));
        }
        let value = value.to_vec();
        self.make_dirty(seat)?;
        self.make_space(seat, key, Entry::bytes(key, &value))?;
        self.rows().append(Stamp::committed(lsn), key, &value);
        Ok(self.find(tree, seat, key)?)
    }

    /// Takes the entry out that says that the key was removed.
    pub(super) fn forget_removal(&mut self, key: &[u8]) {
        if let Some(index) = self.rows().find(key).removal {
            self.rows().remove(index);
        }
    }
}
