//! A disk in memory, for tests: the same promises as the real one, with a capacity that can be
//! reached.
//!
//! Nothing is lost here; for what a power cut loses see the crash disk of the simulator.
//!
//! Invariants
//! 1. The pages of all living files together take no more than the capacity.
//! 2. A removed file lives, and takes space, until the last handle on it is dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::folder::folder_of;
use crate::lock::locked_error;
use crate::{Disk, DiskError, DiskErrorKind, DiskFile, FolderLock, OpenMode, SparseBytes};

/// Files and folders in memory. A clone is the same disk.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    names: Arc<Mutex<Names>>,
    space: Arc<Mutex<Space>>, // taken while a file's content is locked, never the other way round
}

#[derive(Debug, Default)]
struct Names {
    files: BTreeMap<PathBuf, Arc<Content>>,
    folders: BTreeSet<PathBuf>, // "/" and "." are always there
    locked: BTreeSet<PathBuf>,
}

#[derive(Debug)]
struct Space {
    capacity_bytes: u64,
    used_bytes: u64,
}

impl Default for Space {
    fn default() -> Space {
        Space { capacity_bytes: u64::MAX, used_bytes: 0 }
    }
}

impl MemoryDisk {
    /// An empty disk without a limit.
    pub fn new() -> MemoryDisk {
        MemoryDisk::default()
    }

    /// An empty disk that is full when its files take `capacity_bytes`, counted in pages of 4 KiB.
    pub fn with_capacity(capacity_bytes: u64) -> MemoryDisk {
        let disk = MemoryDisk::new();
        disk.set_capacity(capacity_bytes);
        disk
    }

    /// A disk of its own that holds the same: what is changed on one is not seen on the other. It is all files at
    /// one moment, whoever writes meanwhile. Costs little, since pages are shared until one of them is written.
    pub fn copy(&self) -> MemoryDisk {
        let names = locked(&self.names);
        let contents: Vec<_> =
            names.files.iter().map(|(path, content)| (path, locked(&content.bytes))).collect();
        let capacity_bytes = locked(&self.space).capacity_bytes;
        let used_bytes = contents.iter().map(|(_, bytes)| bytes.space_bytes()).sum();
        let space = Arc::new(Mutex::new(Space { capacity_bytes, used_bytes }));
        let copied = |bytes: &SparseBytes| {
            let bytes = Mutex::new(bytes.clone());
            Arc::new(Content { bytes, space: Arc::clone(&space) })
        };
        let files: BTreeMap<PathBuf, Arc<Content>> =
            contents.iter().map(|(path, bytes)| ((*path).clone(), copied(bytes))).collect();
        let folders = names.folders.clone();
        let names = Names { files, folders, locked: BTreeSet::new() };
        MemoryDisk { names: Arc::new(Mutex::new(names)), space }
    }

    /// Changes the capacity; below what is used, nothing is lost but no more fits.
    pub fn set_capacity(&self, capacity_bytes: u64) {
        locked(&self.space).capacity_bytes = capacity_bytes;
    }

    /// How many bytes the files take, counted in pages of 4 KiB.
    pub fn used_bytes(&self) -> u64 {
        locked(&self.space).used_bytes
    }
}

impl Names {
    fn has_folder(&self, path: &Path) -> bool {
        path == Path::new("/") || path == Path::new(".") || self.folders.contains(path)
    }

    fn check_folder(&self, operation: &'static str, path: &Path) -> Result<(), DiskError> {
        if self.has_folder(path) {
            return Ok(());
        }
        Err(DiskError::new(DiskErrorKind::NotFound, operation, path))
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        let mut names = locked(&self.names);
        let found = names.files.get(path).cloned();
        let content = match (mode, found) {
            (OpenMode::ReadOnly | OpenMode::ReadWrite, Some(content)) => content,
            (OpenMode::ReadOnly | OpenMode::ReadWrite, None) => {
                return Err(DiskError::new(DiskErrorKind::NotFound, "open", path));
            }
            (OpenMode::CreateNew, None) if !names.has_folder(path) => {
                names.check_folder("create", folder_of(path)?)?;
                let space = Arc::clone(&self.space);
                let content = Arc::new(Content { bytes: Mutex::default(), space });
                names.files.insert(path.to_path_buf(), Arc::clone(&content));
                content
            }
            (OpenMode::CreateNew, _) => {
                return Err(DiskError::new(DiskErrorKind::AlreadyExists, "create", path));
            }
        };
        let writable = mode != OpenMode::ReadOnly;
        Ok(Arc::new(MemoryFile { path: path.to_path_buf(), content, writable }))
    }

    fn create_folder(&self, path: &Path) -> Result<(), DiskError> {
        let mut names = locked(&self.names);
        for folder in path.ancestors().filter(|folder| !folder.as_os_str().is_empty()) {
            if names.files.contains_key(folder) {
                let kind = DiskErrorKind::AlreadyExists;
                return Err(DiskError::new(kind, "create folder", folder));
            }
        }
        for folder in path.ancestors().filter(|folder| !folder.as_os_str().is_empty()) {
            names.folders.insert(folder.to_path_buf());
        }
        Ok(())
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, DiskError> {
        let names = locked(&self.names);
        names.check_folder("list", folder)?;
        let all = names.files.keys().chain(names.folders.iter());
        let inside = all.filter(|path| path.parent() == Some(folder));
        let found: BTreeSet<String> =
            inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
        Ok(found.into_iter().collect())
    }

    fn exists(&self, path: &Path) -> Result<bool, DiskError> {
        let names = locked(&self.names);
        Ok(names.files.contains_key(path) || names.has_folder(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        let mut names = locked(&self.names);
        names.check_folder("rename to", folder_of(to)?)?;
        let content = names.files.remove(from);
        let content =
            content.ok_or_else(|| DiskError::new(DiskErrorKind::NotFound, "rename", from))?;
        let replaced = names.files.insert(to.to_path_buf(), content);
        drop(names); // before the last handle of the replaced file gives its space back
        drop(replaced);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        let removed = locked(&self.names).files.remove(path);
        match removed {
            Some(_) => Ok(()),
            None => Err(DiskError::new(DiskErrorKind::NotFound, "remove", path)),
        }
    }

    fn sync_folder(&self, folder: &Path) -> Result<(), DiskError> {
        locked(&self.names).check_folder("sync folder", folder)
    }

    fn lock(&self, folder: &Path) -> Result<FolderLock, DiskError> {
        let mut names = locked(&self.names);
        names.check_folder("lock", folder)?;
        if !names.locked.insert(folder.to_path_buf()) {
            return Err(locked_error(folder, "this process"));
        }
        let held = MemoryLock { names: Arc::clone(&self.names), folder: folder.to_path_buf() };
        Ok(FolderLock::new(folder, held))
    }
}

struct MemoryLock {
    names: Arc<Mutex<Names>>,
    folder: PathBuf,
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        locked(&self.names).locked.remove(&self.folder);
    }
}

/// What a file holds, whatever its name is.
#[derive(Debug)]
struct Content {
    bytes: Mutex<SparseBytes>,
    space: Arc<Mutex<Space>>,
}

impl Content {
    /// Changes the bytes if `missing_bytes` more space can be had, and counts the space they take
    /// afterwards.
    fn change(
        &self,
        missing_bytes: impl FnOnce(&SparseBytes) -> u64,
        change: impl FnOnce(&mut SparseBytes),
    ) -> Result<(), io::Error> {
        let mut bytes = locked(&self.bytes);
        let mut space = locked(&self.space);
        let missing = missing_bytes(&bytes);
        if missing > 0 && space.used_bytes.saturating_add(missing) > space.capacity_bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        space.used_bytes -= bytes.space_bytes();
        change(&mut bytes);
        space.used_bytes += bytes.space_bytes();
        Ok(())
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        let bytes = self.bytes.get_mut().unwrap_or_else(PoisonError::into_inner);
        locked(&self.space).used_bytes -= bytes.space_bytes();
    }
}

#[derive(Debug)]
struct MemoryFile {
    path: PathBuf,
    content: Arc<Content>,
    writable: bool,
}

impl MemoryFile {
    fn check_writable(&self, operation: &'static str) -> Result<(), DiskError> {
        if self.writable {
            return Ok(());
        }
        Err(DiskError::new(DiskErrorKind::ReadOnly, operation, &self.path))
    }
}

impl DiskFile for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
        if locked(&self.content.bytes).read(buffer, offset) {
            return Ok(());
        }
        Err(DiskError::new(DiskErrorKind::EndOfFile, "read", &self.path).at(offset))
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.check_writable("write")?;
        let failed = |error| DiskError::from_io("write", &self.path, error).at(offset);
        let len = buffer.len() as u64;
        if offset.checked_add(len).is_none_or(|end| i64::try_from(end).is_err()) {
            return Err(failed(io::ErrorKind::FileTooLarge.into()));
        }
        let missing = |bytes: &SparseBytes| bytes.missing_space_bytes(offset, len);
        self.content.change(missing, |bytes| bytes.write(buffer, offset)).map_err(failed)
    }

    fn write_at_durable(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.write_at(buffer, offset)
    }

    fn sync(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn len(&self) -> Result<u64, DiskError> {
        Ok(locked(&self.content.bytes).len())
    }

    fn set_len(&self, len_bytes: u64) -> Result<(), DiskError> {
        self.check_writable("set the length of")?;
        self.content
            .change(|_| 0, |bytes| bytes.set_len(len_bytes))
            .map_err(|error| DiskError::from_io("set the length of", &self.path, error))
    }

    fn allocate(&self, len_bytes: u64) -> Result<(), DiskError> {
        self.check_writable("reserve space for")?;
        let missing = |bytes: &SparseBytes| bytes.missing_space_bytes(0, len_bytes);
        self.content
            .change(missing, |bytes| bytes.allocate(len_bytes))
            .map_err(|error| DiskError::from_io("reserve space for", &self.path, error))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// A panic elsewhere leaves these maps whole, so a poisoned lock is taken all the same.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
