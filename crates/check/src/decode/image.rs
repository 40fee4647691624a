//! Images: the rows of one leaf.

use onrush_lsn::Lsn;

use super::input::{u16_at, u32_at, u64_at, u128_at};
use super::is_zero;
use super::slot::{SLOT_BYTES, SlotNumber};

const MAGIC: &[u8; 4] = b"ONRI";
const HEADER_BYTES: usize = 64;
const ENTRY_HEADER_BYTES: usize = 12;

/// The checksum that the page holds, if it is right.
#[inline]
pub(crate) fn checksum(page: &[u8]) -> Result<u32, &'static str> {
    if &page[..4] != MAGIC {
        return Err("the slot holds no image");
    }
    let computed = crc32c::crc32c(&page[8..SLOT_BYTES]);
    if u32_at(page, 4) != computed {
        return Err("the image fails its checksum");
    }
    Ok(computed)
}

/// The low fence, and the high one if there is one.
pub(crate) type Fences<'b> = (&'b [u8], Option<&'b [u8]>);

/// What the header says.
#[derive(Clone, Copy)]
pub(crate) struct Image<'b> {
    pub(crate) database_id: u128,
    pub(crate) slot: SlotNumber,
    pub(crate) object: u32,
    pub(crate) count: u32,
    /// All entries, one behind the other.
    pub(crate) entries: &'b [u8],
    /// The fences it was made for, where there was space for them.
    pub(crate) fences: Option<Fences<'b>>,
}

impl<'b> Image<'b> {
    /// Reads the header of a page whose checksum is right.
    #[inline]
    pub(crate) fn read(page: &'b [u8]) -> Result<Image<'b>, &'static str> {
        const TOO_LONG: &str = "entries and fences take more bytes than an image has";
        let body = &page[HEADER_BYTES..];
        let entry_bytes = u32_at(page, 36) as usize;
        let (low_bytes, high_bytes) =
            (usize::from(u16_at(page, 46)), usize::from(u16_at(page, 48)));
        let (entries, behind) = body.split_at_checked(entry_bytes).ok_or(TOO_LONG)?;
        let (low, behind) = behind.split_at_checked(low_bytes).ok_or(TOO_LONG)?;
        let (high, behind) = behind.split_at_checked(high_bytes).ok_or(TOO_LONG)?;
        let fences = match (page[44], low_bytes, high_bytes) {
            (0, 0, 0) => None,
            (1, _, _) => Some((low, Some(high))),
            (2, _, 0) => Some((low, None)),
            _ => return Err("the header's fences make no sense"),
        };
        if page[45] != 0 || !is_zero(&page[50..HEADER_BYTES]) || !is_zero(behind) {
            return Err("bytes of the image that must be zero are not");
        }
        Ok(Image {
            database_id: u128_at(page, 8),
            slot: SlotNumber(u64_at(page, 24)),
            object: u32_at(page, 40),
            count: u32_at(page, 32),
            entries,
            fences,
        })
    }
}

/// One row of an image, or an intent, or a removal.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'b> {
    /// The LSN of a row; with its top bit an intent, with the next one alone a removal.
    pub(crate) stamp: u64,
    pub(crate) key: &'b [u8],
    pub(crate) value: &'b [u8],
}

/// What a large transaction has placed on a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Intent {
    pub(crate) id: u64,
    /// It removes the key.
    pub(crate) removes: bool,
}

impl Entry<'_> {
    /// The LSN of a row, or of its removal; none for an intent.
    #[inline]
    pub(crate) fn lsn(&self) -> Option<Lsn> {
        (self.stamp >> 63 == 0).then_some(Lsn(self.stamp & !(1 << 62)))
    }

    /// Whether it says that the row with its key is gone, whatever older runs have.
    #[inline]
    pub(crate) fn is_removal(&self) -> bool {
        self.stamp >> 62 == 0b01
    }

    /// Whose intent it is; none for a row.
    #[inline]
    pub(crate) fn intent(&self) -> Option<Intent> {
        if self.stamp >> 63 == 0 {
            return None;
        }
        let id = self.stamp >> 25 & ((1 << 36) - 1);
        Some(Intent { id, removes: self.stamp >> 62 & 1 == 1 })
    }

    /// Whether an intent is of a large transaction: others are never stored.
    pub(crate) fn is_of_large(&self) -> bool {
        self.stamp >> 61 & 1 == 1
    }
}

/// Takes the first entry off `entries`. `None`: they end inside it.
#[inline]
pub(crate) fn take_entry<'b>(entries: &mut &'b [u8]) -> Option<Entry<'b>> {
    let (header, rest) = entries.split_first_chunk::<ENTRY_HEADER_BYTES>()?;
    let (key, rest) = rest.split_at_checked(usize::from(u16_at(header, 8)))?;
    let (value, rest) = rest.split_at_checked(usize::from(u16_at(header, 10)))?;
    *entries = rest;
    Some(Entry { stamp: u64_at(header, 0), key, value })
}

/// Where the entry after `rest` bytes begins in its image, in bytes.
pub(crate) fn entry_offset(image: &Image<'_>, rest: &[u8]) -> usize {
    HEADER_BYTES + image.entries.len() - rest.len()
}
