//! Faults hit the call they were planned for, and a failed sync may lose for good what it was to
//! sync.

use std::path::Path;
use std::sync::Arc;

use onrush_files::{Disk, DiskErrorKind, DiskFile, OpenMode, StickyDisk};
use onrush_sim::{Call, CrashDisk, CrashMode, Fault, FaultError, Repeat, Unsynced};

const PATH: &str = "/file";

fn with_file() -> (CrashDisk, Arc<dyn DiskFile>) {
    let disk = CrashDisk::new();
    let file = disk.open(Path::new(PATH), OpenMode::CreateNew).expect("an empty disk");
    disk.sync_folder(Path::new("/")).expect("the folder");
    (disk, file)
}

fn fault(call: Call, nth: u64, repeat: Repeat, unsynced: Unsynced) -> Fault {
    Fault { call, nth, error: FaultError::Device, repeat, unsynced }
}

fn durable_bytes(disk: &CrashDisk) -> Vec<u8> {
    let image = disk.crash_image(disk.operation_count(), CrashMode::AllLost, 0);
    onrush_files::read_whole(&image, Path::new(PATH), 100_000).expect("a small file")
}

#[test]
fn the_planned_call_fails_once_or_for_ever() {
    let (disk, file) = with_file();
    disk.inject(fault(Call::Write, 2, Repeat::Once, Unsynced::Lost));
    let results: Vec<bool> = (0..4).map(|_| file.write_at(b"x", 0).is_ok()).collect();
    assert_eq!(results, [true, false, true, true]);
    disk.inject(fault(Call::Sync, 1, Repeat::ForEver, Unsynced::Kept));
    assert!((0..3).all(|_| file.sync().is_err()));
    file.write_at(b"x", 0).unwrap();
    disk.clear_faults();
    file.sync().unwrap();
    assert_eq!(disk.calls(Call::Write), 5);
    assert_eq!(disk.calls(Call::Sync), 4);
}

#[test]
fn any_change_counts_all_changing_calls() {
    let (disk, file) = with_file();
    disk.inject(fault(Call::AnyChange, 4, Repeat::Once, Unsynced::Lost));
    file.write_at(b"x", 0).unwrap();
    file.read_at(&mut [0; 1], 0).unwrap();
    file.allocate(10).unwrap();
    file.sync().unwrap();
    assert!(disk.sync_folder(Path::new("/")).is_err());
    file.set_len(1).unwrap();
}

#[test]
fn a_full_disk_has_its_own_kind() {
    let (disk, file) = with_file();
    let full = Fault {
        call: Call::Allocate,
        nth: 1,
        error: FaultError::Full,
        repeat: Repeat::Once,
        unsynced: Unsynced::Lost,
    };
    disk.inject(full);
    assert_eq!(file.allocate(4096).unwrap_err().kind(), DiskErrorKind::Full);
    assert_eq!(file.len().unwrap(), 0);
}

#[test]
fn after_a_failed_sync_that_lost_pages_the_next_one_succeeds_and_lies() {
    let (disk, file) = with_file();
    file.write_at(b"lost", 0).unwrap();
    disk.inject(fault(Call::Sync, 1, Repeat::Once, Unsynced::Lost));
    assert!(file.sync().is_err());
    file.write_at(b"kept", 4).unwrap();
    file.sync().unwrap();
    let mut bytes = [0; 8];
    file.read_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"lostkept", "reads show the page cache");
    assert_eq!(durable_bytes(&disk), b"\0\0\0\0kept");
}

#[test]
fn after_a_failed_sync_that_kept_pages_the_next_one_is_true() {
    let (disk, file) = with_file();
    file.write_at(b"kept", 0).unwrap();
    disk.inject(fault(Call::Sync, 1, Repeat::Once, Unsynced::Kept));
    assert!(file.sync().is_err());
    assert_eq!(durable_bytes(&disk), b"");
    file.sync().unwrap();
    assert_eq!(durable_bytes(&disk), b"kept");
}

#[test]
fn a_failed_write_may_have_written_a_part() {
    let (disk, file) = with_file();
    disk.inject(fault(Call::Write, 1, Repeat::Once, Unsynced::Kept));
    assert!(file.write_at_durable(&[1; 4096], 0).is_err());
    assert_eq!(file.len().unwrap(), 2048);
    assert_eq!(durable_bytes(&disk), b"");
}

#[test]
fn a_sticky_disk_does_not_believe_the_second_sync() {
    let crash = CrashDisk::new();
    let disk = StickyDisk::new(Arc::new(crash.clone()));
    let file = disk.open(Path::new(PATH), OpenMode::CreateNew).unwrap();
    file.write_at(b"row", 0).unwrap();
    crash.inject(fault(Call::Sync, 1, Repeat::Once, Unsynced::Lost));
    assert_eq!(file.sync().unwrap_err().kind(), DiskErrorKind::Other);
    assert_eq!(file.sync().unwrap_err().kind(), DiskErrorKind::Failed);
    assert_eq!(file.write_at(b"x", 0).unwrap_err().kind(), DiskErrorKind::Failed);
}

#[test]
fn after_the_power_is_off_nothing_happens_any_more() {
    let (disk, file) = with_file();
    disk.power_off_at(disk.operation_count() + 1);
    file.write_at_durable(b"half", 0).unwrap_err(); // written, and then the power failed
    assert!(disk.is_power_off());
    assert!(file.sync().is_err());
    assert!(file.read_at(&mut [0; 1], 0).is_err());
    assert!(disk.list(Path::new("/")).is_err());
    let image = disk.crash_image(disk.operation_count(), CrashMode::AllKept, 0);
    assert_eq!(onrush_files::read_whole(&image, Path::new(PATH), 10).unwrap(), b"half");
}

#[test]
fn threads_share_one_disk_and_one_order_of_operations() {
    let (disk, file) = with_file();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let file = &file;
            scope.spawn(move || {
                for number in 0..100_u64 {
                    file.write_at_durable(b"12345678", (number * 4 + thread) * 8).unwrap();
                }
            });
        }
    });
    assert_eq!(disk.operation_count(), 2 + 2 * 400);
    assert_eq!(durable_bytes(&disk).len(), 3200);
}
