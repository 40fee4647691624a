//! Two sessions are never inside the same permit, and every session that asks for a permit gets one.
#![cfg(not(loom))]

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use onrush_latch::{Admission, available_cpus};
use onrush_waits::{Recorder, Registry};

/// Threads go in and out; each permit says whether somebody is inside. Every `rest`th time they
/// release their permit. Nobody ends before all are done: only the look every millisecond helps
/// whoever waits for an owner that is done.
fn in_and_out(permits: usize, threads: usize, times: usize, rest: usize) {
    let registry = Registry::new();
    let admission = Admission::new(permits, 0);
    let occupied: Vec<AtomicBool> = (0..permits).map(|_| AtomicBool::new(false)).collect();
    let all_done = Barrier::new(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let recorder = Recorder::new(&registry, "session");
                let mut ticket = admission.ticket();
                for time in 1..=times {
                    let entered = admission.enter(&mut ticket, &recorder);
                    let mine = &occupied[entered.permit()];
                    assert!(!mine.swap(true, Relaxed), "two inside permit {}", entered.permit());
                    mine.store(false, Relaxed);
                    drop(entered);
                    if time % rest == 0 {
                        ticket.release();
                    }
                }
                all_done.wait();
            });
        }
    });
}

#[test]
fn more_sessions_than_permits() {
    in_and_out(2, 8, 20_000, 100);
}

#[test]
fn sessions_that_never_release() {
    in_and_out(1, 4, 5_000, usize::MAX);
}

#[test]
fn sessions_that_always_release() {
    in_and_out(2, 6, 5_000, 1);
}

#[test]
fn an_owner_who_stays_away_starves_nobody() {
    let registry = Registry::new();
    let recorder = Recorder::new(&registry, "session");
    let admission = Admission::new(1, 0);
    let mut away = admission.ticket();
    drop(admission.enter(&mut away, &recorder));
    let mut other = admission.ticket();
    assert_eq!(admission.enter(&mut other, &recorder).permit(), 0);
    assert_eq!(admission.enter(&mut away, &recorder).permit(), 0);
}

#[test]
fn whoever_waits_for_a_permit_gets_that_of_one_who_leaves() {
    let registry = Registry::new();
    let admission = Admission::new(1, 0);
    let mut inside = admission.ticket();
    let recorder = Recorder::new(&registry, "inside");
    let entered = admission.enter(&mut inside, &recorder);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let recorder = Recorder::new(&registry, "waiter");
            admission.enter(&mut admission.ticket(), &recorder).permit()
        });
        assert!(!waiter.is_finished());
        drop(entered);
        assert_eq!(waiter.join().expect("no panic"), 0);
    });
}

#[test]
fn a_session_that_panics_inside_leaves() {
    let registry = Registry::new();
    let recorder = Recorder::new(&registry, "session");
    let admission = Admission::new(1, 0);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut ticket = admission.ticket();
        let _inside = admission.enter(&mut ticket, &recorder);
        std::panic::resume_unwind(Box::new("stop"));
    }));
    assert!(outcome.is_err());
    assert_eq!(admission.enter(&mut admission.ticket(), &recorder).permit(), 0);
}

#[test]
fn background_threads_have_permits_of_their_own() {
    let admission = Admission::for_this_machine(2);
    let sessions = available_cpus() + 1;
    assert_eq!(admission.session_permits(), sessions);
    assert_eq!(admission.permits(), sessions + 2);
    assert_eq!(
        (admission.background_permit(0), admission.background_permit(1)),
        (sessions, sessions + 1)
    );
}
