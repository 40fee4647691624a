//! An index that is built beside writers has the entries of all rows; and the check of an open database notices a
//! writer that does not keep its entries, and one whose removals leave no trace.
//!
//! `cargo test -p onrush-sim --features planted-faults --test indexes_built_beside_writers`. One test, because a
//! fault is planted in the whole process.

#![cfg(feature = "planted-faults")]
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onrush::{
    CheckProgress, ColumnDefinition, DataType, Database, Durability, Error, Fault,
    IndexBuildOptions, NewIndex, OnlineOptions, Options, TableDefinition, plant,
};
use onrush_check::Invariant;
use onrush_files::MemoryDisk;

const ROWS: i64 = 20_000;
/// Rounds until a fault is noticed, which takes one or two.
const ROUNDS: usize = 100;

/// What the check finds of an index that is built while rows come and go.
fn found_with(fault: Fault) -> Vec<String> {
    let options = Options { durability: Durability::Delayed, ..Options::small() };
    let db = Database::create_on(Arc::new(MemoryDisk::new()), "/db", options).unwrap();
    let column = |name| ColumnDefinition::new(name, DataType::Int64).not_null();
    let items = TableDefinition::builder("items").column(column("id")).column(column("number"));
    let table = db.create_table(items.primary_key(["id"]).build().unwrap()).unwrap();
    let mut session = db.session().unwrap();
    for first in (0..ROWS).step_by(1000) {
        let rows: Vec<_> =
            (first..first + 1000).map(|id| [id.into(), (id * 7919 % ROWS).into()]).collect();
        session.insert_many(&table, rows.iter().map(<[_; 2]>::as_slice)).unwrap();
    }
    plant(fault);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut session, mut step) = (db.session().unwrap(), 0i64);
            while !is_over.load(Ordering::Relaxed) {
                let table = db.table("items").unwrap();
                if table.definition().indexes().is_empty() {
                    continue;
                }
                step += 1;
                let new = [(ROWS + step).into(), (ROWS + step).into()];
                let gone = [(step * 7 % ROWS).into()];
                let changed = session
                    .insert(&table, &new)
                    .and_then(|()| session.delete(&table, &gone).map(drop));
                assert!(matches!(changed, Ok(()) | Err(Error::TableChanged { .. })), "{changed:?}");
            }
        });
        let by_number = NewIndex::new("by_number", ["number"]);
        db.build_index("items", &by_number, &IndexBuildOptions::default()).unwrap();
        is_over.store(true, Ordering::Relaxed);
    });
    plant(Fault::None);
    let options = OnlineOptions { busy_percent: 100, ..OnlineOptions::default() };
    let report = db.check(&options, &CheckProgress::default()).unwrap();
    assert!(report.findings.iter().all(|found| found.invariant == Invariant::IndexFollowsRows));
    report.findings.iter().map(|found| found.found.clone()).collect()
}

#[test]
fn follow_their_rows_and_what_does_not_is_noticed() {
    for _ in 0..3 {
        assert_eq!(found_with(Fault::None), [""; 0]);
    }
    let noticed = |fault, what: &str| {
        (0..ROUNDS).any(|_| found_with(fault).iter().any(|found| found.contains(what)))
    };
    assert!(noticed(Fault::BuiltIndexMissed, "has no entry"));
    assert!(noticed(Fault::RemovalLeavesNoTrace, "is none of the row"));
}
