//! A guard counts one wait, with its time split into resource and signal time.

use std::time::{Duration, Instant};

use onrush_waits::{Phase, Recorder, Registry, Statistics, Wait};

#[test]
fn a_dropped_guard_is_one_wait_no_longer_than_it_lived() {
    let registry = Registry::new();
    let recorder = Recorder::new(&registry, "session");
    let before = Instant::now();
    drop(recorder.wait(Wait::LogBuffer));
    let lived = u64::try_from(before.elapsed().as_nanos()).expect("a short time");
    let totals = registry.totals();
    let wait = totals.wait(Wait::LogBuffer);
    assert_eq!(wait.count, 1);
    assert!(wait.nanos <= lived);
    assert_eq!(wait.signal_nanos, 0);
    assert_eq!(wait.histogram.iter().sum::<u64>(), 1);
}

#[test]
fn a_signal_from_before_the_wait_makes_all_of_it_signal_time() {
    let registry = Registry::new();
    let recorder = Recorder::new(&registry, "session");
    let earlier = Instant::now();
    recorder.wait(Wait::WriteLog).signalled_at(earlier);
    let totals = registry.totals();
    let wait = totals.wait(Wait::WriteLog);
    assert_eq!(wait.signal_nanos, wait.nanos);
    assert_eq!(wait.resource_nanos(), 0);
}

#[test]
fn a_wait_unwound_by_a_panic_is_counted() {
    let registry = Registry::new();
    let recorder = Recorder::new(&registry, "session");
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _waiting = recorder.wait(Wait::SlotFree);
        std::panic::resume_unwind(Box::new("stop"));
    }));
    assert!(outcome.is_err());
    assert_eq!(registry.totals().wait(Wait::SlotFree).count, 1);
}

#[test]
fn nothing_is_recorded_with_statistics_off() {
    let registry = Registry::with_statistics(Statistics::Off);
    let recorder = Recorder::new(&registry, "session");
    drop(recorder.wait(Wait::LogBuffer));
    recorder.waited(Wait::LogBuffer, Duration::from_secs(1), Duration::ZERO);
    for _ in 0..1000 {
        recorder.begin_call();
        assert!(!recorder.is_timing());
        recorder.end_call(Phase::Commit);
    }
    let totals = registry.totals();
    assert_eq!(totals.wait(Wait::LogBuffer).count, 0);
}

#[test]
fn a_timestamp_belongs_to_the_innermost_wait() {
    let registry = Registry::new();
    let recorder = Recorder::new(&registry, "session");
    let before = Instant::now();
    let outer = recorder.wait(Wait::FrameFree);
    let inner = recorder.wait(Wait::ImageWrite);
    assert_eq!(registry.live()[0].waits_now, Some(Wait::ImageWrite));
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(2) {}
    drop(inner);
    assert_eq!(registry.live()[0].waits_now, Some(Wait::FrameFree));
    drop(outer);
    let lived = u64::try_from(before.elapsed().as_nanos()).expect("a short time");
    let totals = registry.totals();
    let (outer, inner) = (totals.wait(Wait::FrameFree), totals.wait(Wait::ImageWrite));
    assert_eq!((outer.count, inner.count), (1, 1));
    assert!(inner.nanos >= 2_000_000);
    assert!(outer.nanos + inner.nanos <= lived);
    assert_eq!(registry.live()[0].waits_now, None);
}
