//! Pages of blobs: directory segments and the root.

use super::input::{u32_at, u64_at, u128_at};
use super::is_zero;
use super::slot::SlotNumber;

const MAGIC: &[u8; 4] = b"ONRB";
const HEADER_BYTES: usize = 48;

/// What a page holds.
pub(crate) struct Page<'b> {
    pub(crate) database_id: u128,
    pub(crate) slot: SlotNumber,
    /// None: this is the last page.
    pub(crate) next: Option<SlotNumber>,
    pub(crate) bytes: &'b [u8],
}

/// Opens a page of [`SLOT_BYTES`](super::slot::SLOT_BYTES); the error says what is wrong with it.
pub(crate) fn open(page: &[u8]) -> Result<Page<'_>, &'static str> {
    if &page[..4] != MAGIC {
        return Err("the slot holds no page of the directory");
    }
    if u32_at(page, 4) != crc32c::crc32c(&page[8..]) {
        return Err("the page fails its checksum");
    }
    let length = u32_at(page, 40) as usize;
    let bytes = page.get(HEADER_BYTES..HEADER_BYTES.saturating_add(length));
    let bytes = bytes.ok_or("the page says that it holds more bytes than it can")?;
    if u32_at(page, 44) != 0 || !is_zero(&page[HEADER_BYTES + length..]) {
        return Err("bytes of the page that must be zero are not");
    }
    Ok(Page {
        database_id: u128_at(page, 8),
        slot: SlotNumber(u64_at(page, 24)),
        next: SlotNumber::or_none(u64_at(page, 32)),
        bytes,
    })
}
