//! Totals never go back: what a session did stays in the sum when the session ends.

use std::time::Duration;

use onrush_waits::{Counter, LatchClass, Recorder, Registry, Spun, Wait};

#[test]
fn a_retired_recorder_leaves_its_numbers_and_nothing_else() {
    let registry = Registry::new();
    for _ in 0..1000 {
        let recorder = Recorder::new(&registry, "session");
        recorder.count(Counter::Commits, 2);
        recorder.waited(Wait::WriteLog, Duration::from_micros(5), Duration::from_micros(1));
        let spun = Spun { spins: 7, backoffs: 1, sleeps: 1 };
        recorder.latch_wait(LatchClass::Leaf, Duration::from_micros(3), spun);
        assert_eq!(registry.live().len(), 1);
    }
    assert!(registry.live().is_empty());
    let totals = registry.totals();
    assert_eq!(totals.counter(Counter::Commits), 2000);
    assert_eq!(totals.wait(Wait::WriteLog).count, 1000);
    assert_eq!(totals.wait(Wait::WriteLog).resource_nanos(), 4_000_000);
    assert_eq!(totals.latch(LatchClass::Leaf).spun.spins, 7000);
}

#[test]
fn totals_only_grow_while_sessions_come_and_go() {
    let registry = Registry::new();
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            for _ in 0..2000 {
                Recorder::new(&registry, "session").count(Counter::RowsInserted, 1);
            }
        });
        let mut previous = 0;
        while !worker.is_finished() {
            let now = registry.totals().counter(Counter::RowsInserted);
            assert!(now >= previous, "went back from {previous} to {now}");
            previous = now;
        }
    });
    assert_eq!(registry.totals().counter(Counter::RowsInserted), 2000);
}
