//! A crash while a large transaction was open, or right behind its commit: what it had written stands in images and
//! in the log. A check counts the rows that were committed and says how many changes were not; a repair keeps the
//! committed rows, each and no other.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{folder, open, options, repair_disk, repaired_rows, rows_of};
use onrush::{Database, Options, Row, Session, Table, Transaction, Value};
use onrush_check::{CheckOptions, Progress, TableReport};
use onrush_files::MemoryDisk;
use onrush_repair::Outcome;

const ROWS: i64 = 600;

fn text(tag: &str, id: i64) -> String {
    format!("{tag} {id} {}", "x".repeat(300))
}

fn row(tag: &str, id: i64) -> [Value<'static>; 2] {
    [id.into(), text(tag, id).into()]
}

fn notes() -> onrush::TableDefinition {
    let id = onrush::ColumnDefinition::new("id", onrush::DataType::Int64).not_null();
    let note = onrush::ColumnDefinition::new("note", onrush::DataType::Text);
    onrush::TableDefinition::builder("notes")
        .column(id)
        .column(note)
        .primary_key(["id"])
        .build()
        .unwrap()
}

/// Of every three rows one is changed and one deleted, and as many are new.
fn change(transaction: &mut Transaction<'_>, table: &Table) {
    for id in 0..ROWS {
        match id % 3 {
            0 => {
                let new = text("new", id);
                let set = [("note", new.as_str().into())];
                assert!(transaction.update(table, &[id.into()], &set).unwrap());
            }
            1 => assert!(transaction.delete(table, &[id.into()]).unwrap()),
            _ => transaction.insert(table, &row("new", ROWS + id)).unwrap(),
        }
    }
}

/// What `change` makes of the rows.
fn changed() -> Vec<Row> {
    let tag = |id: i64| if id % 3 == 0 || id >= ROWS { "new" } else { "old" };
    let is_there = |id: &i64| if *id < ROWS { id % 3 != 1 } else { id % 3 == 2 };
    (0..2 * ROWS).filter(is_there).map(|id| row(tag(id), id).to_vec()).collect()
}

fn before() -> Vec<Row> {
    (0..ROWS).map(|id| row("old", id).to_vec()).collect()
}

/// The disk of a database that crashed after `end` was done with a large transaction that a checkpoint had met open.
fn crashed(
    end: impl FnOnce(&Database, Transaction<'_>) -> MemoryDisk,
    disk: &MemoryDisk,
) -> MemoryDisk {
    // The pieces are some rows each, and the leaves do not fit into memory.
    let options =
        Options { large_transaction_bytes: 4 << 10, leaf_memory_bytes: 64 << 14, ..options() };
    let database = Database::create_on(Arc::new(disk.clone()), folder(), options).unwrap();
    let table = database.create_table(notes()).unwrap();
    let mut filler: Session = database.session().unwrap();
    (0..ROWS).for_each(|id| filler.insert(&table, &row("old", id)).unwrap());
    let mut session = database.session().unwrap();
    let mut transaction = session.begin().unwrap();
    change(&mut transaction, &table);
    database.checkpoint().unwrap();
    end(&database, transaction)
}

fn left_open(disk: &MemoryDisk) -> MemoryDisk {
    let end = |database: &Database, transaction: Transaction<'_>| {
        database.barrier().unwrap();
        let left = disk.copy();
        drop(transaction);
        left
    };
    crashed(end, disk)
}

/// The intents are in images, the commit is in the log alone.
fn committed_in_the_log(disk: &MemoryDisk) -> MemoryDisk {
    crashed(
        |_, transaction| {
            transaction.commit().unwrap();
            disk.copy()
        },
        disk,
    )
}

/// The checkpoint knows of the commit, and a snapshot kept the intents from becoming rows before.
fn committed_at_the_checkpoint(disk: &MemoryDisk) -> MemoryDisk {
    let end = |database: &Database, transaction: Transaction<'_>| {
        let _before = database.session().unwrap().snapshot().unwrap();
        transaction.commit().unwrap();
        database.checkpoint().unwrap();
        disk.copy()
    };
    crashed(end, disk)
}

fn checked(disk: &MemoryDisk) -> TableReport {
    let disk = Arc::new(disk.copy());
    let options = CheckOptions::default();
    let report = onrush_check::check(disk, &folder(), &options, &Progress::default()).unwrap();
    assert_eq!(report.findings, []);
    report.tables.into_iter().find(|table| table.name == "notes").unwrap()
}

#[test]
fn a_check_counts_what_the_checkpoint_knows_as_committed_and_tells_of_the_rest() {
    let (rows, changes) = (ROWS as u64, ROWS as u64);
    for left in [left_open(&MemoryDisk::new()), committed_in_the_log(&MemoryDisk::new())] {
        let table = checked(&left);
        assert_eq!(table.rows, rows);
        assert!(table.undecided > changes / 2 && table.undecided <= changes, "{table:?}");
    }
    let table = checked(&committed_at_the_checkpoint(&MemoryDisk::new()));
    assert_eq!((table.rows, table.undecided), (changed().len() as u64, 0));
}

#[test]
fn a_repair_keeps_what_was_committed_and_nothing_else() {
    type Left = fn(&MemoryDisk) -> MemoryDisk;
    let cases: [(Left, Vec<Row>); 3] = [
        (left_open, before()),
        (committed_in_the_log, changed()),
        (committed_at_the_checkpoint, changed()),
    ];
    for (left, expected) in cases {
        let disk = left(&MemoryDisk::new());
        let report = repair_disk(&disk).unwrap();
        assert_eq!(report.outcome, Outcome::NothingLost, "{report}");
        assert!(repaired_rows(&disk)["notes"] == expected);
        // As recovery itself has it.
        assert!(rows_of(&open(&disk, &folder()))["notes"] == expected);
    }
}
