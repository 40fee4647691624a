//! Databases in memory with something of everything in them, and what they once held.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used)]

#[path = "../../../check/tests/common/all_types.rs"]
mod all_types;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use all_types::{types_row, types_table};
use onrush::{
    Background, ColumnDefinition, DataType, Database, KeyStrategy, Options, Row, ScanOptions,
    Session, TableDefinition, Value,
};
use onrush_files::{Disk, DiskFile, MemoryDisk, OpenMode};
use onrush_repair::{RepairError, RepairOptions, RepairProgress, RepairReport, repair};

/// Where the database is.
pub fn folder() -> PathBuf {
    PathBuf::from("/shop")
}

/// Where it is repaired to.
pub fn target() -> PathBuf {
    PathBuf::from("/repaired")
}

/// How the database is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Closed, with a last checkpoint.
    Closed,
    /// Dropped: the log holds what came after the last checkpoint.
    Dropped,
}

/// Tiny, and the same every time.
pub fn options() -> Options {
    Options { background: Background::Callers, ..Options::small() }
}

/// Rows by table.
pub type Tables = BTreeMap<String, Vec<Row>>;

/// What a database held.
#[derive(Default)]
pub struct History {
    /// Every row that was committed at some time, with its table.
    pub once: HashSet<(String, String)>,
    /// The rows at the end.
    pub last: Tables,
}

impl History {
    fn note(&mut self, database: &Database) {
        self.last = rows_of(database);
        for (table, rows) in &self.last {
            self.once.extend(rows.iter().map(|row| (table.clone(), format!("{row:?}"))));
        }
    }
}

/// All rows of an open database.
pub fn rows_of(database: &Database) -> Tables {
    let mut tables = Tables::new();
    for definition in database.tables() {
        let table = database.table(definition.name()).unwrap();
        let scan = database.session().unwrap().scan(&table, &ScanOptions::default()).unwrap();
        tables.insert(table.name().to_owned(), scan.collect::<Result<_, _>>().unwrap());
    }
    tables
}

/// Opens what is in `folder`.
pub fn open(disk: &MemoryDisk, folder: &Path) -> Database {
    Database::open_on(Arc::new(disk.clone()), folder, options()).unwrap()
}

fn types_key(number: i64) -> [Value<'static>; 3] {
    let row = types_row(number);
    [row[0].clone(), row[2].clone(), row[6].clone()]
}

/// A table whose key is generated, and another column too.
pub fn keyed_table(name: &str, strategy: KeyStrategy) -> TableDefinition {
    let ticket = KeyStrategy::Identity { start: 1000, strict: false };
    TableDefinition::builder(name)
        .column(ColumnDefinition::new("id", strategy.natural_type()).default_key(strategy))
        .column(ColumnDefinition::new("note", DataType::Char(60)).default_value("n"))
        .column(ColumnDefinition::new("ticket", DataType::Int64).default_key(ticket))
        .primary_key(["id"])
        .build()
        .unwrap()
}

/// The strategies that count.
pub const COUNTING: [KeyStrategy; 6] = [
    KeyStrategy::Identity { start: -5, strict: false },
    KeyStrategy::SessionOffset,
    KeyStrategy::SequentialGuid,
    KeyStrategy::HashPrefix,
    KeyStrategy::BitReversed,
    KeyStrategy::NodeOffset { node: 3 },
];

/// Inserts rows with generated keys; the keys.
pub fn insert_keyed(
    session: &mut Session,
    database: &Database,
    name: &str,
    rows: usize,
) -> Vec<Row> {
    let table = database.table(name).unwrap();
    let row = [Value::Default, Value::Default, Value::Default];
    (0..rows).map(|_| session.insert_returning_key(&table, &row).unwrap()).collect()
}

/// A database with a table of every type, one a key strategy, one that was truncated, one that was
/// dropped, one that is not logged, one of the last minute; rows that were changed and deleted both
/// before and after a checkpoint.
pub fn sample(disk: &MemoryDisk, rows: i64, left: Left) -> History {
    let database = Database::create_on(Arc::new(disk.clone()), folder(), options()).unwrap();
    let types = database.create_table(types_table().version(3).build().unwrap()).unwrap();
    for strategy in COUNTING {
        database.create_table(keyed_table(strategy.name(), strategy)).unwrap();
    }
    let note = TableDefinition::builder("notes")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .primary_key(["id"])
        .unlogged();
    database.create_table(note.build().unwrap()).unwrap();
    let mut session = database.session().unwrap();
    let mut history = History::default();
    let quarter = rows / 4;
    for part in 0..4 {
        let first = part * quarter;
        for number in first..first + quarter {
            session.insert(&types, &types_row(number)).unwrap();
        }
        for strategy in COUNTING {
            insert_keyed(&mut session, &database, strategy.name(), quarter as usize);
        }
        if part == 1 {
            database.create_table(keyed_table("gone", COUNTING[0])).unwrap();
            insert_keyed(&mut session, &database, "gone", 40);
            history.note(&database);
            database.truncate_table("session-offset").unwrap();
        }
        if part == 2 {
            database.drop_table("gone").unwrap();
        }
        history.note(&database);
        if part < 3 || left == Left::Closed {
            database.checkpoint().unwrap();
        }
        let mut transaction = session.begin().unwrap();
        for number in (first..first + quarter).filter(|number| number % 5 == 0) {
            let changes = [("t", "changed".into()), ("i4", Value::Int32(-1))];
            assert!(transaction.update(&types, &types_key(number), &changes).unwrap());
        }
        transaction.commit().unwrap();
        history.note(&database);
        for number in (first..first + quarter).filter(|number| number % 7 == 1) {
            assert!(session.delete(&types, &types_key(number)).unwrap());
        }
        history.note(&database);
    }
    database.create_table(keyed_table("late", COUNTING[0])).unwrap();
    insert_keyed(&mut session, &database, "late", 10);
    history.note(&database);
    let notes = database.table("notes").unwrap();
    session.insert(&notes, &[1i64.into()]).unwrap();
    drop(session);
    match left {
        Left::Closed => database.close().unwrap(),
        Left::Dropped => drop(database),
    }
    history
}

/// Repairs with the settings of these tests.
pub fn repair_disk(disk: &MemoryDisk) -> Result<RepairReport, RepairError> {
    let options = RepairOptions { engine: options(), ..RepairOptions::default() };
    repair_with(disk, &options)
}

/// Repairs with these options.
pub fn repair_with(
    disk: &MemoryDisk,
    options: &RepairOptions,
) -> Result<RepairReport, RepairError> {
    let progress = RepairProgress::default();
    repair(Arc::new(disk.clone()), &folder(), &target(), options, &progress)
}

/// What the repaired database has.
pub fn repaired_rows(disk: &MemoryDisk) -> Tables {
    rows_of(&open(disk, &target()))
}

/// The bytes of all files of a folder, those for locks left out.
pub fn files(disk: &MemoryDisk, folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for name in disk.list(folder).unwrap() {
        let path = folder.join(&name);
        match disk.list(&path) {
            Ok(_) => found.extend(files(disk, &path)),
            Err(_) if name == "LOCK" => {}
            Err(_) => {
                let file = disk.open(&path, OpenMode::ReadOnly).unwrap();
                found.insert(path, bytes_of(&*file));
            }
        }
    }
    found
}

fn bytes_of(file: &dyn DiskFile) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// Another disk with these files.
pub fn disk_of(files: &BTreeMap<PathBuf, Vec<u8>>) -> MemoryDisk {
    let disk = MemoryDisk::new();
    for (path, bytes) in files {
        disk.create_folder(path.parent().unwrap()).unwrap();
        let file = disk.open(path, OpenMode::CreateNew).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        for (number, page) in bytes.chunks(4096).enumerate() {
            if page.iter().any(|byte| *byte != 0) {
                file.write_at(page, number as u64 * 4096).unwrap();
            }
        }
    }
    disk
}

/// Changes a byte of a file.
pub fn damage(disk: &MemoryDisk, path: &Path, offset: usize, mask: u8) {
    let file = disk.open(path, OpenMode::ReadWrite).unwrap();
    let mut bytes = bytes_of(&*file);
    bytes[offset] ^= mask;
    let page = offset / 4096 * 4096;
    file.write_at(&bytes[page..page + 4096], page as u64).unwrap();
}
