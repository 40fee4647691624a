//! Every interleaving of a few sessions and one permit.
//!
//! The model has no time: the first in the queue looks once each time it is woken, and never again
//! by itself. So these models also show that nobody sleeps for ever as long as every owner comes
//! back, releases or ends. An owner who stays away without doing so is what the look every
//! millisecond is for.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p onrush-latch --release --test loom_admission`.
#![cfg(loom)]

mod common;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use onrush_latch::Admission;

use common::recorder;

struct World {
    admission: Admission,
    inside: Vec<UnsafeCell<u64>>, // one a permit; the model panics if two touch one without an order
}

impl World {
    fn new(permits: usize) -> Arc<Self> {
        let inside = (0..permits).map(|_| UnsafeCell::new(0)).collect();
        Arc::new(Self { admission: Admission::new(permits, 0), inside })
    }

    /// Goes in and out so many times, and releases the permit after each.
    fn session(&self, times: usize, release: bool) {
        let recorder = recorder();
        let mut ticket = self.admission.ticket();
        for _ in 0..times {
            let entered = self.admission.enter(&mut ticket, &recorder);
            self.inside[entered.permit()].with_mut(|count| {
                // SAFETY: only the one inside this permit touches its count; the model checks just
                // that.
                unsafe { *count += 1 }
            });
            drop(entered);
            if release {
                ticket.release();
            }
        }
    }

    fn entries(&self) -> u64 {
        let count = |cell: &UnsafeCell<u64>| {
            cell.with(|count| {
                // SAFETY: called after all sessions have been joined; the model checks just that.
                unsafe { *count }
            })
        };
        self.inside.iter().map(count).sum()
    }
}

// SAFETY: the counts are touched only by who is inside; the model checks just that.
unsafe impl Sync for World {}
// SAFETY: nothing in it knows its thread.
unsafe impl Send for World {}

fn check(permits: usize, others: usize, times: usize, release: bool, preemptions: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let world = World::new(permits);
        let threads: Vec<_> = (0..others)
            .map(|_| {
                let world = Arc::clone(&world);
                thread::spawn(move || world.session(times, release))
            })
            .collect();
        world.session(times, release);
        for thread in threads {
            thread.join().expect("no panic");
        }
        let entries = u64::try_from((others + 1) * times).expect("few");
        assert_eq!(world.entries(), entries);
    });
}

#[test]
fn two_sessions_share_one_permit() {
    check(1, 1, 1, false, 5);
}

#[test]
fn two_sessions_come_back_to_one_permit() {
    check(1, 1, 2, false, 3);
}

#[test]
fn two_sessions_release_one_permit() {
    check(1, 1, 2, true, 3);
}

#[test]
fn three_sessions_share_one_permit() {
    check(1, 2, 1, false, 2);
}

#[test]
fn three_sessions_share_two_permits() {
    check(2, 2, 1, true, 3);
}
