//! Under exclusive access nobody else is inside, whatever the number of threads.
#![cfg(not(loom))]

use onrush_latch::Latch;
use onrush_waits::{LatchClass, Recorder, Registry};

#[test]
fn readers_never_see_a_change_half_done() {
    const THREADS: u64 = 4;
    const CHANGES: u64 = 5000;
    let registry = Registry::new();
    let pair = Latch::new((0_u64, 0_u64));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let recorder = Recorder::new(&registry, "writer and reader");
                for _ in 0..CHANGES {
                    let mut guard = pair.exclusive(&recorder, LatchClass::Leaf);
                    guard.0 += 1;
                    guard.1 += 1;
                    drop(guard);
                    let guard = pair.shared(&recorder, LatchClass::Leaf);
                    assert_eq!(guard.0, guard.1);
                }
            });
        }
    });
    assert_eq!(pair.into_inner(), (THREADS * CHANGES, THREADS * CHANGES));
}

#[test]
fn a_free_latch_is_had_by_trying_and_a_held_one_is_not() {
    let latch = Latch::new(1);
    let first = latch.try_shared().expect("free");
    let second = latch.try_shared().expect("readers share");
    assert!(latch.try_exclusive().is_none());
    drop((first, second));
    let mut guard = latch.try_exclusive().expect("free");
    *guard += 1;
    assert!(latch.try_shared().is_none());
    assert!(latch.try_exclusive().is_none());
    drop(guard);
    assert_eq!(latch.into_inner(), 2);
}

#[test]
fn a_latch_word_takes_four_bytes() {
    assert_eq!(size_of::<Latch<u32>>(), 8);
}
