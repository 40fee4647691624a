//! What one file holds: what reads show, what is durable, and the changes in between.
//!
//! Invariants
//! 1. `durable` never holds a byte of a change that was neither synced nor made durable by itself.
//! 2. An image applies the durable changes among `pending` always, and all kept changes in the
//!    order in which they were made: an older write never comes out on top of a newer durable one.
//! 3. Until something was lost by a failed sync, `durable` with all of `pending` applied equals
//!    `live`.

use std::sync::Arc;

use onrush_files::SparseBytes;

use super::image::{ContentFate, CrashMode};
use crate::random::Random;

/// The unit in which devices write whole or not at all, at the least.
const SECTOR_BYTES: u64 = 512;
/// The unit in which many devices and file systems write.
const BLOCK_BYTES: u64 = 4096;

/// A change of content.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { offset: u64, bytes: Arc<[u8]> },
    SetLen(u64),
    Allocate(u64),
}

#[derive(Clone, Debug)]
struct Pending {
    number: usize, // of the operation
    change: Change,
    durable: bool, // made durable by itself, while earlier changes are not
}

/// One file's bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    live: SparseBytes,
    durable: SparseBytes,
    pending: Vec<Pending>,
    lost_something: bool, // by a failed sync: `live` shows what `durable` will never get
}

impl Change {
    fn apply(&self, bytes: &mut SparseBytes) {
        match self {
            Change::Write { offset, bytes: written } => bytes.write(written, *offset),
            Change::SetLen(len) => bytes.set_len(*len),
            Change::Allocate(len) => bytes.allocate(*len),
        }
    }
}

impl Content {
    /// A file on a disk that was just switched on.
    pub(super) fn from_durable(bytes: SparseBytes) -> Content {
        Content { live: bytes.clone(), durable: bytes, ..Content::default() }
    }

    pub(super) fn live(&self) -> &SparseBytes {
        &self.live
    }

    pub(super) fn has_unsynced(&self) -> bool {
        self.lost_something || !self.pending.is_empty()
    }

    pub(super) fn change(&mut self, number: usize, change: Change) {
        change.apply(&mut self.live);
        self.pending.push(Pending { number, change, durable: false });
    }

    pub(super) fn make_durable(&mut self, number: usize) {
        if let Some(found) = self.pending.iter_mut().rev().find(|found| found.number == number) {
            found.durable = true;
        }
        self.fold_durable();
    }

    /// Moves the oldest changes into `durable`, up to the first one that is not.
    fn fold_durable(&mut self) {
        let done = self.pending.iter().take_while(|pending| pending.durable).count();
        for pending in self.pending.drain(..done) {
            pending.change.apply(&mut self.durable);
        }
    }

    pub(super) fn sync(&mut self) {
        if self.lost_something {
            for pending in &self.pending {
                pending.change.apply(&mut self.durable);
            }
        } else {
            self.durable = self.live.clone();
        }
        self.pending.clear();
    }

    pub(super) fn lose_unsynced(&mut self) {
        self.pending.retain(|pending| pending.durable);
        self.lost_something = true;
        self.fold_durable();
    }

    /// What a power cut leaves.
    pub(super) fn image(&self, mode: CrashMode, random: &mut Random) -> SparseBytes {
        let mut bytes = self.durable.clone();
        let durable_len = self.durable.len();
        let fate = mode.content_fate();
        let kept_of_8 = 1 + random.below(7);
        for pending in &self.pending {
            let change = &pending.change;
            let all = pending.durable || fate == ContentFate::Kept;
            if all || (fate == ContentFate::Subset && random.chance(kept_of_8, 8)) {
                change.apply(&mut bytes);
                continue;
            }
            match fate {
                ContentFate::Lost | ContentFate::Kept | ContentFate::Subset => {}
                ContentFate::OnlyGrowth => grow(&mut bytes, change, durable_len),
                ContentFate::TornSectors => {
                    tear(&mut bytes, change, SECTOR_BYTES, kept_of_8, random)
                }
                ContentFate::TornBlocks => tear(&mut bytes, change, BLOCK_BYTES, kept_of_8, random),
                ContentFate::Garbage => spoil(&mut bytes, change, random),
            }
        }
        bytes
    }
}

/// The length arrives, the bytes do not.
fn grow(bytes: &mut SparseBytes, change: &Change, durable_len: u64) {
    let end = match change {
        Change::Write { offset, bytes } => offset + bytes.len() as u64,
        Change::SetLen(len) | Change::Allocate(len) => *len,
    };
    if end > durable_len && end > bytes.len() {
        bytes.set_len(end);
    }
}

/// Each unit of a write arrives or not by itself; so does the length.
fn tear(
    bytes: &mut SparseBytes,
    change: &Change,
    unit_bytes: u64,
    kept_of_8: u64,
    random: &mut Random,
) {
    let Change::Write { offset, bytes: written } = change else {
        if random.chance(kept_of_8, 8) {
            change.apply(bytes);
        }
        return;
    };
    if random.chance(kept_of_8, 8) {
        grow(bytes, change, 0);
    }
    for (position, unit) in units(*offset, written, unit_bytes) {
        if random.chance(kept_of_8, 8) {
            bytes.write(unit, position);
        }
    }
}

/// Each sector of a write is old, new, or neither. A sector that is written with the bytes it has
/// stays as it is: recovery does that on purpose.
fn spoil(bytes: &mut SparseBytes, change: &Change, random: &mut Random) {
    let Change::Write { offset, bytes: written } = change else {
        return tear(bytes, change, SECTOR_BYTES, 4, random);
    };
    let mut before = [0; SECTOR_BYTES as usize];
    for (position, sector) in units(*offset, written, SECTOR_BYTES) {
        let before = &mut before[..sector.len()];
        let same = bytes.read(before, position) && before == sector;
        match random.below(3) {
            _ if same => {}
            0 => bytes.write(sector, position),
            1 => {
                let mut garbage = sector.to_vec();
                random.fill(&mut garbage);
                bytes.write(&garbage, position);
            }
            _ => {}
        }
    }
}

/// Cuts a write where the units of the file end.
fn units(offset: u64, written: &[u8], unit_bytes: u64) -> impl Iterator<Item = (u64, &[u8])> {
    let mut position = offset;
    let mut rest = written;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let to_unit_end = usize::try_from(unit_bytes - position % unit_bytes).expect("one unit");
        let (unit, after) = rest.split_at(to_unit_end.min(rest.len()));
        let start = position;
        position += unit.len() as u64;
        rest = after;
        Some((start, unit))
    })
}
