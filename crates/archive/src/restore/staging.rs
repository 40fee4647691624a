//! A backup as it comes from the store: a folder beside the new one, a database folder when all of it is there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onrush_files::unfinished::unmark;
use onrush_files::{AlignedBuffer, Disk, DiskErrorKind, DiskFile, Making, OpenMode, Unfinished};
use onrush_log::{segment_header, segment_name};

use crate::backup::pieces;
use crate::error::ArchiveError;
use crate::manifest::{Manifest, from_hex, part_name};
use crate::object::{Kind, LogObject, damaged, open};
use crate::store::Place;

const LOG_FOLDER: &str = "log";
const ENDING: &str = "from-archive";
const SUPERBLOCK_BYTES: usize = 4096;
const FIRST_BLOCK_AT: u64 = 4096;

/// See the module.
pub(super) struct Staging {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
}

impl Staging {
    /// What an earlier attempt has left goes.
    pub(super) fn new(disk: Arc<dyn Disk>, into: &Path) -> Result<Staging, ArchiveError> {
        let mut name = into.as_os_str().to_owned();
        name.push(format!(".{ENDING}"));
        let staging = Staging { disk, folder: name.into() };
        staging.clear()?;
        Ok(staging)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Empty, with the mark of a folder that is not finished.
    pub(super) fn clear(&self) -> Result<(), ArchiveError> {
        self.remove();
        self.disk.create_folder(&self.folder)?;
        let from = PathBuf::from("the archive");
        let mark = Unfinished { folder: self.folder.clone(), making: Making::Restore, from };
        mark.mark(&*self.disk)?;
        Ok(self.disk.create_folder(&self.folder.join(LOG_FOLDER))?)
    }

    /// As far as that is possible: what stays is told by its mark, or in the way of the next attempt.
    pub(super) fn remove(&self) {
        for folder in [self.folder.join(LOG_FOLDER), self.folder.clone()] {
            for name in self.disk.list(&folder).unwrap_or_default() {
                let _ = self.disk.remove(&folder.join(name));
            }
            let _ = std::fs::remove_dir(&folder);
        }
    }

    fn open_or_create(
        &self,
        path: &Path,
        bytes: u64,
    ) -> Result<(Arc<dyn DiskFile>, bool), ArchiveError> {
        match self.disk.open(path, OpenMode::CreateNew) {
            Ok(file) => {
                file.set_len(bytes)?;
                Ok((file, true))
            }
            Err(error) if error.kind() == DiskErrorKind::AlreadyExists => {
                Ok((self.disk.open(path, OpenMode::ReadWrite)?, false))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Puts the blocks of an object where they were in their segment.
    pub(super) fn put_blocks(&self, object: &LogObject) -> Result<(), ArchiveError> {
        let LogObject { database_id, from, segment, segment_bytes, blocks, .. } = object;
        let file = self.segment(*database_id, *segment, *segment_bytes)?;
        let offset = if from.segment == *segment { from.offset } else { FIRST_BLOCK_AT };
        Ok(file.write_at(blocks, offset)?)
    }

    fn segment(
        &self,
        database_id: u128,
        number: u64,
        bytes: u64,
    ) -> Result<Arc<dyn DiskFile>, ArchiveError> {
        let path = self.folder.join(LOG_FOLDER).join(segment_name(number));
        let (file, is_new) = self.open_or_create(&path, bytes)?;
        if is_new {
            file.write_at(&segment_header(database_id, number, bytes), 0)?;
        }
        Ok(file)
    }

    /// Puts all pages of a backup where they were.
    pub(super) async fn put_pages(
        &self,
        place: &Place,
        history: u128,
        manifest_name: &str,
        manifest: &Manifest,
    ) -> Result<(), ArchiveError> {
        let mut files = Vec::new();
        for (number, data) in manifest.data_files.iter().enumerate() {
            let header = from_hex(&data.header, SUPERBLOCK_BYTES);
            let header =
                header.ok_or_else(|| damaged(manifest_name, "a header of a data file is none"))?;
            let path = self.folder.join(format!("data-{number:02}.onrush"));
            let (file, _) = self.open_or_create(&path, data.bytes)?;
            file.write_at(&header, 0)?;
            files.push(file);
        }
        for (number, length) in manifest.parts.iter().enumerate() {
            let name = part_name(&manifest.folder, number);
            let bytes = place.store.read(&format!("{history:032x}/{name}")).await?;
            let bytes = bytes.ok_or_else(|| damaged(&name, "it is missing"))?;
            let (kind, body) = open(&name, history, &bytes)?;
            if kind != Kind::Pages || body.len() as u64 != *length {
                return Err(damaged(&name, "it is not the part that the manifest names"));
            }
            let pieces = pieces(body).ok_or_else(|| damaged(&name, "it is cut off"))?;
            for (file, offset, pages) in pieces {
                let file = files.get(file);
                let file =
                    file.ok_or_else(|| damaged(&name, "it has pages of a file that is not there"))?;
                file.write_at(pages, offset)?;
            }
        }
        Ok(())
    }

    /// Makes a backup of what is there.
    pub(super) fn finish(&self, name: &str, manifest: &Manifest) -> Result<(), ArchiveError> {
        let superblock = from_hex(&manifest.superblock, SUPERBLOCK_BYTES);
        let superblock = superblock.filter(|bytes| bytes.len() == SUPERBLOCK_BYTES);
        let superblock = superblock.ok_or_else(|| damaged(name, "its superblock is none"))?;
        // Where no block has come since the checkpoint, it is empty.
        let start = manifest.start(name)?;
        let database_id = u128::from_str_radix(&manifest.database_id, 16);
        let database_id = database_id.map_err(|_| damaged(name, "its database_id is none"))?;
        self.segment(database_id, start.segment, manifest.segment_bytes)?;
        let mut block = AlignedBuffer::new(SUPERBLOCK_BYTES);
        block.copy_from_slice(&superblock);
        onrush_backup::write_superblock(
            &*self.disk,
            &self.folder,
            &block,
            manifest.data_files.len(),
        )?;
        Ok(unmark(&*self.disk, &self.folder)?)
    }
}
