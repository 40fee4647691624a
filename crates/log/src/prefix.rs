//! Which records are complete: the tail, the marks of those in flight, and the completed prefix.
//!
//! Whoever inserts marks its permit, takes its bytes from the tail, copies, and clears the mark.
//! Everything below min(tail, every mark) is complete. No hole list, and nobody waits for a
//! predecessor.
//!
//! Invariants
//! 1. A mark is at or below the LSN that its permit reserves next, and is stored before the tail
//!    moves.
//! 2. Whoever reads the tail first and every mark then sees, for each record below that tail, its
//!    mark, or all of its bytes. (Tail: AcqRel additions form a release sequence. Mark: Release
//!    stores, Acquire loads.)
//! 3. The prefix never goes back. A thread may load the tail, sleep, and store a mark far below the
//!    prefix; its record will lie above, because its addition to the tail comes after. Hence
//!    max(previous, computed).

use std::sync::atomic::Ordering;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use onrush_lsn::{AtomicLsn, Lsn};

use crate::sync::Padded;

/// The mark of one permit: at or below its record in flight, if it has one.
#[derive(Debug)]
struct Mark(AtomicLsn);

impl Mark {
    /// What a permit without a record in flight holds: no record is above it.
    const NOTHING: Lsn = Lsn::MAX;

    fn new() -> Self {
        Self(AtomicLsn::new(Self::NOTHING))
    }

    #[inline]
    fn get(&self, order: Ordering) -> Option<Lsn> {
        Some(self.0.load(order)).filter(|lsn| *lsn != Self::NOTHING)
    }

    #[inline]
    fn set(&self, lsn: Option<Lsn>) {
        self.0.store(lsn.unwrap_or(Self::NOTHING), Release);
    }
}

/// The tail of the log and the records in flight below it.
#[derive(Debug)]
pub(crate) struct InFlight {
    tail: Padded<AtomicLsn>,    // added to by inserters, read by anyone
    prefix: Padded<AtomicLsn>,  // raised by whoever computes it
    marks: Box<[Padded<Mark>]>, // each stored by the holder of its permit alone
}

impl InFlight {
    /// `permits` empty permits in a log that starts at `start`.
    pub(crate) fn new(permits: usize, start: Lsn) -> Self {
        Self {
            tail: Padded(AtomicLsn::new(start)),
            prefix: Padded(AtomicLsn::new(start)),
            marks: (0..permits).map(|_| Padded(Mark::new())).collect(),
        }
    }

    /// Marks `permit` as in flight and takes the next `bytes`; returns where they start.
    #[inline]
    pub(crate) fn reserve(&self, permit: usize, bytes: u64) -> Lsn {
        let mark = &self.marks[permit].0;
        debug_assert_eq!(mark.get(Relaxed), None, "permit {permit} has a record in flight");
        mark.set(Some(self.tail.0.load(Relaxed)));
        self.tail.0.fetch_add(bytes, AcqRel)
    }

    /// Whether `permit` is in flight with the record at `lsn`: true from `reserve` to `complete`.
    #[inline]
    pub(crate) fn holds(&self, permit: usize, lsn: Lsn) -> bool {
        self.marks[permit].0.get(Relaxed).is_some_and(|mark| mark <= lsn)
    }

    /// Whether somebody else took space between the look at the tail and the taking of the record
    /// at `lsn`, which is in flight at `permit`.
    pub(crate) fn met_another(&self, permit: usize, lsn: Lsn) -> bool {
        self.marks[permit].0.get(Relaxed) != Some(lsn)
    }

    /// The record of `permit` is in the ring.
    #[inline]
    pub(crate) fn complete(&self, permit: usize) {
        self.marks[permit].0.set(None);
    }

    /// Where the next record will start.
    #[inline]
    pub(crate) fn tail(&self) -> Lsn {
        self.tail.0.load(Acquire)
    }

    /// Computes the completed prefix.
    pub(crate) fn prefix(&self) -> Lsn {
        let computed = self.computed();
        self.prefix.0.fetch_max(computed, AcqRel).max(computed)
    }

    fn computed(&self) -> Lsn {
        let tail = self.tail.0.load(Acquire); // first: see invariant 2
        self.marks.iter().filter_map(|mark| mark.0.get(Acquire)).fold(tail, Lsn::min)
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
        log.marks[1].0.set(Some(Lsn(1))); // a thread that loaded the tail long ago, and slept
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

    #[test]
    fn loom_below_the_prefix_every_record_is_whole() {
        loom::model(|| {
            let model = Model::new(2, 3);
            let inserters: Vec<_> = [2, 1]
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
            assert_eq!(model.log.prefix(), Lsn(3));
            model.read_below(Lsn(3));
        });
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
