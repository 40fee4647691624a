//! After the first failed write nothing more is written or synced, and every refusal names the
//! first cause.

use std::path::Path;
use std::sync::Arc;

use onrush_files::{Disk, DiskErrorKind, MemoryDisk, OpenMode, StickyDisk};

const FOLDER: &str = "/data";

fn sticky(capacity_bytes: u64) -> (MemoryDisk, StickyDisk) {
    let memory = MemoryDisk::with_capacity(capacity_bytes);
    let disk = StickyDisk::new(Arc::new(memory.clone()));
    disk.create_folder(Path::new(FOLDER)).expect("an empty disk");
    (memory, disk)
}

#[test]
fn a_failed_write_is_final_for_every_file_even_when_space_returns() {
    let (memory, disk) = sticky(8192);
    let first = disk.open(Path::new("/data/first"), OpenMode::CreateNew).unwrap();
    let second = disk.open(Path::new("/data/second"), OpenMode::CreateNew).unwrap();
    second.write_at(b"kept", 0).unwrap();
    assert_eq!(first.write_at(&[1; 8192], 0).unwrap_err().kind(), DiskErrorKind::Failed);
    memory.set_capacity(u64::MAX);

    let refused = [
        second.write_at(b"x", 0),
        second.write_at_durable(b"x", 0),
        second.sync(),
        second.set_len(1),
        second.allocate(1),
        disk.rename(Path::new("/data/second"), Path::new("/data/third")),
        disk.remove(Path::new("/data/second")),
        disk.sync_folder(Path::new(FOLDER)),
        disk.create_folder(Path::new("/data/more")),
        disk.open(Path::new("/data/new"), OpenMode::CreateNew).map(|_| ()),
    ];
    for (number, result) in refused.into_iter().enumerate() {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), DiskErrorKind::Failed, "call {number}");
        assert!(error.to_string().contains("/data/first"), "call {number}: {error}");
    }
    let mut bytes = [0; 4];
    second.read_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"kept");
    assert_eq!(disk.first_failure().unwrap().kind(), DiskErrorKind::Full);
}

#[test]
fn a_full_disk_met_while_reserving_is_harmless() {
    let (_memory, disk) = sticky(8192);
    let file = disk.open(Path::new("/data/file"), OpenMode::CreateNew).unwrap();
    assert_eq!(file.allocate(1 << 20).unwrap_err().kind(), DiskErrorKind::Full);
    file.write_at_durable(b"goes on", 0).unwrap();
    assert!(disk.first_failure().is_none());
}

#[test]
fn reserved_space_cannot_run_out() {
    let (memory, disk) = sticky(1 << 20);
    let file = disk.open(Path::new("/data/file"), OpenMode::CreateNew).unwrap();
    file.allocate(100_000).unwrap();
    memory.set_capacity(0);
    file.write_at_durable(&[7; 100_000], 0).unwrap();
}

#[test]
fn a_removed_file_gives_its_space_back_when_the_last_handle_goes() {
    let (memory, disk) = sticky(1 << 20);
    let path = Path::new("/data/file");
    let file = disk.open(path, OpenMode::CreateNew).unwrap();
    file.write_at(&[7; 10_000], 0).unwrap();
    disk.remove(path).unwrap();
    assert_eq!(memory.used_bytes(), 12_288);
    drop(file);
    assert_eq!(memory.used_bytes(), 0);
}
