//! A record that spans blocks and segments is read whole; cut in the middle it is dropped, and the
//! log resumes below it.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod common;

use common::*;
use onrush_log::Log;

#[test]
fn records_across_blocks_and_segments_come_back_whole() {
    let mut options = options(1);
    options.block_bytes_max = 512; // 4 KiB on disk
    let recorder = recorder(&options);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let appended: Vec<_> = (0..30).map(|number| record(number, 300 * number)).collect();
    for payload in &appended {
        let end = append(&log, payload, &recorder);
        log.wait_durable(end, &recorder).unwrap();
    }
    assert!(log.position().segment > 2);
    drop(log);
    assert_eq!(recover(&disk, &options).unwrap().1, appended);
}

#[test]
fn a_record_cut_in_the_middle_is_dropped_and_its_lsn_used_again() {
    let mut options = options(1);
    options.block_bytes_max = 4096;
    let recorder = recorder(&options);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let first = append(&log, b"first", &recorder);
    log.wait_durable(first, &recorder).unwrap();
    let at_cut = disk.copy();
    let end = append(&log, &record(1, 10_000), &recorder); // three blocks
    log.wait_durable(end, &recorder).unwrap();
    drop(log);
    let write = disk.written().pop().unwrap();
    at_cut.put(&write.path, write.offset, &write.bytes[..8192]);

    let (recovered, records) = recover(&at_cut, &options).unwrap();
    assert_eq!(records, [b"first"]);
    assert_eq!(recovered.end(), first, "the log goes on below the end of the last valid block");
    let log = recovered.resume(2).unwrap();
    let second = append(&log, b"second", &recorder);
    log.wait_durable(second, &recorder).unwrap();
    let position = log.position();
    assert_eq!(position.offset, write.offset + 8192 + 4096, "valid blocks are not overwritten");
    drop(log);
    let (recovered, records) = recover(&at_cut, &options).unwrap();
    assert_eq!(records, [&b"first"[..], b"second"]);
    assert_eq!(recovered.last_incarnation(), 2);
    let (_, records) = recover_from(&at_cut, &options, position, second).unwrap();
    assert!(records.is_empty());
}

#[test]
fn reading_from_any_position_gives_the_rest() {
    let options = options(1);
    let recorder = recorder(&options);
    let disk = TestDisk::new();
    let mut log = Log::create(disk.arc(), options.clone()).unwrap();
    let mut positions = Vec::new();
    let mut appended = Vec::new();
    for number in 0..60 {
        positions.push(log.position());
        appended.push(record(number, 2500));
        let end = append(&log, &appended[number], &recorder);
        log.wait_durable(end, &recorder).unwrap();
        if number % 20 == 19 {
            drop(log);
            let (recovered, _) = recover(&disk, &options).unwrap();
            log = recovered.resume(2 + number as u64).unwrap();
        }
    }
    drop(log);
    for (number, position) in positions.iter().enumerate() {
        let (_, records) = recover_from(&disk, &options, *position, position.lsn).unwrap();
        assert_eq!(records, appended[number..]);
    }
}
