//! Runs: sorted images that were written in one go, packed full. Never changed; dropping a run frees its slots.
//!
//! A run is a *base* or a *fragment* of a stock ([`stock`](super::stock)). Its *head*, a blob that is written behind
//! the images, says where they are, and what memory must know to tell which keys may be in it. So recovery
//! reads heads and no images.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onrush_files::AlignedBuffer;
use onrush_filter::{Filter, FingerprintBits};
use onrush_log::Lsn;
use onrush_waits::{Counter, Recorder, Wait};
use xxhash_rust::xxh3::xxh3_64;

use super::Storage;
use super::image::{IMAGE_HEADER_BYTES, seal};
use super::run_head::{RunHead, push_head};
use crate::error::Result;
use crate::fault::{Fault, planted};
use crate::node::fence::separator;
use crate::node::leaf::{ENTRY_HEADER_BYTES, Entry, Owner, Stamp};
use crate::space::{Blob, BlobAddress, Cursor, Purpose, SlotId, Slots, Space};
use crate::units::{EXTENT_SLOTS, LEAF_BYTES, ObjectId};

/// What filters and locators know a key by.
pub(crate) fn hash_of(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// What a fragment's head keeps of a hash, and what a locator knows the key by.
pub(super) fn short_hash(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Run {
    pub(super) slots: Slots,
    pub(super) checksums: Box<[u32]>,
    /// The low fences of the images, one behind the other, and where each ends. No key of the run is below the first.
    pub(super) lows: Box<[u8]>,
    pub(super) low_ends: Box<[u32]>,
    pub(super) totals: RunTotals,
    /// Numbers of the large transactions whose intents it has, ascending.
    owners: Box<[u64]>,
    head: Blob,
    /// Whether a directory names it, or is about to.
    is_named: AtomicBool,
}

/// What a run has.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct RunTotals {
    /// And removals, and intents.
    pub(crate) rows: u64,
    /// Bytes of all entries.
    pub(crate) bytes: u64,
    /// The highest LSN of a row or removal.
    pub(crate) newest: Lsn,
}

impl Run {
    /// The owner of a run that the directory names, at open.
    pub(crate) fn adopt(
        space: &Arc<Space>,
        address: BlobAddress,
        slots: &[SlotId],
        head: &RunHead,
    ) -> Run {
        Run {
            slots: Slots::adopt(space, head.slots.clone()),
            checksums: head.checksums.clone().into_boxed_slice(),
            lows: head.lows.clone().into_boxed_slice(),
            low_ends: head.low_ends.clone().into_boxed_slice(),
            totals: head.totals,
            owners: head.owners.clone().into_boxed_slice(),
            head: Blob::adopt(space, address, slots),
            is_named: AtomicBool::new(true),
        }
    }

    pub(crate) fn totals(&self) -> RunTotals {
        self.totals
    }

    /// Numbers of the large transactions whose intents it has, ascending.
    pub(crate) fn owners(&self) -> &[u64] {
        &self.owners
    }

    pub(crate) fn images(&self) -> usize {
        self.checksums.len()
    }

    /// Where the head is.
    pub(crate) fn address(&self) -> BlobAddress {
        self.head.address()
    }

    /// A directory names it, or is about to: its slots are not free as soon as no stock has it.
    pub(crate) fn set_named(&self) {
        self.is_named.store(true, Ordering::Relaxed);
    }

    /// Slots of its images that are kept by a directory alone once no stock has it.
    pub(super) fn named_slots(&self) -> u64 {
        if self.is_named.load(Ordering::Relaxed) { self.images() as u64 } else { 0 }
    }

    /// The low fence of an image.
    pub(super) fn low(&self, image: usize) -> &[u8] {
        let start = image.checked_sub(1).map_or(0, |before| self.low_ends[before]);
        &self.lows[start as usize..self.low_ends[image] as usize]
    }

    /// Images with keys below `key`: the last of them is the one that may have `key` if it begins there.
    fn images_below(&self, is_below: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.images());
        while low < high {
            let middle = low.midpoint(high);
            if is_below(self.low(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The images that may have keys from `low` on and below `high`.
    pub(super) fn images_in(&self, low: &[u8], high: Option<&[u8]>) -> std::ops::Range<usize> {
        let first = self.images_below(|own| own <= low).saturating_sub(1);
        let end = high.map_or(self.images(), |high| self.images_below(|own| own < high));
        first..end.max(first)
    }

    /// Memory that it takes, about.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Run>() + self.lows.len() + self.images() * (size_of::<SlotId>() + 8)
    }
}

/// Whose key a run may have is known by the filter of a base or the hashes of a fragment.
pub(crate) enum RunKeys {
    Base(Filter),
    Fragment(Box<[u32]>),
}

/// A run that is being written.
pub(crate) struct RunWriter<'s> {
    storage: &'s Storage,
    recorder: &'s Recorder,
    object: ObjectId,
    /// What slots are reserved for.
    purpose: Purpose,
    cursor: Cursor,
    pages: AlignedBuffer,
    /// Whole pages that wait to be written.
    filled: usize,
    /// Entries of the page behind them, and where the next one goes.
    entries: u32,
    end: usize,
    last_key: Vec<u8>,
    slots: Slots,
    checksums: Vec<u32>,
    lows: Vec<u8>,
    low_ends: Vec<u32>,
    hashes: Vec<u64>,
    totals: RunTotals,
    owners: BTreeSet<u64>,
}

impl<'s> RunWriter<'s> {
    /// One that leaves alone the slots without which a checkpoint could not free any.
    pub(crate) fn new(
        storage: &'s Storage,
        recorder: &'s Recorder,
        object: ObjectId,
    ) -> RunWriter<'s> {
        RunWriter {
            storage,
            recorder,
            object,
            purpose: Purpose::Removal,
            cursor: Cursor::default(),
            pages: AlignedBuffer::new(EXTENT_SLOTS * LEAF_BYTES),
            filled: 0,
            entries: 0,
            end: IMAGE_HEADER_BYTES,
            last_key: Vec::new(),
            slots: Slots::none(&storage.space),
            checksums: Vec::new(),
            lows: Vec::new(),
            low_ends: Vec::new(),
            hashes: Vec::new(),
            totals: RunTotals::default(),
            owners: BTreeSet::new(),
        }
    }

    /// It writes what must be written, from the last slots.
    pub(crate) fn for_checkpoint(self) -> RunWriter<'s> {
        RunWriter { purpose: Purpose::Checkpoint, ..self }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.totals.rows == 0
    }

    pub(crate) fn totals(&self) -> RunTotals {
        self.totals
    }

    /// Adds a row or a removal, whose key is above all before.
    ///
    /// # Errors
    /// A full disk: what was written is given back when the writer is dropped. A failed write: the engine stops.
    pub(crate) fn push(&mut self, stamp: Stamp, key: &[u8], value: &[u8]) -> Result<()> {
        self.begin_key(key, Entry::bytes(key, value))?;
        self.append(stamp, key, value);
        Ok(())
    }

    /// Adds an intent, and in front of it what it stands on, to the same image.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn push_intent(
        &mut self,
        key: &[u8],
        below: Option<(Stamp, &[u8])>,
        (stamp, value): (Stamp, &[u8]),
    ) -> Result<()> {
        let below_bytes = below.map_or(0, |(_, value)| Entry::bytes(key, value));
        self.begin_key(key, below_bytes + Entry::bytes(key, value))?;
        if let Some((stamp, value)) = below {
            self.append(stamp, key, value);
        }
        self.append(stamp, key, value);
        Ok(())
    }

    /// Makes space for entries of a key that take so many bytes.
    fn begin_key(&mut self, key: &[u8], bytes: usize) -> Result<()> {
        debug_assert!(self.is_empty() || self.last_key.as_slice() < key);
        if self.end + bytes > LEAF_BYTES {
            self.close_page()?;
        }
        if self.entries == 0 {
            let low = if self.is_empty() { key } else { separator(&self.last_key, key) };
            self.lows.extend_from_slice(low);
            self.low_ends.push(self.lows.len() as u32);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(())
    }

    fn append(&mut self, stamp: Stamp, key: &[u8], value: &[u8]) {
        let bytes = Entry::bytes(key, value);
        let start = self.filled * LEAF_BYTES + self.end;
        let entry = &mut self.pages[start..start + bytes];
        entry[..8].copy_from_slice(&stamp.raw().to_le_bytes());
        entry[8..10].copy_from_slice(&(key.len() as u16).to_le_bytes());
        entry[10..12].copy_from_slice(&(value.len() as u16).to_le_bytes());
        entry[ENTRY_HEADER_BYTES..ENTRY_HEADER_BYTES + key.len()].copy_from_slice(key);
        entry[ENTRY_HEADER_BYTES + key.len()..].copy_from_slice(value);
        self.end += bytes;
        self.entries += 1;
        self.hashes.push(hash_of(key));
        self.totals.rows += 1;
        self.totals.bytes += bytes as u64;
        self.totals.newest = self.totals.newest.max(stamp.decided_at().unwrap_or_default());
        if let Some((Owner::Large(owner), _)) = stamp.as_intent() {
            self.owners.insert(owner.id);
        }
    }

    fn close_page(&mut self) -> Result<()> {
        let start = self.filled * LEAF_BYTES;
        let page = &mut self.pages[start..start + LEAF_BYTES];
        page[..IMAGE_HEADER_BYTES].fill(0);
        page[self.end..].fill(0);
        page[32..36].copy_from_slice(&self.entries.to_le_bytes());
        let bytes = (self.end - IMAGE_HEADER_BYTES) as u32;
        page[36..40].copy_from_slice(&bytes.to_le_bytes());
        (self.entries, self.end) = (0, IMAGE_HEADER_BYTES);
        self.filled += 1;
        if self.filled == EXTENT_SLOTS { self.write_pages() } else { Ok(()) }
    }

    fn write_pages(&mut self) -> Result<()> {
        let space = &self.storage.space;
        while !space.try_reserve(self.filled as i64, self.purpose) {
            space.grow()?;
        }
        let first_new = self.checksums.len();
        for number in 0..self.filled {
            let slot = self.slots.allocate(&mut self.cursor);
            let page = &mut self.pages[number * LEAF_BYTES..(number + 1) * LEAF_BYTES];
            let checksum = seal(page, self.storage.database_id, self.object, slot);
            self.checksums.push(checksum);
        }
        {
            let _wait = self.recorder.wait(Wait::ImageWrite);
            let pages = &self.pages[..self.filled * LEAF_BYTES];
            let written = space.files().write_pages(&self.slots.ids()[first_new..], pages);
            written.map_err(|error| self.storage.stop(error))?;
        }
        let bytes = (self.filled * LEAF_BYTES) as u64;
        self.recorder.count(Counter::ImageBytes, bytes);
        self.filled = 0;
        self.storage.run_pace.wrote(self.storage, self.recorder, bytes)
    }

    /// Writes what is left, and the head: of a base with a filter, whose fingerprints have so many bits, or of a
    /// fragment. Durable after the data files are synced.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn finish(mut self, base: Option<FingerprintBits>) -> Result<(Run, RunKeys)> {
        if self.entries > 0 {
            self.close_page()?;
        }
        if self.filled > 0 {
            self.write_pages()?;
        }
        self.slots.shrink();
        if planted(Fault::FilterLacksKey) && base.is_some() {
            self.hashes.pop();
        }
        let keys = match base {
            Some(bits) => {
                // An intent and the row that it stands on have one key.
                self.hashes.dedup();
                RunKeys::Base(Filter::build(&self.hashes, bits))
            }
            None => RunKeys::Fragment(self.hashes.iter().map(|hash| short_hash(*hash)).collect()),
        };
        let head = RunHead {
            slots: self.slots.ids().to_vec(),
            checksums: self.checksums,
            lows: self.lows,
            low_ends: self.low_ends,
            totals: self.totals,
            owners: self.owners.into_iter().collect(),
        };
        let storage = self.storage;
        let bytes = push_head(self.object, &head, &keys);
        let blob = Blob::write(&storage.space, &mut self.cursor, storage.database_id, &bytes)
            .map_err(|error| storage.stop_unless_full(error))?;
        let run = Run {
            slots: self.slots,
            checksums: head.checksums.into_boxed_slice(),
            lows: head.lows.into_boxed_slice(),
            low_ends: head.low_ends.into_boxed_slice(),
            totals: head.totals,
            owners: head.owners.into_boxed_slice(),
            head: blob,
            is_named: AtomicBool::new(false),
        };
        Ok((run, keys))
    }
}
