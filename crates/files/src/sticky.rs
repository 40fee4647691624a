//! Around any disk: after the first failed write or sync, nothing is written or synced any more.
//!
//! After a failed sync the operating system may have dropped the bytes and call the file clean, so
//! that a second sync succeeds and proves nothing. Therefore the first failure is remembered for
//! the disk's life, and the way on is to close and to open again.
//!
//! Invariants
//! 1. Once `first` is set it stays set, and every later write, sync and change of names or lengths
//!    is refused.
//! 2. A full disk, a missing or a taken name found by `open`, `create_folder`, `rename`, `remove`,
//!    `set_len` or `allocate` does not set it: nothing written was lost. An error of the device
//!    does, wherever it is met.
//! 3. Reads are never refused.
//! 4. An error of kind `Full` means that all goes on once there is space: a write or sync that
//!    met a full disk is reported as `Failed`.
//! 5. The first failure, and a full disk, are in the operator's log: `tell.rs`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::tell::{self, FullDisk};
use crate::{Disk, DiskError, DiskErrorKind, DiskFile, FolderLock, OpenMode};

/// A disk that stops at its first failed write or sync. A clone is the same disk.
#[derive(Clone, Debug)]
pub struct StickyDisk {
    inner: Arc<dyn Disk>,
    failure: Arc<Failure>,
}

/// The first failed write or sync of a disk, and whether it is full.
#[derive(Debug, Default)]
struct Failure {
    first: OnceLock<DiskError>, // set once, by whoever saw the failure; read by everyone
    full: FullDisk,
}

impl StickyDisk {
    /// Wraps a disk.
    pub fn new(inner: Arc<dyn Disk>) -> StickyDisk {
        StickyDisk { inner, failure: Arc::default() }
    }

    /// The first failed write or sync, if there was one.
    pub fn first_failure(&self) -> Option<&DiskError> {
        self.failure.first.get()
    }
}

impl Failure {
    /// The first one stays, and is told.
    fn remember(&self, error: &DiskError) {
        if self.first.set(error.clone()).is_ok() {
            tell::failed(error);
        }
    }

    /// Refuses, naming the first cause.
    fn check(&self, operation: &'static str, path: &Path) -> Result<(), DiskError> {
        match self.first.get() {
            None => Ok(()),
            Some(first) => Err(DiskError::new(DiskErrorKind::Failed, operation, path)
                .with_source(io::Error::other(first.clone()))),
        }
    }

    /// Does something whose failure is final.
    fn guard<T>(
        &self,
        operation: &'static str,
        path: &Path,
        call: impl FnOnce() -> Result<T, DiskError>,
    ) -> Result<T, DiskError> {
        self.check(operation, path)?;
        let result = call();
        if let Err(error) = &result {
            // A write to a file opened for reading is a mistake of the caller: nothing was tried,
            // so nothing is in doubt.
            if error.kind() != DiskErrorKind::ReadOnly {
                self.remember(error);
            }
            if error.kind() == DiskErrorKind::Full {
                // Not to be taken for a full disk that did no harm, after which all goes on.
                return Err(DiskError::new(DiskErrorKind::Failed, operation, path)
                    .with_source(io::Error::other(error.clone())));
            }
            return result;
        }
        // What another thread's failure overtook must not be reported as durable.
        self.check(operation, path)?;
        result
    }

    /// Does something that may fail without harm, for example because the disk is full; an error of
    /// the device is final.
    fn attempt<T>(
        &self,
        operation: &'static str,
        path: &Path,
        call: impl FnOnce() -> Result<T, DiskError>,
    ) -> Result<T, DiskError> {
        self.check(operation, path)?;
        let result = call();
        match &result {
            Err(error) if error.kind() == DiskErrorKind::Other => self.remember(error),
            Err(error) if error.kind() == DiskErrorKind::Full => self.full.met(error),
            Ok(_) | Err(_) => {}
        }
        result
    }
}

impl Disk for StickyDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        let inner = match mode {
            OpenMode::CreateNew => {
                self.failure.attempt("create", path, || self.inner.open(path, mode))?
            }
            OpenMode::ReadOnly | OpenMode::ReadWrite => self.inner.open(path, mode)?,
        };
        let failure = Arc::clone(&self.failure);
        Ok(Arc::new(StickyFile { path: path.to_path_buf(), inner, failure }))
    }

    fn reads_wait(&self) -> bool {
        self.inner.reads_wait()
    }

    fn create_folder(&self, path: &Path) -> Result<(), DiskError> {
        self.failure.attempt("create folder", path, || self.inner.create_folder(path))
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, DiskError> {
        self.inner.list(folder)
    }

    fn exists(&self, path: &Path) -> Result<bool, DiskError> {
        self.inner.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.failure.attempt("rename", from, || self.inner.rename(from, to))
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        self.failure.attempt("remove", path, || self.inner.remove(path))
    }

    fn sync_folder(&self, folder: &Path) -> Result<(), DiskError> {
        self.failure.guard("sync folder", folder, || self.inner.sync_folder(folder))
    }

    fn lock(&self, folder: &Path) -> Result<FolderLock, DiskError> {
        self.inner.lock(folder)
    }
}

#[derive(Debug)]
struct StickyFile {
    path: PathBuf,
    inner: Arc<dyn DiskFile>,
    failure: Arc<Failure>,
}

impl DiskFile for StickyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.failure.guard("write", &self.path, || self.inner.write_at(buffer, offset))
    }

    fn write_at_durable(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.failure.guard("write", &self.path, || self.inner.write_at_durable(buffer, offset))
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.failure.guard("sync", &self.path, || self.inner.sync())
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.inner.len()
    }

    fn set_len(&self, len_bytes: u64) -> Result<(), DiskError> {
        self.failure.attempt("set the length of", &self.path, || self.inner.set_len(len_bytes))
    }

    fn allocate(&self, len_bytes: u64) -> Result<(), DiskError> {
        let allocate = || self.inner.allocate(len_bytes);
        self.failure.attempt("reserve space for", &self.path, allocate)?;
        self.failure.full.is_over();
        Ok(())
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
