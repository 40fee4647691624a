//! A scan gives the rows between its bounds, in either direction, at most as many as asked for.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::ops::Bound;

use common::{Fixture, Random, delayed_session, ids, note, noted, notes, rows_of};
use onrush::{Direction, Row, ScanOptions, Value};

/// Rows with even ids 0, 2, 4, ... over many leaves, a hole in the middle.
const ROWS: i64 = 6000;
const HOLE: std::ops::Range<i64> = 4000..8000;

fn expected(from: Bound<i64>, to: Bound<i64>) -> Vec<i64> {
    let all = (0..ROWS).map(|n| n * 2).filter(|id| !HOLE.contains(id));
    let range = (from, to);
    all.filter(|id| std::ops::RangeBounds::contains(&range, id)).collect()
}

fn bound(bound: Bound<i64>) -> Bound<Vec<Value<'static>>> {
    bound.map(|id| vec![Value::Int64(id)])
}

#[test]
fn every_scan_gives_what_a_sorted_list_would() {
    // Memory is not enough for the table, so scans also read leaves back.
    let fixture = Fixture::in_memory().with_little_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    let text = "x".repeat(300);
    for id in (0..ROWS).map(|n| n * 2) {
        session.insert(&table, &note(id, &text)).unwrap();
    }
    for id in HOLE.step_by(2) {
        assert!(session.delete(&table, &[id.into()]).unwrap());
    }
    let mut random = Random(1);
    let mut random_bound = || match random.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(random.id_below(ROWS * 2 + 10) - 5),
        _ => Bound::Excluded(random.id_below(ROWS * 2 + 10) - 5),
    };
    for round in 0..60 {
        let (from, to) = (random_bound(), random_bound());
        let expected = expected(from, to);
        let mut options =
            ScanOptions { from: bound(from), to: bound(to), ..ScanOptions::default() };
        assert_eq!(ids(&rows_of(&mut session, &table, &options)), expected, "{options:?}");
        options.limit = Some(round * 7);
        let first: Vec<i64> = expected.iter().copied().take(round as usize * 7).collect();
        assert_eq!(ids(&rows_of(&mut session, &table, &options)), first, "{options:?}");
        options.direction = Direction::Backward;
        let last: Vec<i64> = expected.iter().rev().copied().take(round as usize * 7).collect();
        assert_eq!(ids(&rows_of(&mut session, &table, &options)), last, "{options:?}");
    }
}

/// Scans sort a leaf that they have found out of order some times; writes bring it out of order again.
#[test]
fn scans_of_leaves_that_are_written_in_any_order_give_what_a_sorted_list_would() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let (mut session, mut reader) = (delayed_session(&db), delayed_session(&db));
    let mut random = Random(7);
    let mut rows = BTreeMap::new();
    let mut before = (reader.snapshot().unwrap(), rows.clone());
    for round in 0..4000 {
        let id = random.id_below(400);
        let text = format!("{round}{}", "x".repeat(random.below(60) as usize));
        match (rows.contains_key(&id), random.below(3)) {
            (true, 0) => {
                assert!(session.delete(&table, &[id.into()]).unwrap());
                rows.remove(&id);
            }
            (true, _) => {
                let changed = [("note", text.as_str().into())];
                assert!(session.update(&table, &[id.into()], &changed).unwrap());
                rows.insert(id, text);
            }
            (false, _) => {
                session.insert(&table, &note(id, &text)).unwrap();
                rows.insert(id, text);
            }
        }
        if round % 100 == 0 {
            before = (reader.snapshot().unwrap(), rows.clone());
        }
        for _ in 0..3 {
            let from = random.id_below(400);
            let range = from..from + 20;
            let (low, high) = (Bound::Included(range.start), Bound::Excluded(range.end));
            let options =
                ScanOptions { from: bound(low), to: bound(high), ..ScanOptions::default() };
            let expected = |rows: &BTreeMap<i64, String>| -> Vec<Row> {
                rows.range(range.clone()).map(|(id, text)| noted(*id, text)).collect()
            };
            assert_eq!(rows_of(&mut session, &table, &options), expected(&rows));
            let (snapshot, then) = &before;
            let seen = snapshot.scan(&table, &options).unwrap().map(|row| row.unwrap());
            assert_eq!(seen.collect::<Vec<Row>>(), expected(then));
        }
    }
}

#[test]
fn bounds_that_cross_hold_nothing() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&table, &note(5, "five")).unwrap();
    for (from, to) in [(9, 1), (5, 4), (6, 5)] {
        let (from, to) = (bound(Bound::Included(from)), bound(Bound::Included(to)));
        let options = ScanOptions { from, to, ..ScanOptions::default() };
        assert!(rows_of(&mut session, &table, &options).is_empty());
    }
    let (from, to) = (bound(Bound::Excluded(5)), bound(Bound::Excluded(5)));
    let options = ScanOptions { from, to, ..ScanOptions::default() };
    assert!(rows_of(&mut session, &table, &options).is_empty());
}

#[test]
fn the_fast_form_visits_the_same_rows() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = delayed_session(&db);
    for id in 0..1000 {
        session.insert(&table, &note(id, "n")).unwrap();
    }
    let mut visited = Vec::new();
    let scan = session.scan(&table, &ScanOptions::default()).unwrap();
    let rows = scan
        .visit_raw(|key, row| {
            let view = table.schema().view(key, row).unwrap();
            visited.push(view.column(0).unwrap().as_i64().unwrap());
        })
        .unwrap();
    assert_eq!((rows, visited), (1000, (0..1000).collect()));
}

#[test]
fn ranges_together_hold_every_row_once() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = delayed_session(&db);
    let text = "n".repeat(400);
    for id in 0..5000 {
        session.insert(&table, &note(id, &text)).unwrap();
    }
    let snapshot = session.snapshot().unwrap();
    let bounds = [
        (ScanOptions::default(), 0..5000),
        (ScanOptions { from: bound(Bound::Included(700)), ..ScanOptions::default() }, 700..5000),
        (ScanOptions { to: bound(Bound::Excluded(30)), ..ScanOptions::default() }, 0..30),
    ];
    for (options, expected) in bounds {
        for parts in [0, 1, 2, 7, 1000] {
            let ranges = snapshot.key_ranges(&table, &options, parts).unwrap();
            assert!((1..=parts.max(1)).contains(&ranges.len()));
            let mut found = Vec::new();
            for range in &ranges {
                let mut scan = snapshot.scan_range(&table, range, Direction::Forward).unwrap();
                // A few rows at a time, as a reader of batches does.
                while scan
                    .visit_some(100, |key, row| {
                        let view = table.schema().view(key, row).unwrap();
                        found.push(view.column(0).unwrap().as_i64().unwrap());
                    })
                    .unwrap()
                    > 0
                {}
            }
            assert_eq!(found, expected.clone().collect::<Vec<_>>(), "{parts} parts");
        }
    }
    let many = snapshot.key_ranges(&table, &ScanOptions::default(), 4).unwrap();
    assert_eq!(many.len(), 4, "a table of many leaves is cut");
}

#[test]
fn a_range_is_about_as_many_leaves_as_its_rows_take() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = delayed_session(&db);
    let text = "x".repeat(300);
    for id in 0..60_000 {
        session.insert(&table, &note(id, &text)).unwrap();
    }
    let snapshot = session.snapshot().unwrap();
    let leaves = |from: i64, to: i64| {
        let (from, to) = (bound(Bound::Included(from)), bound(Bound::Excluded(to)));
        let options = ScanOptions { from, to, ..ScanOptions::default() };
        snapshot.leaves_about(&table, &options).unwrap() as f64
    };
    let all = snapshot.leaves_about(&table, &ScanOptions::default()).unwrap() as f64;
    assert!(all >= 60_000.0 * 300.0 / (16.0 * 1024.0), "{all}");
    for (from, to) in [(0, 30_000), (30_000, 60_000), (10_000, 16_000)] {
        let share = (to - from) as f64 / 60_000.0;
        let found = leaves(from, to) / all;
        assert!((share * 0.5..share * 2.0).contains(&found), "{from}..{to}: {found}");
    }
    assert!(leaves(7, 8) <= 2.0);
    assert!(leaves(70_000, 80_000) <= 1.0);
}
