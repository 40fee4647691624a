//! With a folder for kept segments, what no checkpoint needs is moved there, whole.

mod common;

use std::path::Path;

use common::{FOLDER, TestDisk, append, options, record, recorder, recover_from};
use onrush_files::Disk;
use onrush_log::{Log, LogError, LogOptions, Lsn};

const KEPT: &str = "/kept";

fn world() -> (TestDisk, LogOptions) {
    let disk = TestDisk::new();
    disk.memory.create_folder(Path::new(KEPT)).unwrap();
    (disk, LogOptions { kept_folder: Some(KEPT.into()), ..options(1) })
}

fn kept(disk: &TestDisk) -> Vec<String> {
    disk.memory.list(Path::new(KEPT)).unwrap()
}

/// Appends durable records until the log is in segment `number`.
fn append_to_segment(log: &Log, options: &LogOptions, number: u64) -> Lsn {
    let recorder = recorder(options);
    let mut end = Lsn::ZERO;
    while log.position().segment < number {
        end = append(log, &record(1, 5000), &recorder);
        log.wait_durable(end, &recorder).unwrap();
    }
    end
}

#[test]
fn all_records_can_be_read_from_kept_segments_and_the_log() {
    let (disk, options) = world();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let start = log.position();
    let end = append_to_segment(&log, &options, 4);
    log.recycle_below(&log.position()).unwrap();
    drop(log);
    assert_eq!(kept(&disk).len(), 3);
    for name in kept(&disk) {
        let (from, to) = (Path::new(KEPT).join(&name), Path::new(FOLDER).join(&name));
        disk.memory.rename(&from, &to).unwrap();
    }
    let (_, records) = recover_from(&disk, &options, start, end).unwrap();
    assert_eq!((records.len() * Log::framed_bytes(5000)) as u64, end - start.lsn);
}

#[test]
fn what_a_crash_kept_from_being_moved_is_moved_at_the_next_opening() {
    let (disk, options) = world();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    append_to_segment(&log, &options, 4);
    let position = log.position();
    drop(log);
    assert_eq!(kept(&disk), [] as [&str; 0]);
    let (recovered, _) = recover_from(&disk, &options, position, position.lsn).unwrap();
    drop(recovered.resume(2).unwrap());
    assert_eq!(kept(&disk).len(), 3);
}

#[test]
fn segments_of_another_log_are_not_overwritten() {
    let (disk, options) = world();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    append_to_segment(&log, &options, 3);
    log.recycle_below(&log.position()).unwrap();
    drop(log);
    let before = kept(&disk);
    let second = LogOptions { folder: "/second".into(), ..options };
    disk.memory.create_folder(Path::new("/second")).unwrap();
    let error = Log::create(disk.arc(), second).unwrap_err();
    assert!(matches!(error, LogError::InvalidOption { name: "kept_log_folder", .. }), "{error}");
    assert_eq!(kept(&disk), before);
}
