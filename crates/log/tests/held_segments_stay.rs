//! A hold keeps the log from a position on, for whoever reads it while the log goes on.

mod common;

use std::path::Path;

use common::{FOLDER, TestDisk, append, options, record, recorder, recover_from};
use onrush_files::Disk;
use onrush_log::{Log, Lsn};

/// Appends so many records of 5,000 bytes, each of them durable, and recycles after each.
fn append_and_recycle(log: &Log, options: &onrush_log::LogOptions, count: u64) -> Lsn {
    let recorder = recorder(options);
    let mut end = Lsn::ZERO;
    for number in 0..count {
        end = append(log, &record(number as usize, 5000), &recorder);
        log.wait_durable(end, &recorder).unwrap();
        log.recycle_below(&log.position()).unwrap();
    }
    end
}

#[test]
fn what_is_held_can_be_read_from_the_held_position_on() {
    let options = options(1);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let held = log.position();
    let _hold = log.hold(&held);
    let end = append_and_recycle(&log, &options, 20);
    let (_, records) = recover_from(&disk, &options, held, end).unwrap();
    assert_eq!(records.len(), 20);
}

#[test]
fn a_later_hold_does_not_free_what_an_earlier_one_keeps() {
    let options = options(1);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let held = log.position();
    let _first = log.hold(&held);
    append_and_recycle(&log, &options, 10);
    let later = log.hold(&log.position());
    let end = append_and_recycle(&log, &options, 10);
    drop(later);
    let (_, records) = recover_from(&disk, &options, held, end).unwrap();
    assert_eq!(records.len(), 20);
}

#[test]
fn what_was_recycled_meanwhile_is_free_after_the_hold() {
    let options = options(1);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let first = Path::new(FOLDER).join("log-0000000000000001.segment");
    let hold = log.hold(&log.position());
    append_and_recycle(&log, &options, 20);
    let held_bytes = log.space().in_use_bytes;
    assert!(disk.memory.exists(&first).unwrap());
    drop(hold);
    assert!(log.space().in_use_bytes < held_bytes);
}
