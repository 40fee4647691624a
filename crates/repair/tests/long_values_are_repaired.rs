//! Rows with long values are in the new database as a whole; one that lacks a piece is named as lost, and the others
//! are there.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{Left, damage, files, folder, options};
use onrush::{ColumnDefinition, DataType, Database, Row, TableDefinition, Value};
use onrush_check::Invariant;
use onrush_files::MemoryDisk;
use onrush_repair::{Outcome, RepairOptions};

const SLOT: usize = 16_384;

fn body(number: i64) -> Value<'static> {
    let lengths = [100, 9_000, 50_000, 7_900, 200_000];
    let unit = format!("of {number} ");
    unit.repeat(1 + lengths[(number % 5) as usize] / unit.len()).into()
}

/// Articles, of which some were changed and deleted behind the last checkpoint.
fn sample(disk: &MemoryDisk, left: Left) -> Vec<Row> {
    let database = Database::create_on(Arc::new(disk.clone()), folder(), options()).unwrap();
    let mut tables = Vec::new();
    for name in ["articles", "others"] {
        let definition = TableDefinition::builder(name)
            .column(ColumnDefinition::new("id", DataType::Int64).not_null())
            .column(ColumnDefinition::new("body", DataType::Text))
            .primary_key(["id"]);
        tables.push(database.create_table(definition.build().unwrap()).unwrap());
    }
    let mut session = database.session().unwrap();
    for table in &tables {
        for number in 0..30i64 {
            session.insert(table, &[number.into(), body(number)]).unwrap();
        }
    }
    database.checkpoint().unwrap();
    for number in 0..30i64 {
        match number % 4 {
            0 => drop(session.delete(&tables[0], &[number.into()]).unwrap()),
            1 => session.upsert(&tables[0], &[number.into(), body(number + 1)]).unwrap(),
            _ => {}
        }
    }
    session.insert(&tables[0], &[100i64.into(), body(104)]).unwrap();
    drop(session);
    let rows = common::rows_of(&database).remove("articles").unwrap();
    match left {
        Left::Closed => database.close().unwrap(),
        Left::Dropped => drop(database),
    }
    rows
}

#[test]
fn all_of_them() {
    for left in [Left::Closed, Left::Dropped] {
        let disk = MemoryDisk::new();
        let rows = sample(&disk, left);
        let report = common::repair_disk(&disk).unwrap();
        assert_eq!(report.outcome, Outcome::NothingLost, "{report}");
        let names: Vec<_> = report.repaired.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["articles", "others"]);
        let repaired = common::repaired_rows(&disk);
        assert_eq!(repaired.keys().collect::<Vec<_>>(), ["articles", "others"]);
        assert!(repaired["articles"] == rows);
    }
}

#[test]
fn of_one_table_with_its_long_values() {
    let disk = MemoryDisk::new();
    let rows = sample(&disk, Left::Dropped);
    let engine = options();
    let tables = vec!["articles".to_owned()];
    let options = RepairOptions { engine, tables };
    let report = common::repair_with(&disk, &options).unwrap();
    assert_eq!(report.outcome, Outcome::NothingLost, "{report}");
    assert!(common::repaired_rows(&disk)["articles"] == rows);
}

#[test]
fn all_but_those_that_lack_a_piece() {
    let disk = MemoryDisk::new();
    let rows = sample(&disk, Left::Closed);
    let data_file = folder().join("data-00.onrush");
    let bytes = files(&disk, &folder());
    let wanted = b"of 22 of 22 of 22 ";
    let slots: Vec<usize> = (0..bytes[&data_file].len() / SLOT)
        .filter(|slot| {
            let slot = &bytes[&data_file][slot * SLOT..(slot + 1) * SLOT];
            slot.starts_with(b"ONRI") && slot.windows(wanted.len()).any(|it| it == wanted)
        })
        .collect();
    for slot in slots {
        damage(&disk, &data_file, slot * SLOT + 500, 1);
    }
    let report = common::repair_disk(&disk).unwrap();
    assert_eq!(report.outcome, Outcome::SomethingLost, "{report}");
    let losses = report.salvaged.losses.iter();
    let lost: Vec<_> = losses
        .filter(|loss| loss.finding.invariant == Invariant::LongValuesWhole)
        .filter(|loss| loss.finding.table.as_deref() == Some("articles"))
        .filter_map(|loss| loss.finding.keys.clone())
        .collect();
    assert!(lost.contains(&"key 21".to_owned()) && lost.contains(&"key 22".to_owned()), "{report}");
    let repaired = common::repaired_rows(&disk);
    let kept = rows.iter().filter(|row| !lost.contains(&format!("key {}", row[0])));
    assert!(repaired["articles"] == kept.cloned().collect::<Vec<_>>(), "{report}");
}
