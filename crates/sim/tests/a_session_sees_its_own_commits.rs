//! A session that does not wait for the log sees its own row at once, also while others are still
//! copying records that come before it in the log; and this test would notice if it did not.
//!
//! `cargo test -p onrush-sim --features planted-faults --test a_session_sees_its_own_commits`. One test,
//! because a fault is planted in the whole process.

#![cfg(feature = "planted-faults")]
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

#[path = "../../engine/tests/common/faulty_disk.rs"]
#[allow(dead_code, reason = "a part is used")]
mod faulty_disk;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use faulty_disk::FaultyDisk;
use onrush::{
    ColumnDefinition, DataType, Database, Fault, Options, Table, TableDefinition, Value, plant,
};

const THREADS: i64 = 8;

/// Whether one of many sessions missed the row that it had just inserted. Each looks after each of at
/// most so many rows, and all stop once one has missed its own.
fn one_missed_its_own(db: &Database, table: &Table, rows_max: i64) -> bool {
    let missed = AtomicBool::new(false);
    let text = "t".repeat(1000);
    let look = |ids: std::ops::Range<i64>| {
        let mut session = db.session().unwrap();
        for id in ids {
            if missed.load(Ordering::Relaxed) {
                break;
            }
            let row: [Value<'_>; 2] = [id.into(), text.as_str().into()];
            drop(session.insert_token(table, &row).unwrap());
            let is_there = session.snapshot().unwrap().get(table, &row[..1]).unwrap().is_some();
            missed.fetch_or(!is_there, Ordering::Relaxed);
            session.delete(table, &row[..1]).unwrap();
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let look = &look;
            scope.spawn(move || look(thread * rows_max..(thread + 1) * rows_max));
        }
    });
    missed.into_inner()
}

#[test]
fn and_whoever_does_not_wait_for_them_is_noticed() {
    let disk = Arc::new(FaultyDisk::default());
    let options = Options { durability: onrush::Durability::Delayed, ..Options::small() };
    let db = Database::create_on(disk, Path::new("/db"), options).unwrap();
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let text = ColumnDefinition::new("text", DataType::Text);
    let definition = TableDefinition::builder("texts").column(id).column(text).primary_key(["id"]);
    let table = db.create_table(definition.build().unwrap()).unwrap();

    assert!(!one_missed_its_own(&db, &table, 2000));
    plant(Fault::OwnCommitUnseen);
    let is_noticed = one_missed_its_own(&db, &table, 1_000_000);
    plant(Fault::None);
    assert!(is_noticed);
}
