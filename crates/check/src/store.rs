//! The files of the database that is checked, and the one place where they are read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onrush_files::{AlignedBuffer, Disk, DiskError, DiskErrorKind, DiskFile, OpenMode};
use onrush_lsn::Lsn;

use crate::companion::Companion;
use crate::decode::blob;
use crate::decode::slot::{BlobAddress, SLOT_BYTES, SlotNumber};
use crate::decode::superblock::{Folders, Superblock};
use crate::finding::Finding;
use crate::findings::Findings;
use crate::invariant::Invariant;
use crate::progress::Progress;
use crate::source::LogLimit;

/// Everything that all steps share; nothing in it changes but findings and progress.
#[derive(Clone)]
pub(crate) struct Store<'a> {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) superblock: Superblock,
    pub(crate) folders: Folders,
    /// Where log segments are looked for, in this order.
    pub(crate) log_folders: Vec<PathBuf>,
    pub(crate) log_limit: LogLimit,
    /// Below it the log is known to be durable, whatever its blocks say.
    pub(crate) durable_lsn: Option<Lsn>,
    /// None for a file that could not be opened: there is a finding already.
    pub(crate) files: Vec<Option<DataFile>>,
    pub(crate) findings: &'a Findings,
    pub(crate) progress: &'a Progress,
    pub(crate) companion: &'a dyn Companion,
}

/// An open data file.
#[derive(Clone)]
pub(crate) struct DataFile {
    pub(crate) file: Arc<dyn DiskFile>,
    /// Whole slots in it.
    pub(crate) slots: u64,
}

/// The path of data file `number`.
pub(crate) fn data_file_path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("data-{number:02}.onrush"))
}

impl DataFile {
    pub(crate) fn open(disk: &dyn Disk, path: &Path) -> Result<DataFile, DiskError> {
        let file = disk.open(path, OpenMode::ReadOnly)?;
        let slots = file.len()? / SLOT_BYTES as u64;
        Ok(DataFile { file, slots })
    }
}

impl Store<'_> {
    /// The path of the data file that a slot is in, also of one that does not exist.
    pub(crate) fn path(&self, slot: SlotNumber) -> PathBuf {
        let folder = self.folders.data.get(slot.file()).or(self.folders.data.first());
        data_file_path(folder.map_or(Path::new(""), PathBuf::as_path), slot.file())
    }

    /// Whether to stop as soon as possible.
    pub(crate) fn gives_up(&self) -> bool {
        self.findings.is_full() || self.companion.gives_up() || self.progress.is_cancelled()
    }

    pub(crate) fn at_slot(
        &self,
        invariant: Invariant,
        slot: SlotNumber,
        found: impl Into<String>,
    ) -> Finding {
        Finding::new(invariant, self.path(slot), slot.offset(), found)
    }

    /// The file of a slot that is in it and not its header.
    pub(crate) fn file_of(&self, slot: SlotNumber) -> Result<&DataFile, &'static str> {
        let file = self.files.get(slot.file()).ok_or("there is no such data file")?;
        let file = file.as_ref().ok_or("the data file cannot be read")?;
        match slot.index() {
            0 => Err("slot 0 is the header of the data file"),
            index if index >= file.slots => Err("the slot lies behind the end of the data file"),
            _ => Ok(file),
        }
    }

    /// Reads whole slots that follow each other. The error is a finding already.
    pub(crate) fn read(&self, slot: SlotNumber, buffer: &mut [u8]) -> Result<(), ()> {
        let file = self.file_of(slot).map_err(|found| {
            self.findings.add(self.at_slot(
                Invariant::SlotExists,
                slot,
                format!("{slot}: {found}"),
            ));
        })?;
        file.file.read_at(buffer, slot.offset()).map_err(|error| {
            let invariant = match error.kind() {
                DiskErrorKind::EndOfFile => Invariant::SlotExists,
                _ => Invariant::DataFileReadable,
            };
            self.findings.add(self.at_slot(invariant, slot, error.to_string()));
        })
    }

    /// The bytes of a blob and the slots it stands in; None and a finding if it is not as named.
    pub(crate) fn read_blob(&self, place: BlobAddress) -> Option<(Vec<u8>, Vec<SlotNumber>)> {
        let mut page = AlignedBuffer::new(SLOT_BYTES);
        let (mut bytes, mut slots) = (Vec::new(), Vec::new());
        let mut next = Some(place.first);
        // No chain is longer, unless it goes in a circle.
        let most =
            self.files.iter().flatten().map(|file| file.slots).sum::<u64>().clamp(1, 1 << 20);
        while let Some(slot) = next {
            if bytes.len() as u64 > place.bytes || slots.len() as u64 >= most {
                break;
            }
            self.read(slot, &mut page).ok()?;
            self.progress.add_done(SLOT_BYTES as u64);
            let found = match blob::open(&page) {
                Ok(found) => found,
                Err(fault) => {
                    self.findings.add(self.at_slot(Invariant::PageWhole, slot, fault));
                    return None;
                }
            };
            if found.database_id != self.superblock.database_id || found.slot != slot {
                let words =
                    format!("a page of {} of database {:032x}", found.slot, found.database_id);
                self.findings.add(self.at_slot(Invariant::PagePlace, slot, words));
                return None;
            }
            self.companion.pages(slot.file(), slot.offset(), &page);
            bytes.extend_from_slice(found.bytes);
            slots.push(slot);
            next = found.next;
            if found.bytes.is_empty() {
                break;
            }
        }
        if bytes.len() as u64 == place.bytes && crc32c::crc32c(&bytes) == place.checksum {
            return Some((bytes, slots));
        }
        let words = format!(
            "{} bytes with checksum {:08x}, where {} bytes with {:08x} were named",
            bytes.len(),
            crc32c::crc32c(&bytes),
            place.bytes,
            place.checksum
        );
        self.findings.add(self.at_slot(Invariant::BlobNamed, place.first, words));
        None
    }
}
