//! A disk around another one that does something about a few calls and hands on the rest.
//!
//! Tests and the simulator have several: one holds the log, one counts what is read, one opens a gate. Each says
//! what it does; [`Disk`] and [`DiskFile`] follow from that.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use crate::{Disk, DiskError, DiskFile, FolderLock, OpenMode};

/// A disk around another one.
pub trait DiskLayer: Send + Sync + Debug {
    /// The disk below.
    fn below(&self) -> &dyn Disk;

    /// What [`Disk::open`] returns for a file that the disk below has opened.
    fn around(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile>;

    /// [`Disk::sync_folder`].
    ///
    /// # Errors
    /// Those of the disk below.
    fn sync_names(&self, folder: &Path) -> Result<(), DiskError> {
        self.below().sync_folder(folder)
    }
}

impl<L: DiskLayer> Disk for L {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        Ok(self.around(self.below().open(path, mode)?))
    }

    fn create_folder(&self, path: &Path) -> Result<(), DiskError> {
        self.below().create_folder(path)
    }

    fn reads_wait(&self) -> bool {
        self.below().reads_wait()
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, DiskError> {
        self.below().list(folder)
    }

    fn exists(&self, path: &Path) -> Result<bool, DiskError> {
        self.below().exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.below().rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        self.below().remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> Result<(), DiskError> {
        self.sync_names(folder)
    }

    fn lock(&self, folder: &Path) -> Result<FolderLock, DiskError> {
        self.below().lock(folder)
    }
}

/// A file of a [`DiskLayer`]. Each method stands for one of [`DiskFile`], and hands on unless it is written anew.
pub trait FileLayer: Send + Sync + Debug {
    /// The file below.
    fn below(&self) -> &dyn DiskFile;

    /// [`DiskFile::read_at`].
    ///
    /// # Errors
    /// Those of the file below, as for all of these.
    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
        self.below().read_at(buffer, offset)
    }

    /// [`DiskFile::write_at`].
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn write(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.below().write_at(buffer, offset)
    }

    /// [`DiskFile::write_at_durable`].
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn write_durable(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.below().write_at_durable(buffer, offset)
    }

    /// [`DiskFile::sync`].
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn sync_written(&self) -> Result<(), DiskError> {
        self.below().sync()
    }
}

impl<L: FileLayer> DiskFile for L {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
        self.read(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.write(buffer, offset)
    }

    fn write_at_durable(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.write_durable(buffer, offset)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.sync_written()
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.below().len()
    }

    fn set_len(&self, len_bytes: u64) -> Result<(), DiskError> {
        self.below().set_len(len_bytes)
    }

    fn allocate(&self, len_bytes: u64) -> Result<(), DiskError> {
        self.below().allocate(len_bytes)
    }

    fn path(&self) -> &Path {
        self.below().path()
    }
}
