//! A panic inside the engine, under the latch of a leaf, stops it and not the process: whoever waits
//! learns that the outcome is unknown, everybody else that the engine has stopped, nobody waits for
//! ever, and the next open has all that was acknowledged.
//!
//! `cargo test -p onrush-sim --features planted-faults --test a_panic_inside_stops_the_engine`. One
//! test, because a fault is planted in the whole process.

#![cfg(feature = "planted-faults")]
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

#[path = "../../engine/tests/common/faulty_disk.rs"]
#[allow(dead_code, reason = "a part is used")]
mod faulty_disk;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use faulty_disk::FaultyDisk;
use onrush::{
    ColumnDefinition, DataType, Database, Error, Fault, Options, ScanOptions, Session, Table,
    TableDefinition, Value, plant,
};

const ACKNOWLEDGED: i64 = 200;

fn numbers(db: &Database) -> Table {
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let definition = TableDefinition::builder("numbers").column(id).primary_key(["id"]);
    db.create_table(definition.build().unwrap()).unwrap()
}

fn rows(session: &mut Session, table: &Table) -> BTreeSet<i64> {
    let scan = session.scan(table, &ScanOptions::default()).unwrap();
    scan.map(|row| row.unwrap()[0].as_i64().unwrap()).collect()
}

/// What panics once the fault is planted.
type Victim = fn(&Database, &Table);

fn insert(db: &Database, table: &Table) {
    drop(db.session().unwrap().insert(table, &[2000i64.into()]));
}

/// Deletes rows, so that it commits over intents.
fn commit(db: &Database, table: &Table) {
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    for id in [10i64, 20] {
        transaction.delete(table, &[id.into()]).unwrap();
    }
    drop(transaction.commit());
}

fn checkpoint(db: &Database, _: &Table) {
    drop(db.checkpoint());
}

#[test]
fn and_nothing_acknowledged_is_lost() {
    let cases: [(Fault, Victim); 3] = [
        (Fault::PanicInWrite, insert),
        (Fault::PanicInCommit, commit),
        (Fault::PanicInCheckpoint, checkpoint),
    ];
    for (fault, victim) in cases {
        let (disk, folder) = (FaultyDisk::default(), Path::new("/db"));
        let db = Database::create_on(Arc::new(disk.clone()), folder, Options::small()).unwrap();
        let table = numbers(&db);
        let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
        for id in 0..ACKNOWLEDGED {
            session.insert(&table, &[id.into()]).unwrap();
        }
        // Somebody waits for his commit when it happens.
        disk.hold_syncs_of("log");
        let waiting = session.insert_token(&table, &[1000i64.into()]).unwrap();
        plant(fault);
        let panicked = catch_unwind(AssertUnwindSafe(|| victim(&db, &table)));
        plant(Fault::None);
        assert!(panicked.is_err(), "{fault:?} was not met");
        let unknown = waiting.wait();
        assert!(matches!(unknown, Err(Error::OutcomeUnknown { .. })), "{fault:?}: {unknown:?}");
        disk.release_syncs();

        // Also with the key on which an intent was left.
        let key: [Value<'_>; 1] = [10i64.into()];
        let answers = [
            session.insert(&table, &[3000i64.into()]),
            other.delete(&table, &key).map(drop),
            other.get(&table, &key).map(drop),
            other.begin().map(drop),
            db.checkpoint().map(drop),
            db.barrier(),
            db.session().map(drop),
        ];
        for (number, answer) in answers.into_iter().enumerate() {
            let is_told =
                matches!(answer, Err(Error::Stopped { .. } | Error::OutcomeUnknown { .. }));
            assert!(is_told, "{fault:?}, call {number}: {answer:?}");
        }
        drop((session, other, table));
        assert!(matches!(db.close(), Err(Error::Stopped { .. })), "{fault:?}");

        let db = Database::open_on(Arc::new(disk), folder, Options::small()).unwrap();
        let table = db.table("numbers").unwrap();
        let found = rows(&mut db.session().unwrap(), &table);
        let acknowledged: BTreeSet<i64> = (0..ACKNOWLEDGED).collect();
        assert!(found.is_superset(&acknowledged), "{fault:?}: {found:?}");
        let unknown: Vec<i64> = found.difference(&acknowledged).copied().collect();
        assert!(unknown.iter().all(|id| *id == 1000), "{fault:?}: {unknown:?}");
    }
}
