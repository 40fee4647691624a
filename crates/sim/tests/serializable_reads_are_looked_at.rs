//! Of two serializable transactions that each read what the other changes one fails, also where they commit at the same
//! time; and this test would notice if commits did not look at what others have changed.
//!
//! `cargo test -p onrush-sim --features planted-faults --test serializable_reads_are_looked_at`. One test, because a
//! fault is planted in the whole process.

#![cfg(feature = "planted-faults")]
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::sync::{Arc, Barrier};

use onrush::{
    ColumnDefinition, DataType, Database, Durability, Error, Fault, Options, Session, Table,
    TableDefinition, plant,
};
use onrush_files::MemoryDisk;

/// Sets the own row to the other one's value plus one, beside somebody who does the same the other way round. Whether
/// it was committed.
fn follow(
    session: &mut Session,
    table: &Table,
    barrier: &Barrier,
    (own, other): (i64, i64),
) -> bool {
    let mut transaction = session.begin().unwrap();
    transaction.make_serializable().unwrap();
    barrier.wait();
    let row = transaction.get(table, &[other.into()]).unwrap().unwrap();
    let next = row[1].as_i64().unwrap() + 1;
    transaction.update(table, &[own.into()], &[("n", next.into())]).unwrap();
    match transaction.commit() {
        Ok(()) => true,
        Err(Error::NotSerializable) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Whether both were committed, each without a sight of the other, in one of so many rounds.
fn neither_saw_the_other(db: &Database, table: &Table, rounds: i64) -> bool {
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut session = db.session().unwrap();
            for _ in 0..rounds {
                follow(&mut session, table, &barrier, (2, 1));
                barrier.wait();
                barrier.wait();
            }
        });
        let (mut session, mut is_found) = (db.session().unwrap(), false);
        for _ in 0..rounds {
            follow(&mut session, table, &barrier, (1, 2));
            // The other one has ended, and waits.
            barrier.wait();
            let mut value = |key: i64| {
                let row = session.get(table, &[key.into()]).unwrap().unwrap();
                row[1].as_i64().unwrap()
            };
            // One after the other they are never alike, since each is one more than the other was.
            is_found |= value(1) == value(2);
            session.update(table, &[1i64.into()], &[("n", 0i64.into())]).unwrap();
            session.update(table, &[2i64.into()], &[("n", 0i64.into())]).unwrap();
            barrier.wait();
        }
        other.join().unwrap();
        is_found
    })
}

#[test]
fn and_whoever_does_not_look_is_noticed() {
    let options = Options { durability: Durability::Delayed, ..Options::small() };
    let db = Database::create_on(Arc::new(MemoryDisk::new()), "/db", options).unwrap();
    let number = |name| ColumnDefinition::new(name, DataType::Int64).not_null();
    let table = TableDefinition::builder("t").column(number("id")).column(number("n"));
    let table = db.create_table(table.primary_key(["id"]).build().unwrap()).unwrap();
    let mut session = db.session().unwrap();
    (1..=2i64).for_each(|id| session.insert(&table, &[id.into(), 0i64.into()]).unwrap());

    assert!(!neither_saw_the_other(&db, &table, 3000));
    plant(Fault::SerialOrderNotLooked);
    let is_noticed = neither_saw_the_other(&db, &table, 3000);
    plant(Fault::None);
    assert!(is_noticed);
}
