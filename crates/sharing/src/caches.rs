//! Caches of one processor for each session, and what it costs them to keep lines coherent.
//!
//! Each processor has a cache without bounds, so that no line leaves it but for a write by another: what
//! moves here moves because it is shared, on machines with large caches as on those with small ones. A line
//! is in one cache that may write it, or in any number that only read it (the states M and S of MESI).

use std::collections::HashMap;

use crate::markers::LINE_BYTES;
use crate::trace::{Access, AccessKind};

/// The most sessions that can be told apart.
pub const SESSIONS_MAX: usize = 128;
/// Everything that runs between the turns of sessions: the engine's own threads.
pub(crate) const BACKGROUND: usize = SESSIONS_MAX;
const WORDS: usize = SESSIONS_MAX / 64 + 1;

/// A set of processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Processors([u64; WORDS]);

impl Processors {
    fn only(processor: usize) -> Self {
        let mut set = Self::default();
        set.add(processor);
        set
    }

    fn add(&mut self, processor: usize) {
        self.0[processor / 64] |= 1 << (processor % 64);
    }

    fn has(self, processor: usize) -> bool {
        self.0[processor / 64] >> (processor % 64) & 1 == 1
    }

    fn len(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

/// What happened to a line, or by the code at an address, while it was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// A session wrote the line while another cache had it: the line changed its owner.
    pub(crate) owner_changes: u64,
    /// A session read the line after another had written it.
    pub(crate) fetches: u64,
    /// Read-modify-writes by sessions, whether the line had to come or was there.
    pub(crate) modifies: u64,
}

impl Counts {
    pub(crate) fn moves(self) -> u64 {
        self.owner_changes + self.fetches
    }
}

#[derive(Clone, Debug, Default)]
struct Line {
    holders: Processors, // whose caches have it; empty before its first access
    writers: Processors, // who wrote it while it was counted
    counts: Counts,
    /// By the address of the code.
    places: HashMap<u64, Counts>,
}

/// The lines of all caches.
#[derive(Debug, Default)]
pub(crate) struct Caches {
    lines: HashMap<u64, Line>,
}

/// What one line did while it was counted.
#[derive(Clone, Debug)]
pub(crate) struct SharedLine {
    pub(crate) address: u64,
    pub(crate) counts: Counts,
    /// How many sessions wrote it.
    pub(crate) writers: u32,
    /// By the address of the code, those that moved it most first.
    pub(crate) places: Vec<(u64, Counts)>,
}

impl Caches {
    /// `processor` accesses memory by the instruction at `code`.
    ///
    /// Loads by the engine's threads are left out: these look at sessions by the clock, which in a trace runs a
    /// hundred times faster than the rows.
    pub(crate) fn access(&mut self, processor: usize, code: u64, access: Access, is_counted: bool) {
        if processor == BACKGROUND && access.kind == AccessKind::Load {
            return;
        }
        let first = access.address / LINE_BYTES;
        let last = (access.address + access.bytes.max(1) - 1) / LINE_BYTES;
        for number in first..=last {
            let line = self.lines.entry(number).or_default();
            let counts = line.access(processor, access.kind);
            if is_counted && processor != BACKGROUND {
                line.count(processor, code, access.kind, counts);
            }
        }
    }

    /// Lines that moved between caches, those that moved most first.
    pub(crate) fn shared_lines(&self) -> Vec<SharedLine> {
        let moved = self.lines.iter().filter(|(_, line)| line.counts.moves() > 0);
        let mut shared: Vec<SharedLine> = moved
            .map(|(number, line)| {
                let mut places: Vec<_> =
                    line.places.iter().map(|(at, counts)| (*at, *counts)).collect();
                places.sort_by_key(|(at, counts)| (std::cmp::Reverse(counts.moves()), *at));
                SharedLine {
                    address: number * LINE_BYTES,
                    counts: line.counts,
                    writers: line.writers.len(),
                    places,
                }
            })
            .collect();
        shared.sort_by_key(|line| (std::cmp::Reverse(line.counts.moves()), line.address));
        shared
    }
}

impl Line {
    /// What it took to give `processor` the line for this access.
    fn access(&mut self, processor: usize, kind: AccessKind) -> Counts {
        let is_new = self.holders == Processors::default();
        let is_here = self.holders.has(processor);
        let mut counts = Counts::default();
        if kind == AccessKind::Load {
            counts.fetches = u64::from(!is_here && !is_new);
            self.holders.add(processor);
        } else {
            let is_ours = self.holders == Processors::only(processor);
            counts.owner_changes = u64::from(!is_ours && !is_new);
            self.holders = Processors::only(processor);
        }
        counts.modifies = u64::from(kind == AccessKind::Modify);
        counts
    }

    fn count(&mut self, processor: usize, code: u64, kind: AccessKind, counts: Counts) {
        if kind != AccessKind::Load {
            self.writers.add(processor);
        }
        if counts == Counts::default() {
            return;
        }
        for sum in [&mut self.counts, self.places.entry(code).or_default()] {
            sum.owner_changes += counts.owner_changes;
            sum.fetches += counts.fetches;
            sum.modifies += counts.modifies;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts_after(accesses: &[(usize, AccessKind)]) -> Counts {
        let mut caches = Caches::default();
        for (processor, kind) in accesses {
            caches.access(*processor, 1, Access { kind: *kind, address: 128, bytes: 8 }, true);
        }
        caches.lines[&2].counts
    }

    use AccessKind::{Load, Modify, Store};

    #[test]
    fn a_line_that_one_session_uses_does_not_move() {
        let counts = counts_after(&[(0, Load), (0, Store), (0, Modify), (0, Load)]);
        assert_eq!((counts.moves(), counts.modifies), (0, 1));
    }

    #[test]
    fn each_write_by_another_session_changes_the_owner() {
        let counts = counts_after(&[(0, Modify), (1, Modify), (0, Modify), (0, Store)]);
        assert_eq!(counts, Counts { owner_changes: 2, fetches: 0, modifies: 3 });
    }

    #[test]
    fn readers_share_a_line_until_somebody_writes_it() {
        let reads = [(0, Store), (1, Load), (1, Load), (2, Load), (0, Load)];
        assert_eq!(counts_after(&reads), Counts { owner_changes: 0, fetches: 2, modifies: 0 });
        let written = counts_after(&[(0, Load), (1, Load), (0, Store), (1, Load)]);
        assert_eq!(written, Counts { owner_changes: 1, fetches: 2, modifies: 0 });
    }

    #[test]
    fn a_line_comes_back_from_the_engines_own_threads() {
        let counts = counts_after(&[(0, Store), (BACKGROUND, Store), (0, Load)]);
        assert_eq!(counts, Counts { owner_changes: 0, fetches: 1, modifies: 0 });
    }

    #[test]
    fn an_access_across_two_lines_uses_both() {
        let mut caches = Caches::default();
        for processor in [0, 1] {
            let across = Access { kind: Store, address: 60, bytes: 8 };
            caches.access(processor, 1, across, true);
        }
        let moved: Vec<_> = caches.shared_lines().iter().map(|line| line.address).collect();
        assert_eq!(moved, [0, 64]);
    }

    #[test]
    fn what_is_not_counted_still_moves_lines() {
        let mut caches = Caches::default();
        let store = Access { kind: Store, address: 0, bytes: 8 };
        caches.access(0, 1, store, false);
        assert!(caches.shared_lines().is_empty());
        caches.access(1, 1, store, true);
        assert_eq!(caches.shared_lines()[0].counts.owner_changes, 1);
    }
}
