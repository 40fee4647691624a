//! After a failed write or sync the engine stops: whoever waits learns that the outcome is
//! unknown, later calls that it has stopped; opening again shows all that was acknowledged.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::faulty_disk::{Failure, FaultyDisk, Operation};
use common::{Fixture, all_rows, ids, note, notes};
use onrush::{Error, Lsn, ScanOptions};
use onrush_files::DiskErrorKind;

/// The segment that commits are written to. Others are made ready meanwhile, and synced, too.
const SEGMENT: &str = "log-0000000000000001";

fn failure(operation: Operation, path: &'static str, skip: u64) -> Failure {
    Failure { operation, path, skip, kind: DiskErrorKind::Other }
}

fn fixture() -> (FaultyDisk, Fixture) {
    let disk = FaultyDisk::default();
    (disk.clone(), Fixture::on(Arc::new(disk)))
}

#[test]
fn waiters_learn_that_the_outcome_is_unknown() {
    let (disk, fixture) = fixture();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "kept")).unwrap();
    disk.hold_syncs();
    disk.fail(failure(Operation::Sync, SEGMENT, 0));
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (2..10)
            .map(|id| {
                let (db, table) = (&db, &table);
                scope.spawn(move || db.session()?.insert(table, &note(id, "lost?")))
            })
            .collect();
        disk.wait_for_held_sync();
        disk.release_syncs();
        let mut unknown = 0;
        for waiter in waiters {
            let error = waiter.join().unwrap().unwrap_err();
            // Who came later finds an engine that has stopped already.
            let fits = matches!(error, Error::OutcomeUnknown { .. } | Error::Stopped { .. });
            assert!(fits && error.is_fatal(), "{error}");
            assert!(error.to_string().contains("segment"), "which file? {error}");
            unknown += usize::from(matches!(error, Error::OutcomeUnknown { .. }));
        }
        assert!(unknown > 0, "the commit of the held sync at least");
    });

    // Repairing the disk does not help: nothing is tried again.
    disk.repair();
    let stopped = [
        session.insert(&table, &note(20, "late")).err(),
        session.get(&table, &[1i64.into()]).err(),
        session.scan(&table, &ScanOptions::default()).err(),
        session.begin().err(),
        db.session().err(),
        db.checkpoint().err(),
        db.create_table(notes().renamed("more").unwrap()).err(),
        db.barrier().err(),
        db.clone().close().err(),
    ];
    for (number, error) in stopped.into_iter().enumerate() {
        let error = error.unwrap_or_else(|| panic!("call {number} went well"));
        assert!(error.is_fatal(), "call {number}: {error:?}");
    }
    drop((session, table, db));
    let db = fixture.open();
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(rows[0][0], 1i64.into());
    assert!(rows.len() <= 9);
}

#[test]
fn tokens_and_delayed_commits_hear_of_it_too() {
    let (disk, fixture) = fixture();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    disk.hold_syncs();
    disk.fail(failure(Operation::Sync, SEGMENT, 0));
    let token = session.insert_token(&table, &note(1, "lost?")).unwrap();
    disk.release_syncs();
    assert!(matches!(token.wait(), Err(Error::OutcomeUnknown { .. })));
    assert!(matches!(token.wait(), Err(Error::OutcomeUnknown { .. })), "for good");
    assert!(!token.is_durable());
    session.set_durability(onrush::Durability::Delayed);
    assert!(session.insert(&table, &note(2, "late")).unwrap_err().is_fatal());
}

/// Whatever operation fails, wherever: what was acknowledged before is there after reopening, and
/// the engine never says that a commit is durable after the failure.
#[test]
fn nothing_acknowledged_is_lost_wherever_it_fails() {
    for (operation, path) in [
        (Operation::Sync, "log"),
        (Operation::Write, "log"),
        (Operation::Sync, "data"),
        (Operation::Write, "data"),
        (Operation::Sync, "superblock"),
        (Operation::Change, ""),
    ] {
        for skip in 0..12 {
            let (disk, fixture) = fixture();
            let (db, table) = fixture.create_with(notes());
            let mut session = db.session().unwrap();
            disk.fail(failure(operation, path, skip));
            let text = "x".repeat(2000);
            let mut acknowledged = Vec::new();
            let mut error = None;
            for id in 0..400 {
                match session.insert(&table, &note(id, &text)) {
                    Ok(()) => acknowledged.push(id),
                    Err(failed) => {
                        error = Some(failed);
                        break;
                    }
                }
                if id % 100 == 50
                    && let Err(failed) = db.checkpoint()
                {
                    error = Some(failed);
                    break;
                }
            }
            drop((session, table, db));
            disk.repair();
            let what = format!("{operation:?} {path} {skip}: {error:?}");
            let db = fixture.try_open().unwrap_or_else(|error| panic!("{what}: {error}"));
            let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
            let found = ids(&rows);
            assert!(found.len() <= acknowledged.len() + 1, "{what}");
            assert_eq!(found[..acknowledged.len()], acknowledged, "{what}");
        }
    }
}

#[test]
fn a_failed_read_is_an_error_that_names_the_file() {
    let (disk, fixture) = fixture();
    let fixture = fixture.with_little_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = common::delayed_session(&db);
    let text = "x".repeat(2000);
    for id in 0..2000 {
        session.insert(&table, &note(id, &text)).unwrap();
    }
    disk.fail(failure(Operation::Read, "data", 0));
    let scan = session.scan(&table, &ScanOptions::default()).unwrap();
    let error = scan.map(|row| row.map(drop)).find_map(Result::err).expect("not all in memory");
    assert!(error.to_string().contains("data-00.onrush"), "{error}");
    drop((session, table, db));
    disk.repair();
    let db = fixture.open();
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(rows.len(), 2000);
}

/// An answer of a durable session never rests on what a crash could still take away.
#[test]
fn a_durable_answer_waits_for_the_commit_it_rests_on() {
    let (disk, fixture) = fixture();
    let (db, table) = fixture.create_with(notes());
    let mut first = common::delayed_session(&db);
    first.insert(&table, &note(2, "two")).unwrap();
    db.barrier().unwrap();
    disk.hold_syncs();
    first.insert(&table, &note(1, "not durable")).unwrap();
    first.delete(&table, &[2i64.into()]).unwrap();
    let position = first.last_commit_lsn().unwrap();
    let (db, table) = (&db, &table);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let result = db.session().unwrap().insert(table, &note(1, "again"));
            assert!(matches!(result, Err(Error::DuplicateKey { .. })));
            assert!(
                db.durable_lsn() > Lsn::ZERO
                    && db.session().unwrap().insert(table, &note(9, "x")).is_ok()
            );
        });
        scope.spawn(move || {
            assert!(!db.session().unwrap().delete(table, &[2i64.into()]).unwrap());
            assert!(db.durable_lsn() >= position, "the delete may still be lost");
        });
        scope.spawn(move || {
            let set = [("note", "x".into())];
            assert!(!db.session().unwrap().update(table, &[2i64.into()], &set).unwrap());
            assert!(db.durable_lsn() >= position, "the delete may still be lost");
        });
        disk.wait_for_held_sync();
        disk.release_syncs();
    });
}
