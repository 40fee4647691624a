//! Space to append, promised before anything is latched: bytes of the ring and of the log files.
//!
//! The writer publishes a limit: no record may end above it. A permit that has space gets a credit of
//! `quantum` bytes at a time, so that most inserts look at nothing shared. Larger records are
//! promised one by one.
//!
//! Invariants
//! 1. tail + permits * quantum + large <= limit at each grant. What the permits can still use of
//!    earlier grants is at most permits * quantum, whoever granted when; so the tail never passes
//!    the limit.
//! 2. `large` is read before the tail: a large record leaves `large` only after it is in the tail.
//! 3. When the limit has to go back (short blocks have used up file space) the epoch goes up and
//!    every credit is void; each permit can use at most one record of it on its way. The limit is
//!    computed with that to spare.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crossbeam_utils::CachePadded;
use onrush_lsn::{AtomicLsn, Lsn};

/// Who may append how much.
#[derive(Debug)]
pub(crate) struct AppendSpace {
    quantum: u64,
    record_bytes_max: u64,
    slack: u64,                          // permits * quantum
    limit: CachePadded<AtomicLsn>,       // stored by the writer once a round, read for each grant
    epoch: CachePadded<AtomicU32>,       // read for each record, changed hardly ever
    large: CachePadded<AtomicU64>, // promised to records larger than a quantum and not reserved yet
    permits: Box<[CachePadded<Credit>]>, // each used by the holder of its permit alone
}

#[derive(Debug, Default)]
struct Credit {
    bytes: AtomicU64,
    large_bytes: AtomicU64,
    epoch: AtomicU32,
}

impl AppendSpace {
    /// Space for records that end below `limit`.
    pub(crate) fn new(
        permits: usize,
        ring_bytes: usize,
        record_bytes_max: usize,
        limit: Lsn,
    ) -> Self {
        let quantum = (ring_bytes / (8 * permits)).min(64 << 10).min(record_bytes_max) as u64;
        Self {
            quantum,
            record_bytes_max: record_bytes_max as u64,
            slack: quantum * permits as u64,
            limit: CachePadded::new(AtomicLsn::new(limit)),
            epoch: CachePadded::default(),
            large: CachePadded::default(),
            permits: (0..permits).map(|_| CachePadded::default()).collect(),
        }
    }

    /// Is there, or can there be made, a promise of `bytes` for `permit`?
    #[inline]
    pub(crate) fn has(&self, permit: usize, bytes: u64, tail: impl Fn() -> Lsn) -> bool {
        let credit = &self.permits[permit];
        let epoch = self.epoch.load(Acquire);
        let is_current = credit.epoch.load(Relaxed) == epoch;
        if is_current && credit.bytes.load(Relaxed) >= bytes {
            return true;
        }
        self.grant(credit, bytes, epoch, tail)
    }

    #[cold]
    fn grant(&self, credit: &Credit, bytes: u64, epoch: u32, tail: impl Fn() -> Lsn) -> bool {
        self.take_back(credit);
        credit.epoch.store(epoch, Relaxed);
        if bytes <= self.quantum {
            let used = self.large.load(Acquire) + self.slack; // before the tail: invariant 2
            let is_free = tail() + used <= self.limit.load(Acquire);
            if is_free {
                credit.bytes.store(self.quantum, Relaxed);
            }
            return is_free;
        }
        if bytes > self.record_bytes_max {
            return false;
        }
        let used = self.large.fetch_add(bytes, AcqRel) + bytes + self.slack;
        let is_free = tail() + used <= self.limit.load(Acquire);
        credit.large_bytes.store(bytes, Relaxed);
        if is_free {
            credit.bytes.store(bytes, Relaxed);
        } else {
            self.take_back(credit);
        }
        is_free
    }

    /// Would a permit that has no credit get `bytes` now? Promises nothing and touches no credit, so
    /// anyone may ask.
    pub(crate) fn is_free(&self, bytes: u64, tail: impl Fn() -> Lsn) -> bool {
        let large = if bytes <= self.quantum { 0 } else { bytes };
        let used = self.large.load(Acquire) + large + self.slack;
        tail() + used <= self.limit.load(Acquire)
    }

    fn take_back(&self, credit: &Credit) {
        credit.bytes.store(0, Relaxed);
        let large_bytes = credit.large_bytes.load(Relaxed);
        if large_bytes > 0 {
            credit.large_bytes.store(0, Relaxed);
            self.large.fetch_sub(large_bytes, AcqRel);
        }
    }

    /// `permit` has reserved `bytes` (they are in the tail).
    #[inline]
    pub(crate) fn used(&self, permit: usize, bytes: u64) {
        let credit = &self.permits[permit];
        let left = credit.bytes.load(Relaxed);
        debug_assert!(left >= bytes, "permit {permit} reserved {bytes} bytes without space");
        credit.bytes.store(left.saturating_sub(bytes), Relaxed);
        if credit.large_bytes.load(Relaxed) > 0 {
            self.take_back(credit);
        }
    }

    /// For the writer: no record may end above `limit` from now on.
    pub(crate) fn publish(&self, limit: Lsn) {
        let before = self.limit.load(Relaxed);
        self.limit.store(limit, Release);
        if limit < before {
            self.epoch.fetch_add(1, AcqRel);
        }
    }

    /// The log has failed or is closed: there is no space any more, and every credit is void.
    pub(crate) fn close(&self) {
        self.limit.store(Lsn::ZERO, Release);
        self.epoch.fetch_add(1, AcqRel);
    }

    /// The limit as last published.
    pub(crate) fn limit(&self) -> Lsn {
        self.limit.load(Acquire)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const LIMIT: Lsn = Lsn(1 << 20);

    #[test]
    fn promises_end_below_the_limit() {
        let space = AppendSpace::new(4, 1 << 20, 1 << 20, LIMIT);
        let mut tail = Lsn::ZERO;
        while space.has(0, 20, || tail) {
            tail += 20;
            space.used(0, 20);
        }
        assert!(tail <= LIMIT);
        assert!(tail + space.slack + space.quantum > LIMIT, "space is left unused");
    }

    #[test]
    fn a_large_promise_counts_against_others_until_it_is_used() {
        let space = AppendSpace::new(2, 1 << 20, 1 << 20, LIMIT);
        assert!(space.has(0, 700_000, || Lsn::ZERO));
        assert!(!space.has(1, 700_000, || Lsn::ZERO));
        assert!(space.has(1, 20, || Lsn::ZERO));
        space.used(0, 700_000);
        assert_eq!(space.large.load(Relaxed), 0);
        assert!(!space.has(1, 700_000, || Lsn(700_000)));
        space.publish(Lsn(2 << 20));
        assert!(space.has(1, 700_000, || Lsn(700_000)));
    }

    #[test]
    fn a_limit_that_goes_back_voids_every_credit() {
        let space = AppendSpace::new(2, 1 << 20, 1 << 20, LIMIT);
        assert!(space.has(0, 20, || Lsn::ZERO));
        space.publish(Lsn(100));
        assert!(!space.has(0, 20, || Lsn::ZERO));
        space.publish(LIMIT);
        assert!(space.has(0, 20, || Lsn::ZERO));
    }
}
