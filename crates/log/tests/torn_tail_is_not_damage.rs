//! A tear above what was durable is cut; damage below it refuses to open, and says where.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod common;

use std::path::PathBuf;

use common::*;
use onrush_log::{Log, LogError, Lsn};

fn segment(number: u64) -> PathBuf {
    PathBuf::from(format!("{FOLDER}/log-{number:016}.segment"))
}

/// Three rounds of one record each: blocks at 4096, 8192 and 12288.
fn three_rounds(disk: &TestDisk) -> Vec<Lsn> {
    let options = options(1);
    let recorder = recorder(&options);
    let log = Log::create(disk.arc(), options).unwrap();
    (0..3)
        .map(|number| {
            let end = append(&log, &record(number, 20), &recorder);
            log.wait_durable(end, &recorder).unwrap();
            end
        })
        .collect()
}

#[test]
fn a_torn_last_block_is_cut() {
    let disk = TestDisk::new();
    let ends = three_rounds(&disk);
    disk.flip(&segment(1), 12288 + 100);
    let (recovered, records) = recover(&disk, &options(1)).unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!(recovered.end(), ends[1]);
}

#[test]
fn a_flipped_bit_below_a_later_round_is_damage() {
    for (offset, lost) in [(4096, 0), (8192, 1)] {
        let disk = TestDisk::new();
        let ends = three_rounds(&disk);
        disk.flip(&segment(1), offset + 90);
        let error = recover(&disk, &options(1)).unwrap_err();
        let LogError::Damaged { segment, offset: at, lsn, .. } = &error else { panic!("{error}") };
        let expected = if lost == 0 { Lsn::FIRST } else { ends[lost - 1] };
        assert_eq!((*segment, *at, *lsn), (1, offset, expected), "{error}");
    }
}

#[test]
fn a_torn_block_that_the_checkpoint_needs_is_an_error() {
    let disk = TestDisk::new();
    let ends = three_rounds(&disk);
    disk.flip(&segment(1), 12288 + 100);
    let error = recover_from(&disk, &options(1), start(), ends[2]).unwrap_err();
    assert!(
        matches!(error, LogError::EndsEarly { segment: 1, offset: 12288, ends_at, must_reach }
            if ends_at == ends[1] && must_reach == ends[2]),
        "{error}"
    );
}

#[test]
fn after_a_clean_close_damage_in_the_last_round_is_seen() {
    let disk = TestDisk::new();
    let options = options(1);
    let recorder = recorder(&options);
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    append(&log, b"row", &recorder);
    log.close(&recorder).unwrap();
    let (_, records) = recover(&disk, &options).unwrap();
    assert_eq!(records, [b"row"]);
    disk.flip(&segment(1), 4096 + 97);
    assert!(matches!(
        recover(&disk, &options).unwrap_err(),
        LogError::Damaged { offset: 4096, .. }
    ));
}

#[test]
fn a_missing_segment_is_damage() {
    let disk = TestDisk::new();
    let options = options(1);
    let recorder = recorder(&options);
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    for number in 0..40 {
        let end = append(&log, &record(number, 8000), &recorder);
        log.wait_durable(end, &recorder).unwrap();
    }
    assert!(log.position().segment > 3);
    drop(log);
    let (_, records) = recover(&disk, &options).unwrap();
    assert_eq!(records.len(), 40);

    use onrush_files::Disk;
    disk.memory.remove(&segment(2)).unwrap();
    assert!(matches!(recover(&disk, &options).unwrap_err(), LogError::Damaged { segment: 1, .. }));
    disk.memory.remove(&segment(1)).unwrap();
    assert!(matches!(recover(&disk, &options).unwrap_err(), LogError::Damaged { segment: 1, .. }));
}

#[test]
fn recovery_twice_equals_once() {
    let disk = TestDisk::new();
    let ends = three_rounds(&disk);
    disk.flip(&segment(1), 12288 + 100);
    let (first, records) = recover(&disk, &options(1)).unwrap();
    drop(first.resume(2).unwrap());
    let (second, again) = recover(&disk, &options(1)).unwrap();
    assert_eq!(records, again);
    assert_eq!(second.end(), ends[1]);
    assert!(second.resume(1).is_err(), "an incarnation is never used twice");
}
