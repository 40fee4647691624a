//! A tail reads every block below the durable end, byte by byte, from a position on, whatever is recycled and however
//! the log is opened in between; and what only it needs takes no space from the log.

mod common;

use std::path::Path;

use common::{FOLDER, TestDisk, append, options, record, recorder, recover_from};
use onrush_files::{Disk, OpenMode};
use onrush_log::{Log, LogError, LogOptions, LogPosition, LogTail, Lsn, follow_blocks};

/// Appends so many records of 5,000 bytes, each of them durable, and recycles after each.
fn append_and_recycle(log: &Log, options: &LogOptions, count: u64) -> Lsn {
    let recorder = recorder(options);
    let mut end = Lsn::ZERO;
    for number in 0..count {
        end = append(log, &record(number as usize, 5000), &recorder);
        log.wait_durable(end, &recorder).unwrap();
        log.recycle_below(&log.position()).unwrap();
    }
    end
}

/// All blocks from `at` to the end, each part proven again; where they end.
fn read_all(tail: &LogTail, mut at: LogPosition, database_id: u128) -> LogPosition {
    while let Some(part) = tail.read(&at, 10_000).unwrap() {
        assert_eq!(part.from, at);
        let followed = follow_blocks(database_id, part.segment, &at, &part.bytes).unwrap();
        assert_eq!(followed, (part.to, part.bytes.len()));
        at = part.to;
    }
    at
}

#[test]
fn all_blocks_are_read_whatever_is_recycled() {
    let options = options(1);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let start = log.position();
    let mut tail = log.tail_from(&start);
    let end = append_and_recycle(&log, &options, 20);
    let at = read_all(&tail, start, options.database_id);
    assert_eq!((at, at.lsn), (log.position(), end));
    assert_eq!(tail.lsn_of(&at), end);
    // What is let go is gone.
    assert!(tail.held_bytes() > 0);
    tail.let_go_below(&at).unwrap();
    assert_eq!(tail.held_bytes(), 0);
    assert!(matches!(tail.read(&start, 10_000), Err(LogError::NotKept { .. })));
}

#[test]
fn nothing_of_a_segment_is_needed_behind_its_end() {
    let options = options(1);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let mut tail = log.tail_from(&log.position());
    let mut at = log.position();
    append_and_recycle(&log, &options, 20);
    // The part that ends its segment, and the first of the next one.
    let (last, first) = loop {
        let last = tail.read(&at, 0).unwrap().unwrap();
        let next = tail.read(&last.to, 0).unwrap().unwrap();
        if next.segment != last.segment {
            break (last, next);
        }
        at = last.to;
    };
    tail.let_go_below(&first.to).unwrap();
    assert!(matches!(tail.read(&last.from, 0), Err(LogError::NotKept { .. })));
    assert_eq!(tail.read(&last.to, 0).unwrap(), Some(first.clone()));
    // The same place under the name that it has in the next segment.
    let renamed = LogPosition { segment: first.segment, offset: 4096, ..last.to };
    assert!(renamed.is_same_place(&last.to) && !renamed.is_same_place(&last.from));
    assert_eq!(tail.read(&renamed, 0).unwrap().unwrap().bytes, first.bytes);
}

#[test]
fn what_a_tail_alone_needs_takes_no_space_from_the_log() {
    let options = options(1);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let start = log.position();
    let mut tail = log.tail_from(&start);
    // Many times the capacity: with an ordinary hold this would wait for ever.
    let rounds = 4 * options.capacity_bytes / 5000;
    append_and_recycle(&log, &options, rounds);
    assert!(tail.held_bytes() > options.capacity_bytes);
    assert!(log.space().in_use_bytes <= options.capacity_bytes);
    let at = read_all(&tail, start, options.database_id);
    tail.let_go_below(&at).unwrap();
    // The files are gone, too.
    append_and_recycle(&log, &options, 20);
    let files = disk.memory.list(Path::new(FOLDER)).unwrap().len() as u64;
    assert!(files * options.segment_bytes <= options.capacity_bytes, "{files} files");
}

#[test]
fn opening_keeps_what_was_not_read_and_reading_goes_on() {
    let options = options(1);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let start = log.position();
    let tail = log.tail_from(&start);
    let end = append_and_recycle(&log, &options, 20);
    let checkpoint = log.position();
    drop((log, tail));
    let kept = LogOptions { keep_from_segment: Some(start.segment), ..options.clone() };
    for incarnation in 2..4 {
        let (recovered, _) = recover_from(&disk, &kept, checkpoint, end).unwrap();
        let log = recovered.resume(incarnation).unwrap();
        log.recycle_below(&log.position()).unwrap();
        let tail = log.tail_from(&start);
        let (at, end) = (read_all(&tail, start, options.database_id), log.position());
        assert_eq!(at, LogPosition { incarnation: at.incarnation, ..end });
        // Before the tail, as in a crash: it lets go of what it holds.
        drop((log, tail));
    }
    // Without being asked for, it is not kept.
    let (recovered, _) = recover_from(&disk, &options, checkpoint, end).unwrap();
    let log = recovered.resume(4).unwrap();
    let tail = log.tail_from(&start);
    assert!(matches!(tail.read(&start, 10_000), Err(LogError::NotKept { .. })));
}

#[test]
fn another_log_in_the_same_place_does_not_follow() {
    let options = options(1);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let start = log.position();
    let recorder = recorder(&options);
    let end = append(&log, &record(1, 5000), &recorder);
    log.wait_durable(end, &recorder).unwrap();
    let at = log.position();
    let end = append(&log, &record(2, 5000), &recorder);
    log.wait_durable(end, &recorder).unwrap();
    let tail = log.tail_from(&start);
    assert!(tail.read(&at, 10_000).unwrap().is_some());
    let other = LogPosition { previous_checksum: start.previous_checksum, ..at };
    assert!(matches!(tail.read(&other, 10_000), Err(LogError::Damaged { .. })));
}

#[test]
fn a_flipped_bit_in_the_file_is_seen() {
    let options = options(1);
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let start = log.position();
    let end = append_and_recycle(&log, &options, 1);
    assert_eq!(log.position().lsn, end);
    let path = Path::new(FOLDER).join("log-0000000000000001.segment");
    let file = disk.memory.open(&path, OpenMode::ReadWrite).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, start.offset + 500).unwrap();
    file.write_at(&[byte[0] ^ 1], start.offset + 500).unwrap();
    let tail = log.tail_from(&start);
    assert!(matches!(tail.read(&start, 10_000), Err(LogError::Damaged { .. })));
}
