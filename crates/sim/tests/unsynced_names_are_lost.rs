//! Names survive a power cut only after their folder was synced, each by itself, and never at the
//! cost of a durable file.

use std::collections::BTreeSet;
use std::path::Path;

use onrush_files::{Disk, OpenMode};
use onrush_sim::{Call, CrashDisk, CrashMode, Fault, FaultError, Repeat, Unsynced};

fn with_folder() -> CrashDisk {
    let disk = CrashDisk::new();
    disk.create_folder(Path::new("/data")).expect("an empty disk");
    disk
}

fn create(disk: &CrashDisk, name: &str, content: &[u8]) {
    let file = disk.open(&Path::new("/data").join(name), OpenMode::CreateNew).expect("a new name");
    file.write_at(content, 0).expect("no faults");
    file.sync().expect("no faults");
}

fn rename(disk: &CrashDisk, from: &str, to: &str) {
    let folder = Path::new("/data");
    disk.rename(&folder.join(from), &folder.join(to)).expect("the file is there");
}

fn sync_names(disk: &CrashDisk) {
    disk.sync_folder(Path::new("/data")).expect("no faults");
}

/// Each file with its content, after a power cut now.
fn after(disk: &CrashDisk, mode: CrashMode, seed: u64) -> Vec<(String, String)> {
    let image = disk.crash_image(disk.operation_count(), mode, seed);
    let names = image.list(Path::new("/data")).expect("a durable folder");
    let read = |name: String| {
        let path = Path::new("/data").join(&name);
        let bytes = onrush_files::read_whole(&image, &path, 1000).expect("a small file");
        (name, String::from_utf8(bytes).expect("text"))
    };
    names.into_iter().map(read).collect()
}

fn files(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect()
}

#[test]
fn a_created_file_is_gone_without_sync_of_its_folder() {
    let disk = with_folder();
    create(&disk, "a", b"one");
    assert_eq!(after(&disk, CrashMode::AllLost, 0), files(&[]));
    assert_eq!(after(&disk, CrashMode::NamesLost, 0), files(&[]));
    assert_eq!(after(&disk, CrashMode::AllKept, 0), files(&[("a", "one")]));
    sync_names(&disk);
    for mode in CrashMode::ALL {
        assert_eq!(after(&disk, mode, 1), files(&[("a", "one")]), "{mode:?}");
    }
}

#[test]
fn a_removed_or_renamed_file_is_back_without_sync_of_its_folder() {
    let disk = with_folder();
    create(&disk, "a", b"one");
    create(&disk, "b", b"two");
    sync_names(&disk);
    disk.remove(Path::new("/data/a")).unwrap();
    rename(&disk, "b", "c");
    assert_eq!(after(&disk, CrashMode::AllLost, 0), files(&[("a", "one"), ("b", "two")]));
    let seen: BTreeSet<_> = (0..100).map(|seed| after(&disk, CrashMode::Subset, seed)).collect();
    let all = BTreeSet::from([
        files(&[("a", "one"), ("b", "two")]),
        files(&[("b", "two")]),
        files(&[("a", "one"), ("c", "two")]),
        files(&[("c", "two")]),
    ]);
    assert_eq!(seen, all, "each change is kept or lost by itself");
}

#[test]
fn a_rename_can_overtake_the_content() {
    let disk = with_folder();
    create(&disk, "settings", b"old");
    sync_names(&disk);
    let file = disk.open(Path::new("/data/settings.new"), OpenMode::CreateNew).unwrap();
    file.write_at(b"new", 0).unwrap(); // not synced: this is the mistake
    rename(&disk, "settings.new", "settings");
    sync_names(&disk);
    assert_eq!(after(&disk, CrashMode::AllLost, 0), files(&[("settings", "")]));
}

#[test]
fn replacing_a_file_durably_is_all_or_nothing_at_every_boundary() {
    let disk = with_folder();
    let path = Path::new("/data/settings");
    onrush_files::replace_whole_durably(&disk, path, b"old").unwrap();
    disk.forget_history();
    onrush_files::replace_whole_durably(&disk, path, b"new and longer").unwrap();
    let mut sweep = disk.sweep();
    while sweep.advance() {
        for seed in 0..20 {
            for (mode, image) in sweep.images(seed) {
                let bytes = onrush_files::read_whole(&image, path, 100).unwrap();
                let done = sweep.at_operation() == sweep.last_operation();
                let fine = bytes == b"new and longer" || (!done && bytes == b"old");
                assert!(fine, "boundary {}, {mode:?}, seed {seed}", sweep.at_operation());
            }
        }
    }
}

#[test]
fn a_name_that_is_used_again_never_costs_the_durable_file() {
    let disk = with_folder();
    create(&disk, "log.1", b"acknowledged");
    sync_names(&disk);
    rename(&disk, "log.1", "log.2");
    create(&disk, "log.1", b"next");
    for seed in 0..100 {
        for mode in CrashMode::ALL {
            let found = after(&disk, mode, seed);
            let kept = found.iter().any(|(_, content)| content == "acknowledged");
            assert!(kept, "{mode:?}, seed {seed}: {found:?}");
        }
    }
}

#[test]
fn a_move_between_folders_needs_both_synced_and_never_loses_the_file() {
    let disk = with_folder();
    disk.create_folder(Path::new("/other")).unwrap();
    create(&disk, "a", b"one");
    sync_names(&disk);
    disk.rename(Path::new("/data/a"), Path::new("/other/a")).unwrap();
    disk.sync_folder(Path::new("/other")).unwrap();
    assert_eq!(after(&disk, CrashMode::AllLost, 0), files(&[("a", "one")]));
    sync_names(&disk);
    assert_eq!(after(&disk, CrashMode::AllLost, 0), files(&[]));
    let image = disk.crash_image(disk.operation_count(), CrashMode::AllLost, 0);
    assert!(image.exists(Path::new("/other/a")).unwrap());
}

#[test]
fn a_removal_that_was_synced_stays_even_if_the_move_before_it_was_half_synced() {
    let disk = with_folder();
    disk.create_folder(Path::new("/other")).unwrap();
    create(&disk, "a", b"one");
    sync_names(&disk);
    disk.rename(Path::new("/data/a"), Path::new("/other/a")).unwrap();
    disk.remove(Path::new("/other/a")).unwrap();
    disk.sync_folder(Path::new("/other")).unwrap();
    for mode in CrashMode::ALL {
        let image = disk.crash_image(disk.operation_count(), mode, 0);
        assert!(!image.exists(Path::new("/other/a")).unwrap(), "{mode:?}");
    }
}

#[test]
fn a_synced_file_in_an_unsynced_folder_is_lost_with_it() {
    let disk = CrashDisk::new();
    disk.inject(Fault {
        call: Call::SyncFolder,
        nth: 1,
        error: FaultError::Device,
        repeat: Repeat::Once,
        unsynced: Unsynced::Kept,
    });
    disk.create_folder(Path::new("/data")).unwrap_err();
    create(&disk, "a", b"one");
    sync_names(&disk);
    let image = disk.crash_image(disk.operation_count(), CrashMode::AllLost, 0);
    assert!(!image.exists(Path::new("/data")).unwrap());
    assert!(!image.exists(Path::new("/data/a")).unwrap());
}

#[test]
fn a_folder_cut_short_is_gone_with_all_in_it() {
    let disk = CrashDisk::new();
    disk.create_folder(Path::new("/data/deep")).unwrap();
    let mut sweep = disk.sweep();
    while sweep.advance() {
        for seed in 0..20 {
            let image = sweep.image(CrashMode::Subset, seed);
            let deep = image.exists(Path::new("/data/deep")).unwrap();
            let above = image.exists(Path::new("/data")).unwrap();
            assert!(above || !deep, "boundary {}, seed {seed}", sweep.at_operation());
        }
    }
    let image = disk.crash_image(disk.operation_count(), CrashMode::AllLost, 0);
    assert!(image.exists(Path::new("/data/deep")).unwrap());
}
