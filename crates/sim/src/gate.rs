//! The crash disk with a gate in front of its data files.
//!
//! A checkpoint runs on one thread here, and nothing else would ever happen between two of its
//! steps. So its own disk calls open the gate: whatever hangs behind it runs in the middle of the
//! checkpoint, on the same thread, at a moment that follows from the seed.
//!
//! Invariants
//! 1. Only calls on data files and superblocks open the gate: then the checkpoint holds no latch
//!    and the log is free. Or, for the delayed window, only the rounds of the log. Or only reads of
//!    data files: then whoever needs a leaf has given back its latches and its place. Or, for a disk
//!    that is slow, only changes of the log's files: then nobody else can write the log.
//! 2. What runs behind the gate does not open it again.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onrush_files::{Disk, DiskError, DiskFile, DiskLayer, FileLayer};

use crate::disk::CrashDisk;

/// What runs when the gate opens.
pub type Visitor = Box<dyn FnMut() + Send>;

/// Lets something happen in the middle of disk calls. A clone is the same gate.
#[derive(Clone, Default)]
pub struct Gate {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    open_for: AtomicU8, // a `Calls`, or 0: closed, or a visitor runs
    guest: Mutex<Guest>,
}

#[derive(Default)]
struct Guest {
    visitor: Option<Visitor>, // taken out while it runs
    /// Counts how often the gate was opened and closed: a visitor of before does not come back.
    turn: u64,
}

/// What opens the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Calls {
    Changes = 1,
    Reads = 2,
    Log = 3,
}

const CLOSED: u8 = 0;

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

impl Gate {
    /// A gate that nothing passes yet.
    pub fn new() -> Gate {
        Gate::default()
    }

    /// Runs `visitor` before and after every call on a data file or superblock that changes it.
    pub fn open(&self, visitor: Visitor) {
        self.open_for(Calls::Changes, visitor);
    }

    /// Runs `visitor` before every read of a data file.
    pub fn open_for_reads(&self, visitor: Visitor) {
        self.open_for(Calls::Reads, visitor);
    }

    /// Runs `visitor` before and after every change of a file of the log. The disk is one of
    /// [`GatedDisk::of_all`].
    pub fn open_for_log(&self, visitor: Visitor) {
        self.open_for(Calls::Log, visitor);
    }

    fn open_for(&self, calls: Calls, visitor: Visitor) {
        self.turn(Some(visitor), calls as u8);
    }

    /// From now on calls just pass.
    pub fn close(&self) {
        self.turn(None, CLOSED);
    }

    fn turn(&self, visitor: Option<Visitor>, open_for: u8) {
        let mut guest = self.guest();
        guest.turn += 1;
        guest.visitor = visitor;
        self.shared.open_for.store(open_for, Ordering::SeqCst);
    }

    fn guest(&self) -> MutexGuard<'_, Guest> {
        self.shared.guest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, calls: Calls) {
        let open_for = &self.shared.open_for;
        let order = Ordering::SeqCst;
        if open_for.compare_exchange(calls as u8, CLOSED, order, order).is_err() {
            return;
        }
        let (visitor, turn) = {
            let mut guest = self.guest();
            (guest.visitor.take(), guest.turn)
        };
        let Some(mut visitor) = visitor else { return };
        visitor();
        let mut guest = self.guest();
        if guest.turn == turn {
            guest.visitor = Some(visitor);
            open_for.store(calls as u8, order);
        }
    }
}

/// A crash disk behind a gate.
#[derive(Clone, Debug)]
pub struct GatedDisk {
    disk: CrashDisk,
    gate: Gate,
    gated: Gated,
}

/// What goes through the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Gated {
    /// All changes of files that are not the log's.
    Data,
    /// The durable writes of the log: its rounds.
    Rounds,
    /// All changes, those of the log's files apart.
    All,
}

impl GatedDisk {
    /// Puts `gate` in front of the data files and superblocks of `disk`.
    pub fn new(disk: CrashDisk, gate: Gate) -> GatedDisk {
        GatedDisk { disk, gate, gated: Gated::Data }
    }

    /// Puts `gate` in front of the rounds of the log on `disk`. What runs behind it must not need
    /// another round.
    pub fn of_rounds(disk: CrashDisk, gate: Gate) -> GatedDisk {
        GatedDisk { disk, gate, gated: Gated::Rounds }
    }
}

impl GatedDisk {
    /// Puts `gate` in front of all files of `disk`.
    pub fn of_all(disk: CrashDisk, gate: Gate) -> GatedDisk {
        GatedDisk { disk, gate, gated: Gated::All }
    }
}

impl DiskLayer for GatedDisk {
    fn below(&self) -> &dyn Disk {
        &self.disk
    }

    fn around(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        let is_log = file.path().extension().is_some_and(|ending| ending == "segment");
        let calls = match (self.gated, is_log) {
            (Gated::Data, true) | (Gated::Rounds, false) => return file,
            (Gated::All, true) => Calls::Log,
            (Gated::Data | Gated::All, false) | (Gated::Rounds, true) => Calls::Changes,
        };
        let is_round_only = self.gated == Gated::Rounds;
        Arc::new(GatedFile { file, gate: self.gate.clone(), calls, is_round_only })
    }
}

#[derive(Debug)]
struct GatedFile {
    file: Arc<dyn DiskFile>,
    gate: Gate,
    calls: Calls,
    /// Nothing but durable writes goes through the gate.
    is_round_only: bool,
}

impl GatedFile {
    fn around<T>(&self, call: impl FnOnce(&dyn DiskFile) -> T) -> T {
        self.gate.pass(self.calls);
        let outcome = call(&*self.file);
        self.gate.pass(self.calls);
        outcome
    }
}

impl FileLayer for GatedFile {
    fn below(&self) -> &dyn DiskFile {
        &*self.file
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
        self.gate.pass(Calls::Reads);
        self.file.read_at(buffer, offset)
    }

    fn write(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        if self.is_round_only {
            return self.file.write_at(buffer, offset);
        }
        self.around(|file| file.write_at(buffer, offset))
    }

    fn write_durable(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.around(|file| file.write_at_durable(buffer, offset))
    }

    fn sync_written(&self) -> Result<(), DiskError> {
        if self.is_round_only {
            return self.file.sync();
        }
        self.around(|file| file.sync())
    }
}

/// Where every run keeps its database.
pub fn database_folder() -> PathBuf {
    PathBuf::from("/database")
}
