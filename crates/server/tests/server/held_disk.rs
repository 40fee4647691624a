//! A disk whose log can be held: what is to become durable waits until it is released. A copy of it is
//! what a power cut at that moment would leave. Or the log fails.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use onrush_files::{Disk, DiskError, DiskErrorKind, DiskFile, FolderLock, MemoryDisk, OpenMode};

#[derive(Clone, Debug, Default)]
pub struct HeldDisk {
    memory: MemoryDisk,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    is_held: Mutex<bool>,
    released: Condvar,
    fails: AtomicBool,
}

impl Gate {
    fn pass(&self) {
        let held = self.is_held.lock().unwrap();
        drop(self.released.wait_while(held, |is_held| *is_held).unwrap());
    }
}

impl HeldDisk {
    /// From now on nothing of the log becomes durable.
    pub fn hold(&self) {
        *self.gate.is_held.lock().unwrap() = true;
    }

    /// From now on every write of the log fails.
    pub fn fail(&self) {
        self.gate.fails.store(true, Ordering::Release);
    }

    pub fn release(&self) {
        *self.gate.is_held.lock().unwrap() = false;
        self.gate.released.notify_all();
    }

    /// What is left when the power is cut now.
    pub fn after_a_power_cut(&self) -> MemoryDisk {
        self.memory.copy()
    }
}

/// A failed test must not leave its server waiting.
impl Drop for HeldDisk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.release();
        }
    }
}

impl Disk for HeldDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        let (file, gate) = (self.memory.open(path, mode)?, Arc::clone(&self.gate));
        Ok(Arc::new(HeldFile { file, gate }))
    }

    fn create_folder(&self, path: &Path) -> Result<(), DiskError> {
        self.memory.create_folder(path)
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, DiskError> {
        self.memory.list(folder)
    }

    fn exists(&self, path: &Path) -> Result<bool, DiskError> {
        self.memory.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.memory.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        self.memory.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> Result<(), DiskError> {
        self.memory.sync_folder(folder)
    }

    fn lock(&self, folder: &Path) -> Result<FolderLock, DiskError> {
        self.memory.lock(folder)
    }
}

#[derive(Debug)]
struct HeldFile {
    file: Arc<dyn DiskFile>,
    gate: Arc<Gate>,
}

impl DiskFile for HeldFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.file.write_at(buffer, offset)
    }

    fn write_at_durable(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.gate.pass();
        if self.gate.fails.load(Ordering::Acquire) {
            return Err(DiskError::new(DiskErrorKind::Other, "write", self.file.path()));
        }
        self.file.write_at_durable(buffer, offset)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.file.sync()
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.file.len()
    }

    fn set_len(&self, len_bytes: u64) -> Result<(), DiskError> {
        self.file.set_len(len_bytes)
    }

    fn allocate(&self, len_bytes: u64) -> Result<(), DiskError> {
        self.file.allocate(len_bytes)
    }

    fn path(&self) -> &Path {
        self.file.path()
    }
}
