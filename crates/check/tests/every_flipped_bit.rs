//! Every bit of a small database, flipped one at a time: the check finds it, or opening does, or all
//! rows are right, so that the byte is of no use. Never a wrong row, never a panic.
//!
//! Which bytes are of any use is seen from the reads of check, open and scan: those that none of them
//! reads cannot matter. Here some of the bits; all of them, in some twenty minutes, with
//! `ONRUSH_BIT_STRIDE=1 cargo test --release -p onrush-check --test every_flipped_bit`.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use onrush::{
    Background, ColumnDefinition, DataType, Database, KeyStrategy, Options, ScanOptions,
    TableDefinition, Value,
};
use onrush_check::{CheckOptions, Progress, check};
use onrush_files::{Disk, DiskError, DiskFile, FolderLock, MemoryDisk, OpenMode};

fn folder() -> PathBuf {
    PathBuf::from("/shop")
}

fn options() -> Options {
    Options { background: Background::Callers, ..Options::small() }
}

/// Two tables, two checkpoints, closed.
fn small_database(disk: &MemoryDisk) {
    let database = Database::create_on(Arc::new(disk.clone()), folder(), options()).unwrap();
    for (name, strategy) in [
        ("orders", KeyStrategy::Identity { start: 1, strict: false }),
        ("events", KeyStrategy::HashPrefix),
    ] {
        let definition = TableDefinition::builder(name)
            .column(ColumnDefinition::new("id", DataType::Int64).default_key(strategy))
            .column(ColumnDefinition::new("note", DataType::Varchar(200)))
            .column(ColumnDefinition::new("at", DataType::Date).not_null())
            .primary_key(["id"])
            .build()
            .unwrap();
        let table = database.create_table(definition).unwrap();
        let mut session = database.session().unwrap();
        for number in 0..120usize {
            let note = if number % 5 == 0 { Value::Null } else { "n".repeat(number).into() };
            session.insert(&table, &[Value::Default, note, Value::Date(number as i32)]).unwrap();
        }
        database.checkpoint().unwrap();
    }
    database.close().unwrap();
}

/// All rows of all tables, or why they cannot be had.
fn rows(disk: Arc<dyn Disk>) -> Result<Vec<(String, Vec<onrush::Row>)>, onrush::Error> {
    let database = Database::open_on(disk, folder(), options())?;
    let mut all = Vec::new();
    for definition in database.tables() {
        let table = database.table(definition.name())?;
        let scan = database.session()?.scan(&table, &ScanOptions::default())?;
        let rows = scan.collect::<Result<Vec<_>, _>>()?;
        all.push((table.name().to_owned(), rows));
    }
    Ok(all)
}

fn is_found(disk: &MemoryDisk) -> bool {
    let options = CheckOptions { dop: 1, ..CheckOptions::default() };
    match check(Arc::new(disk.clone()), &folder(), &options, &Progress::default()) {
        Ok(report) => !report.findings.is_empty(),
        // A newer format, it says.
        Err(_) => true,
    }
}

/// A disk that remembers which bytes of which file were read, in units of 4 KiB.
#[derive(Clone, Debug)]
struct WatchedDisk {
    disk: MemoryDisk,
    read: Arc<Mutex<BTreeMap<PathBuf, Vec<bool>>>>,
}

const UNIT: u64 = 4096;

impl Disk for WatchedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        Ok(Arc::new(WatchedFile {
            file: self.disk.open(path, mode)?,
            read: Arc::clone(&self.read),
        }))
    }

    fn create_folder(&self, path: &Path) -> Result<(), DiskError> {
        self.disk.create_folder(path)
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, DiskError> {
        self.disk.list(folder)
    }

    fn exists(&self, path: &Path) -> Result<bool, DiskError> {
        self.disk.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        self.disk.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> Result<(), DiskError> {
        self.disk.sync_folder(folder)
    }

    fn lock(&self, folder: &Path) -> Result<FolderLock, DiskError> {
        self.disk.lock(folder)
    }
}

#[derive(Debug)]
struct WatchedFile {
    file: Arc<dyn DiskFile>,
    read: Arc<Mutex<BTreeMap<PathBuf, Vec<bool>>>>,
}

impl DiskFile for WatchedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
        let mut read = self.read.lock().unwrap();
        let units = read.entry(self.file.path().to_owned()).or_default();
        let (first, end) = (offset / UNIT, (offset + buffer.len() as u64).div_ceil(UNIT));
        units.resize(units.len().max(end as usize), false);
        units[first as usize..end as usize].fill(true);
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.file.write_at(buffer, offset)
    }

    fn write_at_durable(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.file.write_at_durable(buffer, offset)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.file.sync()
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.file.len()
    }

    fn set_len(&self, len_bytes: u64) -> Result<(), DiskError> {
        self.file.set_len(len_bytes)
    }

    fn allocate(&self, len_bytes: u64) -> Result<(), DiskError> {
        self.file.allocate(len_bytes)
    }

    fn path(&self) -> &Path {
        self.file.path()
    }
}

/// The database as bytes, so that each flip starts from the same.
struct Files(Vec<(PathBuf, Vec<u8>)>);

impl Files {
    fn of(disk: &MemoryDisk) -> Files {
        let mut files = Vec::new();
        for folder in [folder(), folder().join("log")] {
            for name in disk.list(&folder).unwrap() {
                let path = folder.join(name);
                let Ok(file) = disk.open(&path, OpenMode::ReadOnly) else { continue };
                let mut bytes = vec![0; file.len().unwrap() as usize];
                file.read_at(&mut bytes, 0).unwrap();
                files.push((path, bytes));
            }
        }
        Files(files)
    }

    /// A new disk with these files; pages of zeros take no time.
    fn disk(&self) -> MemoryDisk {
        let disk = MemoryDisk::new();
        disk.create_folder(&folder().join("log")).unwrap();
        for (path, bytes) in &self.0 {
            let file = disk.open(path, OpenMode::CreateNew).unwrap();
            file.set_len(bytes.len() as u64).unwrap();
            for (number, page) in bytes.chunks(UNIT as usize).enumerate() {
                if page.iter().any(|byte| *byte != 0) {
                    file.write_at(page, number as u64 * UNIT).unwrap();
                }
            }
        }
        disk
    }
}

fn flip(disk: &MemoryDisk, path: &Path, bit: u64) {
    let file = disk.open(path, OpenMode::ReadWrite).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, bit / 8).unwrap();
    byte[0] ^= 1 << (bit % 8);
    file.write_at(&byte, bit / 8).unwrap();
}

#[test]
fn a_flipped_bit_is_found_or_of_no_use() {
    let stride: u64 = match std::env::var("ONRUSH_BIT_STRIDE") {
        Ok(text) => text.parse().expect("ONRUSH_BIT_STRIDE is a number"),
        Err(_) => 211,
    };
    let made = MemoryDisk::new();
    small_database(&made);
    let files = Files::of(&made);
    let watched = WatchedDisk { disk: files.disk(), read: Arc::default() };
    let options = CheckOptions { dop: 1, ..CheckOptions::default() };
    let report = check(Arc::new(watched.clone()), &folder(), &options, &Progress::default());
    assert!(report.unwrap().is_sound());
    let expected = rows(Arc::new(watched.clone())).unwrap();
    assert_eq!(expected.iter().map(|(_, rows)| rows.len()).collect::<Vec<_>>(), [120, 120]);
    let read = watched.read.lock().unwrap().clone();

    let mut bits = Vec::new();
    for (path, units) in &read {
        for (unit, _) in units.iter().enumerate().filter(|(_, read)| **read) {
            let first = unit as u64 * UNIT * 8;
            bits.extend((first..first + UNIT * 8).map(|bit| (path.clone(), bit)));
        }
    }
    let chosen: Vec<_> = bits.iter().step_by(stride as usize).cloned().collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let part = chosen.len().div_ceil(threads);
    let counts: Vec<[u64; 3]> = std::thread::scope(|scope| {
        let work = |part: &[(PathBuf, u64)]| {
            let mut disk = files.disk();
            let mut counts = [0; 3];
            for (path, bit) in part {
                flip(&disk, path, *bit);
                let outcome = if is_found(&disk) {
                    0
                } else {
                    match rows(Arc::new(disk.clone())) {
                        Err(_) => 1,
                        Ok(found) => {
                            assert_eq!(found, expected, "{} bit {bit}: wrong rows", path.display());
                            2
                        }
                    }
                };
                counts[outcome] += 1;
                match outcome {
                    0 => flip(&disk, path, *bit),
                    // It was opened, and so it was changed.
                    _ => disk = files.disk(),
                }
            }
            counts
        };
        let threads: Vec<_> =
            chosen.chunks(part).map(|part| scope.spawn(move || work(part))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let sum = |outcome: usize| counts.iter().map(|counts| counts[outcome]).sum::<u64>();
    let (found, refused, of_no_use) = (sum(0), sum(1), sum(2));
    println!(
        "{} of {} bits that are read flipped: {found} found by the check, {refused} by opening, \
         {of_no_use} of no use",
        chosen.len(),
        bits.len()
    );
    assert!(found > of_no_use, "{found} found, {of_no_use} of no use");
}
