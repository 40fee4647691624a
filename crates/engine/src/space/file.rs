//! The data files: 1 to 16 of them, each on a path of its own. Byte by byte: `docs/data-file.md`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onrush_files::{AlignedBuffer, BLOCK_BYTES, Disk, DiskError, DiskFile, OpenMode};

use super::SlotId;
use crate::error::{Damage, Error, Result};
use crate::units::LEAF_BYTES;

const MAGIC: &[u8; 8] = b"ONRDATA\0";
/// Version of superblock, data files, images and directory.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// All data files of a database.
pub(crate) struct DataFiles {
    files: Vec<Arc<dyn DiskFile>>,
}

/// The path of data file `number` in `folder`.
pub(crate) fn data_file_path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("data-{number:02}.onrush"))
}

impl DataFiles {
    /// Creates one file a folder.
    pub(crate) fn create(disk: &dyn Disk, folders: &[PathBuf], database_id: u128) -> Result<Self> {
        let mut files = Vec::with_capacity(folders.len());
        for (number, folder) in folders.iter().enumerate() {
            disk.create_folder(folder)?;
            let path = data_file_path(folder, number);
            let file = disk.open(&path, OpenMode::CreateNew)?;
            let mut header = AlignedBuffer::new(BLOCK_BYTES);
            write_header(&mut header, database_id, number, folders.len());
            // A full disk is found here, where it does no harm.
            file.allocate(BLOCK_BYTES as u64)?;
            file.write_at(&header, 0)?;
            file.sync()?;
            disk.sync_folder(folder)?;
            files.push(file);
        }
        Ok(DataFiles { files })
    }

    /// Whether a data file has no space for anything yet.
    pub(crate) fn is_as_created(disk: &dyn Disk, path: &Path) -> Result<bool> {
        Ok(disk.open(path, OpenMode::ReadOnly)?.len()? <= BLOCK_BYTES as u64)
    }

    /// Opens the files of the database `database_id`.
    ///
    /// # Errors
    /// A missing file, a file of another database or of a newer format: nothing is written.
    pub(crate) fn open(disk: &dyn Disk, folders: &[PathBuf], database_id: u128) -> Result<Self> {
        let mut files = Vec::with_capacity(folders.len());
        for (number, folder) in folders.iter().enumerate() {
            let path = data_file_path(folder, number);
            let file = disk.open(&path, OpenMode::ReadWrite)?;
            let mut header = AlignedBuffer::new(BLOCK_BYTES);
            file.read_at(&mut header, 0)?;
            check_header(&header, database_id, number, folders.len(), &path)?;
            files.push(file);
        }
        Ok(DataFiles { files })
    }

    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    /// Whole slots in a file.
    pub(crate) fn slots(&self, file: usize) -> std::result::Result<u64, DiskError> {
        Ok(self.files[file].len()? / LEAF_BYTES as u64)
    }

    /// Makes a file `slots` long, with space on the device for all of it.
    pub(crate) fn grow(&self, file: usize, slots: u64) -> std::result::Result<(), DiskError> {
        self.files[file].allocate(slots * LEAF_BYTES as u64)
    }

    /// Reads one slot.
    pub(crate) fn read(
        &self,
        slot: SlotId,
        buffer: &mut [u8],
    ) -> std::result::Result<(), DiskError> {
        self.files[usize::from(slot.file)].read_at(buffer, slot.offset())
    }

    /// Writes one slot or several that lie together. Not durable before [`sync`](Self::sync).
    pub(crate) fn write(&self, first: SlotId, bytes: &[u8]) -> std::result::Result<(), DiskError> {
        self.files[usize::from(first.file)].write_at(bytes, first.offset())
    }

    /// Writes one page to each slot; those of slots that lie side by side at once.
    pub(crate) fn write_pages(
        &self,
        slots: &[SlotId],
        pages: &[u8],
    ) -> std::result::Result<(), DiskError> {
        let mut number = 0;
        while number < slots.len() {
            let together = SlotId::side_by_side(&slots[number..]);
            let bytes = &pages[number * LEAF_BYTES..(number + together) * LEAF_BYTES];
            self.write(slots[number], bytes)?;
            number += together;
        }
        Ok(())
    }

    /// Makes everything written so far durable, in every file.
    pub(crate) fn sync(&self) -> std::result::Result<(), DiskError> {
        self.files.iter().try_for_each(|file| file.sync())
    }

    /// Something is wrong with a slot, which may be one that there is not.
    pub(crate) fn damaged(&self, slot: SlotId, what: &str) -> Error {
        let file = self.files.get(usize::from(slot.file)).unwrap_or(&self.files[0]);
        Error::Damaged(Damage::new(file.path(), slot.offset(), &format!("{what}: {slot}")))
    }

    /// The path of a file, for messages.
    pub(crate) fn path(&self, file: u16) -> &Path {
        self.files[usize::from(file)].path()
    }
}

fn write_header(header: &mut [u8], database_id: u128, number: usize, count: usize) {
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    header[16..32].copy_from_slice(&database_id.to_le_bytes());
    header[32..34].copy_from_slice(&(number as u16).to_le_bytes());
    header[34..36].copy_from_slice(&(count as u16).to_le_bytes());
    let checksum = crc32c::crc32c(&header[..60]);
    header[60..64].copy_from_slice(&checksum.to_le_bytes());
}

fn check_header(
    header: &[u8],
    database_id: u128,
    number: usize,
    count: usize,
    path: &Path,
) -> Result<()> {
    let damaged = |what: &str| Error::Damaged(Damage::new(path, 0, what));
    if &header[..8] != MAGIC {
        return Err(damaged("the data file does not start with its magic number"));
    }
    let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    if version > FORMAT_VERSION {
        return Err(Error::FutureFormat {
            path: path.into(),
            found: version,
            known: FORMAT_VERSION,
        });
    }
    let mut expected = vec![0u8; header.len()];
    write_header(&mut expected, database_id, number, count);
    if header[..64] != expected[..64] {
        return Err(damaged("the data file's header is damaged or of another database or place"));
    }
    Ok(())
}
