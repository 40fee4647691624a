//! What a newer Onrush wrote is left alone, with a message that says so.

#![allow(clippy::unwrap_used)]

mod common;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use common::{Fixture, note, notes, refused};
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

/// The log segment that holds the log of a small database, and its path.
fn log_segment(fixture: &Fixture) -> (PathBuf, Vec<u8>) {
    let path = fixture.path().join("log/log-0000000000000001.segment");
    let bytes = std::fs::read(&path).unwrap();
    (path, bytes)
}

/// With these bytes in the file the database does not open, and they stay as they are.
fn assert_refused_untouched(fixture: &Fixture, path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    let error = refused(fixture.try_open(), &[path.to_str().unwrap(), "format 2", "newer"]);
    assert!(matches!(error, Error::FutureFormat { found: 2, known: 1, .. }), "{error:?}");
    assert!(bytes == std::fs::read(path).unwrap());
}

#[test]
fn a_log_segment_of_the_next_version() {
    let fixture = Fixture::new();
    fixture.create().close().unwrap();
    let (path, mut bytes) = log_segment(&fixture);
    bytes[8..12].copy_from_slice(&2u32.to_le_bytes());
    seal(&mut bytes[..4096]);
    assert_refused_untouched(&fixture, &path, &bytes);
}

/// The last block of a log may be torn, and is then cut; one that a newer Onrush wrote may not.
#[test]
fn a_log_block_of_the_next_version() {
    let fixture = Fixture::new();
    let (db, table) = fixture.create_with(notes());
    db.session().unwrap().insert(&table, &note(1, "new")).unwrap();
    drop((table, db));
    let (path, mut bytes) = log_segment(&fixture);
    let is_block = |bytes: &[u8]| bytes.starts_with(b"ONRUSHLB");
    let at = (4096..bytes.len()).step_by(4096).take_while(|at| is_block(&bytes[*at..]));
    let at = at.last().unwrap();
    let block = &mut bytes[at..at + 4096];
    block[8..12].copy_from_slice(&2u32.to_le_bytes());
    let sum = crc32c::crc32c_append(crc32c::crc32c(&block[..92]), &block[96..]);
    block[92..96].copy_from_slice(&sum.to_le_bytes());
    assert_refused_untouched(&fixture, &path, &bytes);
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
