//! A full disk, or a full log, refuses appends before anything is reserved; with space again it goes
//! on.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod common;

use common::*;
use onrush_files::{Disk, OpenMode};
use onrush_log::{Log, LogError, LogWriter, Lsn};

#[test]
fn appends_are_refused_while_the_disk_is_full_and_go_on_after() {
    let options = options(1);
    let recorder = recorder(&options);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    disk.memory.set_capacity(disk.memory.used_bytes());
    let mut appended = 0;
    let error = loop {
        match try_append(&log, &record(appended, 1000), &recorder) {
            Ok(end) => log.wait_durable(end, &recorder).unwrap(),
            Err(error) => break error,
        }
        appended += 1;
    };
    assert!(matches!(error, LogError::DiskFull { .. }), "{error}");
    assert!(log.failure().is_none());
    assert_eq!(log.durable(), log.tail(), "what was accepted is durable");
    disk.memory.set_capacity(u64::MAX);
    let end = append(&log, &record(appended, 1000), &recorder);
    log.wait_durable(end, &recorder).unwrap();
    drop(log);
    assert_eq!(recover(&disk, &options).unwrap().1.len(), appended + 1);
}

#[test]
fn a_segment_that_could_neither_be_filled_nor_removed_is_made_anew() {
    let options = options(1);
    let recorder = recorder(&options);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let leftover = std::path::Path::new(FOLDER).join(format!("log-{:016}.segment", 9));
    drop(disk.memory.open(&leftover, OpenMode::CreateNew).unwrap());
    let numbers = 0..150;
    for number in numbers.clone() {
        let end = append(&log, &record(number, 1000), &recorder);
        log.wait_durable(end, &recorder).unwrap();
    }
    drop(log);
    assert!(disk.written().iter().any(|write| write.path == leftover), "the test goes that far");
    assert_eq!(recover(&disk, &options).unwrap().1.len(), numbers.len());
}

#[test]
fn what_was_promised_can_always_be_written() {
    let options = options(4);
    let recorder = recorder(&options);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    disk.memory.set_capacity(disk.memory.used_bytes());
    // Each permit takes what it can get, and every record gets a round of its own: the most padding
    // there can be.
    let mut refused = 0;
    let mut permit = 0;
    while refused < 4 {
        permit = (permit + 1) % 4;
        if log.has_space(permit, 20) {
            let reservation = log.reserve(permit, 19);
            log.fill(&reservation, &[&[1; 19]]);
            log.complete(permit);
            log.wait_durable(reservation.end, &recorder).unwrap();
            refused = 0;
        } else {
            refused += 1;
        }
    }
    assert!(log.failure().is_none());
}

#[test]
fn a_log_at_capacity_asks_for_a_checkpoint() {
    let options = options(1);
    let recorder = recorder(&options);
    let log = Log::create(TestDisk::new().arc(), options.clone()).unwrap();
    let mut end = Lsn::ZERO;
    let error = loop {
        match try_append(&log, &record(1, 4000), &recorder) {
            Ok(lsn) => end = lsn,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, LogError::CapacityReached), "{error}");
    log.wait_durable(end, &recorder).expect("the checkpoint can make the log durable to its end");
    log.recycle_below(&log.position()).unwrap();
    append(&log, &record(1, 4000), &recorder);
}

#[test]
fn threads_wait_for_the_checkpoint_instead() {
    let mut options = options(2);
    options.writer = LogWriter::Thread { cpu: None };
    let log = Log::create(TestDisk::new().arc(), options.clone()).unwrap();
    std::thread::scope(|scope| {
        let inserter = scope.spawn(|| {
            let recorder = recorder(&options);
            (0..2000).for_each(|number| {
                append(&log, &record(number, 4000), &recorder);
            });
        });
        let recorder = recorder(&options);
        while !inserter.is_finished() {
            log.write_now(&recorder).unwrap();
            log.recycle_below(&log.position()).unwrap();
            std::thread::yield_now();
        }
    });
    assert!(log.failure().is_none());
}

#[test]
fn a_record_too_large_is_refused() {
    let options = options(1);
    let recorder = recorder(&options);
    let log = Log::create(TestDisk::new().arc(), options.clone()).unwrap();
    let error = try_append(&log, &vec![0; 16 << 10], &recorder).unwrap_err();
    assert!(matches!(error, LogError::RecordTooLarge { .. }), "{error}");
    append(&log, &vec![0; (16 << 10) - 3], &recorder);
}
