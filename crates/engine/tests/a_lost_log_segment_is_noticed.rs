//! A log segment that was deleted or wiped is told of, also the newest one that holds acknowledged rows:
//! segments are made ahead, one after the other, so those behind it prove that it was there.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{Fixture, all_rows, ids, note, notes};
use onrush::{CheckOptions, CheckProgress, Database, Error, Options};
use onrush_files::{Disk, MemoryDisk, OpenMode};

const ROWS: i64 = 400;
const HEADER_BYTES: usize = 4096;

/// What a crash left of a database with acknowledged rows in several segments.
struct Crashed {
    disk: MemoryDisk,
    fixture: Fixture,
}

impl Crashed {
    fn new() -> Crashed {
        let disk = MemoryDisk::new();
        let mut fixture = Fixture::on(Arc::new(disk.clone()));
        let (db, table) = fixture.create_with(notes());
        let mut session = db.session().unwrap();
        let text = "x".repeat(500);
        for id in 0..ROWS {
            session.insert(&table, &note(id, &text)).unwrap();
        }
        // The thread that makes segments ahead may be at work: only whole ones behind prove a loss.
        loop {
            let crashed = Crashed { disk: disk.copy(), fixture };
            if crashed.is_made_ahead() {
                return crashed;
            }
            fixture = crashed.fixture;
            std::thread::yield_now();
        }
    }

    /// Whether two whole segments at least lie behind those with blocks, and none half made.
    fn is_made_ahead(&self) -> bool {
        let (segments, filled) = self.segments();
        let is_whole = |path: &PathBuf| starts_with(&self.disk, path, 0, b"ONRUSHLS");
        segments.len() > filled + 1 && segments.iter().all(is_whole)
    }

    fn log_folder(&self) -> PathBuf {
        self.fixture.path().join("log")
    }

    /// All segments, and how many of them hold blocks.
    fn segments(&self) -> (Vec<PathBuf>, usize) {
        let names = self.disk.list(&self.log_folder()).unwrap();
        let names = names.iter().filter(|name| name.ends_with(".segment"));
        let paths: Vec<PathBuf> = names.map(|name| self.log_folder().join(name)).collect();
        let has_blocks =
            |path: &&PathBuf| starts_with(&self.disk, path, HEADER_BYTES as u64, b"ONRUSHLB");
        let filled = paths.iter().filter(has_blocks).count();
        (paths, filled)
    }

    fn open(&self, disk: &MemoryDisk) -> Result<Database, Error> {
        Database::open_on(Arc::new(disk.clone()), self.fixture.path(), Options::small())
    }

    /// Opening, checking and backing up all tell of it, and change nothing.
    fn is_noticed(&self, disk: &MemoryDisk, lost: &Path) {
        let name = lost.file_name().unwrap().to_str().unwrap().to_owned();
        let error = self.open(disk).map(drop).unwrap_err();
        assert!(matches!(error, Error::DamagedLog(_)), "{error}");
        assert!(error.to_string().contains("was made after it"), "{error}");
        let (options, progress) = (CheckOptions::default(), CheckProgress::default());
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let folder = self.fixture.path();
        let report = onrush_check::check(shared.clone(), &folder, &options, &progress).unwrap();
        assert!(!report.is_sound(), "{report}");
        assert!(report.to_string().contains(&name), "{report}");
        let into = self.fixture.folder.path().join("copy");
        let copied = onrush_backup::backup(shared, &folder, &into, &options, &progress);
        assert!(matches!(copied, Err(onrush_backup::BackupError::Damaged(_))), "{copied:?}");
    }
}

/// Whether these bytes stand there; a file that is being made may end before.
fn starts_with(disk: &MemoryDisk, path: &Path, offset: u64, magic: &[u8; 8]) -> bool {
    let mut found = [0; 8];
    let file = disk.open(path, OpenMode::ReadOnly).unwrap();
    file.read_at(&mut found, offset).is_ok() && found == *magic
}

fn write_zeros(disk: &MemoryDisk, path: &Path, bytes: usize) {
    let file = disk.open(path, OpenMode::ReadWrite).unwrap();
    file.write_at(&vec![0; bytes], 0).unwrap();
}

#[test]
fn what_nobody_touched_opens_with_all_rows() {
    let crashed = Crashed::new();
    let (segments, filled) = crashed.segments();
    assert!(filled > 2, "{filled} of {}", segments.len());
    let db = crashed.open(&crashed.disk).unwrap();
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(ids(&rows), (0..ROWS).collect::<Vec<_>>());
}

#[test]
fn the_newest_segment_with_rows_was_deleted() {
    let crashed = Crashed::new();
    let (segments, filled) = crashed.segments();
    let disk = crashed.disk.copy();
    disk.remove(&segments[filled - 1]).unwrap();
    crashed.is_noticed(&disk, &segments[filled - 1]);
}

#[test]
fn the_newest_segment_with_rows_was_wiped() {
    let crashed = Crashed::new();
    let (segments, filled) = crashed.segments();
    let disk = crashed.disk.copy();
    write_zeros(&disk, &segments[filled - 1], Options::small().log_segment_bytes as usize);
    crashed.is_noticed(&disk, &segments[filled - 1]);
}

/// Whatever it held, its number is missing among those that were made before and after.
#[test]
fn any_segment_but_the_last_has_lost_its_header() {
    let crashed = Crashed::new();
    let (segments, filled) = crashed.segments();
    for lost in &segments[filled..segments.len() - 1] {
        let disk = crashed.disk.copy();
        write_zeros(&disk, lost, HEADER_BYTES);
        crashed.is_noticed(&disk, lost);
    }
}

/// A crash while the last one was made leaves it so.
#[test]
fn the_last_segment_may_be_half_made() {
    let crashed = Crashed::new();
    let (segments, _) = crashed.segments();
    let last = segments.last().unwrap();
    let disk = crashed.disk.copy();
    write_zeros(&disk, last, HEADER_BYTES);
    let db = crashed.open(&disk).unwrap();
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(rows.len() as i64, ROWS);
}
