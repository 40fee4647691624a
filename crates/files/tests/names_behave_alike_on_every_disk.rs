//! Creating, listing, renaming and removing mean the same on every disk, errors included.

mod common;

use onrush_files::{DiskErrorKind, OpenMode};

#[test]
fn names_are_made_listed_renamed_and_removed() {
    for place in common::places("names") {
        let (disk, folder) = (&place.disk, &place.folder);
        let inner = folder.join("a/b");
        disk.create_folder(&inner).unwrap();
        disk.create_folder(&inner).unwrap(); // once more is no error
        let first = disk.open(&folder.join("log.2"), OpenMode::CreateNew).unwrap();
        disk.open(&folder.join("log.1"), OpenMode::CreateNew).unwrap();
        first.write_at(b"two", 0).unwrap();
        assert_eq!(disk.list(folder).unwrap(), ["a", "log.1", "log.2"]);

        disk.rename(&folder.join("log.2"), &folder.join("log.1")).unwrap();
        disk.sync_folder(folder).unwrap();
        assert_eq!(disk.list(folder).unwrap(), ["a", "log.1"]);
        let mut bytes = [0; 3];
        let renamed = disk.open(&folder.join("log.1"), OpenMode::ReadWrite).unwrap();
        renamed.read_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"two");

        disk.remove(&folder.join("log.1")).unwrap();
        assert!(!disk.exists(&folder.join("log.1")).unwrap());
        assert!(disk.exists(&inner).unwrap());
        first.write_at(b"still open", 0).unwrap();
        assert_eq!(first.len().unwrap(), 10);
    }
}

#[test]
fn wrong_names_give_the_same_kinds_of_error() {
    for place in common::places("wrong-names") {
        let (disk, folder) = (&place.disk, &place.folder);
        let missing = folder.join("missing");
        disk.open(&folder.join("here"), OpenMode::CreateNew).unwrap();
        let opened = disk.open(&missing, OpenMode::ReadWrite).map(|_| ());
        let results = [
            (opened, DiskErrorKind::NotFound),
            (
                disk.open(&folder.join("here"), OpenMode::CreateNew).map(|_| ()),
                DiskErrorKind::AlreadyExists,
            ),
            (
                disk.open(&missing.join("deep"), OpenMode::CreateNew).map(|_| ()),
                DiskErrorKind::NotFound,
            ),
            (disk.create_folder(&folder.join("here")), DiskErrorKind::AlreadyExists),
            (disk.rename(&missing, &folder.join("other")), DiskErrorKind::NotFound),
            (disk.remove(&missing), DiskErrorKind::NotFound),
            (disk.list(&missing).map(|_| ()), DiskErrorKind::NotFound),
            (disk.sync_folder(&missing), DiskErrorKind::NotFound),
        ];
        for (number, (result, kind)) in results.into_iter().enumerate() {
            assert_eq!(result.unwrap_err().kind(), kind, "call {number} on {disk:?}");
        }
    }
}
