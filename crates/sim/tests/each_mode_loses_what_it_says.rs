//! What each mode does to writes that were not synced.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use onrush_files::{Disk, DiskFile, OpenMode};
use onrush_sim::{CrashDisk, CrashMode};

const PATH: &str = "/file";

/// A synced file of 16 KiB of ones, and an unsynced write of 20 KiB of twos over and past it.
fn overwritten() -> CrashDisk {
    let (disk, file) = with_file();
    file.write_at(&[1; 16_384], 0).expect("no faults");
    file.sync().expect("no faults");
    file.write_at(&[2; 20_480], 0).expect("no faults");
    disk
}

fn with_file() -> (CrashDisk, Arc<dyn DiskFile>) {
    let disk = CrashDisk::new();
    let file = disk.open(Path::new(PATH), OpenMode::CreateNew).expect("an empty disk");
    disk.sync_folder(Path::new("/")).expect("the folder");
    (disk, file)
}

fn after(disk: &CrashDisk, mode: CrashMode, seed: u64) -> Vec<u8> {
    let image = disk.crash_image(disk.operation_count(), mode, seed);
    let file = image.open(Path::new(PATH), OpenMode::ReadOnly).expect("a durable name");
    let mut bytes = vec![9; usize::try_from(file.len().expect("a length")).expect("small")];
    file.read_at(&mut bytes, 0).expect("the whole file");
    bytes
}

#[test]
fn all_lost_is_the_synced_state_and_all_kept_the_live_one() {
    let disk = overwritten();
    assert_eq!(after(&disk, CrashMode::AllLost, 0), vec![1; 16_384]);
    assert_eq!(after(&disk, CrashMode::ContentLost, 0), vec![1; 16_384]);
    assert_eq!(after(&disk, CrashMode::AllKept, 0), vec![2; 20_480]);
    assert_eq!(after(&disk, CrashMode::NamesLost, 0), vec![2; 20_480]);
}

#[test]
fn a_subset_keeps_or_loses_whole_writes_in_any_order() {
    let (disk, file) = with_file();
    for number in 0..3 {
        file.write_at(&[1; 4096], number * 4096).unwrap();
    }
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let mut bytes = after(&disk, CrashMode::Subset, seed);
        bytes.resize(3 * 4096, 0);
        let kept: Vec<u8> = bytes.chunks(4096).map(|chunk| chunk[0]).collect();
        assert!(bytes.chunks(4096).all(|chunk| chunk.iter().all(|byte| *byte == chunk[0])));
        seen.insert(kept);
    }
    assert_eq!(seen.len(), 8, "every subset comes up, the last write without the first too");
}

#[test]
fn torn_writes_are_torn_at_their_unit_and_nowhere_else() {
    let disk = overwritten();
    for (mode, unit) in [(CrashMode::TornSectors, 512), (CrashMode::TornBlocks, 4096)] {
        let mut torn = false;
        for seed in 0..50 {
            let bytes = after(&disk, mode, seed);
            assert!(bytes.chunks(unit).all(|chunk| chunk.iter().all(|byte| *byte == chunk[0])));
            assert!(bytes[..16_384].iter().all(|byte| [1, 2].contains(byte)));
            assert!(bytes[16_384..].iter().all(|byte| [0, 2].contains(byte)));
            torn |= bytes.contains(&1) && bytes.contains(&2);
        }
        assert!(torn, "{mode:?} never tore");
    }
}

#[test]
fn zero_growth_keeps_the_length_and_loses_the_bytes() {
    let disk = overwritten();
    let bytes = after(&disk, CrashMode::ZeroGrowth, 0);
    assert_eq!(bytes[..16_384], vec![1; 16_384]);
    assert_eq!(bytes[16_384..], vec![0; 4096]);
}

#[test]
fn garbage_stays_inside_the_unsynced_write() {
    let (disk, file) = with_file();
    file.write_at(&[1; 16_384], 0).unwrap();
    file.sync().unwrap();
    file.write_at(&[2; 1000], 5000).unwrap();
    let mut spoiled = false;
    for seed in 0..50 {
        let bytes = after(&disk, CrashMode::Garbage, seed);
        assert!(bytes[..5000].iter().chain(&bytes[6000..]).all(|byte| *byte == 1));
        spoiled |= bytes[5000..6000].iter().any(|byte| ![1, 2].contains(byte));
    }
    assert!(spoiled);
}

#[test]
fn a_durable_write_is_kept_without_older_unsynced_ones() {
    let (disk, file) = with_file();
    file.write_at(&[1; 8192], 0).unwrap();
    file.write_at_durable(&[2; 512], 4096).unwrap();
    let bytes = after(&disk, CrashMode::AllLost, 0);
    assert_eq!(bytes[..4096], vec![0; 4096]);
    assert_eq!(bytes[4096..], vec![2; 512]);
    for seed in 0..50 {
        for mode in CrashMode::ALL {
            let bytes = after(&disk, mode, seed);
            assert_eq!(bytes[4096..4608], vec![2; 512], "{mode:?}: the older write is on top");
        }
    }
}

#[test]
fn a_durable_write_can_be_cut_in_the_middle() {
    let (disk, file) = with_file();
    file.write_at(&[1; 4096], 0).unwrap();
    file.sync().unwrap();
    file.write_at_durable(&[2; 4096], 0).unwrap();
    let before_done = disk.operation_count() - 1;
    let torn = (0..50).any(|seed| {
        let image = disk.crash_image(before_done, CrashMode::TornSectors, seed);
        let file = image.open(Path::new(PATH), OpenMode::ReadOnly).unwrap();
        let mut bytes = vec![0; 4096];
        file.read_at(&mut bytes, 0).unwrap();
        bytes.contains(&1) && bytes.contains(&2)
    });
    assert!(torn);
}

#[test]
fn an_unsynced_cut_of_a_file_is_undone() {
    let (disk, file) = with_file();
    file.write_at(&[1; 8192], 0).unwrap();
    file.sync().unwrap();
    file.set_len(100).unwrap();
    assert_eq!(after(&disk, CrashMode::AllLost, 0), vec![1; 8192]);
    assert_eq!(after(&disk, CrashMode::ZeroGrowth, 0), vec![1; 8192]);
    file.sync().unwrap();
    for mode in CrashMode::ALL {
        assert_eq!(after(&disk, mode, 1), vec![1; 100], "{mode:?}");
    }
}
