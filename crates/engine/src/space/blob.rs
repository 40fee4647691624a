//! Bytes of any length in slots: directory segments and the root.
//!
//! A blob is a chain of slots, each with its part of the bytes, the next slot and a checksum.
//! It is written once and never changed; dropping it frees its slots.

use std::sync::Arc;

use onrush_files::AlignedBuffer;

use super::slots::{Cursor, Purpose, Slot, SlotId, Space};
use crate::error::Result;
use crate::units::{EXTENT_SLOTS, LEAF_BYTES};

const MAGIC: &[u8; 4] = b"ONRB";
const HEADER_BYTES: usize = 48;
const PART_BYTES: usize = LEAF_BYTES - HEADER_BYTES;

/// A blob that stands on disk.
#[derive(Debug)]
pub(crate) struct Blob {
    #[expect(dead_code, reason = "held, so that the slots are not free")]
    slots: Vec<Slot>,
    address: BlobAddress,
}

/// All that is needed to read a blob back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlobAddress {
    pub(crate) first: SlotId,
    pub(crate) bytes: u64,
    pub(crate) checksum: u32,
}

impl Blob {
    /// Writes `bytes`; durable only after the data files are synced.
    ///
    /// # Errors
    /// A full disk before anything is written, or a failed write.
    pub(crate) fn write(
        space: &Arc<Space>,
        cursor: &mut Cursor,
        database_id: u128,
        bytes: &[u8],
    ) -> Result<Blob> {
        let parts = bytes.len().div_ceil(PART_BYTES).max(1);
        while !space.try_reserve(parts as i64, Purpose::Checkpoint) {
            space.grow()?;
        }
        let slots: Vec<Slot> = (0..parts).map(|_| space.allocate(cursor)).collect();
        let ids: Vec<SlotId> = slots.iter().map(Slot::id).collect();
        let mut pages = AlignedBuffer::new(parts.min(EXTENT_SLOTS) * LEAF_BYTES);
        for first in (0..parts).step_by(EXTENT_SLOTS) {
            let end = parts.min(first + EXTENT_SLOTS);
            let pages = &mut pages[..(end - first) * LEAF_BYTES];
            for (number, page) in (first..end).zip(pages.chunks_exact_mut(LEAF_BYTES)) {
                let part = &bytes[number * PART_BYTES..bytes.len().min((number + 1) * PART_BYTES)];
                fill_page(page, database_id, &ids[number..], part);
            }
            space.files().write_pages(&ids[first..end], pages)?;
        }
        let first = ids[0];
        let address =
            BlobAddress { first, bytes: bytes.len() as u64, checksum: crc32c::crc32c(bytes) };
        Ok(Blob { slots, address })
    }

    pub(crate) fn address(&self) -> BlobAddress {
        self.address
    }

    /// Reads the blob at `address` from data files whose space is not known yet; the slots it
    /// stands in are added to `used`.
    pub(crate) fn read(
        files: &super::DataFiles,
        database_id: u128,
        address: BlobAddress,
        used: &mut Vec<SlotId>,
    ) -> Result<(Vec<u8>, Vec<SlotId>)> {
        let mut bytes = Vec::new();
        let mut slots = Vec::new();
        let mut page = AlignedBuffer::new(LEAF_BYTES);
        let mut next = Some(address.first);
        while let Some(slot) = next {
            if usize::from(slot.file) >= files.count() {
                return Err(files.damaged(address.first, "a directory page names a file too many"));
            }
            files.read(slot, &mut page)?;
            let part = check_page(&page, database_id, slot)
                .ok_or_else(|| files.damaged(slot, "a directory page fails its checksum"))?;
            bytes.extend_from_slice(part);
            slots.push(slot);
            let raw = u64::from_le_bytes(page[32..40].try_into().expect("eight bytes"));
            next = SlotId::from_raw_or_none(raw).flatten();
            // Only the last part is not full; else a chain could go round and round.
            if bytes.len() as u64 > address.bytes || (next.is_some() && part.len() < PART_BYTES) {
                break;
            }
        }
        if bytes.len() as u64 != address.bytes || crc32c::crc32c(&bytes) != address.checksum {
            return Err(files.damaged(address.first, "a directory blob is not the one named"));
        }
        used.extend_from_slice(&slots);
        Ok((bytes, slots))
    }

    /// The owner of a blob read at open.
    pub(crate) fn adopt(space: &Arc<Space>, address: BlobAddress, slots: &[SlotId]) -> Blob {
        Blob { slots: slots.iter().map(|id| space.adopt(*id)).collect(), address }
    }
}

/// Puts a part into the page for the first of the slots; the next one has the next part.
fn fill_page(page: &mut [u8], database_id: u128, slots: &[SlotId], part: &[u8]) {
    let next = SlotId::to_raw_or_none(slots.get(1).copied());
    page.fill(0);
    page[..4].copy_from_slice(MAGIC);
    page[8..24].copy_from_slice(&database_id.to_le_bytes());
    page[24..32].copy_from_slice(&slots[0].to_raw().to_le_bytes());
    page[32..40].copy_from_slice(&next.to_le_bytes());
    page[40..44].copy_from_slice(&(part.len() as u32).to_le_bytes());
    page[HEADER_BYTES..HEADER_BYTES + part.len()].copy_from_slice(part);
    let checksum = crc32c::crc32c(&page[8..]);
    page[4..8].copy_from_slice(&checksum.to_le_bytes());
}

fn check_page(page: &[u8], database_id: u128, slot: SlotId) -> Option<&[u8]> {
    let length = u32::from_le_bytes(page[40..44].try_into().ok()?) as usize;
    let whole = &page[..4] == MAGIC
        && page[4..8] == crc32c::crc32c(&page[8..]).to_le_bytes()
        && page[8..24] == database_id.to_le_bytes()
        && page[24..32] == slot.to_raw().to_le_bytes();
    if !whole {
        return None;
    }
    page.get(HEADER_BYTES..HEADER_BYTES + length)
}
