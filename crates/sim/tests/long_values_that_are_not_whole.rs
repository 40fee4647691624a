//! The checks of an open and of a closed database notice a long value that lacks a piece, and pieces that are no row's;
//! that of the open one names them.
//!
//! `cargo test -p onrush-sim --features planted-faults --test long_values_that_are_not_whole`. One test, because a
//! fault is planted in the whole process.

#![cfg(feature = "planted-faults")]
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::path::Path;
use std::sync::Arc;

use onrush::{
    CheckOptions, CheckProgress, ColumnDefinition, DataType, Database, Fault, OnlineOptions,
    Options, TableDefinition, plant,
};
use onrush_check::{Invariant, check};
use onrush_files::MemoryDisk;

/// How the database comes to be closed.
#[derive(Clone, Copy, PartialEq)]
enum Left {
    /// The pieces are in images.
    Closed,
    /// They are in the log.
    Dropped,
    /// The one in images, and its change in the log.
    Between,
}

/// What the checks find when a row was inserted and changed with a fault in place: of the open database, and of the
/// closed one.
fn found_with(fault: Fault, left: Left) -> (Vec<String>, Vec<String>) {
    let disk = Arc::new(MemoryDisk::new());
    let db = Database::create_on(Arc::clone(&disk) as _, "/db", Options::small()).unwrap();
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let body = ColumnDefinition::new("body", DataType::Text);
    let table = TableDefinition::builder("t").column(id).column(body).primary_key(["id"]);
    let table = db.create_table(table.build().unwrap()).unwrap();
    let mut session = db.session().unwrap();
    let text = |first: &str| first.repeat(20_000);
    session.insert(&table, &[1i64.into(), text("a").into()]).unwrap();
    if left == Left::Between {
        db.checkpoint().unwrap();
    }
    plant(fault);
    session.insert(&table, &[2i64.into(), text("b").into()]).unwrap();
    session.update(&table, &[1i64.into()], &[("body", "short".into())]).unwrap();
    plant(Fault::None);
    let options = OnlineOptions { busy_percent: 100, ..OnlineOptions::default() };
    let report = db.check(&options, &CheckProgress::default()).unwrap();
    let open = report.findings.iter().filter(|it| it.invariant == Invariant::LongValuesFollowRows);
    let open = open.map(|finding| finding.found.clone()).collect();
    drop(session);
    match left {
        Left::Closed => db.close().unwrap(),
        _ => drop(db),
    }
    let (options, progress) = (CheckOptions::default(), CheckProgress::default());
    let report = check(disk, Path::new("/db"), &options, &progress).unwrap();
    assert!(report.findings.iter().all(|it| it.invariant == Invariant::LongValuesWhole));
    (open, report.findings.iter().map(|finding| finding.found.clone()).collect())
}

#[test]
fn are_noticed_both_ways() {
    for left in [Left::Closed, Left::Dropped, Left::Between] {
        assert_eq!(found_with(Fault::None, left), (vec![], vec![]));
        let (open, closed) = found_with(Fault::PieceLeftOut, left);
        assert!(open[0].starts_with("2 pieces, where rows have 3; the row (id = 2) lacks piece 0"));
        assert_eq!(closed, ["2 pieces, where its rows have 3"]);
        let (open, closed) = found_with(Fault::PieceKept, left);
        assert!(open[0].starts_with("6 pieces, where rows have 3; the piece (id = "), "{open:?}");
        assert_eq!(closed, ["6 pieces, where its rows have 3"]);
    }
}
