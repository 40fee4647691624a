//! One thing is damaged: all that does not depend on it is there, and the report names the rest.
#![allow(clippy::unwrap_used)]

mod common;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use common::{Left, damage, files, folder, options};
use onrush::{ColumnDefinition, DataType, Database, Row, Table, TableDefinition};
use onrush_check::{CheckOptions, Invariant, Progress, check};
use onrush_files::{Disk, MemoryDisk};
use onrush_repair::Outcome;

const SLOT: usize = 16_384;

/// Tables `orders` and `others` of numbered rows, closed.
fn numbered(disk: &MemoryDisk, rows: i64) {
    let database = Database::create_on(Arc::new(disk.clone()), folder(), options()).unwrap();
    for name in ["orders", "others"] {
        let definition = TableDefinition::builder(name)
            .column(ColumnDefinition::new("id", DataType::Int64).not_null())
            .column(ColumnDefinition::new("note", DataType::Varchar(200)))
            .primary_key(["id"]);
        let table = database.create_table(definition.build().unwrap()).unwrap();
        let mut session = database.session().unwrap();
        for number in 0..rows {
            session.insert(&table, &[number.into(), "n".repeat(150).into()]).unwrap();
        }
    }
    database.close().unwrap();
}

fn data_file() -> PathBuf {
    folder().join("data-00.onrush")
}

/// A disk where an image in use of `table` is damaged, in the middle of the table.
fn with_damaged_image(sound: &MemoryDisk, table: &str) -> (MemoryDisk, u64) {
    let bytes = files(sound, &folder());
    let slots = bytes[&data_file()].chunks(SLOT).enumerate();
    let images = slots.filter(|(_, slot)| slot.starts_with(b"ONRI")).map(|(number, _)| number);
    for slot in images {
        let disk = common::disk_of(&bytes);
        damage(&disk, &data_file(), slot * SLOT + 500, 1);
        let options = CheckOptions { dop: 1, ..CheckOptions::default() };
        let progress = Progress::default();
        let found = check(Arc::new(disk.clone()), &folder(), &options, &progress).unwrap();
        let is_meant = |finding: &onrush_check::Finding| {
            let keys = finding.keys.as_deref().unwrap_or("");
            finding.table.as_deref() == Some(table)
                && finding.invariant == Invariant::ImageWhole
                && keys.contains("from id")
                && keys.contains("not including")
        };
        if found.findings.iter().any(is_meant) {
            return (disk, (slot * SLOT) as u64);
        }
    }
    panic!("no image of {table} in the middle");
}

/// Where the newest copy of a superblock begins.
fn newest_copy(bytes: &[u8]) -> usize {
    let generation =
        |copy: usize| u64::from_le_bytes(bytes[copy + 32..copy + 40].try_into().unwrap());
    if generation(0) > generation(65_536) { 0 } else { 65_536 }
}

fn id(row: &Row) -> i64 {
    row[0].as_i64().unwrap()
}

#[test]
fn a_flipped_byte_in_an_image_loses_the_rows_of_its_leaf() {
    let sound = MemoryDisk::new();
    numbered(&sound, 1000);
    let (disk, offset) = with_damaged_image(&sound, "orders");
    let before = files(&disk, &folder());

    let report = common::repair_disk(&disk).unwrap();

    assert_eq!(files(&disk, &folder()), before);
    assert_eq!(report.outcome, Outcome::SomethingLost);
    let [loss] = report.salvaged.losses.as_slice() else { panic!("{report}") };
    assert_eq!((loss.images, loss.bytes), (Some(1), Some(SLOT as u64)));
    assert_eq!(loss.finding.invariant, Invariant::ImageWhole);
    assert_eq!((&loss.finding.file, loss.finding.offset), (&data_file(), offset));
    assert_eq!(loss.finding.table.as_deref(), Some("orders"));
    let rows = common::repaired_rows(&disk);
    assert_eq!(rows["others"].len(), 1000);
    let kept: Vec<i64> = rows["orders"].iter().map(id).collect();
    let lost: Vec<i64> = (0..1000).filter(|number| !kept.contains(number)).collect();
    let (first, next) = (lost[0], lost[lost.len() - 1] + 1);
    assert_eq!(lost, (first..next).collect::<Vec<_>>());
    let keys = format!("keys from id = {first} up to, not including, id = {next}");
    assert_eq!(loss.finding.keys.as_deref(), Some(keys.as_str()));
}

#[test]
fn a_damaged_newest_superblock_is_replaced_by_the_older_one() {
    let disk = MemoryDisk::new();
    let history = common::sample(&disk, 40, Left::Closed);
    let path = folder().join("superblock.onrush");
    let newest = newest_copy(&files(&disk, &folder())[&path]);
    damage(&disk, &path, newest + 50, 0x40);

    let report = common::repair_disk(&disk).unwrap();

    // All of so small a database is still in the log from the older checkpoint on.
    assert_eq!(report.outcome, Outcome::NothingLost, "{report}");
    let note = &report.salvaged.notes[0];
    assert!(note.contains("one copy of the superblock is damaged"), "{note}");
    let repaired = common::repaired_rows(&disk);
    assert_eq!(repaired["types"], history.last["types"]);
    assert_eq!(repaired["late"], history.last["late"]);
}

#[test]
fn without_a_superblock_nothing_is_salvaged_and_nothing_made() {
    let disk = MemoryDisk::new();
    common::sample(&disk, 40, Left::Closed);
    for copy in [0, 65_536] {
        damage(&disk, &folder().join("superblock.onrush"), copy + 50, 1);
    }
    let report = common::repair_disk(&disk).unwrap();
    assert_eq!(report.outcome, Outcome::NothingSalvaged);
    assert_eq!(report.salvaged.losses[0].finding.invariant, Invariant::SuperblockReadable);
    assert!(!disk.exists(&common::target()).unwrap());
}

#[test]
fn damaged_folder_names_are_replaced_by_the_usual_places() {
    let disk = MemoryDisk::new();
    let history = common::sample(&disk, 40, Left::Closed);
    damage(&disk, &folder().join("superblock.onrush"), 131_072 + 20, 1);
    let report = common::repair_disk(&disk).unwrap();
    assert_eq!(report.outcome, Outcome::NothingLost, "{report}");
    assert_eq!(common::repaired_rows(&disk)["types"], history.last["types"]);
}

/// A table `orders` of rows that say `<number>`, inserted durably and so each in a log block of its own.
fn inserted(disk: &MemoryDisk, numbers: Range<i64>) -> (Database, Table) {
    let database = Database::create_on(Arc::new(disk.clone()), folder(), options()).unwrap();
    let definition = TableDefinition::builder("orders")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("note", DataType::Varchar(20)))
        .primary_key(["id"]);
    let table = database.create_table(definition.build().unwrap()).unwrap();
    let mut session = database.session().unwrap();
    for number in numbers {
        session.insert(&table, &note(number, &format!("<{number}>"))).unwrap();
    }
    (database, table)
}

fn note(number: i64, text: &str) -> Row {
    vec![number.into(), text.to_owned().into()]
}

/// Damages the log block with this text; the file, and where the block begins.
fn damage_log_at(disk: &MemoryDisk, text: &str) -> (PathBuf, u64) {
    let in_log = |(path, bytes): (&PathBuf, &Vec<u8>)| {
        let at = bytes.windows(text.len()).position(|window| window == text.as_bytes())?;
        path.starts_with(folder().join("log")).then(|| (path.clone(), at))
    };
    let (path, at) = files(disk, &folder()).iter().find_map(in_log).unwrap();
    damage(disk, &path, at, 4);
    (path, at as u64 / 4096 * 4096)
}

#[test]
fn behind_a_damaged_log_block_all_is_lost_and_before_it_nothing() {
    let disk = MemoryDisk::new();
    let (database, table) = inserted(&disk, 0..100);
    // A change behind the damage is lost, its row as it was before is not.
    database.session().unwrap().upsert(&table, &note(0, "changed")).unwrap();
    drop(database);
    let (path, offset) = damage_log_at(&disk, "<60>");

    let report = common::repair_disk(&disk).unwrap();

    assert_eq!(report.outcome, Outcome::SomethingLost);
    let expected: Vec<Row> = (0..60).map(|number| note(number, &format!("<{number}>"))).collect();
    assert_eq!(common::repaired_rows(&disk)["orders"], expected);
    let [loss] = report.salvaged.losses.as_slice() else { panic!("{report}") };
    assert_eq!(loss.finding.invariant, Invariant::BlockChain);
    assert_eq!((&loss.finding.file, loss.finding.offset), (&path, offset));
    let position = format!("the log ends at LSN {}", report.salvaged.log_end_lsn);
    assert!(loss.finding.found.contains(&position), "{report}");
    assert!(loss.bytes.unwrap() > 0);
}

#[test]
fn without_a_table_no_database_is_made() {
    let disk = MemoryDisk::new();
    drop(inserted(&disk, 0..10));
    damage_log_at(&disk, "orders");
    let report = common::repair_disk(&disk).unwrap();
    assert_eq!(report.outcome, Outcome::NothingSalvaged, "{report}");
    assert!(!disk.exists(&common::target()).unwrap());
}

#[test]
fn a_row_of_an_image_is_not_replaced_by_an_older_one_of_the_log() {
    let disk = MemoryDisk::new();
    let (database, table) = inserted(&disk, 0..3);
    database.checkpoint().unwrap();
    let mut session = database.session().unwrap();
    for text in ["older", "newer"] {
        session.upsert(&table, &note(0, text)).unwrap();
        session.upsert(&table, &note(1, &format!("{text}, too"))).unwrap();
    }
    database.checkpoint().unwrap();
    drop((session, database));
    // As if the second checkpoint had begun where the first one ended, and rows had gone on changing.
    let path = folder().join("superblock.onrush");
    let mut all = files(&disk, &folder());
    let bytes = all.get_mut(&path).unwrap();
    let newest = newest_copy(bytes);
    let older = 65_536 - newest;
    bytes.copy_within(older + 64..older + 100, newest + 64);
    let sealed = [&bytes[newest..newest + 12], &bytes[newest + 16..newest + 4096]].concat();
    let checksum = crc32c::crc32c(&sealed);
    bytes[newest + 12..newest + 16].copy_from_slice(&checksum.to_le_bytes());
    let disk = common::disk_of(&all);
    damage_log_at(&disk, "newer, too");

    let report = common::repair_disk(&disk).unwrap();

    assert_eq!(report.outcome, Outcome::SomethingLost, "{report}");
    let expected = [note(0, "newer"), note(1, "newer, too"), note(2, "<2>")];
    assert_eq!(common::repaired_rows(&disk)["orders"], expected);
}
