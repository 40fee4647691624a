//! The few blocks that are not the same in a copy. Byte by byte: `docs/data-file.md` and
//! `docs/log-format.md`.

use onrush_files::AlignedBuffer;
use onrush_lsn::Lsn;

/// Bytes of the superblock file.
pub(crate) const SUPERBLOCK_FILE_BYTES: u64 = FOLDERS_AT + FOLDERS_BYTES as u64;
/// Where the folders stand in it.
pub(crate) const FOLDERS_AT: u64 = 128 << 10;
const FOLDERS_BYTES: usize = 64 << 10;
/// Where a copy of the superblock stands: even generations, odd ones.
pub(crate) const COPIES_AT: [u64; 2] = [0, 64 << 10];
const GENERATION_AT: usize = 32;
const HAS_ROOT_AT: usize = 100;
const ROOT_BYTES: usize = 20;
const END_TIME_BYTES: usize = 8;
const LOG_HEADER_BYTES: usize = 96;
const LOG_RECORD_BYTES_AT: usize = 80;
const LOG_CHECKSUM_AT: usize = 92;

/// The generation of a superblock.
pub(crate) fn generation(superblock: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&superblock[GENERATION_AT..GENERATION_AT + 8]);
    u64::from_le_bytes(bytes)
}

/// The same superblock with another generation.
pub(crate) fn with_generation(superblock: &[u8], generation: u64) -> AlignedBuffer {
    let mut block = AlignedBuffer::new(superblock.len());
    block.copy_from_slice(superblock);
    block[GENERATION_AT..GENERATION_AT + 8].copy_from_slice(&generation.to_le_bytes());
    seal(&mut block);
    block
}

/// What a restore notes in the superblock.
pub(crate) struct Restored {
    pub(crate) history: u128,
    pub(crate) from_history: u128,
    pub(crate) from_lsn: Lsn,
}

/// The same superblock of a database that was restored.
pub(crate) fn with_restored(superblock: &[u8], restored: &Restored) -> AlignedBuffer {
    let mut block = AlignedBuffer::new(superblock.len());
    block.copy_from_slice(superblock);
    let root_bytes = if block[HAS_ROOT_AT] == 1 { ROOT_BYTES } else { 0 };
    let field = &mut block[HAS_ROOT_AT + 1 + root_bytes + END_TIME_BYTES..];
    field[0] = 1;
    field[1..17].copy_from_slice(&restored.history.to_le_bytes());
    field[17..33].copy_from_slice(&restored.from_history.to_le_bytes());
    field[33..41].copy_from_slice(&restored.from_lsn.0.to_le_bytes());
    seal(&mut block);
    block
}

/// The folders of a database that has everything in its own folder, but for the log in `log`.
pub(crate) fn folders(superblock: &[u8], data_files: usize) -> AlignedBuffer {
    let mut block = AlignedBuffer::new(FOLDERS_BYTES);
    block[..12].copy_from_slice(&superblock[..12]);
    block[16] = data_files as u8;
    // An empty path for each data file: the database folder itself.
    let at = 17 + 2 * data_files;
    block[at..at + 2].copy_from_slice(&(LOG_FOLDER.len() as u16).to_le_bytes());
    block[at + 2..at + 2 + LOG_FOLDER.len()].copy_from_slice(LOG_FOLDER.as_bytes());
    seal(&mut block);
    block
}

/// The folder of the log inside a copy.
pub(crate) const LOG_FOLDER: &str = "log";

/// The checksum of a block of the superblock file.
fn seal(block: &mut [u8]) {
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&block[..12]), &block[16..]);
    block[12..16].copy_from_slice(&checksum.to_le_bytes());
}

/// A log block with its first record bytes only; none if those are all it has.
pub(crate) fn shortened(block: &[u8], record_bytes: usize) -> Option<AlignedBuffer> {
    let field = LOG_RECORD_BYTES_AT..LOG_RECORD_BYTES_AT + 4;
    let short_field = (record_bytes as u32).to_le_bytes();
    if block[field.clone()] == short_field {
        return None;
    }
    let used = LOG_HEADER_BYTES + record_bytes;
    let mut short = AlignedBuffer::new(used.next_multiple_of(4096));
    short[..used].copy_from_slice(&block[..used]);
    short[field].copy_from_slice(&short_field);
    let checksum = crc32c::crc32c(&short[..LOG_CHECKSUM_AT]);
    let checksum = crc32c::crc32c_append(checksum, &short[LOG_HEADER_BYTES..]);
    short[LOG_CHECKSUM_AT..LOG_CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
    Some(short)
}
