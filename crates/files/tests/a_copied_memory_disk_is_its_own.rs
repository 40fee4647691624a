//! A copy of a memory disk begins with the same files and then goes its own way.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use onrush_files::{Disk, MemoryDisk, OpenMode};

fn content(disk: &MemoryDisk) -> Vec<u8> {
    let file = disk.open(Path::new("/folder/file"), OpenMode::ReadOnly).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn what_is_changed_on_one_is_not_seen_on_the_other() {
    let first = MemoryDisk::with_capacity(3 * 4096);
    first.create_folder(Path::new("/folder")).unwrap();
    let file = first.open(Path::new("/folder/file"), OpenMode::CreateNew).unwrap();
    file.write_at(b"before", 0).unwrap();
    let second = first.copy();
    file.write_at(b"behind", 0).unwrap();
    let other = second.open(Path::new("/folder/file"), OpenMode::ReadWrite).unwrap();
    other.write_at(b"!", 6).unwrap();
    assert_eq!(content(&first), b"behind");
    assert_eq!(content(&second), b"before!");
    second.remove(Path::new("/folder/file")).unwrap();
    assert!(first.exists(Path::new("/folder/file")).unwrap());
}

#[test]
fn each_has_the_space_that_its_own_files_leave() {
    let first = MemoryDisk::with_capacity(2 * 4096);
    let file = first.open(Path::new("/file"), OpenMode::CreateNew).unwrap();
    file.write_at(&[1; 4096], 0).unwrap();
    let second = first.copy();
    file.write_at(&[1; 4096], 4096).unwrap();
    assert_eq!((first.used_bytes(), second.used_bytes()), (8192, 4096));
    let other = second.open(Path::new("/file"), OpenMode::ReadWrite).unwrap();
    other.write_at(&[1; 4096], 4096).unwrap();
    assert!(other.write_at(&[1; 4096], 8192).is_err());
}
