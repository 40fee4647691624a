//! With the disk full, calls fail cleanly and nothing acknowledged is lost; with room again, the
//! same database goes on.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{Fixture, all_rows, delayed_session, ids, note, notes};
use onrush::{Database, Error, Session, Table};
use onrush_files::MemoryDisk;

/// Room for the log and for one growth of the data file.
const CAPACITY: u64 = 24 << 20;

/// Inserts rows of a kilobyte until the disk is full; the ids that were acknowledged.
fn fill(session: &mut Session, table: &Table, first: i64) -> (Vec<i64>, Option<Error>) {
    let text = "x".repeat(1000);
    let mut acknowledged = Vec::new();
    for id in first..first + 50_000 {
        match session.insert(table, &note(id, &text)) {
            Ok(()) => acknowledged.push(id),
            Err(error) => return (acknowledged, Some(error)),
        }
    }
    (acknowledged, None)
}

fn full() -> (MemoryDisk, Fixture, Database, Table, Vec<i64>) {
    let disk = MemoryDisk::with_capacity(CAPACITY);
    let fixture = Fixture::on(Arc::new(disk.clone()));
    let (db, table) = fixture.create_with(notes());
    let (acknowledged, error) = fill(&mut delayed_session(&db), &table, 0);
    let error = error.expect("the disk holds less than all rows");
    assert!(matches!(error, Error::DiskFull { .. }) && error.is_retryable(), "{error}");
    assert!(!acknowledged.is_empty());
    (disk, fixture, db, table, acknowledged)
}

#[test]
fn inserts_say_disk_full_and_reads_go_on() {
    let (_disk, _fixture, db, table, acknowledged) = full();
    let mut session = db.session().unwrap();
    assert_eq!(ids(&all_rows(&mut session, &table)), acknowledged);
    let (more, error) = fill(&mut session, &table, 100_000);
    assert!(matches!(error, Some(Error::DiskFull { .. })), "{error:?}");
    assert!(more.len() < 1000);
}

#[test]
fn it_works_again_when_there_is_room() {
    let (disk, fixture, db, table, mut acknowledged) = full();
    disk.set_capacity(u64::MAX);
    let mut session = db.session().unwrap();
    for id in 200_000..205_000 {
        session.insert(&table, &note(id, "room")).unwrap();
        acknowledged.push(id);
    }
    assert_eq!(ids(&all_rows(&mut session, &table)), acknowledged);
    drop(session);
    db.close().unwrap();
    let db = fixture.open();
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(ids(&rows), acknowledged);
}

#[test]
fn nothing_acknowledged_is_lost_when_it_stays_full() {
    let (disk, fixture, db, table, mut acknowledged) = full();
    let (more, _) = fill(&mut db.session().unwrap(), &table, 100_000);
    acknowledged.extend(more);
    drop((table, db));
    for round in 0..2 {
        if round == 1 {
            disk.set_capacity(CAPACITY * 2);
        }
        let db = fixture.open();
        let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
        assert_eq!(ids(&rows), acknowledged);
    }
}

#[test]
fn deleting_rows_is_possible_on_a_full_disk() {
    let (_disk, fixture, db, table, acknowledged) = full();
    let mut session = db.session().unwrap();
    for id in &acknowledged[..acknowledged.len() / 2] {
        assert!(session.delete(&table, &[(*id).into()]).unwrap());
    }
    drop((session, table, db));
    let db = fixture.open();
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(ids(&rows), acknowledged[acknowledged.len() / 2..]);
}

#[test]
fn a_disk_too_small_for_a_database_is_an_error() {
    for capacity in (0..2 << 20).step_by(64 << 10) {
        let disk = MemoryDisk::with_capacity(capacity);
        let fixture = Fixture::on(Arc::new(disk.clone()));
        match fixture.try_create() {
            Ok(_) => continue,
            Err(Error::DiskFull { .. }) => {}
            Err(error) => panic!("{capacity} bytes: {error}"),
        }
        disk.set_capacity(u64::MAX);
        fixture.create();
    }
}
