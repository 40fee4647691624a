//! The log block on disk: a header of 96 bytes, record bytes, zeros up to a multiple of 4 KiB.
//! Little-endian.
//!
//! | offset | bytes | field                                                                       |
//! |--------|-------|-----------------------------------------------------------------------------|
//! | 0      | 8     | magic                                                                       |
//! | 8      | 4     | format version                                                              |
//! | 12     | 4     | flags: bit 0 = first block of its incarnation                               |
//! | 16     | 16    | database id                                                                 |
//! | 32     | 8     | incarnation                                                                 |
//! | 40     | 8     | number of the log segment                                                   |
//! | 48     | 8     | offset in the segment's file                                                |
//! | 56     | 8     | start LSN: of the first record byte                                         |
//! | 64     | 8     | durable-up-to LSN: everything below was on disk before this block was built |
//! | 72     | 8     | when the block was built: microseconds since 1970 by the machine's clock    |
//! | 80     | 4     | record bytes                                                                |
//! | 84     | 4     | checksum of the previous block, 0 if there is none                          |
//! | 88     | 4     | zero                                                                        |
//! | 92     | 4     | checksum: CRC32C over all the block but these four bytes                    |
//!
//! Invariants
//! 1. Every byte of a block, padding included, is under its checksum, and its checksum is in the
//!    next block.
//! 2. A block says where it belongs: the right bytes in the wrong place or of another time do not
//!    pass.
//! 3. The first block of an incarnation may start below the end of the block before it: what lies
//!    between was a record cut in the middle, and is dropped.
//! 4. Later versions keep magic, version, place, length and checksum where they are: a block of a
//!    later version is told from a damaged one, and then refused.
//! 5. The time orders nothing. It is for people who name a point in time to restore to.

use std::num::NonZero;

use onrush_files::BLOCK_BYTES;
use onrush_lsn::Lsn;

use crate::options::LogOptions;

/// Bytes before the record bytes.
pub(crate) const HEADER_BYTES: usize = 96;
/// The largest block there may be on disk, whatever the options were when it was written.
pub(crate) const PADDED_BYTES_MAX: usize = 1 << 20;
const MAGIC: u64 = u64::from_le_bytes(*b"ONRUSHLB");
/// The version of blocks and of segment headers.
pub(crate) const FORMAT_VERSION: u32 = 1;
const FLAG_FIRST: u32 = 1;
const CHECKSUM_AT: usize = 92;

const _: () = assert!(PADDED_BYTES_MAX.is_multiple_of(BLOCK_BYTES) && HEADER_BYTES < BLOCK_BYTES);

/// The most record bytes in a block.
pub(crate) fn payload_bytes_max(options: &LogOptions) -> usize {
    options.padded_block_bytes_max() - HEADER_BYTES
}

/// What a header says, its checksum apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) format_version: u32,
    pub(crate) is_first: bool,
    pub(crate) database_id: u128,
    pub(crate) incarnation: u64,
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) start: Lsn,
    pub(crate) durable_to: Lsn,
    pub(crate) built_at_us: u64,
    pub(crate) payload_bytes: usize,
    /// None before the first block, and after one whose checksum is 0, which is stored the same way.
    pub(crate) previous_checksum: Option<NonZero<u32>>,
}

impl Header {
    /// The LSN after the last record byte.
    pub(crate) fn end(&self) -> Lsn {
        self.start + self.payload_bytes as u64
    }

    /// Bytes of the whole block on disk.
    pub(crate) fn padded_bytes(&self) -> usize {
        padded_bytes(self.payload_bytes)
    }

    /// Encodes the header at the start of `block`, which holds the padded block, and puts the
    /// payload behind it with `copy_payload`, in pieces small enough to be in the cache still when
    /// their checksum is computed. Returns the checksum.
    pub(crate) fn seal(
        &self,
        block: &mut [u8],
        mut copy_payload: impl FnMut(usize, &mut [u8]),
    ) -> u32 {
        const PIECE_BYTES: usize = 16 << 10;
        assert_eq!(block.len(), self.padded_bytes());
        self.encode(block);
        let mut checksum = crc32c::crc32c(&block[..CHECKSUM_AT]);
        let (payload, padding) = block[HEADER_BYTES..].split_at_mut(self.payload_bytes);
        for (index, piece) in payload.chunks_mut(PIECE_BYTES).enumerate() {
            copy_payload(index * PIECE_BYTES, piece);
            checksum = crc32c::crc32c_append(checksum, piece);
        }
        padding.fill(0);
        checksum = crc32c::crc32c_append(checksum, padding);
        block[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        checksum
    }

    fn encode(&self, block: &mut [u8]) {
        let flags = if self.is_first { FLAG_FIRST } else { 0 };
        // At most PADDED_BYTES_MAX, so 32 bits hold it.
        let payload_bytes = u32::try_from(self.payload_bytes).unwrap_or(u32::MAX);
        block[0..8].copy_from_slice(&MAGIC.to_le_bytes());
        block[8..12].copy_from_slice(&self.format_version.to_le_bytes());
        block[12..16].copy_from_slice(&flags.to_le_bytes());
        block[16..32].copy_from_slice(&self.database_id.to_le_bytes());
        block[32..40].copy_from_slice(&self.incarnation.to_le_bytes());
        block[40..48].copy_from_slice(&self.segment.to_le_bytes());
        block[48..56].copy_from_slice(&self.offset.to_le_bytes());
        block[56..64].copy_from_slice(&self.start.to_le_bytes());
        block[64..72].copy_from_slice(&self.durable_to.to_le_bytes());
        block[72..80].copy_from_slice(&self.built_at_us.to_le_bytes());
        block[80..84].copy_from_slice(&payload_bytes.to_le_bytes());
        let previous_checksum = self.previous_checksum.map_or(0, NonZero::get);
        block[84..88].copy_from_slice(&previous_checksum.to_le_bytes());
        block[88..92].fill(0);
    }
}

/// Bytes on disk of a block with that many record bytes.
pub(crate) fn padded_bytes(payload_bytes: usize) -> usize {
    (HEADER_BYTES + payload_bytes).next_multiple_of(BLOCK_BYTES)
}

/// Why bytes are not a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoBlock {
    /// Nothing was ever written here, or something else.
    Magic,
    /// Its length makes no sense.
    Length,
    /// The checksum differs.
    Checksum,
}

impl NoBlock {
    /// The reason in words.
    pub(crate) fn reason(self) -> String {
        match self {
            Self::Magic => "there is no log block".into(),
            Self::Length => "the length of its block makes no sense".into(),
            Self::Checksum => "the checksum of its block differs".into(),
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// The length on disk of the block that `bytes` start with, as its header claims. Needs
/// [`HEADER_BYTES`].
pub(crate) fn claimed_bytes(bytes: &[u8]) -> Result<usize, NoBlock> {
    if u64_at(bytes, 0) != MAGIC {
        return Err(NoBlock::Magic);
    }
    match usize::try_from(u32_at(bytes, 80)) {
        Ok(payload) if payload <= PADDED_BYTES_MAX - HEADER_BYTES => Ok(padded_bytes(payload)),
        _ => Err(NoBlock::Length),
    }
}

/// Decodes the block that is exactly `block`: its header, its checksum, its record bytes. The version
/// is for the caller to look at.
pub(crate) fn open(block: &[u8]) -> Result<(Header, u32, &[u8]), NoBlock> {
    if block.len() < HEADER_BYTES || claimed_bytes(block)? != block.len() {
        return Err(NoBlock::Length);
    }
    let checksum = u32_at(block, CHECKSUM_AT);
    let computed = crc32c::crc32c(&block[..CHECKSUM_AT]);
    if crc32c::crc32c_append(computed, &block[HEADER_BYTES..]) != checksum {
        return Err(NoBlock::Checksum);
    }
    let mut database_id = [0; 16];
    database_id.copy_from_slice(&block[16..32]);
    let payload_bytes = usize::try_from(u32_at(block, 80)).map_err(|_| NoBlock::Length)?;
    let header = Header {
        format_version: u32_at(block, 8),
        is_first: u32_at(block, 12) & FLAG_FIRST != 0,
        database_id: u128::from_le_bytes(database_id),
        incarnation: u64_at(block, 32),
        segment: u64_at(block, 40),
        offset: u64_at(block, 48),
        start: Lsn(u64_at(block, 56)),
        durable_to: Lsn(u64_at(block, 64)),
        built_at_us: u64_at(block, 72),
        payload_bytes,
        previous_checksum: NonZero::new(u32_at(block, 84)),
    };
    Ok((header, checksum, &block[HEADER_BYTES..HEADER_BYTES + payload_bytes]))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn header(payload_bytes: usize) -> Header {
        Header {
            format_version: FORMAT_VERSION,
            is_first: true,
            database_id: 0x0123_4567_89ab_cdef_0011_2233_4455_6677,
            incarnation: 7,
            segment: 3,
            offset: 8192,
            start: Lsn(1000),
            durable_to: Lsn(900),
            built_at_us: 1_700_000_000_000_000,
            payload_bytes,
            previous_checksum: NonZero::new(0xfeed_beef),
        }
    }

    fn sealed(payload: &[u8]) -> (Vec<u8>, u32) {
        let header = header(payload.len());
        let mut block = vec![0xff; header.padded_bytes()];
        let checksum = header.seal(&mut block, |at, piece| {
            piece.copy_from_slice(&payload[at..at + piece.len()]);
        });
        (block, checksum)
    }

    #[test]
    fn a_block_comes_back_as_it_was_built() {
        // Miri takes minutes for a large one.
        let lengths = [0, 1, 4000, 4001, 100_000, PADDED_BYTES_MAX - HEADER_BYTES];
        for len in lengths.into_iter().filter(|len| !cfg!(miri) || *len < 10_000) {
            let payload: Vec<u8> = (0..len).map(|index| (index % 251) as u8).collect();
            let (block, checksum) = sealed(&payload);
            assert_eq!(claimed_bytes(&block), Ok(block.len()));
            assert_eq!(open(&block), Ok((header(len), checksum, payload.as_slice())));
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_is_seen() {
        let (block, _) = sealed(b"twenty bytes of row.");
        // Miri takes a second for each block.
        for byte in (0..block.len()).step_by(if cfg!(miri) { 97 } else { 1 }) {
            let mut damaged = block.clone();
            damaged[byte] ^= 1 << (byte % 8);
            assert!(open(&damaged).is_err(), "byte {byte}");
        }
    }

    #[test]
    fn each_damaged_header_field_is_seen() {
        let (block, _) = sealed(b"row");
        let fields = [0..8, 8..12, 12..16, 16..32, 32..40, 40..48, 48..56, 56..64, 64..72, 72..80];
        for field in fields.into_iter().chain([80..84, 84..88, 88..92, 92..96]) {
            let mut damaged = block.clone();
            damaged[field.clone()].iter_mut().for_each(|byte| *byte = !*byte);
            assert!(open(&damaged).is_err(), "header bytes {field:?}");
        }
    }

    #[test]
    fn nothing_and_too_much_are_no_blocks() {
        assert_eq!(open(&vec![0; BLOCK_BYTES]), Err(NoBlock::Magic));
        assert_eq!(open(&[]), Err(NoBlock::Length));
        let (mut block, _) = sealed(b"row");
        block[80..84].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(claimed_bytes(&block), Err(NoBlock::Length));
    }
}
