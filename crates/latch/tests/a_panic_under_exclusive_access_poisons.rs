//! A panic while data may be half changed is remembered, and the latch goes on working.
#![cfg(not(loom))]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use onrush_latch::Latch;

fn panic_while<G>(guard: impl FnOnce() -> Option<G>) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _guard = guard();
        resume_unwind(Box::new("stop"));
    }));
    assert!(outcome.is_err());
}

#[test]
fn later_owners_can_tell() {
    let latch = Latch::new(0);
    panic_while(|| latch.try_exclusive());
    assert!(latch.is_poisoned());
    drop(latch.try_shared().expect("usable"));
    drop(latch.try_exclusive().expect("usable"));
    assert!(latch.is_poisoned(), "it stays poisoned");
}

#[test]
fn a_reader_s_panic_does_no_harm() {
    let latch = Latch::new(0);
    panic_while(|| latch.try_shared());
    assert!(!latch.is_poisoned());
}

#[test]
fn a_latch_taken_while_unwinding_is_not_poisoned_by_that() {
    struct TakesItWhenDropped<'a>(&'a Latch<i32>);
    impl Drop for TakesItWhenDropped<'_> {
        fn drop(&mut self) {
            drop(self.0.try_exclusive());
        }
    }
    let latch = Latch::new(0);
    panic_while(|| Some(TakesItWhenDropped(&latch)));
    assert!(!latch.is_poisoned());
}
