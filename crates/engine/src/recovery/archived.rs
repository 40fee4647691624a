//! How far the log is archived, as the database itself knows it: a small file beside the superblock, so that opening
//! keeps what is not archived yet. Byte by byte: `docs/data-file.md`.

use std::path::{Path, PathBuf};

use onrush_files::{Disk, read_whole, replace_whole_durably};
use onrush_log::LogPosition;

use crate::error::{Damage, Error, Result};

const FILE_NAME: &str = "archived.onrush";
const MAGIC: &[u8; 8] = b"ONRUSHAR";
const BODY_BYTES: usize = 8 + 16 + LogPosition::BYTES;

fn path_in(folder: &Path) -> PathBuf {
    folder.join(FILE_NAME)
}

/// None where nothing was archived of this history.
pub(crate) fn read(disk: &dyn Disk, folder: &Path, history: u128) -> Result<Option<LogPosition>> {
    let path = path_in(folder);
    if !disk.exists(&path)? {
        return Ok(None);
    }
    let bytes = read_whole(disk, &path, BODY_BYTES + 4)?;
    let damaged = || {
        let what = "the note of how far the log is archived is damaged; remove the file, and the archive begins \
                    anew with a backup";
        Error::Damaged(Damage::new(&path, 0, what))
    };
    let (body, checksum) = bytes.split_at_checked(BODY_BYTES).ok_or_else(damaged)?;
    if !body.starts_with(MAGIC) || checksum != crc32c::crc32c(body).to_le_bytes() {
        return Err(damaged());
    }
    let (of, position) = body[MAGIC.len()..].split_first_chunk().ok_or_else(damaged)?;
    let position = position.first_chunk().ok_or_else(damaged)?;
    Ok((u128::from_le_bytes(*of) == history).then(|| LogPosition::decode(position)))
}

/// Durable when this returns.
pub(crate) fn write(
    disk: &dyn Disk,
    folder: &Path,
    history: u128,
    position: &LogPosition,
) -> Result<()> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&history.to_le_bytes());
    bytes.extend_from_slice(&position.encode());
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    Ok(replace_whole_durably(disk, &path_in(folder), &bytes)?)
}
