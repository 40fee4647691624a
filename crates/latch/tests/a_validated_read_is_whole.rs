//! A reader whose version validates has seen one change, never a mix of two.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use onrush_latch::VersionLatch;
use onrush_waits::{Recorder, Registry};

#[test]
fn two_words_always_match() {
    let registry = Registry::new();
    let latch = VersionLatch::new();
    let words = [AtomicU64::new(0), AtomicU64::new(0)];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let recorder = Recorder::new(&registry, "writer");
            for value in 1..50_000 {
                let _guard = latch.write(&recorder);
                words[0].store(value, Relaxed);
                words[1].store(value, Relaxed);
            }
            done.store(true, Relaxed);
        });
        let recorder = Recorder::new(&registry, "reader");
        while !done.load(Relaxed) {
            let version = latch.wait_readable(&recorder);
            let seen = (words[0].load(Relaxed), words[1].load(Relaxed));
            if latch.validate(version) {
                assert_eq!(seen.0, seen.1);
            }
        }
    });
}

#[test]
fn a_version_is_good_until_the_next_change() {
    let latch = VersionLatch::new();
    let version = latch.read_begin().expect("whole");
    assert!(latch.validate(version));
    let guard = latch.try_upgrade(version).expect("unchanged");
    assert!(latch.read_begin().is_none());
    assert!(latch.try_write().is_none());
    assert!(!latch.validate(version));
    drop(guard);
    assert!(!latch.validate(version));
    assert!(latch.try_upgrade(version).is_none());
}
