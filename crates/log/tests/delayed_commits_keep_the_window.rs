//! Delayed commits: never more than the window's bytes are acknowledged and not durable, and the
//! thread makes them durable by itself.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod common;

use common::*;
use onrush_log::{Log, LogWriter};

#[test]
fn never_more_than_the_window_is_behind() {
    let options = options(1);
    let recorder = recorder(&options);
    let log = Log::create(TestDisk::new().arc(), options.clone()).unwrap();
    for number in 0..500 {
        let end = append(&log, &record(number, 100), &recorder);
        log.note_delayed(end, &recorder).unwrap();
        assert!(end - log.durable() <= options.window.bytes);
    }
    assert!(log.statistics().syncs < 50, "and they are written together");
}

#[test]
fn a_lone_delayed_commit_becomes_durable_by_itself() {
    let mut options = options(1);
    options.writer = LogWriter::Thread { cpu: None };
    options.window.milliseconds = 2;
    let recorder = recorder(&options);
    let log = Log::create(TestDisk::new().arc(), options).unwrap();
    for number in 0..3 {
        let end = append(&log, &record(number, 100), &recorder);
        log.note_delayed(end, &recorder).unwrap();
        while log.durable() < end {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_future_is_woken_without_anybody_waiting() {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::SeqCst;
    use std::task::{Wake, Waker};
    struct Flag(AtomicBool);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }
    let mut options = options(1);
    options.writer = LogWriter::Thread { cpu: None };
    let recorder = recorder(&options);
    let log = Log::create(TestDisk::new().arc(), options).unwrap();
    for number in 0..100 {
        let end = append(&log, &record(number, 20), &recorder);
        let flag = Arc::new(Flag(AtomicBool::new(false)));
        while log.register_waker(end, &Waker::from(Arc::clone(&flag))).is_none() {
            while !flag.0.load(SeqCst) {
                std::thread::yield_now();
            }
        }
        assert!(log.durable() >= end);
    }
}
