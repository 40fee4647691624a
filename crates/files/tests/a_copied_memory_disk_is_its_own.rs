//! A copy of a memory disk begins with the same files and then goes its own way.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

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

#[test]
fn no_write_is_in_it_without_those_before() {
    let disk = MemoryDisk::new();
    let create = |name: &str| disk.open(Path::new(name), OpenMode::CreateNew).unwrap();
    // The later name is written first, so whoever copies name by name is likely to see the other alone.
    let (second, first) = (create("/a"), create("/b"));
    let number_of = |disk: &MemoryDisk, name: &str| {
        let mut bytes = [0; 8];
        disk.open(Path::new(name), OpenMode::ReadOnly).unwrap().read_at(&mut bytes, 0).unwrap();
        u64::from_le_bytes(bytes)
    };
    let write = |number: u64| {
        first.write_at(&number.to_le_bytes(), 0).unwrap();
        second.write_at(&number.to_le_bytes(), 0).unwrap();
    };
    write(0);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| (1..).take_while(|_| !is_over.load(Ordering::Relaxed)).for_each(write));
        for _ in 0..2_000 {
            let copy = disk.copy();
            let (first, second) = (number_of(&copy, "/b"), number_of(&copy, "/a"));
            let is_whole = first == second || first == second + 1;
            is_over.store(!is_whole, Ordering::Relaxed);
            assert!(is_whole, "{first} was written before {second}");
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
