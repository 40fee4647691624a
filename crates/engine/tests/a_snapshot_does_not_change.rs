//! A snapshot, and a scan, sees what was committed when it was taken: no later insert, update,
//! delete or transaction, also after leaves were split, imaged and evicted.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, delayed_session, ids, note, noted, notes};
use onrush::{Row, ScanOptions, Snapshot, Table};

fn rows(snapshot: &Snapshot, table: &Table) -> Vec<Row> {
    snapshot.scan(table, &ScanOptions::default()).unwrap().map(|row| row.unwrap()).collect()
}

#[test]
fn later_commits_are_not_seen() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    for id in [1, 2, 3] {
        session.insert(&table, &note(id, "old")).unwrap();
    }
    let mut snapshot = session.snapshot().unwrap();
    let before = [noted(1, "old"), noted(2, "old"), noted(3, "old")];
    session.insert(&table, &note(4, "new")).unwrap();
    session.update(&table, &[1i64.into()], &[("note", "new".into())]).unwrap();
    session.delete(&table, &[2i64.into()]).unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.update(&table, &[3i64.into()], &[("id", 5i64.into())]).unwrap();
    transaction.commit().unwrap();
    assert_eq!(rows(&snapshot, &table), before);
    assert_eq!(snapshot.get(&table, &[2i64.into()]).unwrap(), Some(noted(2, "old")));
    assert_eq!(snapshot.get(&table, &[5i64.into()]).unwrap(), None);
    drop(snapshot);
    let now = session.snapshot().unwrap();
    assert_eq!(ids(&rows(&now, &table)), [1, 4, 5]);
}

#[test]
fn it_outlives_checkpoints_evictions_and_many_versions() {
    let fixture = Fixture::in_memory().with_little_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    let filler = "f".repeat(1000);
    for id in (0..1000).step_by(2) {
        session.insert(&table, &note(id, "before")).unwrap();
    }
    let mut snapshots = Vec::new();
    for round in 0..6i64 {
        snapshots.push((session.snapshot().unwrap(), common::all_rows(&mut session, &table)));
        for id in 0..1000 {
            match (id + round) % 5 {
                0 => _ = session.delete(&table, &[id.into()]).unwrap(),
                1 => session.upsert(&table, &note(id, &filler)).unwrap(),
                2 => {
                    _ = session.update(&table, &[id.into()], &[("note", "short".into())]).unwrap();
                }
                _ => {}
            }
        }
        db.checkpoint().unwrap();
        for (snapshot, seen) in &mut snapshots {
            assert!(rows(snapshot, &table) == *seen, "after round {round}");
            for id in [0i64, 333, 998] {
                let row = seen.iter().find(|row| row[0] == id.into()).cloned();
                assert_eq!(snapshot.get(&table, &[id.into()]).unwrap(), row);
            }
        }
    }
}

#[test]
fn a_session_sees_its_own_last_commit_whatever_others_do() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                let mut session = delayed_session(db);
                for id in (0..400).map(|n| n * 4 + thread) {
                    if id % 3 == 0 {
                        session.insert_token(table, &note(id, "own")).unwrap();
                    } else {
                        session.insert(table, &note(id, "own")).unwrap();
                    }
                    let mut snapshot = session.snapshot().unwrap();
                    assert!(snapshot.get(table, &[id.into()]).unwrap().is_some(), "{id}");
                }
            });
        }
    });
}

#[test]
fn a_durable_snapshot_shows_only_what_a_crash_cannot_take() {
    let disk = common::faulty_disk::FaultyDisk::default();
    let (db, table) = Fixture::on(std::sync::Arc::new(disk.clone())).create_with(notes());
    let mut session = delayed_session(&db);
    session.insert(&table, &note(1, "durable")).unwrap();
    db.barrier().unwrap();
    disk.hold_syncs();
    session.insert(&table, &note(2, "not yet")).unwrap();
    session.update(&table, &[1i64.into()], &[("note", "not yet".into())]).unwrap();
    let before = session.durable_snapshot().unwrap();
    assert_eq!(rows(&before, &table), [noted(1, "durable")]);
    assert_eq!(ids(&rows(&session.snapshot().unwrap(), &table)), [1, 2]);
    disk.release_syncs();
    db.barrier().unwrap();
    assert_eq!(ids(&rows(&session.durable_snapshot().unwrap(), &table)), [1, 2]);
    assert_eq!(rows(&before, &table), [noted(1, "durable")]);
}
