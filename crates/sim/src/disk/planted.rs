//! Faults of the engine that show at its disk: a sync that it leaves out, an error that it ignores, a place that it
//! mistakes. They are planted here, so that the engine has no code for them.
//!
//! The crash disk asks whether one is planted; [`PlantedDisk`] does so around another disk. Without the feature
//! `planted-faults` none is.

use std::path::Path;
use std::sync::Arc;

use onrush_fault::{Fault, planted};
use onrush_files::{Disk, DiskError, DiskFile, DiskLayer, FileLayer};

use super::boundary::Role;

/// A disk around another one, with what is planted.
#[derive(Debug)]
pub struct PlantedDisk(pub Arc<dyn Disk>);

impl DiskLayer for PlantedDisk {
    fn below(&self) -> &dyn Disk {
        &*self.0
    }

    fn around(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        around(file)
    }

    fn sync_names(&self, folder: &Path) -> Result<(), DiskError> {
        if leaves_out_names(&*self.0, folder) { Ok(()) } else { self.0.sync_folder(folder) }
    }
}

/// A file with what is planted.
pub(super) fn around(file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
    if cfg!(feature = "planted-faults") {
        let role = Role::of(file.path());
        return Arc::new(PlantedFile { file, role });
    }
    file
}

/// Whether the names in `folder` are not synced.
pub(super) fn leaves_out_names(disk: &dyn Disk, folder: &Path) -> bool {
    let names_a = |role: Role| {
        let names = disk.list(folder).unwrap_or_default();
        names.iter().any(|name| Role::of(Path::new(name)) == role)
    };
    (planted(Fault::SegmentNameNotSynced) && names_a(Role::Log))
        || (planted(Fault::CreationNameNotSynced) && names_a(Role::Superblock))
}

#[derive(Debug)]
struct PlantedFile {
    file: Arc<dyn DiskFile>,
    role: Role,
}

impl FileLayer for PlantedFile {
    fn below(&self) -> &dyn DiskFile {
        &*self.file
    }

    fn write_durable(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        let is_block = self.role == Role::Log && offset > 0;
        let is_superblock = self.role == Role::Superblock;
        if is_block && planted(Fault::LogNotSynced)
            || is_superblock && planted(Fault::SuperblockNotSynced)
        {
            return self.file.write_at(buffer, offset);
        }
        if is_block && planted(Fault::UnprovenNotRewritten) && self.holds(buffer, offset) {
            return Ok(());
        }
        let first_copy = is_superblock && planted(Fault::SuperblockOneCopy);
        let written = self.file.write_at_durable(buffer, if first_copy { 0 } else { offset });
        if is_block && planted(Fault::LogErrorIgnored) { Ok(()) } else { written }
    }

    fn sync_written(&self) -> Result<(), DiskError> {
        let is_left_out = match self.role {
            Role::Data => planted(Fault::NoDataSync),
            Role::Superblock => planted(Fault::CreationNotSynced),
            Role::Log | Role::Other => false,
        };
        if is_left_out { Ok(()) } else { self.file.sync() }
    }
}

impl PlantedFile {
    fn holds(&self, bytes: &[u8], offset: u64) -> bool {
        let mut found = onrush_files::AlignedBuffer::new(bytes.len());
        self.file.read_at(&mut found, offset).is_ok() && *found == *bytes
    }
}
