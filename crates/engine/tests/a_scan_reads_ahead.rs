//! A scan of leaves that are on disk asks for those that come next. What it gives is the same as without.

#![allow(clippy::unwrap_used)]

mod common;

use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::faulty_disk::FaultyDisk;
use common::{Fixture, Random, all_rows, assert_same_rows, delayed_session, ids, refused, rows_of};
use common::{note, noted, notes};
use onrush::{
    Background, CheckOptions, CheckProgress, Database, Direction, Error, OnlineOptions, Row,
    ScanOptions, Table, Value,
};
use onrush_waits::{Counter, Wait};

/// Two of them fill a leaf.
const TEXT_BYTES: usize = 7000;
/// Three times as many leaves as there is little memory for.
const ROWS: i64 = 400;

fn text(id: i64) -> String {
    format!("[{id:06}]{}", "x".repeat(TEXT_BYTES - 8))
}

fn rows(ids: impl IntoIterator<Item = i64>) -> Vec<Row> {
    ids.into_iter().map(|id| noted(id, &text(id))).collect()
}

fn insert(db: &Database, table: &Table, ids: impl IntoIterator<Item = i64>) {
    let mut session = delayed_session(db);
    ids.into_iter().for_each(|id| session.insert(table, &note(id, &text(id))).unwrap());
}

/// A database whose rows are all on disk only, with the first `ROWS` numbers as keys.
fn on_disk(fixture: &Fixture) -> (Database, Table) {
    let (db, table) = fixture.create_with(notes());
    insert(&db, &table, 0..ROWS);
    drop(table);
    db.close().unwrap();
    let db = fixture.open();
    let table = db.table("notes").unwrap();
    (db, table)
}

fn on_faulty_disk() -> (Fixture, FaultyDisk) {
    let disk = FaultyDisk::default();
    (Fixture::on(Arc::new(disk.clone())).with_little_memory(), disk)
}

fn count(db: &Database, counter: Counter) -> u64 {
    db.statistics().totals.counter(counter)
}

fn backward() -> ScanOptions<'static> {
    ScanOptions { direction: Direction::Backward, ..ScanOptions::default() }
}

fn below(id: i64) -> ScanOptions<'static> {
    ScanOptions { to: Bound::Excluded(vec![Value::Int64(id)]), ..ScanOptions::default() }
}

/// Nothing is found by a check that reads everything.
fn assert_sound(db: &Database) {
    let options = OnlineOptions { busy_percent: 100, ..OnlineOptions::default() };
    let options = OnlineOptions { check: CheckOptions::default(), ..options };
    let report = db.check(&options, &CheckProgress::default()).unwrap();
    assert!(report.is_sound() && report.findings.is_empty(), "{report}");
}

#[test]
fn rows_come_once_and_in_order_forward_and_backward() {
    let (db, table) = on_disk(&Fixture::in_memory().with_little_memory());
    let mut session = db.session().unwrap();
    for _ in 0..3 {
        assert_same_rows(&all_rows(&mut session, &table), &rows(0..ROWS), "forward");
        let found = rows_of(&mut session, &table, &backward());
        assert_same_rows(&found, &rows((0..ROWS).rev()), "backward");
    }
}

#[test]
fn bounds_and_limits_hold() {
    let (db, table) = on_disk(&Fixture::in_memory().with_little_memory());
    let mut session = db.session().unwrap();
    let mut random = Random(7);
    for _ in 0..100 {
        let (low, high) = (random.id_below(ROWS), random.id_below(ROWS));
        let limit = random.below(60);
        let from = Bound::Included(vec![Value::Int64(low)]);
        let mut options = ScanOptions { from, limit: Some(limit), ..below(high) };
        let found = rows_of(&mut session, &table, &options);
        assert_same_rows(&found, &rows((low..high).take(limit as usize)), "forward");
        options.direction = Direction::Backward;
        let found = rows_of(&mut session, &table, &options);
        assert_same_rows(&found, &rows((low..high).rev().take(limit as usize)), "backward");
    }
}

/// The scan's own reads wait until the readers have begun one: so they do read ahead.
#[test]
fn leaves_are_read_before_the_scan_comes_to_them_and_are_counted() {
    for options in [ScanOptions::default(), backward()] {
        let (fixture, disk) = on_faulty_disk();
        let (db, table) = on_disk(&fixture);
        let mut scan = db.session().unwrap().scan(&table, &options).unwrap();
        // One leaf is no reason to read ahead.
        assert!(scan.next().is_some());
        assert_eq!(disk.read_ahead(), 0);
        disk.let_readers_go_first();
        assert_eq!(scan.count(), ROWS as usize - 1);
        assert!(disk.read_ahead() > 0);
        let (ahead, all) = (count(&db, Counter::LeavesReadAhead), count(&db, Counter::LeafLoads));
        assert!(0 < ahead && ahead < all, "{ahead} of {all} leaves were read ahead");
    }
}

#[test]
fn a_scan_in_memory_asks_for_nothing() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    insert(&db, &table, 0..ROWS);
    db.checkpoint().unwrap();
    let mut session = db.session().unwrap();
    assert_eq!(all_rows(&mut session, &table).len(), ROWS as usize);
    assert_eq!(rows_of(&mut session, &table, &backward()).len(), ROWS as usize);
    assert_eq!(count(&db, Counter::LeafLoads), 0, "all leaves were in memory");
    assert!(db.sessions().iter().all(|session| session.name != "onrush-read"));
}

/// A scan looks no further than its bounds: the leaves inside are all that is read.
#[test]
fn a_short_scan_reads_no_more_leaves_than_it_gives() {
    let (db, table) = on_disk(&Fixture::in_memory().with_little_memory());
    let mut session = db.session().unwrap();
    let limited = ScanOptions { limit: Some(1), ..ScanOptions::default() };
    assert_eq!(rows_of(&mut session, &table, &limited).len(), 1);
    assert_eq!(count(&db, Counter::LeafLoads), 1);
    assert_eq!(count(&db, Counter::LeavesReadAhead), 0);
    // The leaf that ends the bounds may hold a row outside of them.
    assert_eq!(rows_of(&mut session, &table, &below(40)).len(), 40);
    assert!(count(&db, Counter::LeafLoads) <= 21, "{}", count(&db, Counter::LeafLoads));
    let limited = ScanOptions { limit: Some(40), ..backward() };
    assert_eq!(rows_of(&mut session, &table, &limited).len(), 40);
    // By rows a leaf it is known only about.
    assert!(count(&db, Counter::LeafLoads) <= 43, "{}", count(&db, Counter::LeafLoads));
}

#[test]
fn where_the_callers_do_all_work_nothing_is_read_ahead() {
    let mut fixture = Fixture::in_memory().with_little_memory();
    fixture.options.background = Background::Callers;
    let (db, table) = on_disk(&fixture);
    assert_eq!(all_rows(&mut db.session().unwrap(), &table).len(), ROWS as usize);
    assert_eq!(count(&db, Counter::LeavesReadAhead), 0);
    assert!(db.sessions().iter().all(|session| session.name != "onrush-read"));
}

/// Changes a byte of every image that holds the row.
fn damage(file: &Path, id: i64) {
    let bytes = std::fs::read(file).unwrap();
    let mark = format!("[{id:06}]");
    let places = bytes.windows(mark.len()).enumerate();
    let places: Vec<usize> =
        places.filter(|(_, found)| *found == mark.as_bytes()).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    let file = std::fs::File::options().write(true).open(file).unwrap();
    places.iter().for_each(|at| file.write_all_at(b"!", *at as u64 + 20).unwrap());
}

#[test]
fn a_damaged_leaf_ahead_is_met_by_the_scan_that_reaches_it_and_no_other() {
    const DAMAGED: i64 = 100;
    let fixture = Fixture::new().with_little_memory();
    let (db, table) = on_disk(&fixture);
    drop(table);
    db.close().unwrap();
    damage(&fixture.path().join("data-00.onrush"), DAMAGED);
    let db = fixture.open();
    let table = db.table("notes").unwrap();
    let mut session = db.session().unwrap();
    for _ in 0..3 {
        for stops_at in [60, DAMAGED - 2] {
            let found = rows_of(&mut session, &table, &below(stops_at));
            assert_same_rows(&found, &rows(0..stops_at), "below the damage");
        }
        let mut scan = session.scan(&table, &ScanOptions::default()).unwrap();
        let found: Vec<Row> =
            scan.by_ref().take(DAMAGED as usize - 10).map(Result::unwrap).collect();
        assert_same_rows(&found, &rows(0..DAMAGED - 10), "given up close to the damage");
        let mut ended = scan.skip_while(Result::is_ok);
        let error = refused(ended.next().unwrap(), &["data-00.onrush"]);
        assert!(matches!(error, Error::Damaged(_)), "{error:?}");
        assert!(ended.next().is_none(), "nothing comes after an error");
    }
    // The rest of the table stays readable, by scans that read ahead.
    let behind = Bound::Included(vec![Value::Int64(DAMAGED + 10)]);
    let behind = ScanOptions { from: behind, ..ScanOptions::default() };
    assert_same_rows(&rows_of(&mut session, &table, &behind), &rows(DAMAGED + 10..ROWS), "behind");
    db.close().unwrap();
}

/// A scan in the middle, with leaves under way whose reads wait.
fn with_leaves_under_way(db: &Database, table: &Table, disk: &FaultyDisk) -> onrush::Scan {
    let mut scan = db.session().unwrap().scan(table, &ScanOptions::default()).unwrap();
    scan.next().unwrap().unwrap();
    disk.hold_readers();
    disk.let_readers_go_first();
    // The second leaf that is waited for is the one at which the scan asks.
    let before = disk.read_ahead();
    while disk.read_ahead() == before {
        scan.next().unwrap().unwrap();
    }
    scan
}

#[test]
fn a_table_may_be_truncated_or_dropped_while_its_leaves_are_under_way() {
    for drops in [false, true] {
        let (fixture, disk) = on_faulty_disk();
        let (db, table) = on_disk(&fixture);
        let scan = with_leaves_under_way(&db, &table, &disk);
        let table = if drops {
            db.drop_table("notes").unwrap();
            db.create_table(notes()).unwrap()
        } else {
            db.truncate_table("notes").unwrap();
            table
        };
        insert(&db, &table, (0..ROWS).step_by(3));
        disk.release_readers();
        let error = refused(scan.last().unwrap(), &["notes"]);
        assert!(matches!(error, Error::TableChanged { .. }), "{error:?}");
        let found = all_rows(&mut db.session().unwrap(), &table);
        assert_same_rows(&found, &rows((0..ROWS).step_by(3)), "the new rows");
        assert_sound(&db);
    }
}

#[test]
fn a_scan_given_up_early_leaves_nothing_behind() {
    let (fixture, disk) = on_faulty_disk();
    let (db, table) = on_disk(&fixture);
    drop(with_leaves_under_way(&db, &table, &disk));
    disk.release_readers();
    db.close().unwrap();
    let db = fixture.open();
    let table = db.table("notes").unwrap();
    assert_eq!(ids(&all_rows(&mut db.session().unwrap(), &table)), (0..ROWS).collect::<Vec<_>>());
}

#[test]
fn a_database_closes_under_a_scan_that_reads_ahead() {
    let (fixture, disk) = on_faulty_disk();
    let (db, table) = on_disk(&fixture);
    let scan = with_leaves_under_way(&db, &table, &disk);
    disk.release_readers();
    db.close().unwrap();
    let error = scan.last().unwrap().unwrap_err();
    assert!(matches!(error, Error::Closed), "{error:?}");
    drop(table);
    let db = fixture.open();
    let table = db.table("notes").unwrap();
    assert_eq!(all_rows(&mut db.session().unwrap(), &table).len(), ROWS as usize);
}

#[test]
fn a_wait_for_a_leaf_under_way_has_its_name() {
    let (fixture, disk) = on_faulty_disk();
    let (db, table) = on_disk(&fixture);
    let scan = with_leaves_under_way(&db, &table, &disk);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| scan.map(Result::unwrap).count());
        while !db.sessions().iter().any(|session| session.waits_now == Some(Wait::ReadAhead)) {
            std::thread::yield_now();
        }
        disk.release_readers();
        assert!(waiting.join().unwrap() > 0);
    });
    assert!(db.statistics().totals.wait(Wait::ReadAhead).count > 0);
}

#[test]
fn several_scans_at_once_get_all_rows() {
    let (db, table) = on_disk(&Fixture::in_memory().with_little_memory());
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                let mut session = db.session().unwrap();
                for _ in 0..5 {
                    if number % 2 == 0 {
                        assert_same_rows(&all_rows(&mut session, table), &rows(0..ROWS), "forward");
                    } else {
                        let found = rows_of(&mut session, table, &backward());
                        assert_same_rows(&found, &rows((0..ROWS).rev()), "backward");
                    }
                }
            });
        }
    });
}

/// Splits, evictions and leaves that become empty beside it: of the rows that stay a scan gives each once.
#[test]
fn rows_that_change_beside_a_scan_change_nothing_of_the_others() {
    let fixture = Fixture::in_memory().with_little_memory();
    let (db, table) = fixture.create_with(notes());
    let staying = || (0..ROWS / 2).map(|number| 2 * number);
    insert(&db, &table, staying());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut session, mut random) = (delayed_session(&db), Random(3));
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..50 {
                    let id = random.id_below(ROWS) | 1;
                    if !session.delete(&table, &[id.into()]).unwrap() {
                        session.insert(&table, &note(id, &text(id))).unwrap();
                    }
                }
                db.checkpoint().unwrap();
            }
        });
        let mut session = db.session().unwrap();
        for _ in 0..10 {
            let of_staying = |mut found: Vec<Row>| {
                found.retain(|row| row[0].as_i64().unwrap() % 2 == 0);
                found
            };
            let found = of_staying(all_rows(&mut session, &table));
            assert_same_rows(&found, &rows(staying()), "forward");
            let found = of_staying(rows_of(&mut session, &table, &backward()));
            assert_same_rows(&found, &rows(staying().rev()), "backward");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_sound(&db);
    db.close().unwrap();
}
