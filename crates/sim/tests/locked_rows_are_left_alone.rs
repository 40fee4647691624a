//! A row that a transaction has locked is changed by nobody else; and this test would notice if changes did not look
//! for locks.
//!
//! `cargo test -p onrush-sim --features planted-faults --test locked_rows_are_left_alone`. One test, because a fault
//! is planted in the whole process.

#![cfg(feature = "planted-faults")]
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::sync::Arc;

use onrush::{
    ColumnDefinition, DataType, Database, Durability, Error, Fault, Options, RowLock,
    TableDefinition, plant,
};
use onrush_files::MemoryDisk;

#[test]
fn and_whoever_does_not_look_for_locks_is_noticed() {
    let options = Options { durability: Durability::Delayed, ..Options::small() };
    let db = Database::create_on(Arc::new(MemoryDisk::new()), "/db", options).unwrap();
    let number = |name| ColumnDefinition::new(name, DataType::Int64).not_null();
    let table = TableDefinition::builder("t").column(number("id")).column(number("n"));
    let table = db.create_table(table.primary_key(["id"]).build().unwrap()).unwrap();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    first.insert(&table, &[1i64.into(), 0i64.into()]).unwrap();
    let key = [1i64.into()];

    let mut holder = first.begin().unwrap();
    holder.lock_row(&table, &key, RowLock::Update, true).unwrap();
    let mut change = || {
        let mut transaction = second.begin().unwrap();
        transaction.update(&table, &key, &[("n", 1i64.into())]).unwrap();
        transaction.commit()
    };
    assert!(matches!(change(), Err(Error::Conflict { .. })));
    plant(Fault::RowLockIgnored);
    let is_changed = change().is_ok();
    plant(Fault::None);
    assert!(is_changed);
}
