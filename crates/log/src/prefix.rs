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

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::sync::{AtomicU64, Padded};

/// The mark of a permit that has nothing in flight.
const NOTHING: u64 = u64::MAX;

/// The tail of the log and the records in flight below it.
#[derive(Debug)]
pub(crate) struct InFlight {
    tail: Padded<AtomicU64>,         // added to by inserters, read by anyone
    prefix: Padded<AtomicU64>,       // raised by whoever computes it
    marks: Box<[Padded<AtomicU64>]>, // each stored by the holder of its permit alone
}

impl InFlight {
    /// `permits` empty permits in a log that starts at `start`.
    pub(crate) fn new(permits: usize, start: u64) -> Self {
        Self {
            tail: Padded(AtomicU64::new(start)),
            prefix: Padded(AtomicU64::new(start)),
            marks: (0..permits).map(|_| Padded(AtomicU64::new(NOTHING))).collect(),
        }
    }

    /// Marks `permit` as in flight and takes the next `bytes`; returns where they start.
    #[inline]
    pub(crate) fn reserve(&self, permit: usize, bytes: u64) -> u64 {
        let mark = &self.marks[permit].0;
        debug_assert_eq!(mark.load(Relaxed), NOTHING, "permit {permit} has a record in flight");
        mark.store(self.tail.0.load(Relaxed), Release);
        self.tail.0.fetch_add(bytes, AcqRel)
    }

    /// Whether `permit` is in flight with the record at `lsn`: true from `reserve` to `complete`.
    #[inline]
    pub(crate) fn holds(&self, permit: usize, lsn: u64) -> bool {
        self.marks[permit].0.load(Relaxed) <= lsn
    }

    /// Whether somebody else took space between the look at the tail and the taking of the record
    /// at `lsn`, which is in flight at `permit`.
    pub(crate) fn met_another(&self, permit: usize, lsn: u64) -> bool {
        self.marks[permit].0.load(Relaxed) != lsn
    }

    /// The record of `permit` is in the ring.
    #[inline]
    pub(crate) fn complete(&self, permit: usize) {
        self.marks[permit].0.store(NOTHING, Release);
    }

    /// Where the next record will start.
    #[inline]
    pub(crate) fn tail(&self) -> u64 {
        self.tail.0.load(Acquire)
    }

    /// Computes the completed prefix.
    pub(crate) fn prefix(&self) -> u64 {
        let computed = self.computed();
        self.prefix.0.fetch_max(computed, AcqRel).max(computed)
    }

    fn computed(&self) -> u64 {
        let tail = self.tail.0.load(Acquire); // first: see invariant 2
        self.marks.iter().fold(tail, |least, mark| least.min(mark.0.load(Acquire)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_stops_at_the_first_record_in_flight() {
        let log = InFlight::new(3, 1);
        assert_eq!(log.reserve(0, 10), 1);
        assert_eq!(log.reserve(1, 10), 11);
        assert_eq!(log.reserve(2, 10), 21);
        log.complete(1);
        assert_eq!(log.prefix(), 1);
        log.complete(0);
        assert_eq!(log.prefix(), 21);
        log.complete(2);
        assert_eq!(log.prefix(), 31);
    }

    #[test]
    fn a_late_mark_does_not_take_the_prefix_back() {
        let log = InFlight::new(2, 1);
        let _ = log.reserve(0, 10);
        log.complete(0);
        assert_eq!(log.prefix(), 11);
        log.marks[1].0.store(1, Release); // a thread that loaded the tail long ago, and slept
        assert_eq!(log.prefix(), 11);
        assert_eq!(log.computed(), 1);
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
            Arc::new(Self { log: InFlight::new(permits, 0), ring })
        }

        fn append(&self, permit: usize) -> u64 {
            let lsn = self.log.reserve(permit, 1);
            // SAFETY: loom checks that nobody else touches the cell meanwhile.
            self.ring[usize::try_from(lsn).expect("small")]
                .with_mut(|cell| unsafe { *cell = lsn + 1 });
            self.log.complete(permit);
            lsn
        }

        fn read_below(&self, prefix: u64) {
            for lsn in 0..prefix {
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
            assert_eq!(model.log.prefix(), 3);
            model.read_below(3);
        });
    }

    /// One thread reads the prefix twice while two others append.
    fn prefix_seen_twice(read: fn(&InFlight) -> u64) {
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
