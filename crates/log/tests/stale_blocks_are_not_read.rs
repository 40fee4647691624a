//! Blocks of an earlier incarnation, of a recycled segment, or of another database never pass for
//! the log.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod common;

use std::num::NonZero;
use std::path::Path;

use common::*;
use onrush_files::{Disk, OpenMode};
use onrush_log::{Log, LogError, Lsn};

/// B1 is durable; of the next round B2 is lost and B3 reaches the disk. After the cut a new B2'
/// ends where B3 starts.
#[test]
fn a_block_behind_the_cut_is_stale_when_the_gap_is_filled() {
    let options = options(1);
    let recorder = recorder(&options);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let end = append(&log, b"B1", &recorder);
    log.wait_durable(end, &recorder).unwrap();
    let at_cut = disk.copy();
    // One round, two blocks: the first takes 8 KiB and ends with its record.
    let first = record(2, 8192 - 96 - 2);
    append(&log, &first, &recorder);
    let end = append(&log, b"B3", &recorder);
    log.wait_durable(end, &recorder).unwrap();
    drop(log);
    let write = disk.written().pop().unwrap();
    assert_eq!(write.bytes.len(), 12288);
    at_cut.put(&write.path, write.offset + 8192, &write.bytes[8192..]);

    let (recovered, records) = recover(&at_cut, &options).unwrap();
    assert_eq!(records, [b"B1"]);
    let log = recovered.resume(2).unwrap();
    let end = append(&log, &first, &recorder);
    log.wait_durable(end, &recorder).unwrap();
    let position = log.position();
    assert_eq!(position.offset, write.offset + 8192, "the next block would lie on the stale one");
    drop(log);

    let (_, records) = recover(&at_cut, &options).unwrap();
    assert_eq!(records.len(), 2, "B3 is not back");
    // The trap: a checkpoint at that permit, and a superblock without incarnation or chain.
    let (_, records) = recover_from(&at_cut, &options, position, position.lsn).unwrap();
    assert!(records.is_empty());
    let mut forgetful = position;
    forgetful.incarnation = 1;
    let checksum = u32::from_le_bytes(write.bytes[92..96].try_into().unwrap());
    forgetful.previous_checksum = NonZero::new(checksum);
    let (_, records) = recover_from(&at_cut, &options, forgetful, position.lsn).unwrap();
    assert_eq!(records, [b"B3"], "the planted fault shows what the chain is for");
}

#[test]
fn a_recycled_segment_holds_nothing_of_its_former_life() {
    let options = options(1);
    let recorder = recorder(&options);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let mut names = std::collections::BTreeSet::new();
    let mut end = Lsn::ZERO;
    for number in 0..200 {
        end = append(&log, &record(number, 5000), &recorder);
        log.wait_durable(end, &recorder).unwrap();
        log.recycle_below(&log.position()).unwrap();
        names.extend(disk.memory.list(Path::new(FOLDER)).unwrap());
        assert!(log.space().in_use_bytes <= 2 * options.segment_bytes);
    }
    assert!(names.len() > 10, "segments get new numbers");
    assert!(disk.memory.used_bytes() < 9 * options.segment_bytes, "and are used again");
    let position = log.position();
    append(&log, b"not durable", &recorder);
    drop(log);
    let (_, records) = recover_from(&disk, &options, position, end).unwrap();
    assert!(records.is_empty());
}

#[test]
fn a_log_of_another_database_is_refused() {
    let options = options(1);
    let recorder = recorder(&options);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    log.wait_durable(append(&log, b"row", &recorder), &recorder).unwrap();
    drop(log);
    let mut other = options.clone();
    other.database_id += 1;
    assert!(matches!(recover(&disk, &other).unwrap_err(), LogError::Damaged { .. }));
}

#[test]
fn a_segment_that_recovery_has_read_is_removed_not_reused() {
    let options = options(1);
    let recorder = recorder(&options);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    log.wait_durable(append(&log, b"row", &recorder), &recorder).unwrap();
    drop(log);
    let log = recover(&disk, &options).unwrap().0.resume(2).unwrap();
    let old = Path::new(FOLDER).join("log-0000000000000001.segment");
    let file = disk.memory.open(&old, OpenMode::ReadOnly).unwrap();
    while log.position().segment == 1 {
        log.wait_durable(append(&log, &record(1, 8000), &recorder), &recorder).unwrap();
    }
    log.recycle_below(&log.position()).unwrap();
    assert!(!disk.memory.exists(&old).unwrap());
    let mut header = vec![0; 4096];
    file.read_at(&mut header, 0).unwrap();
    assert_eq!(header[32], 1, "its header still says segment 1");
}
