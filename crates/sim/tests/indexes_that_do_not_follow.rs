//! The check of an open database notices an entry of an index without its row, and a row without its entry, and names
//! them.
//!
//! `cargo test -p onrush-sim --features planted-faults --test indexes_that_do_not_follow`. One test, because a fault
//! is planted in the whole process.

#![cfg(feature = "planted-faults")]
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::sync::Arc;

use onrush::{
    CheckProgress, ColumnDefinition, DataType, Database, Fault, NewIndex, OnlineOptions, Options,
    TableDefinition, plant,
};
use onrush_check::Invariant;
use onrush_files::MemoryDisk;

/// What the check finds when a row was inserted and changed with a fault in place.
fn found_with(fault: Fault) -> Vec<String> {
    let disk = Arc::new(MemoryDisk::new());
    let db = Database::create_on(disk, "/db", Options::small()).unwrap();
    let column = |name| ColumnDefinition::new(name, DataType::Int64).not_null();
    let table = TableDefinition::builder("t").column(column("id")).column(column("a"));
    db.create_table(table.primary_key(["id"]).build().unwrap()).unwrap();
    let table = db.create_index("t", &NewIndex::new("by_a", ["a"])).unwrap();
    let mut session = db.session().unwrap();
    session.insert(&table, &[1i64.into(), 10i64.into()]).unwrap();
    plant(fault);
    session.insert(&table, &[2i64.into(), 20i64.into()]).unwrap();
    session.update(&table, &[1i64.into()], &[("a", 11i64.into())]).unwrap();
    plant(Fault::None);
    let options = OnlineOptions { busy_percent: 100, ..OnlineOptions::default() };
    let report = db.check(&options, &CheckProgress::default()).unwrap();
    assert!(report.findings.iter().all(|found| found.invariant == Invariant::IndexFollowsRows));
    report.findings.iter().map(|found| found.found.clone()).collect()
}

#[test]
fn are_noticed_both_ways() {
    assert_eq!(found_with(Fault::None), [""; 0]);
    let kept = found_with(Fault::OldEntryKept);
    assert_eq!(
        kept,
        ["index by_a: 3 entries for 2 rows; the entry (a = 10) is none of the row (id = 1)"]
    );
    let left_out = found_with(Fault::EntryLeftOut);
    assert_eq!(left_out, ["index by_a: 1 entries for 2 rows; the row (id = 1) has no entry"]);
}
