//! Positions in the log: an [`Lsn`] counts record bytes, a [`LogPosition`] says where they lie on disk.
//!
//! Invariants
//! 1. An LSN counts record bytes only: block headers and padding take none, so the LSN of a record
//!    is known when it is reserved, before anybody knows in which block it will be.
//! 2. A [`LogPosition`] is the start of a block and of a record, and never above the completed
//!    prefix.

use std::fmt;
use std::num::NonZero;

use onrush_lsn::Lsn;

use crate::segment::SEGMENT_HEADER_BYTES;

/// Where the next block goes, and what it must look like: all that a superblock needs to remember
/// about the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// LSN of the first record of that block.
    pub lsn: Lsn,
    /// Number of the log segment.
    pub segment: u64,
    /// Byte offset inside the segment's file; may be its end, and then the block is the first of
    /// the next segment.
    pub offset: u64,
    /// The lowest incarnation the block may carry.
    pub incarnation: u64,
    /// Checksum of the block before it; None if there is no such block, or if its checksum is 0.
    pub previous_checksum: Option<NonZero<u32>>,
}

impl LogPosition {
    /// Bytes of an encoded position.
    pub const BYTES: usize = 36;

    /// Whether the same block comes next. The end of a segment and the first block of the next one are one place under
    /// two names; the block before tells that the segment does end there.
    #[must_use]
    pub fn is_same_place(&self, other: &Self) -> bool {
        let (first, second) = match (self.segment, self.offset) <= (other.segment, other.offset) {
            true => (self, other),
            false => (other, self),
        };
        let is_named_alike = (first.segment, first.offset) == (second.segment, second.offset);
        let begins_next = first.segment.checked_add(1) == Some(second.segment)
            && second.offset == SEGMENT_HEADER_BYTES
            && first.previous_checksum.is_some();
        (is_named_alike || begins_next) && first.previous_checksum == second.previous_checksum
    }

    /// The position as bytes, little-endian, for a superblock.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..8].copy_from_slice(&self.lsn.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.segment.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.incarnation.to_le_bytes());
        let previous_checksum = self.previous_checksum.map_or(0, NonZero::get);
        bytes[32..36].copy_from_slice(&previous_checksum.to_le_bytes());
        bytes
    }

    /// The position that [`LogPosition::encode`] turned into `bytes`. Whoever stores them has them
    /// under a checksum.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let previous_checksum = u32::from_le_bytes([bytes[32], bytes[33], bytes[34], bytes[35]]);
        Self {
            lsn: Lsn(word(0)),
            segment: word(8),
            offset: word(16),
            incarnation: word(24),
            previous_checksum: NonZero::new(previous_checksum),
        }
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "lsn {} at log segment {} offset {}", self.lsn, self.segment, self.offset)
    }
}

/// A piece of the log that one record owns: `[lsn, end)`. Made by `Log::reserve`, filled by
/// `Log::fill`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a reserved record must be filled and completed, or nothing after it becomes durable"]
pub struct Reservation {
    /// Where the record starts; the LSN of the transaction.
    pub lsn: Lsn,
    /// Where it ends: the record is durable when `durable() >= end`.
    pub end: Lsn,
    pub(crate) permit: usize,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_position_comes_back_as_it_was_stored() {
        let position = LogPosition {
            lsn: Lsn(u64::MAX - 7),
            segment: 3,
            offset: 1 << 33,
            incarnation: 9,
            previous_checksum: NonZero::new(0xdead_beef),
        };
        assert_eq!(LogPosition::decode(&position.encode()), position);
    }
}
