//! Key ranges that have a stock: a repair hands over the rows of the newest runs, and what a damaged run had is named.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use common::{damage, files, folder, options};
use onrush::{
    ColumnDefinition, DataType, Database, Options, PastMemory, Row, TableDefinition, Value,
};
use onrush_check::{CheckOptions, Invariant, Progress, check};
use onrush_files::MemoryDisk;
use onrush_repair::{Outcome, RepairReport};

const SLOT: usize = 16_384;
const ROWS: i64 = 1000;

/// What the newest fragment has of a row.
enum Newer {
    Nothing,
    Changed,
    Removed,
}

fn newer(number: i64) -> Newer {
    match number {
        100..110 => Newer::Changed,
        110..120 => Newer::Removed,
        _ => Newer::Nothing,
    }
}

fn row(number: i64, text: &str) -> Row {
    vec![Value::Int64(number), Value::Text(text.repeat(150).into())]
}

/// A table `orders` whose rows lie in some runs, and what is newer in another; closed.
fn stored(disk: &MemoryDisk) {
    let options = Options { past_memory: PastMemory::Always, ..options() };
    let database = Database::create_on(Arc::new(disk.clone()), folder(), options).unwrap();
    let definition = TableDefinition::builder("orders")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("note", DataType::Varchar(200)))
        .primary_key(["id"]);
    let table = database.create_table(definition.build().unwrap()).unwrap();
    let mut session = database.session().unwrap();
    for number in 0..ROWS {
        session.insert(&table, &row(number, "n")).unwrap();
    }
    database.checkpoint().unwrap();
    for number in 0..ROWS {
        match newer(number) {
            Newer::Nothing => {}
            Newer::Changed => session.upsert(&table, &row(number, "c")).unwrap(),
            Newer::Removed => assert!(session.delete(&table, &[number.into()]).unwrap()),
        }
    }
    drop((session, table));
    database.close().unwrap();
}

/// What is there if nothing is lost.
fn all() -> BTreeMap<i64, Row> {
    let rows = (0..ROWS).filter_map(|number| match newer(number) {
        Newer::Nothing => Some((number, row(number, "n"))),
        Newer::Changed => Some((number, row(number, "c"))),
        Newer::Removed => None,
    });
    rows.collect()
}

fn repaired(disk: &MemoryDisk) -> (RepairReport, BTreeMap<i64, Row>) {
    let report = common::repair_disk(disk).unwrap();
    let rows = common::repaired_rows(disk).remove("orders").unwrap();
    (report, rows.into_iter().map(|row| (row[0].as_i64().unwrap(), row)).collect())
}

fn data_file() -> PathBuf {
    folder().join("data-00.onrush")
}

/// Disks where a byte of one slot is damaged, a slot that is in use and of that kind.
fn with_damaged(
    sound: &MemoryDisk,
    magic: &[u8],
    meant: impl Fn(&[Invariant]) -> bool,
) -> Vec<MemoryDisk> {
    let bytes = files(sound, &folder());
    let slots = bytes[&data_file()].chunks(SLOT).enumerate();
    let slots = slots.filter(|(_, slot)| slot.starts_with(magic)).map(|(number, _)| number);
    let damaged = |slot: usize| {
        let disk = common::disk_of(&bytes);
        damage(&disk, &data_file(), slot * SLOT + 70, 1);
        let options = CheckOptions { dop: 1, ..CheckOptions::default() };
        let progress = Progress::default();
        let found = check(Arc::new(disk.clone()), &folder(), &options, &progress).unwrap();
        let found: Vec<_> = found.findings.iter().map(|finding| finding.invariant).collect();
        meant(&found).then_some(disk)
    };
    slots.filter_map(damaged).collect()
}

#[test]
fn a_sound_database_keeps_all_rows() {
    let disk = MemoryDisk::new();
    stored(&disk);
    let (report, rows) = repaired(&disk);
    assert_eq!(report.outcome, Outcome::NothingLost, "{report}");
    assert!(report.salvaged.warnings.is_empty(), "{report}");
    assert_eq!(rows, all());
    assert_eq!(report.salvaged.tables[0].image_rows, rows.len() as u64);
}

/// What a disk with one damaged image, or one damaged head, gives: each row as it is, or as an older run has it, or it
/// is named among the lost.
fn check_losses(disk: &MemoryDisk, images: Option<u64>) -> bool {
    let (report, rows) = repaired(disk);
    assert_eq!(report.outcome, Outcome::SomethingLost);
    let losses = &report.salvaged.losses;
    assert!(losses.iter().all(|loss| loss.images == images), "{report}");
    let expected = all();
    let shows_older = losses.iter().any(|loss| loss.finding.found.contains("older versions"));
    for (number, found) in &rows {
        let is_older = *found == row(*number, "n") && !matches!(newer(*number), Newer::Nothing);
        assert!(
            expected.get(number) == Some(found) || is_older && shows_older,
            "{number}: {report}"
        );
    }
    let lost = expected.keys().filter(|number| !rows.contains_key(number)).count();
    let older = rows.iter().filter(|(number, row)| expected.get(number) != Some(row)).count();
    assert!(lost > 0 || older > 0 || images.is_none());
    assert!(rows.len() >= 10);
    older > 0
}

#[test]
fn a_damaged_image_loses_its_rows_or_shows_older_ones() {
    let disk = MemoryDisk::new();
    stored(&disk);
    let disks = with_damaged(&disk, b"ONRI", |found| found == [Invariant::ImageWhole]);
    assert!(disks.len() > 5);
    let older = disks.iter().filter(|disk| check_losses(disk, Some(1))).count();
    assert!((1..disks.len()).contains(&older), "{older} of {}", disks.len());
}

#[test]
fn a_damaged_head_loses_its_run() {
    let disk = MemoryDisk::new();
    stored(&disk);
    let is_meant = |found: &[Invariant]| found.contains(&Invariant::RunHeadDecodes);
    let disks = with_damaged(&disk, b"ONRB", is_meant);
    assert!(disks.len() > 1, "one of each run");
    let older = disks.iter().filter(|disk| check_losses(disk, None)).count();
    assert!((1..disks.len()).contains(&older), "{older} of {}", disks.len());
}
