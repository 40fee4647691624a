//! Slots of data files and places of blobs.

use std::fmt;

use super::input::Input;

/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = 16 * 1024;

/// A slot's number as it is stored: the data file in the top 16 bits, its index below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct SlotNumber(pub(crate) u64);

impl SlotNumber {
    /// A number where all bits set say that there is no slot.
    pub(crate) fn or_none(stored: u64) -> Option<SlotNumber> {
        (stored != u64::MAX).then_some(SlotNumber(stored))
    }

    pub(crate) fn file(self) -> usize {
        (self.0 >> 48) as usize
    }

    pub(crate) fn index(self) -> u64 {
        self.0 & 0xFFFF_FFFF_FFFF
    }

    /// Byte position in its data file.
    pub(crate) fn offset(self) -> u64 {
        self.index() * SLOT_BYTES as u64
    }
}

impl fmt::Display for SlotNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "slot {} of data file {}", self.index(), self.file())
    }
}

/// Where a blob begins, how long it is, and its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlobAddress {
    pub(crate) first: SlotNumber,
    pub(crate) bytes: u64,
    pub(crate) checksum: u32,
}

impl BlobAddress {
    pub(crate) fn read(input: &mut Input<'_>) -> Option<BlobAddress> {
        Some(BlobAddress {
            first: SlotNumber(input.u64()?),
            bytes: input.u64()?,
            checksum: input.u32()?,
        })
    }
}
