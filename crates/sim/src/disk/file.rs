//! One open file of the crash disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};

use onrush_files::{DiskError, DiskErrorKind, DiskFile};

use super::faults::{Call, Fault, FaultError, Unsynced};
use super::operation::{FileId, Operation};
use super::{CrashDisk, State, fault_error};

/// What a failed write leaves is cut here, as a device would.
const SECTOR_BYTES: usize = 512;

#[derive(Debug)]
pub(super) struct CrashFile {
    disk: CrashDisk,
    path: PathBuf,
    id: FileId,
    writable: bool,
}

impl CrashFile {
    pub(super) fn new(disk: CrashDisk, path: &Path, id: FileId, writable: bool) -> CrashFile {
        CrashFile { disk, path: path.to_path_buf(), id, writable }
    }

    /// Starts a call: the state, and the fault it has to meet.
    fn begin(
        &self,
        call: Call,
        operation: &'static str,
    ) -> Result<(MutexGuard<'_, State>, Option<Fault>), DiskError> {
        let mut state = self.disk.locked_state();
        state.check_power(operation, &self.path)?;
        let changes = matches!(call, Call::Write | Call::SetLen | Call::Allocate);
        if changes && !self.writable {
            return Err(DiskError::new(DiskErrorKind::ReadOnly, operation, &self.path));
        }
        let fault = state.faults.meet(call);
        Ok((state, fault))
    }

    /// Writes; returns the number of the operation, and the state still locked.
    fn write(
        &self,
        buffer: &[u8],
        offset: u64,
    ) -> Result<(MutexGuard<'_, State>, usize), DiskError> {
        let (mut state, fault) = self.begin(Call::Write, "write")?;
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| i64::try_from(end).is_err()) {
            let cause = io::ErrorKind::FileTooLarge.into();
            return Err(DiskError::from_io("write", &self.path, cause).at(offset));
        }
        let write_of = |bytes: &[u8]| {
            let bytes = Arc::from(bytes);
            Operation::Write { file: self.id, offset, bytes }
        };
        let Some(fault) = fault else {
            let number = state.record("write", &self.path, write_of(buffer))?;
            return Ok((state, number));
        };
        let half = &buffer[..buffer.len() / 2 / SECTOR_BYTES * SECTOR_BYTES];
        let is_tried = fault.error != FaultError::ReadOnly;
        if is_tried && fault.unsynced == Unsynced::Kept && !half.is_empty() {
            state.record("write", &self.path, write_of(half))?;
        }
        Err(fault_error(fault, "write", &self.path).at(offset))
    }

    fn change(
        &self,
        call: Call,
        operation: &'static str,
        change: Operation,
    ) -> Result<(), DiskError> {
        let (mut state, fault) = self.begin(call, operation)?;
        match fault {
            Some(fault) => Err(fault_error(fault, operation, &self.path)),
            None => state.record(operation, &self.path, change).map(|_| ()),
        }
    }
}

impl DiskFile for CrashFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
        let (state, fault) = self.begin(Call::Read, "read")?;
        if let Some(fault) = fault {
            return Err(fault_error(fault, "read", &self.path).at(offset));
        }
        if state.live.content(self.id).live().read(buffer, offset) {
            return Ok(());
        }
        Err(DiskError::new(DiskErrorKind::EndOfFile, "read", &self.path).at(offset))
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.write(buffer, offset).map(|_| ())
    }

    fn write_at_durable(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        let (mut state, write) = self.write(buffer, offset)?;
        if state.faults.is_lying() {
            return Ok(());
        }
        let durable = Operation::MakeDurable { file: self.id, write };
        state.record("write", &self.path, durable).map(|_| ())
    }

    fn sync(&self) -> Result<(), DiskError> {
        let (mut state, fault) = self.begin(Call::Sync, "sync")?;
        let Some(fault) = fault else {
            if state.faults.is_lying() {
                return Ok(());
            }
            let synced = Operation::Sync { file: self.id };
            return state.record("sync", &self.path, synced).map(|_| ());
        };
        if fault.error != FaultError::ReadOnly && fault.unsynced == Unsynced::Lost {
            state.record("sync", &self.path, Operation::LoseUnsynced { file: self.id })?;
        }
        Err(fault_error(fault, "sync", &self.path))
    }

    fn len(&self) -> Result<u64, DiskError> {
        let state = self.disk.locked_state();
        state.check_power("measure", &self.path)?;
        Ok(state.live.content(self.id).live().len())
    }

    fn set_len(&self, len_bytes: u64) -> Result<(), DiskError> {
        let change = Operation::SetLen { file: self.id, len_bytes };
        self.change(Call::SetLen, "set the length of", change)
    }

    fn allocate(&self, len_bytes: u64) -> Result<(), DiskError> {
        let change = Operation::Allocate { file: self.id, len_bytes };
        self.change(Call::Allocate, "reserve space for", change)
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
