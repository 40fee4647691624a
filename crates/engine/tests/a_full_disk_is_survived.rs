//! With the disk full, calls fail cleanly and nothing acknowledged is lost; with space again, the
//! same database goes on.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use common::{Fixture, all_rows, delayed_session, ids, note, notes};
use onrush::{Database, Error, Session, Table};
use onrush_files::MemoryDisk;

/// Space for the log and for one growth of the data file.
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
fn it_works_again_when_there_is_space() {
    let (disk, fixture, db, table, mut acknowledged) = full();
    disk.set_capacity(u64::MAX);
    let mut session = db.session().unwrap();
    for id in 200_000..205_000 {
        session.insert(&table, &note(id, "space")).unwrap();
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

/// How the rows of a commit come to the database.
#[derive(Clone, Copy, Debug)]
enum Way {
    Batch,
    Transaction,
}

/// Commits 1,000 rows at a time, from each of `numbers` on, until the disk is full. Adds the ids that
/// were acknowledged.
fn commit_thousands(
    session: &mut Session,
    (table, way, text): (&Table, Way, &str),
    numbers: impl Iterator<Item = i64>,
    id_of: impl Fn(i64) -> i64,
    acknowledged: &mut BTreeSet<i64>,
) -> Option<Error> {
    for first in numbers {
        let ids: Vec<i64> = (first..first + 1000).map(&id_of).collect();
        match commit(session, table, way, &ids, text) {
            Ok(()) => acknowledged.extend(ids),
            Err(error) => return Some(error),
        }
    }
    None
}

fn commit(
    session: &mut Session,
    table: &Table,
    way: Way,
    ids: &[i64],
    text: &str,
) -> Result<(), Error> {
    let rows: Vec<_> = ids.iter().map(|id| note(*id, text)).collect();
    match way {
        Way::Batch => session.insert_many(table, rows.iter().map(|row| row.as_slice())),
        Way::Transaction => {
            let mut transaction = session.begin()?;
            rows.iter().try_for_each(|row| transaction.insert(table, row))?;
            transaction.commit()
        }
    }
}

/// What must hold once commits of 1,000 rows have filled the disk: each ends, with or without space
/// for a part of its rows; no row of a refused one is there; rows can be removed; and with space the
/// next one succeeds.
fn is_survived_by_large_commits(way: Way, text: &str, id_of: impl Fn(i64) -> i64) {
    let disk = MemoryDisk::with_capacity(2 * CAPACITY);
    let mut fixture = Fixture::on(Arc::new(disk.clone()));
    fixture.options.log_ring_bytes = 16 << 20;
    fixture.options.log_capacity_bytes = 64 << 20;
    fixture.options.leaf_memory_bytes = 32 << 20;
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    let mut acknowledged = BTreeSet::new();
    let mut thousands = (0..1 << 20).step_by(1000);
    let what = (&table, way, text);
    let is_full = |error: Option<Error>| match error {
        Some(Error::DiskFull { .. }) => true,
        None => false,
        Some(error) => panic!("{way:?}: {error}"),
    };
    let filled = commit_thousands(&mut session, what, &mut thousands, &id_of, &mut acknowledged);
    assert!(is_full(filled) && !acknowledged.is_empty());

    // Each round makes space for about one leaf more of small rows, and so for a part of a commit.
    for _ in 0..20 {
        for _ in 0..100 {
            let id = acknowledged.pop_first().unwrap();
            assert!(session.delete(&table, &[id.into()]).unwrap(), "{way:?}");
        }
        is_full(commit_thousands(
            &mut session,
            what,
            thousands.by_ref().take(1),
            &id_of,
            &mut acknowledged,
        ));
    }
    let expected = |acknowledged: &BTreeSet<i64>| acknowledged.iter().copied().collect::<Vec<_>>();
    assert_eq!(ids(&all_rows(&mut session, &table)), expected(&acknowledged));

    disk.set_capacity(u64::MAX);
    let one = thousands.by_ref().take(1);
    assert!(!is_full(commit_thousands(&mut session, what, one, &id_of, &mut acknowledged)));
    drop((session, table, db));
    let db = fixture.open();
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(ids(&rows), expected(&acknowledged));
}

/// Scatters the numbers below 2^20.
fn scattered(number: i64) -> i64 {
    (number * 0x9E375) % (1 << 20)
}

#[test]
fn commits_of_many_small_rows_say_disk_full_too() {
    for way in [Way::Batch, Way::Transaction] {
        is_survived_by_large_commits(way, &"x".repeat(100), |number| number);
        is_survived_by_large_commits(way, &"x".repeat(100), scattered);
    }
}

#[test]
fn commits_of_many_large_rows_say_disk_full_too() {
    for way in [Way::Batch, Way::Transaction] {
        is_survived_by_large_commits(way, &"x".repeat(1000), |number| number);
        is_survived_by_large_commits(way, &"x".repeat(1000), scattered);
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
