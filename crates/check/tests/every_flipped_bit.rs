//! Every bit of a small database, flipped one at a time: the check finds it, or opening does, or all
//! rows are right, so that the byte is of no use. Never a wrong row, never a panic.
//!
//! Which bytes are of any use is seen from the reads of check, open and scan: those that none of them
//! reads cannot matter. Here some of the bits; all of them, in well over half an hour of a processor, with
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
use onrush_files::{Disk, DiskError, DiskFile, DiskLayer, FileLayer, MemoryDisk, OpenMode};

fn folder() -> PathBuf {
    PathBuf::from("/shop")
}

fn options() -> Options {
    // As little memory as can be: it is opened again for each bit that no check finds.
    Options {
        background: Background::Callers,
        leaf_memory_bytes: 64 * (16 << 10),
        log_ring_bytes: 64 << 10,
        ..Options::small()
    }
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

/// The rows of each table.
type Rows = Vec<(String, Vec<onrush::Row>)>;

/// All rows of all tables, or why they cannot be had.
fn rows(disk: Arc<dyn Disk>) -> Result<Rows, onrush::Error> {
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

impl DiskLayer for WatchedDisk {
    fn below(&self) -> &dyn Disk {
        &self.disk
    }

    fn around(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(WatchedFile { file, read: Arc::clone(&self.read) })
    }
}

#[derive(Debug)]
struct WatchedFile {
    file: Arc<dyn DiskFile>,
    read: Arc<Mutex<BTreeMap<PathBuf, Vec<bool>>>>,
}

impl FileLayer for WatchedFile {
    fn below(&self) -> &dyn DiskFile {
        &*self.file
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
        let mut read = self.read.lock().unwrap();
        let units = read.entry(self.file.path().to_owned()).or_default();
        let (first, end) = (offset / UNIT, (offset + buffer.len() as u64).div_ceil(UNIT));
        units.resize(units.len().max(end as usize), false);
        units[first as usize..end as usize].fill(true);
        self.file.read_at(buffer, offset)
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
    let watched = WatchedDisk { disk: made.copy(), read: Arc::default() };
    let options = CheckOptions { dop: 1, ..CheckOptions::default() };
    let report = check(Arc::new(watched.clone()), &folder(), &options, &Progress::default());
    assert!(report.unwrap().is_sound());
    let expected = rows(Arc::new(watched.clone())).unwrap();
    assert_eq!(expected.iter().map(|(_, rows)| rows.len()).collect::<Vec<_>>(), [120, 120]);
    let read = watched.read.lock().unwrap().clone();

    let (mut sum, mut bits) = ([0; 3], 0_u64);
    for (path, units) in &read {
        let of_unit = |unit: usize| unit as u64 * UNIT * 8..(unit as u64 + 1) * UNIT * 8;
        let read = (0..units.len()).filter(|unit| units[*unit]).flat_map(of_unit);
        let read: Vec<u64> = read.collect();
        // Goes on from file to file, so that short ones have their share.
        let first = bits.next_multiple_of(stride) - bits;
        let chosen: Vec<u64> =
            read.iter().copied().skip(first as usize).step_by(stride as usize).collect();
        bits += read.len() as u64;
        let [found, refused, of_no_use] = flip_each(&made, path, &chosen, &expected);
        println!(
            "{}: {} bits flipped of {} that are read: {found} found by the check, {refused} by \
             opening, {of_no_use} of no use",
            path.display(),
            chosen.len(),
            read.len()
        );
        sum = [sum[0] + found, sum[1] + refused, sum[2] + of_no_use];
    }
    let [found, refused, of_no_use] = sum;
    println!(
        "{} of {bits} bits that are read flipped: {found} found by the check, {refused} by opening, \
         {of_no_use} of no use",
        found + refused + of_no_use
    );
    assert!(found > of_no_use, "{found} found, {of_no_use} of no use");
}

/// Flips these bits of a file one at a time: how many the check found, opening did, or were of no use.
fn flip_each(made: &MemoryDisk, path: &Path, bits: &[u64], expected: &Rows) -> [u64; 3] {
    let work = |part: &[u64]| {
        let mut counts = [0; 3];
        for bit in part {
            let disk = made.copy();
            flip(&disk, path, *bit);
            let outcome = if is_found(&disk) {
                0
            } else {
                match rows(Arc::new(disk.clone())) {
                    Err(_) => 1,
                    Ok(found) => {
                        assert_eq!(&found, expected, "{} bit {bit}: wrong rows", path.display());
                        2
                    }
                }
            };
            counts[outcome] += 1;
        }
        counts
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let part = bits.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            bits.chunks(part).map(|part| scope.spawn(move || work(part))).collect();
        let mut sum = [0; 3];
        for thread in threads {
            let counts = thread.join().unwrap();
            sum = [sum[0] + counts[0], sum[1] + counts[1], sum[2] + counts[2]];
        }
        sum
    })
}
