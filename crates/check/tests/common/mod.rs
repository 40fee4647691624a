//! Databases in memory, with something of everything in them.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used)]

mod all_types;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use all_types::{types_row, types_table};
use onrush::{
    Background, ColumnDefinition, DataType, Database, KeyStrategy, Options, Table, TableDefinition,
    Value,
};
use onrush_check::{CheckOptions, CheckReport, Progress, check};
use onrush_files::{Disk, MemoryDisk};

/// Where the database is.
pub fn folder() -> PathBuf {
    PathBuf::from("/shop")
}

/// How the database is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Closed, with a last checkpoint.
    Closed,
    /// Dropped: the log holds what came after the last checkpoint.
    Dropped,
}

fn options() -> Options {
    Options { background: Background::Callers, ..Options::small() }
}

fn keyed_table(name: &str, strategy: KeyStrategy) -> TableDefinition {
    TableDefinition::builder(name)
        .column(ColumnDefinition::new("id", strategy.natural_type()).default_key(strategy))
        .column(ColumnDefinition::new("note", DataType::Char(60)).default_value("n"))
        .column(ColumnDefinition::new("state", DataType::Int32).not_null().default_value(1))
        .primary_key(["id"])
        .build()
        .unwrap()
}

fn insert_keyed(database: &Database, table: &Table, rows: usize) {
    let mut session = database.session().unwrap();
    for _ in 0..rows {
        session.insert(table, &[Value::Default, Value::Default, Value::Default]).unwrap();
    }
}

/// A database with a table of every type, one a key strategy, one that was truncated, one that was
/// dropped, and several checkpoints in between.
pub fn sample(disk: &MemoryDisk, rows: i64, left: Left) {
    let database = Database::create_on(Arc::new(disk.clone()), folder(), options()).unwrap();
    let types = database.create_table(types_table().build().unwrap()).unwrap();
    let strategies = [
        KeyStrategy::Identity { start: -5, strict: false },
        KeyStrategy::SessionOffset,
        KeyStrategy::UuidV4,
        KeyStrategy::SequentialGuid,
        KeyStrategy::HashPrefix,
        KeyStrategy::BitReversed,
        KeyStrategy::NodeOffset { node: 3 },
    ];
    let keyed: Vec<Table> = strategies
        .iter()
        .map(|strategy| database.create_table(keyed_table(strategy.name(), *strategy)).unwrap())
        .collect();
    for part in 0..4 {
        let mut session = database.session().unwrap();
        for number in part * rows / 4..(part + 1) * rows / 4 {
            session.insert(&types, &types_row(number)).unwrap();
        }
        for table in &keyed {
            insert_keyed(&database, table, rows as usize / 4);
        }
        if part == 1 {
            let gone = database.create_table(keyed_table("gone", strategies[0])).unwrap();
            insert_keyed(&database, &gone, 40);
            database.truncate_table("session-offset").unwrap();
        }
        if part == 2 {
            database.drop_table("gone").unwrap();
        }
        if part < 3 || left == Left::Closed {
            database.checkpoint().unwrap();
        }
        let keys: Vec<_> = (part * rows / 4..part * rows / 4 + rows / 16).map(types_row).collect();
        for row in keys {
            let key = [row[0].clone(), row[2].clone(), row[6].clone()];
            assert!(session.delete(&types, &key).unwrap());
        }
    }
    match left {
        Left::Closed => database.close().unwrap(),
        Left::Dropped => drop(database),
    }
}

/// Checks with `options`.
pub fn check_with(disk: &MemoryDisk, options: &CheckOptions) -> CheckReport {
    check(Arc::new(disk.clone()), &folder(), options, &Progress::default()).unwrap()
}

/// Checks with two threads, and otherwise as by default.
pub fn check_disk(disk: &MemoryDisk) -> CheckReport {
    check_with(disk, &CheckOptions { dop: 2, ..CheckOptions::default() })
}

/// Another disk with the same files.
pub fn copy_of(disk: &MemoryDisk) -> MemoryDisk {
    let copy = MemoryDisk::new();
    copy_folder(disk, &copy, &folder());
    copy
}

fn copy_folder(from: &MemoryDisk, to: &MemoryDisk, folder: &Path) {
    to.create_folder(folder).unwrap();
    for path in entries(from, folder) {
        match from.list(&path) {
            Ok(_) => copy_folder(from, to, &path),
            Err(_) => copy_file(from, to, &path),
        }
    }
}

fn copy_file(from: &MemoryDisk, to: &MemoryDisk, path: &Path) {
    use onrush_files::OpenMode;
    let source = from.open(path, OpenMode::ReadOnly).unwrap();
    let mut bytes = vec![0; source.len().unwrap() as usize];
    source.read_at(&mut bytes, 0).unwrap();
    let copy = to.open(path, OpenMode::CreateNew).unwrap();
    copy.set_len(bytes.len() as u64).unwrap();
    for (number, page) in bytes.chunks(4096).enumerate() {
        if page.iter().any(|byte| *byte != 0) {
            copy.write_at(page, number as u64 * 4096).unwrap();
        }
    }
}

/// The paths directly below `folder`.
pub fn entries(disk: &MemoryDisk, folder: &Path) -> Vec<PathBuf> {
    disk.list(folder).unwrap().into_iter().map(|name| folder.join(name)).collect()
}
