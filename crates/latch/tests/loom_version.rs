//! Every interleaving of a change and a read under a version word, with the memory orders that the
//! words allow.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p onrush-latch --release --test loom_version`.
#![cfg(loom)]

mod common;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::*, fence};
use loom::thread;
use onrush_latch::VersionLatch;

use common::recorder;

#[test]
fn a_validated_read_is_no_mix_of_two_changes() {
    loom::model(|| {
        let shared = Arc::new((VersionLatch::new(), AtomicU64::new(0), AtomicU64::new(0)));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let recorder = recorder();
                for value in 1..=2 {
                    let _guard = shared.0.write(&recorder);
                    shared.1.store(value, Relaxed);
                    shared.2.store(value, Relaxed);
                }
            })
        };
        if let Some(version) = shared.0.read_begin() {
            let seen = (shared.1.load(Relaxed), shared.2.load(Relaxed));
            if shared.0.validate(version) {
                assert_eq!(seen.0, seen.1);
            }
        }
        writer.join().expect("no panic");
    });
}

#[test]
fn two_writers_exclude_each_other() {
    loom::model(|| {
        let shared = Arc::new((VersionLatch::new(), AtomicU64::new(0)));
        let add = |shared: &(VersionLatch, AtomicU64)| {
            let _guard = shared.0.write(&recorder());
            let value = shared.1.load(Relaxed);
            shared.1.store(value + 1, Relaxed);
        };
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || add(&shared))
        };
        add(&shared);
        other.join().expect("no panic");
        assert_eq!(shared.1.load(Relaxed), 2);
    });
}

/// One of the two fences, to be left out on purpose.
#[derive(Clone, Copy, PartialEq)]
enum Fence {
    Readers,
    Writers,
}

/// The protocol of the version word, written out, without one of its fences.
fn protocol_without(missing: Fence) {
    loom::model(move || {
        let words = [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)];
        let words = Arc::new(words);
        let writer = {
            let words = Arc::clone(&words);
            thread::spawn(move || {
                words[0].compare_exchange(0, 1, Acquire, Relaxed).expect("the only writer");
                if missing != Fence::Writers {
                    fence(Release);
                }
                words[1].store(1, Relaxed);
                words[2].store(1, Relaxed);
                words[0].store(2, Release);
            })
        };
        let version = words[0].load(Acquire);
        let seen = (words[1].load(Relaxed), words[2].load(Relaxed));
        if missing != Fence::Readers {
            fence(Acquire);
        }
        if version % 2 == 0 && words[0].load(Relaxed) == version {
            assert_eq!(seen.0, seen.1, "a mix of two changes");
        }
        writer.join().expect("no panic");
    });
}

#[test]
#[should_panic(expected = "a mix of two changes")]
fn the_model_notices_a_missing_fence_of_the_reader() {
    protocol_without(Fence::Readers);
}

#[test]
#[should_panic(expected = "a mix of two changes")]
fn the_model_notices_a_missing_fence_of_the_writer() {
    protocol_without(Fence::Writers);
}
