//! The formats, read by the letter of `docs/data-file.md` and `docs/log-format.md`. Nothing here is
//! shared with the engine or the log, so that an error there is not repeated here. No input, however
//! damaged, makes a decoder panic or take memory out of proportion.

pub(crate) mod address;
pub(crate) mod blob;
pub(crate) mod block;
pub(crate) mod definition;
pub(crate) mod directory;
mod domains;
pub(crate) mod elided;
pub(crate) mod field;
pub(crate) mod image;
pub(crate) mod indexes;
pub(crate) mod input;
pub(crate) mod key;
mod labels;
mod links;
pub(crate) mod record;
pub(crate) mod row;
pub(crate) mod run_head;
pub(crate) mod slot;
pub(crate) mod superblock;
mod views;
pub(crate) mod wide;

/// The format version of all files.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// CRC32C of two pieces as if they were one.
pub(crate) fn checksum_around(before: &[u8], after: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(before), after)
}

/// Whether all bytes are zero.
#[inline]
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<16>();
    let any = words.iter().fold(0, |any, word| any | u128::from_ne_bytes(*word));
    any == 0 && rest.iter().all(|byte| *byte == 0)
}
