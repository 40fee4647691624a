//! Calls that fail on purpose while the disk is alive.
//!
//! Invariant: a fault counts the calls of its kind from the moment it is injected, the first being
//! 1; calls that fail for reasons of their own (a missing name) count too.

use std::collections::BTreeMap;

/// Kinds of calls that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Call {
    /// Any of the others but `Read`.
    AnyChange,
    /// `read_at`.
    Read,
    /// `write_at` and `write_at_durable`.
    Write,
    /// `sync` of a file.
    Sync,
    /// `sync_folder`, and the ones inside `create_folder`.
    SyncFolder,
    /// `allocate`.
    Allocate,
    /// `set_len`.
    SetLen,
    /// `open` of a new file, `create_folder`, `rename` and `remove`.
    Names,
}

/// The error of a call that fails on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultError {
    /// EIO: the device failed.
    Device,
    /// ENOSPC: the disk is full.
    Full,
    /// EROFS: the file system was mounted anew so that nobody may write. Nothing becomes of any bytes.
    ReadOnly,
}

/// How long a fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// One call fails, the next ones work again.
    Once,
    /// From the first failing call on, all of this kind fail.
    ForEver,
}

/// What becomes of the bytes a failed write or sync was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsynced {
    /// Write: about half of it was written. Sync: what was unsynced stays so, and the next sync may
    /// succeed.
    Kept,
    /// Write: nothing was written. Sync: what was unsynced will never be durable, though reads
    /// still show it and the next sync succeeds. Linux does this.
    Lost,
}

/// One planned fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of call.
    pub call: Call,
    /// Which call of this kind fails, counted from the injection on, from 1.
    pub nth: u64,
    /// Its error.
    pub error: FaultError,
    /// Whether later ones fail too.
    pub repeat: Repeat,
    /// What becomes of the bytes.
    pub unsynced: Unsynced,
}

/// Faults to come, and how many calls there were.
#[derive(Debug, Default)]
pub(super) struct Faults {
    planned: Vec<(Fault, u64)>, // with the number of its kind's calls when it was injected
    lies: bool,
    calls: BTreeMap<Call, u64>,
}

impl Faults {
    pub(super) fn inject(&mut self, fault: Fault) {
        let before = self.calls(fault.call);
        self.planned.push((fault, before));
    }

    pub(super) fn clear(&mut self) {
        self.planned.clear();
        self.lies = false;
    }

    /// From now on syncs are confirmed, and nothing becomes durable by them.
    pub(super) fn lie(&mut self) {
        self.lies = true;
    }

    pub(super) fn is_lying(&self) -> bool {
        self.lies
    }

    pub(super) fn calls(&self, call: Call) -> u64 {
        self.calls.get(&call).copied().unwrap_or(0)
    }

    /// Counts a call, and says whether it fails.
    pub(super) fn meet(&mut self, call: Call) -> Option<Fault> {
        *self.calls.entry(call).or_default() += 1;
        if call != Call::Read {
            *self.calls.entry(Call::AnyChange).or_default() += 1;
        }
        let met = self.planned.iter().find(|(fault, before)| {
            let counts =
                fault.call == call || (fault.call == Call::AnyChange && call != Call::Read);
            let number = self.calls(fault.call) - before;
            counts
                && match fault.repeat {
                    Repeat::Once => number == fault.nth,
                    Repeat::ForEver => number >= fault.nth,
                }
        });
        met.map(|(fault, _)| *fault)
    }
}
