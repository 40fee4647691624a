//! Which records are complete: the tail, the marks of those in flight, and the completed prefix.
//!
//! Whoever inserts marks its permit, takes its bytes from the tail, copies, and clears the mark.
//! Everything below min(tail, every mark) is complete. No hole list, and nobody waits for a
//! predecessor.
//!
//! Invariants
//! 1. A mark is at or below the LSN that its permit reserves next, and is stored before the tail
//!    moves. It begins where the permit's last record ended: a look at the tail would be a second way of its
//!    cache line to this processor, and rows can go no faster than that line does.
//! 2. Whoever reads the tail first and every mark then sees, for each record below that tail, its
//!    mark, or all of its bytes. (Tail: AcqRel additions form a release sequence. Mark: Release
//!    stores, Acquire loads.)
//! 3. The prefix never goes back. A permit whose last record is old stores a mark far below the prefix; its
//!    record will lie above, because its addition to the tail comes after. Hence
//!    max(previous, computed).

use std::sync::atomic::Ordering;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crossbeam_utils::CachePadded;
use onrush_lsn::{AtomicLsn, Lsn};

/// The mark of one permit: at or below its record in flight, if it has one.
#[derive(Debug)]
struct Mark {
    lsn: AtomicLsn,
    /// The end of the permit's last record; the tail is there or above. Used by the holder of the permit alone, so
    /// the model checker need not see it.
    last_end: std::sync::atomic::AtomicU64,
}

impl Mark {
    /// What a permit without a record in flight holds: no record is above it.
    const NOTHING: Lsn = Lsn::MAX;

    fn new(start: Lsn) -> Self {
        Self { lsn: AtomicLsn::new(Self::NOTHING), last_end: start.0.into() }
    }

    #[inline]
    fn get(&self, order: Ordering) -> Option<Lsn> {
        Some(self.lsn.load(order)).filter(|lsn| *lsn != Self::NOTHING)
    }

    #[inline]
    fn set(&self, lsn: Option<Lsn>) {
        self.lsn.store(lsn.unwrap_or(Self::NOTHING), Release);
    }
}

/// The tail of the log and the records in flight below it.
#[derive(Debug)]
pub(crate) struct InFlight {
    tail: CachePadded<AtomicLsn>,    // added to by inserters, read by anyone
    prefix: CachePadded<AtomicLsn>,  // raised by whoever computes it
    marks: Box<[CachePadded<Mark>]>, // each stored by the holder of its permit alone
}

impl InFlight {
    /// `permits` empty permits in a log that starts at `start`.
    pub(crate) fn new(permits: usize, start: Lsn) -> Self {
        Self {
            tail: CachePadded::new(AtomicLsn::new(start)),
            prefix: CachePadded::new(AtomicLsn::new(start)),
            marks: (0..permits).map(|_| CachePadded::new(Mark::new(start))).collect(),
        }
    }

    /// Marks `permit` as in flight and takes the next `bytes`; returns where they start.
    #[inline]
    pub(crate) fn reserve(&self, permit: usize, bytes: u64) -> Lsn {
        let mark = &self.marks[permit];
        debug_assert_eq!(mark.get(Relaxed), None, "permit {permit} has a record in flight");
        mark.set(Some(Lsn(mark.last_end.load(Relaxed))));
        let lsn = self.tail.fetch_add(bytes, AcqRel);
        // The records of others between the last one and this one need not wait for it.
        mark.set(Some(lsn));
        mark.last_end.store((lsn + bytes).0, Relaxed);
        lsn
    }

    /// Whether `permit` is in flight with the record at `lsn`: true from `reserve` to `complete`.
    #[inline]
    pub(crate) fn holds(&self, permit: usize, lsn: Lsn) -> bool {
        self.marks[permit].get(Relaxed).is_some_and(|mark| mark <= lsn)
    }

    /// The record of `permit` is in the ring.
    #[inline]
    pub(crate) fn complete(&self, permit: usize) {
        self.marks[permit].set(None);
    }

    /// Where the next record will start.
    #[inline]
    pub(crate) fn tail(&self) -> Lsn {
        self.tail.load(Acquire)
    }

    /// Computes the completed prefix.
    pub(crate) fn prefix(&self) -> Lsn {
        let computed = self.computed();
        self.prefix.fetch_max(computed, AcqRel).max(computed)
    }

    fn computed(&self) -> Lsn {
        let tail = self.tail.load(Acquire); // first: see invariant 2
        self.marks.iter().filter_map(|mark| mark.get(Acquire)).fold(tail, Lsn::min)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_stops_at_the_first_record_in_flight() {
        let log = InFlight::new(3, Lsn(1));
        assert_eq!(log.reserve(0, 10), Lsn(1));
        assert_eq!(log.reserve(1, 10), Lsn(11));
        assert_eq!(log.reserve(2, 10), Lsn(21));
        log.complete(1);
        assert_eq!(log.prefix(), Lsn(1));
        log.complete(0);
        assert_eq!(log.prefix(), Lsn(21));
        log.complete(2);
        assert_eq!(log.prefix(), Lsn(31));
    }

    #[test]
    fn a_late_mark_does_not_take_the_prefix_back() {
        let log = InFlight::new(2, Lsn(1));
        let _ = log.reserve(0, 10);
        log.complete(0);
        assert_eq!(log.prefix(), Lsn(11));
        log.marks[1].set(Some(Lsn(1))); // a thread whose last record is long ago, and that slept
        assert_eq!(log.prefix(), Lsn(11));
        assert_eq!(log.computed(), Lsn(1));
    }
}

/// Run with `RUSTFLAGS="--cfg loom" cargo test -p onrush-log --release --lib loom`.
#[cfg(all(test, loom))]
mod loom_tests {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    struct Model {
        log: InFlight,
        ring: Vec<UnsafeCell<u64>>, // loom reports every read that races with a write
    }

    // SAFETY: loom itself checks the accesses to `ring`.
    unsafe impl Sync for Model {}

    impl Model {
        fn new(permits: usize, cells: usize) -> Arc<Self> {
            let ring = (0..cells).map(|_| UnsafeCell::new(0)).collect();
            Arc::new(Self { log: InFlight::new(permits, Lsn::ZERO), ring })
        }

        fn append(&self, permit: usize) -> u64 {
            let Lsn(lsn) = self.log.reserve(permit, 1);
            // SAFETY: loom checks that nobody else touches the cell meanwhile.
            self.ring[usize::try_from(lsn).expect("small")]
                .with_mut(|cell| unsafe { *cell = lsn + 1 });
            self.log.complete(permit);
            lsn
        }

        fn read_below(&self, prefix: Lsn) {
            for lsn in 0..prefix.0 {
                let cell = &self.ring[usize::try_from(lsn).expect("small")];
                // SAFETY: loom checks that nobody writes the cell meanwhile.
                assert_eq!(cell.with(|cell| unsafe { *cell }), lsn + 1);
            }
        }
    }

    /// Threads append so many records each, while the records below the prefix are read. Three stores of a mark
    /// a record make too many orders to try all: the bound keeps the model to seconds.
    fn records_are_whole(records: [u64; 2], preemption_bound: usize) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemption_bound);
        builder.check(move || {
            let all = Lsn(records.iter().sum());
            let model = Model::new(2, usize::try_from(all.0).expect("small"));
            let inserters: Vec<_> = records
                .into_iter()
                .enumerate()
                .map(|(permit, records)| {
                    let model = Arc::clone(&model);
                    thread::spawn(move || {
                        (0..records).for_each(|_| {
                            let _ = model.append(permit);
                        })
                    })
                })
                .collect();
            model.read_below(model.log.prefix());
            inserters.into_iter().for_each(|thread| thread.join().expect("inserter"));
            assert_eq!(model.log.prefix(), all);
            model.read_below(all);
        });
    }

    #[test]
    fn loom_below_the_prefix_every_record_is_whole() {
        records_are_whole([1, 1], 4);
    }

    /// The second mark of a permit begins where its first record ended, not at the tail.
    #[test]
    fn loom_below_the_prefix_every_record_is_whole_where_a_permit_has_two() {
        records_are_whole([2, 1], 3);
    }

    /// One thread reads the prefix twice while two others append.
    fn prefix_seen_twice(read: fn(&InFlight) -> Lsn) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let model = Model::new(2, 2);
            let spawned = Arc::clone(&model);
            let inserter = thread::spawn(move || {
                let _ = spawned.append(0);
            });
            let spawned = Arc::clone(&model);
            let reader = thread::spawn(move || {
                let first = read(&spawned.log);
                let second = read(&spawned.log);
                assert!(second >= first, "the prefix went back from {first} to {second}");
            });
            let _ = model.append(1);
            inserter.join().expect("inserter");
            reader.join().expect("reader");
        });
    }

    #[test]
    fn loom_the_prefix_never_goes_back() {
        prefix_seen_twice(InFlight::prefix);
    }

    /// The planted fault: without the max it does go back.
    #[test]
    #[should_panic(expected = "the prefix went back")]
    fn loom_without_the_max_the_prefix_goes_back() {
        prefix_seen_twice(InFlight::computed);
    }
}
