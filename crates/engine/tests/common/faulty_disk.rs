//! A disk in memory that fails when it is told to, or lets its syncs or reads wait.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use onrush_files::{Disk, DiskError, DiskErrorKind, DiskFile, FolderLock, MemoryDisk, OpenMode};

/// What can be made to fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Read,
    Write,
    Sync,
    /// Anything that changes a name or a length.
    Change,
}

/// The failure to come: after `skip` more operations of this kind on paths that contain `path`.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    pub operation: Operation,
    pub path: &'static str,
    pub skip: u64,
    pub kind: DiskErrorKind,
}

/// See the module. A clone is the same disk.
#[derive(Clone, Debug, Default)]
pub struct FaultyDisk {
    inner: MemoryDisk,
    plan: Arc<Plan>,
}

#[derive(Debug, Default)]
struct Plan {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    failure: Option<Failure>,
    failed: u64,
    /// Syncs of paths that contain this wait as long as it is set.
    holds_syncs: Option<&'static str>,
    waiting: u64,
    /// Reads of the engine's readers wait as long as it is set.
    holds_readers: bool,
    /// Reads that the engine's readers have begun.
    read_ahead: u64,
    /// All other reads wait until the engine's readers have begun so many.
    others_wait_for: u64,
}

impl FaultyDisk {
    /// From the failure on, every such operation fails, until [`FaultyDisk::repair`].
    pub fn fail(&self, failure: Failure) {
        self.plan.state().failure = Some(failure);
    }

    pub fn repair(&self) {
        self.plan.state().failure = None;
    }

    /// How many operations have failed.
    pub fn failed(&self) -> u64 {
        self.plan.state().failed
    }

    /// Syncs wait until [`FaultyDisk::release_syncs`].
    pub fn hold_syncs(&self) {
        self.hold_syncs_of("");
    }

    /// Syncs of paths that contain `path` wait until [`FaultyDisk::release_syncs`].
    pub fn hold_syncs_of(&self, path: &'static str) {
        self.plan.state().holds_syncs = Some(path);
    }

    pub fn release_syncs(&self) {
        self.plan.state().holds_syncs = None;
        self.plan.changed.notify_all();
    }

    /// Returns once a sync is waiting.
    pub fn wait_for_held_sync(&self) {
        let mut state = self.plan.state();
        while state.waiting == 0 {
            state = self.plan.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Reads of the engine's readers wait until [`FaultyDisk::release_readers`].
    pub fn hold_readers(&self) {
        self.plan.state().holds_readers = true;
    }

    pub fn release_readers(&self) {
        self.plan.state().holds_readers = false;
        self.plan.changed.notify_all();
    }

    /// From now on, other reads wait until the engine's readers have begun one more.
    pub fn let_readers_go_first(&self) {
        let mut state = self.plan.state();
        state.others_wait_for = state.read_ahead + 1;
    }

    /// How many reads the engine's readers have begun.
    pub fn read_ahead(&self) -> u64 {
        self.plan.state().read_ahead
    }
}

impl Plan {
    fn wait_to_read(&self) {
        let mut state = self.state();
        let is_reader = std::thread::current().name() == Some("onrush-read");
        state.read_ahead += u64::from(is_reader);
        self.changed.notify_all();
        let waits = |state: &State| {
            if is_reader { state.holds_readers } else { state.read_ahead < state.others_wait_for }
        };
        while waits(&state) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, operation: Operation, path: &Path) -> Result<(), DiskError> {
        let mut state = self.state();
        if operation == Operation::Sync {
            let is_held = |state: &State| {
                state.holds_syncs.is_some_and(|held| path.to_string_lossy().contains(held))
            };
            let counts = u64::from(is_held(&state));
            state.waiting += counts;
            self.changed.notify_all();
            while is_held(&state) {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.waiting -= counts;
        }
        let Some(failure) = &mut state.failure else { return Ok(()) };
        if failure.operation != operation || !path.to_string_lossy().contains(failure.path) {
            return Ok(());
        }
        if failure.skip > 0 {
            failure.skip -= 1;
            return Ok(());
        }
        let kind = failure.kind;
        state.failed += 1;
        Err(DiskError::new(kind, "simulate", path))
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        if mode == OpenMode::CreateNew {
            self.plan.check(Operation::Change, path)?;
        }
        let inner = self.inner.open(path, mode)?;
        Ok(Arc::new(FaultyFile { inner, plan: Arc::clone(&self.plan) }))
    }

    fn create_folder(&self, path: &Path) -> Result<(), DiskError> {
        self.plan.check(Operation::Change, path)?;
        self.inner.create_folder(path)
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, DiskError> {
        self.inner.list(folder)
    }

    fn exists(&self, path: &Path) -> Result<bool, DiskError> {
        self.inner.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.plan.check(Operation::Change, from)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        self.plan.check(Operation::Change, path)?;
        self.inner.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> Result<(), DiskError> {
        self.plan.check(Operation::Sync, folder)?;
        self.inner.sync_folder(folder)
    }

    fn lock(&self, folder: &Path) -> Result<FolderLock, DiskError> {
        self.inner.lock(folder)
    }
}

#[derive(Debug)]
struct FaultyFile {
    inner: Arc<dyn DiskFile>,
    plan: Arc<Plan>,
}

impl DiskFile for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
        self.plan.wait_to_read();
        self.plan.check(Operation::Read, self.path())?;
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.plan.check(Operation::Write, self.path())?;
        self.inner.write_at(buffer, offset)
    }

    fn write_at_durable(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.plan.check(Operation::Write, self.path())?;
        self.inner.write_at(buffer, offset)?;
        self.plan.check(Operation::Sync, self.path())
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.plan.check(Operation::Sync, self.path())?;
        self.inner.sync()
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.inner.len()
    }

    fn set_len(&self, len_bytes: u64) -> Result<(), DiskError> {
        self.plan.check(Operation::Change, self.path())?;
        self.inner.set_len(len_bytes)
    }

    fn allocate(&self, len_bytes: u64) -> Result<(), DiskError> {
        self.plan.check(Operation::Change, self.path())?;
        self.inner.allocate(len_bytes)
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }
}
