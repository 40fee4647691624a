//! The rows of one leaf in its 16 KiB frame.
//!
//! Rows are appended in the order of arrival and never shifted; a fingerprint and an offset each
//! tell where. They are put in key order only when somebody needs that: an image, a split, a scan; where many scans do,
//! the offsets stay in that order.
//!
//! ```text
//! 0 ->                                                                    <- LEAF_BYTES
//! | entry | entry | entry | ...        free        ... | chunk 1 | chunk 0 |
//! entry: stamp u64 | key length u16 | value length u16 | key | value
//! chunk: 32 fingerprints u8 | 32 offsets u16       (the entries 32 c .. 32 c + 31)
//! ```
//!
//! Invariants
//! 1. Entries and chunks never overlap: `end <= LEAF_BYTES - chunk_bytes(count)`.
//! 2. A key has at most one decided entry, a row or a removal, and at most one intent.
//! 3. `sorted` is true only if the entries are in ascending key order.
//! 4. Only in a front leaf, whose rows are newer than what a stock on the disk has, a removed row stays as an
//!    entry that says so: else the row of the stock would show again.

use std::cmp::Ordering;

use super::fence::{self, head};
use super::fingerprint::{self, CHUNK};
pub(crate) use super::stamp::{LargeOwner, Owner, Stamp};
use onrush_log::Lsn;

use crate::memory::{Frame, prefetch};
use crate::units::LEAF_BYTES;

/// Bytes in front of the key: stamp and the two lengths.
pub(crate) const ENTRY_HEADER_BYTES: usize = 12;
/// Bytes that fingerprints and offsets of some more entries take.
pub(crate) const CHUNK_BYTES: usize = CHUNK + 2 * CHUNK;

/// Bytes that entries may take when `count` rows are in the leaf.
const fn space(count: usize) -> usize {
    LEAF_BYTES - count.div_ceil(CHUNK) * CHUNK_BYTES
}

/// One row as it lies in a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) stamp: Stamp,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl Entry<'_> {
    /// Bytes that an entry takes in a leaf and in an image.
    pub(crate) fn bytes(key: &[u8], value: &[u8]) -> usize {
        ENTRY_HEADER_BYTES + key.len() + value.len()
    }
}

/// Reads the entry that starts at `offset`, and tells where the next one starts.
pub(crate) fn read_entry(bytes: &[u8], offset: usize) -> Option<(Entry<'_>, usize)> {
    let header = bytes.get(offset..)?.first_chunk::<ENTRY_HEADER_BYTES>()?;
    let stamp = u64::from_le_bytes(*header.first_chunk::<8>()?);
    let key_len = usize::from(u16::from_le_bytes([header[8], header[9]]));
    let value_len = usize::from(u16::from_le_bytes([header[10], header[11]]));
    let key_at = offset + ENTRY_HEADER_BYTES;
    let value_at = key_at + key_len;
    let key = bytes.get(key_at..value_at)?;
    let value = bytes.get(value_at..value_at + value_len)?;
    Some((Entry { stamp: Stamp::from_raw(stamp), key, value }, value_at + value_len))
}

/// Where a key stands in a leaf.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) committed: Option<usize>,
    /// Instead of a row: it was removed. Only in a front leaf.
    pub(crate) removal: Option<usize>,
    pub(crate) intent: Option<usize>,
}

impl Found {
    /// The row or its removal.
    pub(crate) fn decided(self) -> Option<usize> {
        self.committed.or(self.removal)
    }
}

/// The rows of a leaf and the frame that holds them. Whoever has the leaf's latch owns this.
#[derive(Debug)]
pub(crate) struct LeafRows {
    frame: Frame,
    count: u16,
    end: u16,
    dead_bytes: u16,
    intents: u16,
    sorted: bool,
    is_front: bool,
    /// Of a front leaf: since its rows were copied for a flush an intent was taken back that the stock may have, too.
    has_taken_back: bool,
}

impl LeafRows {
    /// An empty leaf in `frame`, whatever the frame held before.
    pub(crate) fn empty(frame: Frame) -> LeafRows {
        let (count, end, dead_bytes, intents) = (0, 0, 0, 0);
        let (sorted, is_front, has_taken_back) = (true, false, false);
        LeafRows { frame, count, end, dead_bytes, intents, sorted, is_front, has_taken_back }
    }

    /// As [`empty`](Self::empty); `is_front`: of a leaf in front of a stock.
    pub(crate) fn empty_of(frame: Frame, is_front: bool) -> LeafRows {
        LeafRows { is_front, ..LeafRows::empty(frame) }
    }

    /// The leaf stands in front of a stock from now on.
    pub(crate) fn set_front(&mut self) {
        self.is_front = true;
    }

    /// Whether what the leaf has may say more than what was copied, though it is no newer: an intent was taken back.
    pub(crate) fn has_taken_back(&self) -> bool {
        self.has_taken_back
    }

    /// See [`has_taken_back`](Self::has_taken_back); false: the rows are copied now.
    pub(crate) fn set_taken_back(&mut self, has_taken_back: bool) {
        self.has_taken_back = has_taken_back;
    }

    /// How many entries of `bytes` a leaf holds.
    pub(crate) fn capacity(bytes: usize) -> usize {
        let mut count = LEAF_BYTES / (bytes + 3);
        while count > 1 && count * bytes > space(count) {
            count -= 1;
        }
        count
    }

    pub(crate) fn into_frame(self) -> Frame {
        self.frame
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Entries that belong to transactions not resolved yet.
    pub(crate) fn intents(&self) -> usize {
        usize::from(self.intents)
    }

    /// Whether there are intents of transactions that only memory knows: such a leaf must stay in memory.
    pub(crate) fn holds_small_intents(&self) -> bool {
        self.intents > 0 && (0..self.len()).any(|index| self.entry(index).stamp.is_small_intent())
    }

    /// Bytes of all live entries.
    pub(crate) fn live_bytes(&self) -> usize {
        usize::from(self.end - self.dead_bytes)
    }

    /// Whether an entry of `bytes` fits behind the others as they lie now.
    #[inline]
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        usize::from(self.end) + bytes <= space(self.len() + 1)
    }

    /// Whether it fits once the dead bytes are squeezed out.
    pub(crate) fn fits_compacted(&self, bytes: usize) -> bool {
        self.live_bytes() + bytes <= space(self.len() + 1)
    }

    /// Whether it fits once the entry at `index` is gone and the dead bytes are squeezed out.
    pub(crate) fn fits_in_place_of(&self, index: usize, bytes: usize) -> bool {
        let Entry { key, value, .. } = self.entry(index);
        self.live_bytes() - Entry::bytes(key, value) + bytes <= space(self.len())
    }

    #[inline]
    fn chunk_at(index: usize) -> usize {
        LEAF_BYTES - (index / CHUNK + 1) * CHUNK_BYTES
    }

    #[inline]
    fn offset(&self, index: usize) -> usize {
        let at = Self::chunk_at(index) + CHUNK + 2 * (index % CHUNK);
        usize::from(u16::from_le_bytes([self.frame[at], self.frame[at + 1]]))
    }

    #[inline]
    fn fingerprint(&self, index: usize) -> u8 {
        self.frame[Self::chunk_at(index) + index % CHUNK]
    }

    #[inline]
    fn set_offset(&mut self, index: usize, fingerprint: u8, offset: u16) {
        let chunk = Self::chunk_at(index);
        self.frame[chunk + index % CHUNK] = fingerprint;
        let at = chunk + CHUNK + 2 * (index % CHUNK);
        self.frame[at..at + 2].copy_from_slice(&offset.to_le_bytes());
    }

    /// The entry at `index`, which must be below [`len`](Self::len).
    #[inline]
    pub(crate) fn entry(&self, index: usize) -> Entry<'_> {
        let (entry, _) = read_entry(&self.frame[..], self.offset(index))
            .expect("an offset points at a whole entry (invariant 1)");
        entry
    }

    #[inline]
    fn key(&self, index: usize) -> &[u8] {
        self.entry(index).key
    }

    /// Whether `key` is above every key of the leaf, as far as that is known without a search.
    #[inline]
    pub(crate) fn is_above_all(&self, key: &[u8]) -> bool {
        self.sorted && (self.count == 0 || key > self.key(self.len() - 1))
    }

    /// Asks for the lines that the insert of an entry of about `bytes` touches: fingerprints,
    /// offsets, and the place behind the last entry; all lines if the leaf will split.
    #[inline]
    pub(crate) fn prefetch(&self, bytes: usize) {
        if !self.fits(bytes) {
            return prefetch(&self.frame[..]);
        }
        let end = usize::from(self.end);
        prefetch(&self.frame[Self::chunk_at(self.len())..]);
        prefetch(&self.frame[end..(end + bytes).min(LEAF_BYTES)]);
    }

    /// As [`prefetch`](Self::prefetch), for an insert that looks for no key and splits nothing.
    #[inline]
    pub(crate) fn prefetch_place(&self, bytes: usize) {
        let (end, index) = (usize::from(self.end), self.len());
        let chunk = Self::chunk_at(index);
        prefetch(&self.frame[end..(end + bytes).min(LEAF_BYTES)]);
        prefetch(&self.frame[chunk + index % CHUNK..][..1]);
        prefetch(&self.frame[chunk + CHUNK + 2 * (index % CHUNK)..][..2]);
    }

    /// Finds `key` by its fingerprint.
    pub(crate) fn find(&self, key: &[u8]) -> Found {
        let wanted = fingerprint::of(key);
        let mut found = Found::default();
        for first in (0..self.len()).step_by(CHUNK) {
            let at = Self::chunk_at(first);
            let chunk = self.frame[at..].first_chunk::<CHUNK>().expect("a chunk is whole");
            let mut mask = fingerprint::matches(chunk, wanted);
            let live = self.len() - first;
            if live < CHUNK {
                mask &= (1u32 << live) - 1;
            }
            while mask != 0 {
                let index = first + mask.trailing_zeros() as usize;
                mask &= mask - 1;
                let entry = self.entry(index);
                if entry.key == key {
                    match entry.stamp.as_intent() {
                        None if entry.stamp.is_removal() => found.removal = Some(index),
                        None => found.committed = Some(index),
                        Some(_) => found.intent = Some(index),
                    }
                    if self.intents == 0 {
                        return found;
                    }
                }
            }
        }
        found
    }

    /// Appends an entry that [`fits`](Self::fits).
    #[inline]
    pub(crate) fn append(&mut self, stamp: Stamp, key: &[u8], value: &[u8]) {
        let keeps_order = self.is_above_all(key);
        self.append_in_order(stamp, key, value, keeps_order);
    }

    /// [`append`](Self::append) by a caller who knows whether `key` is above all others.
    #[inline]
    pub(crate) fn append_in_order(
        &mut self,
        stamp: Stamp,
        key: &[u8],
        value: &[u8],
        keeps_order: bool,
    ) {
        debug_assert!(self.fits(Entry::bytes(key, value)));
        let start = usize::from(self.end);
        let key_at = start + ENTRY_HEADER_BYTES;
        let value_at = key_at + key.len();
        let end = value_at + value.len();
        let entry = &mut self.frame[start..end];
        entry[..8].copy_from_slice(&stamp.raw().to_le_bytes());
        entry[8..10].copy_from_slice(&(key.len() as u16).to_le_bytes());
        entry[10..12].copy_from_slice(&(value.len() as u16).to_le_bytes());
        entry[ENTRY_HEADER_BYTES..ENTRY_HEADER_BYTES + key.len()].copy_from_slice(key);
        entry[ENTRY_HEADER_BYTES + key.len()..].copy_from_slice(value);
        self.push_entry(fingerprint::of(key), end, stamp, keeps_order);
    }

    /// The bytes behind the last entry, up to `end`, are an entry from now on.
    #[inline]
    fn push_entry(&mut self, fingerprint: u8, end: usize, stamp: Stamp, keeps_order: bool) {
        self.set_offset(self.len(), fingerprint, self.end);
        self.sorted = keeps_order;
        self.count += 1;
        self.end = end as u16;
        self.intents += u16::from(stamp.as_intent().is_some());
    }

    /// Takes the entry at `index` out; the last one gets its index.
    pub(crate) fn remove(&mut self, index: usize) {
        let entry = self.entry(index);
        let bytes = Entry::bytes(entry.key, entry.value) as u16;
        self.intents -= u16::from(entry.stamp.as_intent().is_some());
        let offset = self.offset(index) as u16;
        let last = self.len() - 1;
        if index != last {
            let moved_offset = self.offset(last) as u16;
            self.set_offset(index, self.fingerprint(last), moved_offset);
            self.sorted = false;
        }
        self.count -= 1;
        if offset + bytes == self.end {
            self.end = offset;
        } else {
            self.dead_bytes += bytes;
        }
        if self.count == 0 {
            (self.end, self.dead_bytes, self.sorted) = (0, 0, true);
        }
    }

    /// Removes the row or the intent to remove it at `index`, by the record at `lsn`. A front leaf keeps the
    /// entry as a removal.
    pub(crate) fn remove_at(&mut self, index: usize, lsn: Lsn) {
        if self.is_front {
            self.restamp(index, Stamp::removed(lsn));
        } else {
            self.remove(index);
        }
    }

    /// Turns an intent into a committed row, or stamps a row anew.
    pub(crate) fn restamp(&mut self, index: usize, stamp: Stamp) {
        let at = self.offset(index);
        let was_intent = self.entry(index).stamp.as_intent().is_some();
        self.intents += u16::from(stamp.as_intent().is_some());
        self.intents -= u16::from(was_intent);
        self.frame[at..at + 8].copy_from_slice(&stamp.raw().to_le_bytes());
    }

    /// Overwrites stamp and value at `index` where the new value has the length of the old one.
    pub(crate) fn overwrite(&mut self, index: usize, stamp: Stamp, value: &[u8]) -> bool {
        let entry = self.entry(index);
        if entry.value.len() != value.len() {
            return false;
        }
        let value_at = self.offset(index) + ENTRY_HEADER_BYTES + entry.key.len();
        self.restamp(index, stamp);
        self.frame[value_at..value_at + value.len()].copy_from_slice(value);
        true
    }

    /// The indexes of the entries in ascending key order; a committed row stands before the intent on the same key.
    pub(crate) fn order(&self) -> Vec<u16> {
        if self.sorted {
            return (0..self.count).collect();
        }
        let heads = (0..self.count).map(|index| (head(self.key(usize::from(index))), index));
        self.ordered(heads.collect())
    }

    /// The same of the entries with keys from `low` on and below `high` alone: no others are brought into order.
    pub(crate) fn order_between(&self, low: &[u8], high: Option<&[u8]>) -> Vec<u16> {
        let low = (head(low), low);
        let high = high.map(|high| (head(high), high));
        let is_below = |(end_head, end): (u64, &[u8]), own_head: u64, index: u16| {
            fence::compare(own_head, self.key(usize::from(index)), end_head, end).is_lt()
        };
        if self.sorted {
            let below = |end: (u64, &[u8])| {
                let own_head = |index: u16| head(self.key(usize::from(index)));
                partition_point(self.count, |index| is_below(end, own_head(index), index))
            };
            return (below(low)..high.map_or(self.count, below)).collect();
        }
        let heads = (0..self.count).map(|index| (head(self.key(usize::from(index))), index));
        let is_between = |(own_head, index): &(u64, u16)| {
            !is_below(low, *own_head, *index)
                && high.is_none_or(|high| is_below(high, *own_head, *index))
        };
        self.ordered(heads.filter(is_between).collect())
    }

    /// Whether the entries are not in key order, and [`sort`](Self::sort) could bring them there.
    pub(crate) fn is_sortable(&self) -> bool {
        !self.sorted && self.intents == 0
    }

    /// Gives the entries indexes in key order; none is moved. Not of a leaf with intents: which of two entries of a
    /// key is the intent may change without a look at the order.
    pub(crate) fn sort(&mut self) {
        debug_assert_eq!(self.intents, 0);
        let place = |index: u16| {
            let index = usize::from(index);
            (self.fingerprint(index), self.offset(index) as u16)
        };
        let places: Vec<(u8, u16)> = self.order().into_iter().map(place).collect();
        for (index, (fingerprint, offset)) in places.into_iter().enumerate() {
            self.set_offset(index, fingerprint, offset);
        }
        self.sorted = true;
    }

    /// Entries by the heads of their keys, side by side: most comparisons touch no row.
    fn ordered(&self, mut heads: Vec<(u64, u16)>) -> Vec<u16> {
        heads.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.compare_entries(a.1, b.1)));
        heads.into_iter().map(|(_, index)| index).collect()
    }

    fn compare_entries(&self, a: u16, b: u16) -> Ordering {
        let (a, b) = (self.entry(usize::from(a)), self.entry(usize::from(b)));
        a.key.cmp(b.key).then(a.stamp.raw().cmp(&b.stamp.raw()))
    }

    /// Copies the entries at `indexes`, in key order, to the end of `to`, which must have space.
    fn copy_to(&self, indexes: &[u16], to: &mut LeafRows) {
        // Only a row and the intent on it have one key.
        let ascends = to.count == 0 && self.intents == 0;
        for index in indexes {
            let index = usize::from(*index);
            let (entry, at) = (self.entry(index), self.offset(index));
            let bytes = Entry::bytes(entry.key, entry.value);
            let keeps_order = ascends || to.is_above_all(entry.key);
            let (start, end) = (usize::from(to.end), usize::from(to.end) + bytes);
            to.frame[start..end].copy_from_slice(&self.frame[at..at + bytes]);
            to.push_entry(self.fingerprint(index), end, entry.stamp, keeps_order);
        }
    }

    /// Squeezes out dead bytes and puts the rows in key order; `scratch` becomes the old frame.
    pub(crate) fn compact(&mut self, scratch: &mut Frame) {
        let order = self.order();
        self.keep(&order, scratch);
    }

    /// Keeps only the entries at `indexes`, in that order; `scratch` becomes the old frame.
    fn keep(&mut self, indexes: &[u16], scratch: &mut Frame) {
        let frame = std::mem::replace(scratch, Frame::none());
        let mut kept = LeafRows::empty_of(frame, self.is_front);
        kept.has_taken_back = self.has_taken_back;
        self.copy_to(indexes, &mut kept);
        let old = std::mem::replace(self, kept);
        *scratch = old.into_frame();
    }

    /// Moves the rows from `position` of `order` on into `frame`.
    pub(crate) fn split_off(
        &mut self,
        order: &[u16],
        position: usize,
        frame: Frame,
        scratch: &mut Frame,
    ) -> LeafRows {
        let mut right = LeafRows::empty_of(frame, self.is_front);
        right.has_taken_back = self.has_taken_back;
        let (stay, go) = order.split_at(position);
        if !go.is_empty() {
            self.copy_to(go, &mut right);
            self.keep(stay, scratch);
        }
        right
    }

    /// The key at `position` of `order`.
    pub(crate) fn key_at<'a>(&'a self, order: &[u16], position: usize) -> &'a [u8] {
        self.key(usize::from(order[position]))
    }

    /// The bytes in which all entries lie, dead ones among them.
    pub(crate) fn entry_bytes(&self) -> &[u8] {
        &self.frame[..usize::from(self.end)]
    }

    /// Calls `visit` for each entry, in key order, with its stamp and with where in
    /// [`entry_bytes`](Self::entry_bytes) its key and its value start and the value ends.
    pub(crate) fn visit_in_order(&self, mut visit: impl FnMut(Stamp, usize, usize, usize)) {
        let mut visit_entry = |index| {
            let entry = self.entry(index);
            let key_at = self.offset(index) + ENTRY_HEADER_BYTES;
            let value_at = key_at + entry.key.len();
            visit(entry.stamp, key_at, value_at, value_at + entry.value.len());
        };
        if self.sorted {
            (0..self.len()).for_each(visit_entry);
        } else {
            self.order().into_iter().for_each(|index| visit_entry(usize::from(index)));
        }
    }

    /// Copies the committed entries and the intents of large transactions into `out`, in key order, one
    /// behind the other: what an image is made from. Returns how many there are and how many bytes.
    pub(crate) fn copy_lasting(&self, out: &mut [u8]) -> (usize, usize) {
        let planted = crate::fault::planted(crate::fault::Fault::IntentImaged);
        if self.sorted && self.dead_bytes == 0 && self.intents == 0 && self.lies_in_index_order() {
            let bytes = usize::from(self.end);
            out[..bytes].copy_from_slice(&self.frame[..bytes]);
            return (self.len(), bytes);
        }
        let (mut rows, mut bytes) = (0, 0);
        for index in self.order() {
            let index = usize::from(index);
            let entry = self.entry(index);
            if entry.stamp.is_small_intent() && !planted {
                continue;
            }
            let (at, length) = (self.offset(index), Entry::bytes(entry.key, entry.value));
            out[bytes..bytes + length].copy_from_slice(&self.frame[at..at + length]);
            bytes += length;
            rows += 1;
        }
        (rows, bytes)
    }

    /// Whether entries lie in the order of their indexes: not after one got another index.
    fn lies_in_index_order(&self) -> bool {
        (1..self.len()).all(|index| self.offset(index - 1) < self.offset(index))
    }

    /// The index of a row at `key`, or of its removal, that is older than `lsn`. Needed while a resolved intent
    /// and the row it replaces stand side by side.
    pub(crate) fn decided_below(&self, key: &[u8], lsn: Lsn) -> Option<usize> {
        (0..self.len()).find(|index| {
            let entry = self.entry(*index);
            entry.key == key && entry.stamp.decided_at().is_some_and(|own| own < lsn)
        })
    }

    /// Order of the key at `index` against `key`.
    pub(crate) fn compare(&self, index: u16, key_head: u64, key: &[u8]) -> Ordering {
        let own = self.key(usize::from(index));
        fence::compare(head(own), own, key_head, key)
    }
}

/// The first number below `count` of which `is_before` is false, where it is true of all before.
fn partition_point(count: u16, is_before: impl Fn(u16) -> bool) -> u16 {
    let (mut from, mut to) = (0, count);
    while from < to {
        let middle = from + (to - from) / 2;
        match is_before(middle) {
            true => from = middle + 1,
            false => to = middle,
        }
    }
    from
}

#[cfg(test)]
#[path = "leaf_test.rs"]
mod tests;
