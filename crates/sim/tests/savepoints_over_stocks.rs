//! What a large transaction takes back is gone, also where a flush has put it into a stock; and this test would notice
//! if it showed through from there.
//!
//! `cargo test -p onrush-sim --features planted-faults --test savepoints_over_stocks`. One test, because a fault is
//! planted in the whole process.

#![cfg(feature = "planted-faults")]
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::sync::Arc;

use onrush::{
    Background, ColumnDefinition, DataType, Database, Fault, Options, PastMemory, ScanOptions,
    TableDefinition, plant,
};
use onrush_files::MemoryDisk;

/// Rows that are there once a transaction is committed that has inserted 100 and taken them back.
fn rows_left() -> usize {
    let options = Options {
        large_transaction_bytes: 1000,
        past_memory: PastMemory::Always,
        background: Background::Callers,
        ..Options::small()
    };
    let db = Database::create_on(Arc::new(MemoryDisk::new()), "/db", options).unwrap();
    let number = |name| ColumnDefinition::new(name, DataType::Int64).not_null();
    let table = TableDefinition::builder("t").column(number("id")).column(number("n"));
    let table = db.create_table(table.primary_key(["id"]).build().unwrap()).unwrap();
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    let savepoint = transaction.savepoint();
    for id in 1..=100i64 {
        transaction.insert(&table, &[id.into(), id.into()]).unwrap();
    }
    db.checkpoint().unwrap();
    transaction.rollback_to(savepoint).unwrap();
    transaction.insert(&table, &[1000i64.into(), 0i64.into()]).unwrap();
    transaction.commit().unwrap();
    session.scan(&table, &ScanOptions::default()).unwrap().count()
}

#[test]
fn what_was_taken_back_is_gone_and_what_shows_through_is_noticed() {
    assert_eq!(rows_left(), 1);
    plant(Fault::TakenBackShowsThrough);
    let shows_through = rows_left() > 1;
    plant(Fault::None);
    assert!(shows_through);
}
