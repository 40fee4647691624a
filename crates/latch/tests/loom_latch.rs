//! Every interleaving of a few steps on one latch.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p onrush-latch --release --test loom_latch`.
#![cfg(loom)]

mod common;

use loom::sync::Arc;
use loom::thread;
use onrush_latch::Latch;
use onrush_waits::LatchClass;

use common::recorder;

#[test]
fn two_writers_exclude_each_other_and_see_each_other_s_changes() {
    loom::model(|| {
        let latch = Arc::new(Latch::new(0));
        let other = {
            let latch = Arc::clone(&latch);
            thread::spawn(move || *latch.exclusive(&recorder(), LatchClass::Leaf) += 1)
        };
        *latch.exclusive(&recorder(), LatchClass::Leaf) += 1;
        other.join().expect("no panic");
        assert_eq!(*latch.shared(&recorder(), LatchClass::Leaf), 2);
    });
}

#[test]
fn a_reader_sees_a_change_whole_or_not_at_all() {
    loom::model(|| {
        let latch = Arc::new(Latch::new((0, 0)));
        let writer = {
            let latch = Arc::clone(&latch);
            thread::spawn(move || {
                let mut guard = latch.exclusive(&recorder(), LatchClass::Leaf);
                guard.0 = 1;
                guard.1 = 1;
            })
        };
        let guard = latch.shared(&recorder(), LatchClass::Leaf);
        assert_eq!(guard.0, guard.1);
        drop(guard);
        writer.join().expect("no panic");
    });
}

#[test]
fn a_writer_that_waits_for_readers_gets_in_and_lets_readers_in_again() {
    loom::model(|| {
        let latch = Arc::new(Latch::new(0));
        let reader = {
            let latch = Arc::clone(&latch);
            thread::spawn(move || {
                for _ in 0..2 {
                    let seen = *latch.shared(&recorder(), LatchClass::Leaf);
                    assert!(seen <= 1);
                }
            })
        };
        *latch.exclusive(&recorder(), LatchClass::Leaf) += 1;
        reader.join().expect("no panic");
    });
}
