//! The difference of two totals holds what happened in between, the longest wait included.

use std::time::Duration;

use onrush_waits::{Counter, LatchClass, Recorder, Registry, Spun, Totals, Wait};

fn wait(recorder: &Recorder, micros: u64) {
    recorder.waited(Wait::WriteLog, Duration::from_micros(micros), Duration::ZERO);
}

#[test]
fn counts_and_times_are_those_since_the_earlier_sum() {
    let registry = Registry::new();
    let recorder = Recorder::new(&registry, "session");
    wait(&recorder, 1000);
    recorder.count(Counter::Commits, 10);
    let earlier = registry.totals();
    wait(&recorder, 3);
    wait(&recorder, 5);
    recorder.count(Counter::Commits, 2);
    let since = registry.totals().since(&earlier);
    assert_eq!(since.counter(Counter::Commits), 2);
    let write_log = since.wait(Wait::WriteLog);
    assert_eq!((write_log.count, write_log.nanos), (2, 8000));
    assert_eq!(write_log.nanos_max, 8191, "the end of the bucket of 5 us, not the 1 ms before");
    assert_eq!(write_log.percentile_nanos(50.0), Some(4095));
}

#[test]
fn adding_what_came_since_gives_the_later_counts() {
    let registry = Registry::new();
    let recorder = Recorder::new(&registry, "session");
    wait(&recorder, 7);
    let mut sum = registry.totals();
    wait(&recorder, 9000);
    let later = registry.totals();
    sum.add(&later.since(&sum.clone()));
    assert_eq!(sum.waits, later.waits);
}

#[test]
fn an_empty_sum_has_no_percentiles_and_no_percentages() {
    let totals = Totals::default();
    assert_eq!(totals.wait(Wait::WriteLog).percentile_nanos(99.0), None);
    assert_eq!(totals.wait_percent(Wait::WriteLog), 0.0);
    assert!(totals.top_waits().is_empty());
}

#[test]
fn after_a_reset_sums_begin_at_nothing_and_go_on() {
    let registry = Registry::new();
    let recorder = Recorder::new(&registry, "session");
    wait(&recorder, 1000);
    recorder.count(Counter::Commits, 10);
    registry.reset();
    assert_eq!(registry.totals().counter(Counter::Commits), 0);
    wait(&recorder, 3);
    recorder.count(Counter::Commits, 2);
    drop(Recorder::new(&registry, "another"));
    for totals in [registry.totals(), registry.live().remove(0).totals] {
        assert_eq!(totals.counter(Counter::Commits), 2);
        assert_eq!(totals.wait(Wait::WriteLog).nanos, 3000);
    }
}

#[test]
fn a_latch_that_nobody_waited_for_since_has_no_longest_wait() {
    let registry = Registry::new();
    let recorder = Recorder::new(&registry, "session");
    let spun = Spun { spins: 1, ..Spun::default() };
    recorder.latch_wait(LatchClass::Leaf, Duration::from_millis(18), spun);
    let earlier = registry.totals();
    assert_eq!(registry.totals().since(&earlier).latch(LatchClass::Leaf).nanos_max, 0);
    recorder.latch_wait(LatchClass::Leaf, Duration::from_micros(2), spun);
    let since = registry.totals().since(&earlier);
    assert_eq!(since.latch(LatchClass::Leaf).nanos_max, 2000, "and not the 18 ms before");
}
