//! Inside a transaction, reads see the snapshot of its begin with its own changes on top.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::{Fixture, Random, all_rows, delayed_session, note, noted, notes, refused};
use onrush::{Direction, Error, Row, ScanOptions};

#[test]
fn it_reads_its_own_writes() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "one")).unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.insert(&table, &note(2, "two")).unwrap();
    assert_eq!(transaction.get(&table, &[2i64.into()]).unwrap(), Some(noted(2, "two")));
    transaction.update(&table, &[2i64.into()], &[("note", "TWO".into())]).unwrap();
    assert_eq!(transaction.get(&table, &[2i64.into()]).unwrap(), Some(noted(2, "TWO")));
    transaction.delete(&table, &[1i64.into()]).unwrap();
    assert_eq!(transaction.get(&table, &[1i64.into()]).unwrap(), None);
    assert!(!transaction.delete(&table, &[1i64.into()]).unwrap());
    assert!(!transaction.update(&table, &[1i64.into()], &[("note", "x".into())]).unwrap());
    let again = transaction.insert(&table, &note(2, "again"));
    assert!(matches!(refused(again, &["id = 2"]), Error::DuplicateKey { .. }));
    transaction.insert(&table, &note(1, "ONE")).unwrap();
    transaction.commit().unwrap();
    assert_eq!(all_rows(&mut session, &table), [noted(1, "ONE"), noted(2, "TWO")]);
}

#[test]
fn what_it_inserts_and_deletes_again_was_never_there() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.insert(&table, &note(1, "one")).unwrap();
    assert!(transaction.delete(&table, &[1i64.into()]).unwrap());
    transaction.upsert(&table, &note(2, "two")).unwrap();
    assert!(transaction.delete(&table, &[2i64.into()]).unwrap());
    transaction.insert(&table, &note(3, "three")).unwrap();
    transaction.update(&table, &[3i64.into()], &[("id", 4i64.into())]).unwrap();
    transaction.update(&table, &[4i64.into()], &[("id", 3i64.into())]).unwrap();
    transaction.commit().unwrap();
    assert_eq!(all_rows(&mut session, &table), [noted(3, "three")]);
    drop((session, db));
    let db = fixture.open();
    let table = db.table("notes").unwrap();
    assert_eq!(all_rows(&mut db.session().unwrap(), &table), [noted(3, "three")]);
}

#[test]
fn its_scans_have_its_changes_in_place_in_both_directions() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = delayed_session(&db);
    let mut expected = BTreeMap::new();
    for id in (0..3000).step_by(3) {
        session.insert(&table, &note(id, "stored")).unwrap();
        expected.insert(id, "stored");
    }
    let mut random = Random(7);
    let mut transaction = session.begin().unwrap();
    for _ in 0..400 {
        let id = random.id_below(3000);
        if random.below(2) == 0 {
            let deleted = transaction.delete(&table, &[id.into()]).unwrap();
            assert_eq!(deleted, expected.remove(&id).is_some());
        } else {
            transaction.upsert(&table, &note(id, "own")).unwrap();
            expected.insert(id, "own");
        }
    }
    let expected: Vec<Row> = expected.into_iter().map(|(id, text)| noted(id, text)).collect();
    for limit in [None, Some(0), Some(1), Some(100)] {
        for direction in [Direction::Forward, Direction::Backward] {
            let options = ScanOptions { direction, limit, ..ScanOptions::default() };
            let scan = transaction.scan(&table, &options).unwrap();
            let rows: Vec<Row> = scan.map(|row| row.unwrap()).collect();
            let mut wanted = expected.clone();
            if direction == Direction::Backward {
                wanted.reverse();
            }
            wanted.truncate(limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap()));
            assert_eq!(rows, wanted, "{direction:?} {limit:?}");
        }
    }
    transaction.commit().unwrap();
    assert_eq!(all_rows(&mut session, &table), expected);
}

#[test]
fn its_snapshot_keeps_the_changes_made_so_far() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = delayed_session(&db);
    for id in 0..4 {
        session.insert(&table, &note(id, "stored")).unwrap();
    }
    let mut transaction = session.begin().unwrap();
    transaction.insert(&table, &note(9, "own")).unwrap();
    transaction.delete(&table, &[2i64.into()]).unwrap();
    let mut snapshot = transaction.snapshot();
    transaction.delete(&table, &[9i64.into()]).unwrap();
    transaction.upsert(&table, &note(0, "later")).unwrap();
    let options = ScanOptions::default();
    let rows: Vec<Row> =
        snapshot.scan(&table, &options).unwrap().collect::<Result<_, _>>().unwrap();
    let expected =
        [noted(0, "stored"), noted(1, "stored"), noted(3, "stored"), noted(9, "own")].to_vec();
    assert_eq!(rows, expected);
    assert_eq!(snapshot.get(&table, &[9i64.into()]).unwrap(), Some(noted(9, "own")));
    assert_eq!(snapshot.get(&table, &[2i64.into()]).unwrap(), None);
    let ranges = snapshot.key_ranges(&table, &options, 4).unwrap();
    let ranged: Vec<Row> = ranges
        .iter()
        .flat_map(|range| snapshot.scan_range(&table, range, Direction::Backward).unwrap())
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(ranged, expected.into_iter().rev().collect::<Vec<_>>());
}
