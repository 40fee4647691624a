//! Log segments and log blocks.

use std::num::NonZero;

use onrush_lsn::Lsn;

use super::input::{u32_at, u64_at, u128_at};
use super::{FORMAT_VERSION, checksum_around, is_zero};

/// Bytes of a segment's header; blocks are multiples of it.
pub(crate) const UNIT_BYTES: usize = 4096;
/// The largest block.
pub(crate) const BLOCK_BYTES_MAX: usize = 1 << 20;
const SEGMENT_MAGIC: &[u8; 8] = b"ONRUSHLS";
const BLOCK_MAGIC: &[u8; 8] = b"ONRUSHLB";
const HEADER_BYTES: usize = 96;

/// The name of a segment's file.
pub(crate) fn segment_name(number: u64) -> String {
    format!("log-{number:016}.segment")
}

/// The number in the name of a segment's file.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    name.strip_prefix("log-")?.strip_suffix(".segment")?.parse().ok()
}

/// Reads a segment's header: how many bytes the file has. The error says what is wrong with it.
pub(crate) fn open_segment(
    header: &[u8],
    database: u128,
    number: u64,
) -> Result<u64, &'static str> {
    if &header[..8] != SEGMENT_MAGIC {
        return Err("the file does not start as a log segment");
    }
    if u32_at(header, 12) != checksum_around(&header[..12], &header[16..UNIT_BYTES]) {
        return Err("the header fails its checksum");
    }
    if u32_at(header, 8) != FORMAT_VERSION {
        return Err("the segment is of another format version");
    }
    if u128_at(header, 16) != database || u64_at(header, 32) != number {
        return Err("the segment is of another database or has another number than its name");
    }
    let bytes = u64_at(header, 40);
    if bytes <= UNIT_BYTES as u64 || !bytes.is_multiple_of(UNIT_BYTES as u64) {
        return Err("the length in the header makes no sense");
    }
    if !is_zero(&header[48..UNIT_BYTES]) {
        return Err("bytes of the header that must be zero are not");
    }
    Ok(bytes)
}

/// Whether this is the sound header of a segment, and its database another one.
pub(crate) fn is_segment_of_another(header: &[u8], database: u128) -> bool {
    let checksum = checksum_around(&header[..12], &header[16..UNIT_BYTES]);
    let is_sound = &header[..8] == SEGMENT_MAGIC && u32_at(header, 12) == checksum;
    is_sound && u128_at(header, 16) != database
}

/// What a block's header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block<'b> {
    pub(crate) is_first: bool,
    pub(crate) database_id: u128,
    pub(crate) incarnation: u64,
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) start: Lsn,
    pub(crate) durable_to: Lsn,
    /// Microseconds since 1970 by the clock of the machine.
    pub(crate) built_at_us: u64,
    /// None where 0 is stored: there is no block before, or its checksum is 0.
    pub(crate) previous_checksum: Option<NonZero<u32>>,
    pub(crate) checksum: u32,
    /// Bytes of the whole block.
    pub(crate) padded_bytes: usize,
    pub(crate) bytes: &'b [u8],
    pub(crate) records: &'b [u8],
}

impl Block<'_> {
    /// The LSN behind the last record byte.
    pub(crate) fn end(&self) -> Lsn {
        self.start + self.records.len() as u64
    }
}

/// Bytes of the block whose header `bytes` start with, as it claims.
pub(crate) fn claimed_bytes(bytes: &[u8]) -> Result<usize, &'static str> {
    if &bytes[..8] != BLOCK_MAGIC {
        return Err("there is no log block");
    }
    if u32_at(bytes, 8) != FORMAT_VERSION {
        return Err("the block is of another format version");
    }
    let padded = (HEADER_BYTES as u64 + u64::from(u32_at(bytes, 80))).next_multiple_of(4096);
    match usize::try_from(padded) {
        Ok(padded) if padded <= BLOCK_BYTES_MAX => Ok(padded),
        _ => Err("the block's length makes no sense"),
    }
}

/// Opens a block of the bytes that it claims; the error says what is wrong with it.
pub(crate) fn open(bytes: &[u8]) -> Result<Block<'_>, &'static str> {
    let padded_bytes = claimed_bytes(bytes)?;
    let checksum = u32_at(bytes, 92);
    if padded_bytes != bytes.len()
        || checksum != checksum_around(&bytes[..92], &bytes[HEADER_BYTES..])
    {
        return Err("the block fails its checksum");
    }
    let records = &bytes[HEADER_BYTES..HEADER_BYTES + u32_at(bytes, 80) as usize];
    let flags = u32_at(bytes, 12);
    let rest = &bytes[HEADER_BYTES + records.len()..];
    if flags > 1 || u32_at(bytes, 88) != 0 || !is_zero(rest) {
        return Err("flags or bytes of the block that must be zero are not");
    }
    Ok(Block {
        is_first: flags == 1,
        database_id: u128_at(bytes, 16),
        incarnation: u64_at(bytes, 32),
        segment: u64_at(bytes, 40),
        offset: u64_at(bytes, 48),
        start: Lsn(u64_at(bytes, 56)),
        durable_to: Lsn(u64_at(bytes, 64)),
        built_at_us: u64_at(bytes, 72),
        previous_checksum: NonZero::new(u32_at(bytes, 84)),
        checksum,
        padded_bytes,
        bytes,
        records,
    })
}

/// Whether the header of something that is no whole block names this place, in this incarnation of
/// the database or a later one.
pub(crate) fn claims_place(header: &[u8], segment: u64, offset: u64, incarnation: u64) -> bool {
    &header[..8] == BLOCK_MAGIC
        && u64_at(header, 40) == segment
        && u64_at(header, 48) == offset
        && u64_at(header, 32) >= incarnation
}
