//! A stream of readers cannot keep a writer out.
#![cfg(not(loom))]

use onrush_latch::Latch;
use onrush_waits::{LatchClass, Recorder, Registry, Wait};

#[test]
fn no_reader_enters_once_a_writer_waits() {
    let registry = Registry::new();
    let latch = Latch::new(0);
    let reader = latch.try_shared().expect("free");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let recorder = Recorder::new(&registry, "writer");
            *latch.exclusive(&recorder, LatchClass::Leaf) += 1;
        });
        // The writer is not inside, as we are; so readers are refused because it waits.
        while latch.try_shared().is_some() {
            std::thread::yield_now();
        }
        drop(reader);
    });
    assert_eq!(*latch.try_shared().expect("free again"), 1);
    assert_eq!(registry.totals().wait(Wait::PageLatchEx).count, 1);
    assert_eq!(registry.totals().latch(LatchClass::Leaf).spun.collisions, 1);
}
