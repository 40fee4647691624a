//! The crash disk: a disk in memory that remembers what was synced, and shows what a power cut
//! would leave.
//!
//! Every operation that changes the disk gets a number. A power cut *at boundary N* comes after the
//! first N operations. [`CrashDisk::crash_image`] gives the disk as it is found afterwards;
//! [`Sweep`] does so for boundary after boundary at little cost. Names need [`Disk::sync_folder`]
//! to survive, content needs `sync` or `write_at_durable`: a stricter disk than most real ones.
//! Calls can also be made to fail, see [`Fault`].
//!
//! Invariants
//! 1. Reads and writes see the live state, never what a crash would leave.
//! 2. An operation is recorded in the same step in which it changes the live state, so the list is
//!    what happened.
//! 3. Opening an existing file, reading and listing change nothing, and are no operations.

mod boundary;
mod content;
mod faults;
mod file;
mod image;
mod model;
mod names;
mod operation;
mod planted;
mod sweep;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onrush_files::{Disk, DiskError, DiskErrorKind, DiskFile, FolderLock, OpenMode};

pub use boundary::{BoundaryKind, Role, Step};
pub use faults::{Call, Fault, FaultError, Repeat, Unsynced};
pub use image::CrashMode;
pub use operation::{FileId, Operation};
pub use planted::PlantedDisk;
pub use sweep::Sweep;

use crate::random::Random;
use faults::Faults;
use file::CrashFile;
use model::Model;

/// A disk in memory whose power can fail. A clone is the same disk.
#[derive(Clone, Debug, Default)]
pub struct CrashDisk {
    state: Arc<Mutex<State>>, // taken for the whole of each call, so that operations have one order
}

#[derive(Debug, Default)]
struct State {
    base: Model,                // the disk before the first operation of the list
    first: usize,               // number of operations forgotten before the list begins
    operations: Vec<Operation>, // all since then
    live: Model,                // base with all operations applied
    faults: Faults,
    locked: BTreeSet<PathBuf>,
    power_ends_at: Option<usize>, // no operation gets this number or a higher one
}

impl CrashDisk {
    /// An empty disk.
    pub fn new() -> CrashDisk {
        CrashDisk::default()
    }

    /// How many operations were done: the number of the last boundary.
    pub fn operation_count(&self) -> usize {
        self.locked_state().operation_count()
    }

    /// What a power cut at this boundary leaves: a disk of its own, which begins at boundary 0
    /// again.
    ///
    /// It replays the run from its start; for many boundaries use [`CrashDisk::sweep`].
    ///
    /// # Panics
    /// When there were fewer operations, or those before `at_operation` were forgotten.
    pub fn crash_image(&self, at_operation: usize, mode: CrashMode, seed: u64) -> CrashDisk {
        let state = self.locked_state();
        if at_operation == state.operation_count() {
            return image_of(&state.live, at_operation, mode, seed);
        }
        drop(state);
        let mut sweep = self.sweep();
        sweep.advance_to(at_operation);
        sweep.image(mode, seed)
    }

    /// What is on the disk, in one number: disks with the same files under the same names have the same.
    pub fn digest(&self) -> u128 {
        self.locked_state().live.digest()
    }

    /// Whether a power cut now could lose anything.
    pub fn has_unsynced(&self) -> bool {
        self.locked_state().live.has_unsynced()
    }

    /// Makes a folder in one that there is. As of a file, its name needs a sync of the folder around
    /// it; [`Disk::create_folder`] does that, too.
    ///
    /// # Errors
    /// There is something of that name, or no folder around it; the power is off.
    pub fn make_folder(&self, path: &Path) -> Result<(), DiskError> {
        let mut state = self.begin(Some(Call::Names), "create folder", path)?;
        let names = state.live.names();
        if names.file(path).is_some() || names.is_folder(path) {
            return Err(DiskError::new(DiskErrorKind::AlreadyExists, "create folder", path));
        }
        state.check_folder("create folder", path.parent().unwrap_or(path))?;
        let made = Operation::MakeFolder { path: path.to_path_buf() };
        state.record("create folder", path, made).map(|_| ())
    }

    /// A walk through all boundaries up to now, from the oldest that is not forgotten.
    pub fn sweep(&self) -> Sweep {
        let state = self.locked_state();
        Sweep::new(state.base.clone(), state.operations.clone(), state.first)
    }

    /// Frees the memory that the list of operations takes. Boundaries before this one can no longer
    /// be crashed at.
    pub fn forget_history(&self) {
        let mut state = self.locked_state();
        state.first = state.operation_count();
        state.operations.clear();
        state.base = state.live.clone();
    }

    /// Plans a fault.
    pub fn inject(&self, fault: Fault) {
        self.locked_state().faults.inject(fault);
    }

    /// From now on the disk lies: it confirms syncs, and what it confirms is not durable. Names neither.
    pub fn lie_about_syncs(&self) {
        self.locked_state().faults.lie();
    }

    /// Takes back all faults; what they did stays done.
    pub fn clear_faults(&self) {
        self.locked_state().faults.clear();
    }

    /// How many calls of a kind there were: the highest `nth` worth injecting into the same run.
    pub fn calls(&self, call: Call) -> u64 {
        self.locked_state().faults.calls(call)
    }

    /// Lets the power fail at a boundary: once that many operations have happened, every call
    /// fails, reads included.
    pub fn power_off_at(&self, at_operation: usize) {
        self.locked_state().power_ends_at = Some(at_operation);
    }

    /// Whether the power has failed.
    pub fn is_power_off(&self) -> bool {
        self.locked_state().is_power_off()
    }

    fn locked_state(&self) -> MutexGuard<'_, State> {
        // An assertion that fails in one thread must not hide what the others find.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a call on a name or folder.
    fn begin(
        &self,
        call: Option<Call>,
        operation: &'static str,
        path: &Path,
    ) -> Result<MutexGuard<'_, State>, DiskError> {
        let mut state = self.locked_state();
        state.check_power(operation, path)?;
        match call.and_then(|call| state.faults.meet(call)) {
            Some(fault) => Err(fault_error(fault, operation, path)),
            None => Ok(state),
        }
    }
}

impl State {
    fn operation_count(&self) -> usize {
        self.first + self.operations.len()
    }

    fn is_power_off(&self) -> bool {
        self.power_ends_at.is_some_and(|end| self.operation_count() >= end)
    }

    fn check_power(&self, operation: &'static str, path: &Path) -> Result<(), DiskError> {
        if self.is_power_off() {
            let cause = io::Error::other("the power is off");
            return Err(DiskError::from_io(operation, path, cause));
        }
        Ok(())
    }

    /// Does one operation and records it; returns its number. The power may fail just before.
    fn record(
        &mut self,
        call: &'static str,
        path: &Path,
        operation: Operation,
    ) -> Result<usize, DiskError> {
        self.check_power(call, path)?;
        let number = self.operation_count();
        self.live.apply(number, &operation);
        self.operations.push(operation);
        Ok(number)
    }

    fn check_folder(&self, operation: &'static str, folder: &Path) -> Result<(), DiskError> {
        if self.live.names().is_folder(folder) {
            return Ok(());
        }
        Err(DiskError::new(DiskErrorKind::NotFound, operation, folder))
    }

    fn file(&self, operation: &'static str, path: &Path) -> Result<FileId, DiskError> {
        let file = self.live.names().file(path);
        file.ok_or_else(|| DiskError::new(DiskErrorKind::NotFound, operation, path))
    }

    fn create_file(&mut self, path: &Path) -> Result<FileId, DiskError> {
        if self.live.names().live().contains_key(path) || self.live.names().is_folder(path) {
            return Err(DiskError::new(DiskErrorKind::AlreadyExists, "create", path));
        }
        self.check_folder("create", path.parent().unwrap_or(path))?;
        let file = self.live.next_file();
        self.record("create", path, Operation::Create { path: path.to_path_buf(), file })?;
        Ok(file)
    }

    fn make_folder(&mut self, path: &Path) -> Result<(), DiskError> {
        if self.live.names().file(path).is_some() {
            return Err(DiskError::new(DiskErrorKind::AlreadyExists, "create folder", path));
        }
        if !self.live.names().is_folder(path) {
            let made = Operation::MakeFolder { path: path.to_path_buf() };
            self.record("create folder", path, made)?;
        }
        let Some(folder) = path.parent() else { return Ok(()) };
        if let Some(fault) = self.faults.meet(Call::SyncFolder) {
            return Err(fault_error(fault, "sync folder", folder));
        }
        if self.faults.is_lying() {
            return Ok(());
        }
        let synced = Operation::SyncFolder { folder: folder.to_path_buf() };
        self.record("sync folder", folder, synced).map(|_| ())
    }
}

impl Disk for CrashDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        let id = match mode {
            OpenMode::CreateNew => {
                self.begin(Some(Call::Names), "create", path)?.create_file(path)?
            }
            OpenMode::ReadOnly | OpenMode::ReadWrite => {
                self.begin(None, "open", path)?.file("open", path)?
            }
        };
        let writable = mode != OpenMode::ReadOnly;
        Ok(planted::around(Arc::new(CrashFile::new(self.clone(), path, id, writable))))
    }

    fn create_folder(&self, path: &Path) -> Result<(), DiskError> {
        let mut state = self.begin(Some(Call::Names), "create folder", path)?;
        let mut folders: Vec<&Path> = path.ancestors().collect();
        folders.reverse();
        for folder in folders {
            if folder == path || !state.live.names().is_folder(folder) {
                state.make_folder(folder)?;
            }
        }
        Ok(())
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, DiskError> {
        let state = self.begin(None, "list", folder)?;
        state.check_folder("list", folder)?;
        Ok(state.live.list(folder))
    }

    fn exists(&self, path: &Path) -> Result<bool, DiskError> {
        let state = self.begin(None, "look for", path)?;
        let names = state.live.names();
        Ok(names.file(path).is_some() || names.is_folder(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        let mut state = self.begin(Some(Call::Names), "rename", from)?;
        state.file("rename", from)?;
        state.check_folder("rename to", to.parent().unwrap_or(to))?;
        if state.live.names().is_folder(to) {
            return Err(DiskError::new(DiskErrorKind::AlreadyExists, "rename to", to));
        }
        if from == to {
            return Ok(());
        }
        let renamed = Operation::Rename { from: from.to_path_buf(), to: to.to_path_buf() };
        state.record("rename", from, renamed).map(|_| ())
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        let mut state = self.begin(Some(Call::Names), "remove", path)?;
        state.file("remove", path)?;
        state.record("remove", path, Operation::Remove { path: path.to_path_buf() }).map(|_| ())
    }

    fn sync_folder(&self, folder: &Path) -> Result<(), DiskError> {
        if planted::leaves_out_names(self, folder) {
            return Ok(());
        }
        let mut state = self.begin(Some(Call::SyncFolder), "sync folder", folder)?;
        state.check_folder("sync folder", folder)?;
        if state.faults.is_lying() {
            return Ok(());
        }
        let synced = Operation::SyncFolder { folder: folder.to_path_buf() };
        state.record("sync folder", folder, synced).map(|_| ())
    }

    fn lock(&self, folder: &Path) -> Result<FolderLock, DiskError> {
        let mut state = self.begin(None, "lock", folder)?;
        state.check_folder("lock", folder)?;
        if !state.locked.insert(folder.to_path_buf()) {
            return Err(onrush_files::lock::locked_error(folder, "this process"));
        }
        let held = CrashLock { disk: self.clone(), folder: folder.to_path_buf() };
        Ok(FolderLock::new(folder, held))
    }
}

struct CrashLock {
    disk: CrashDisk,
    folder: PathBuf,
}

impl Drop for CrashLock {
    fn drop(&mut self) {
        self.disk.locked_state().locked.remove(&self.folder);
    }
}

/// A new disk as a power cut leaves it. The stream of random numbers is the boundary's and the
/// mode's own.
fn image_of(model: &Model, at_operation: usize, mode: CrashMode, seed: u64) -> CrashDisk {
    let part = (at_operation as u64) << 8 | mode as u64;
    let model = model.image(mode, &mut Random::for_part(seed, part));
    let state = State { base: model.clone(), live: model, ..State::default() };
    CrashDisk { state: Arc::new(Mutex::new(state)) }
}

fn fault_error(fault: Fault, operation: &'static str, path: &Path) -> DiskError {
    let code = match fault.error {
        FaultError::Device => 5,    // EIO
        FaultError::Full => 28,     // ENOSPC
        FaultError::ReadOnly => 30, // EROFS
    };
    DiskError::from_io(operation, path, io::Error::from_raw_os_error(code))
}
