//! What a newer Onrush wrote is left alone, with a message that says so.

#![allow(clippy::unwrap_used)]

mod common;

use std::os::unix::fs::FileExt;

use common::{Fixture, refused};
use onrush::Error;

/// Checksum of a sealed block: its first twelve bytes, then all after the checksum.
fn seal(block: &mut [u8]) {
    let sum = crc32c::crc32c_append(crc32c::crc32c(&block[..12]), &block[16..]);
    block[12..16].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn a_superblock_of_the_next_version() {
    let fixture = Fixture::new();
    fixture.create().close().unwrap();
    let path = fixture.path().join("superblock.onrush");
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    for copy in [0, 64 << 10] {
        let mut block = [0; 4096];
        file.read_exact_at(&mut block, copy).unwrap();
        block[8..12].copy_from_slice(&2u32.to_le_bytes());
        seal(&mut block);
        file.write_all_at(&block, copy).unwrap();
    }
    let before = std::fs::read(&path).unwrap();
    let error = refused(fixture.try_open(), &["superblock.onrush", "format 2", "newer"]);
    assert!(matches!(error, Error::FutureFormat { found: 2, known: 1, .. }));
    assert!(before == std::fs::read(&path).unwrap());
}

#[test]
fn a_data_file_of_the_next_version() {
    let fixture = Fixture::new();
    fixture.create().close().unwrap();
    let path = fixture.path().join("data-00.onrush");
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&2u32.to_le_bytes(), 8).unwrap();
    let error = refused(fixture.try_open(), &["data-00.onrush", "format 2", "newer"]);
    assert!(matches!(error, Error::FutureFormat { found: 2, .. }));
}
