//! Leaf to image and back. An image is an immutable copy of a leaf's rows in key order.
//! Byte by byte: `docs/data-file.md`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use onrush_log::{AtomicLsn, Lsn};
use parking_lot::{Condvar, Mutex};

use super::leaf::LeafState;
use crate::fault::{Fault, planted};
use crate::node::fence::{Fence, compare, head};
use crate::node::leaf::{Entry, LeafRows, Owner, Stamp, read_entry};
use crate::runtime::StopsWaiting;
use crate::space::{Slot, SlotId};
use crate::units::{LEAF_BYTES, ObjectId};

const MAGIC: &[u8; 4] = b"ONRI";
/// Bytes in front of the first entry.
pub(crate) const IMAGE_HEADER_BYTES: usize = 64;
/// Which fences stand behind the entries: a low and a high one, or a low one of a leaf without an
/// upper bound; 0 is none.
const FENCES_BOTH: u8 = 1;
const FENCES_LOW: u8 = 2;

const ASSIGNED: u8 = 0;
const WRITTEN: u8 = 1;
const FAILED: u8 = 2;

/// A slot that holds, or is about to hold, the rows of a leaf. The slot is free once nobody has
/// the image any more: no leaf, no writer, no directory.
#[derive(Debug)]
pub(crate) struct Image {
    slot: Slot,
    /// Meaningful once written.
    checksum: AtomicU32,
    /// Assigned, then written or failed; changed once, by the writer.
    state: AtomicU8,
    /// All its rows were written below. Only falls: from *unknown*, which is the highest, to what its page says.
    below: AtomicLsn,
}

/// Wakes those who wait for images to be written.
#[derive(Default)]
pub(crate) struct ImageWrites {
    /// Nobody waits any more: a thread that has panicked finishes none of its writes.
    is_stopped: Mutex<bool>,
    changed: Condvar,
}

impl StopsWaiting for ImageWrites {
    fn stop(&self) {
        *self.is_stopped.lock() = true;
        self.changed.notify_all();
    }
}

impl Image {
    /// An image whose slot is chosen and whose bytes are not written yet, of rows written below `below`.
    pub(crate) fn assigned(slot: Slot, below: Lsn) -> Arc<Image> {
        let (checksum, state) = (AtomicU32::new(0), AtomicU8::new(ASSIGNED));
        Arc::new(Image { slot, checksum, state, below: AtomicLsn::new(below) })
    }

    /// An image that the directory names, at open, of rows written below `below`: the highest LSN if it may have
    /// intents, which count as written when their transaction commits.
    pub(crate) fn standing(slot: Slot, checksum: u32, below: Lsn) -> Arc<Image> {
        let (checksum, state) = (AtomicU32::new(checksum), AtomicU8::new(WRITTEN));
        Arc::new(Image { slot, checksum, state, below: AtomicLsn::new(below) })
    }

    /// What every snapshot from here on sees of its leaf is the same, as long as it stands for the leaf and
    /// nothing was removed.
    pub(crate) fn below(&self) -> Lsn {
        self.below.load(Ordering::Relaxed)
    }

    /// The page of the image was read, and says what was not known: below which LSN its rows were written.
    pub(super) fn learn_below(&self, page: &[u8]) {
        if self.below() != Lsn::MAX {
            return;
        }
        let mut below = Lsn::ZERO;
        let read = visit_entries(page, |_, entry| {
            let written_below = entry.stamp.decided_at().map_or(Lsn::MAX, |lsn| lsn + 1);
            below = below.max(written_below);
        });
        if read.is_ok() {
            self.below.store(below, Ordering::Relaxed);
        }
    }

    pub(crate) fn slot(&self) -> SlotId {
        self.slot.id()
    }

    /// The checksum of a written image.
    pub(crate) fn checksum(&self) -> u32 {
        self.checksum.load(Ordering::Relaxed)
    }

    pub(crate) fn is_written(&self) -> bool {
        self.state.load(Ordering::Acquire) == WRITTEN
    }

    /// Says how the write ended. Called once.
    pub(crate) fn finish(&self, writes: &ImageWrites, checksum: Option<u32>) {
        self.checksum.store(checksum.unwrap_or(0), Ordering::Relaxed);
        let state = if checksum.is_some() { WRITTEN } else { FAILED };
        let _guard = writes.is_stopped.lock();
        self.state.store(state, Ordering::Release);
        writes.changed.notify_all();
    }

    /// Waits until the image is written; false if its write failed, or the engine has stopped.
    pub(crate) fn wait_written(&self, writes: &ImageWrites) -> bool {
        if self.is_written() {
            return true;
        }
        let mut is_stopped = writes.is_stopped.lock();
        while self.state.load(Ordering::Acquire) == ASSIGNED && !*is_stopped {
            writes.changed.wait(&mut is_stopped);
        }
        self.is_written()
    }
}

/// Copies the committed rows of a leaf, the intents of large transactions and its fences into
/// `page`, all but the header's fields that
/// depend on place and content, which [`seal`] fills in. The fences are not for reading, which
/// takes them from the directory: they tell a check what the image was made for. They stand behind
/// the entries, and are left out where there is no space.
pub(crate) fn copy_leaf(rows: &LeafRows, low: &Fence, high: Option<&Fence>, page: &mut [u8]) {
    let (header, entries) = page.split_at_mut(IMAGE_HEADER_BYTES);
    let (count, bytes) = rows.copy_lasting(entries);
    header.fill(0);
    header[32..36].copy_from_slice(&(count as u32).to_le_bytes());
    header[36..40].copy_from_slice(&(bytes as u32).to_le_bytes());
    let (_, rest) = entries.split_at_mut(bytes);
    rest.fill(0);
    let (low, high_bytes) = (low.bytes(), high.map_or(&[][..], Fence::bytes));
    if low.len() + high_bytes.len() > rest.len() {
        return;
    }
    rest[..low.len()].copy_from_slice(low);
    rest[low.len()..low.len() + high_bytes.len()].copy_from_slice(high_bytes);
    header[44] = if high.is_some() { FENCES_BOTH } else { FENCES_LOW };
    header[46..48].copy_from_slice(&(low.len() as u16).to_le_bytes());
    header[48..50].copy_from_slice(&(high_bytes.len() as u16).to_le_bytes());
}

/// Fills in the header and returns the checksum.
pub(crate) fn seal(page: &mut [u8], database_id: u128, object: ObjectId, slot: SlotId) -> u32 {
    page[..4].copy_from_slice(MAGIC);
    page[8..24].copy_from_slice(&database_id.to_le_bytes());
    page[24..32].copy_from_slice(&slot.to_raw().to_le_bytes());
    page[40..44].copy_from_slice(&object.number().to_le_bytes());
    let checksum = crc32c::crc32c(&page[8..LEAF_BYTES]);
    page[4..8].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

/// Why an image cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadImage {
    Magic,
    Checksum,
    WrongAddress,
    Stale,
    Entries,
}

impl BadImage {
    pub(crate) fn words(self) -> &'static str {
        match self {
            BadImage::Magic => "the slot holds no image",
            BadImage::Checksum => "the image fails its checksum",
            BadImage::WrongAddress => "the image belongs to another database, table or slot",
            BadImage::Stale => "the image is whole, but not the one that the directory names",
            BadImage::Entries => "the image's rows do not add up",
        }
    }
}

/// Checks the page read from a slot, which the checksum beside the slot is named for.
pub(crate) fn check_page(
    page: &[u8],
    database_id: u128,
    object: ObjectId,
    (slot, named): (SlotId, u32),
) -> Result<(), BadImage> {
    if &page[..4] != MAGIC {
        return Err(BadImage::Magic);
    }
    let checksum = crc32c::crc32c(&page[8..LEAF_BYTES]);
    if page[4..8] != checksum.to_le_bytes() {
        return Err(BadImage::Checksum);
    }
    if page[8..24] != database_id.to_le_bytes()
        || page[24..32] != slot.to_raw().to_le_bytes()
        || page[40..44] != object.number().to_le_bytes()
    {
        return Err(BadImage::WrongAddress);
    }
    if checksum != named {
        return Err(BadImage::Stale);
    }
    Ok(())
}

/// The entries of a checked page, one behind the other, and how many there are.
fn entries_of(page: &[u8]) -> Result<(u32, &[u8]), BadImage> {
    let number =
        |at: usize| u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
    let (count, bytes) = (number(32), number(36) as usize);
    let entries = IMAGE_HEADER_BYTES..IMAGE_HEADER_BYTES + bytes;
    Ok((count, page.get(entries).ok_or(BadImage::Entries)?))
}

/// Calls `visit` with each entry of a checked page, and where it begins behind the header.
pub(crate) fn visit_entries<'p>(
    page: &'p [u8],
    mut visit: impl FnMut(usize, Entry<'p>),
) -> Result<(), BadImage> {
    let (count, entries) = entries_of(page)?;
    let mut offset = 0;
    for _ in 0..count {
        let (entry, next) = read_entry(entries, offset).ok_or(BadImage::Entries)?;
        visit(offset, entry);
        offset = next;
    }
    if offset == entries.len() { Ok(()) } else { Err(BadImage::Entries) }
}

/// Puts the rows of `leaf` from a checked page into the empty `rows`, trimmed to its fences.
pub(crate) fn load_rows(
    page: &[u8],
    leaf: &LeafState,
    rows: &mut LeafRows,
) -> Result<(), BadImage> {
    // Rows of an image ascend. That is seen by the heads of most keys, without a look at the rest.
    let mut last: Option<(u64, &[u8])> = None;
    let mut ascends = true;
    visit_entries(page, |_, entry| {
        let key_head = head(entry.key);
        if leaf.range_holds(key_head, entry.key) || planted(Fault::NoTrim) {
            let is_small = matches!(entry.stamp.as_intent(), Some((Owner::Small(_), _)));
            let is_intent = planted(Fault::IntentImaged) && is_small;
            let stamp = if is_intent { Stamp::committed(Lsn::FIRST) } else { entry.stamp };
            ascends &= last.is_none_or(|(last_head, last)| {
                compare(last_head, last, key_head, entry.key) == std::cmp::Ordering::Less
            });
            last = Some((key_head, entry.key));
            rows.append_in_order(stamp, entry.key, entry.value, ascends);
        }
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onrush_files::MemoryDisk;

    use super::*;
    use crate::space::{Cursor, DataFiles, Purpose, Space};

    /// Whether they come before the engine stops or after, nobody waits for an image whose writer has
    /// panicked.
    #[test]
    fn nobody_waits_for_an_image_once_the_engine_has_stopped() {
        let files = DataFiles::create(&MemoryDisk::new(), &[PathBuf::from("/data")], 7).unwrap();
        let space = Space::new(files, &[]).unwrap();
        space.grow().unwrap();
        assert!(space.try_reserve(1, Purpose::Checkpoint));
        let image = Image::assigned(space.allocate(&mut Cursor::default()), Lsn(1));
        let writes = ImageWrites::default();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert!(!image.wait_written(&writes)));
            }
            writes.stop();
        });
        assert!(!image.wait_written(&writes));
    }
}
