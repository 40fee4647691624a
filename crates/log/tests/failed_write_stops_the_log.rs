//! The first failed write is final: every waiter hears "outcome unknown", nothing is retried,
//! nothing more is written.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod common;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Wake, Waker};

use common::*;
use onrush_log::{Log, LogError, LogWriter};

struct CountingWaker(AtomicUsize);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn every_waiter_now_and_later_gets_outcome_unknown() {
    let options = options(1);
    let recorder = recorder(&options);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options).unwrap();
    let first = append(&log, b"first", &recorder);
    log.wait_durable(first, &recorder).unwrap();

    disk.fail_in(1);
    let counter = Arc::new(CountingWaker(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&counter));
    let end = append(&log, b"second", &recorder);
    assert!(log.register_waker(end, &waker).is_none());
    let writes = disk.written().len();
    assert!(matches!(log.wait_durable(end, &recorder), Err(LogError::OutcomeUnknown { .. })));
    assert_eq!(counter.0.load(SeqCst), 1, "the future is woken, to hear of it");
    assert!(matches!(log.register_waker(end, &waker), Some(Err(LogError::OutcomeUnknown { .. }))));
    assert!(matches!(log.wait_durable(end, &recorder), Err(LogError::OutcomeUnknown { .. })));
    assert!(matches!(log.write_now(&recorder), Err(LogError::OutcomeUnknown { .. })));
    assert!(matches!(log.note_delayed(end, &recorder), Err(LogError::OutcomeUnknown { .. })));
    assert!(matches!(try_append(&log, b"third", &recorder), Err(LogError::OutcomeUnknown { .. })));
    assert!(matches!(log.close(&recorder), Err(LogError::OutcomeUnknown { .. })));
    assert_eq!(disk.written().len(), writes, "nothing is written after the failure");
    log.wait_durable(first, &recorder).expect("what was durable before stays so");
    assert_eq!(log.durable(), first);
}

#[test]
fn all_waiting_threads_are_told() {
    let mut options = options(8);
    options.writer = LogWriter::Thread { cpu: None };
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    disk.fail_in(20);
    std::thread::scope(|scope| {
        for permit in 0..8 {
            let (log, options) = (&log, &options);
            scope.spawn(move || {
                let recorder = recorder(options);
                loop {
                    while !log.has_space(permit, 10) {
                        if log.wait_for_space(10, &recorder).is_err() {
                            return;
                        }
                    }
                    let reservation = log.reserve(permit, 9);
                    log.fill(&reservation, &[&[7; 9]]);
                    log.complete(permit);
                    if let Err(error) = log.wait_durable(reservation.end, &recorder) {
                        assert!(matches!(error, LogError::OutcomeUnknown { .. }), "{error}");
                        return;
                    }
                }
            });
        }
    });
    assert!(matches!(log.failure(), Some(LogError::OutcomeUnknown { .. })));
}

#[test]
fn the_owner_can_make_it_fail() {
    let options = options(1);
    let recorder = recorder(&options);
    let log = Log::create(TestDisk::new().arc(), options).unwrap();
    let end = append(&log, b"row", &recorder);
    log.fail(Arc::new(std::io::Error::other("the data file failed")));
    let error = log.wait_durable(end, &recorder).unwrap_err();
    assert!(error.to_string().contains("the data file failed"), "{error}");
}
