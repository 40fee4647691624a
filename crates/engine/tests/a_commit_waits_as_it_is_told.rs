//! Durability is chosen for a database, for a session, and for a single transaction.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::faulty_disk::FaultyDisk;
use common::{Fixture, all_rows, delayed_session, ids, note, notes};
use onrush::Durability;

#[test]
fn of_a_database_it_is_that_of_new_sessions() {
    let mut fixture = Fixture::in_memory();
    fixture.options.durability = Durability::Delayed;
    let (db, _) = fixture.create_with(notes());
    assert_eq!(db.session().unwrap().durability(), Durability::Delayed);
}

#[test]
fn one_durable_transaction_of_a_session_that_does_not_wait() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = delayed_session(&db);
    session.insert(&table, &note(1, "before")).unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.insert(&table, &note(2, "durable")).unwrap();
    transaction.commit_as(Durability::Durable).unwrap();
    assert!(Some(db.durable_lsn()) >= session.last_commit_lsn());
    assert_eq!(session.durability(), Durability::Delayed, "for one transaction only");
}

#[test]
fn one_delayed_transaction_of_a_session_that_waits() {
    let disk = FaultyDisk::default();
    let (db, table) = Fixture::on(Arc::new(disk.clone())).create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "durable")).unwrap();
    disk.hold_syncs();
    let mut transaction = session.begin().unwrap();
    transaction.insert(&table, &note(2, "delayed")).unwrap();
    // Returns although no sync does.
    transaction.commit_as(Durability::Delayed).unwrap();
    assert_eq!(session.durability(), Durability::Durable, "for one transaction only");
    disk.release_syncs();
    assert_eq!(ids(&all_rows(&mut session, &table)), [1, 2]);
}
