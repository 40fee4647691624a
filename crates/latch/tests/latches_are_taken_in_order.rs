//! Where debug assertions are on, waiting for a latch out of order panics, contended or not.
#![cfg(all(debug_assertions, not(loom)))]

use std::sync::Arc;

use onrush_latch::{Latch, RankedMutex};
use onrush_waits::{LatchClass, Recorder, Registry};

fn recorder() -> Arc<Recorder> {
    Recorder::new(&Registry::new(), "test")
}

#[test]
fn upwards_is_allowed_and_letting_go_in_any_order() {
    let recorder = recorder();
    let (left, right) = (Latch::new(1), Latch::new(2));
    let versions = RankedMutex::new(LatchClass::Versions, 3);
    for _ in 0..2 {
        let left = left.exclusive(&recorder, LatchClass::Leaf);
        let right = right.exclusive(&recorder, LatchClass::Leaf);
        let versions = versions.lock(&recorder);
        drop(left);
        drop(versions);
        drop(right);
    }
}

#[test]
#[should_panic(expected = "latch order: Leaf asked for while Versions is held")]
fn downwards_panics() {
    let recorder = recorder();
    let leaf = Latch::new(1);
    let versions = RankedMutex::new(LatchClass::Versions, 3);
    let _versions = versions.lock(&recorder);
    let _leaf = leaf.shared(&recorder, LatchClass::Leaf);
}

#[test]
#[should_panic(expected = "latch order: Versions asked for while Versions is held")]
fn the_same_rank_twice_panics() {
    let recorder = recorder();
    let (first, second) =
        (RankedMutex::new(LatchClass::Versions, 1), RankedMutex::new(LatchClass::Versions, 2));
    let _first = first.lock(&recorder);
    let _second = second.lock(&recorder);
}

#[test]
#[should_panic(expected = "latch order: Leaf asked for while Versions is held")]
fn a_mutex_had_by_trying_counts_as_held() {
    let recorder = recorder();
    let leaf = Latch::new(1);
    let versions = RankedMutex::new(LatchClass::Versions, 3);
    let _versions = versions.try_lock().expect("free");
    let _leaf = leaf.shared(&recorder, LatchClass::Leaf);
}
