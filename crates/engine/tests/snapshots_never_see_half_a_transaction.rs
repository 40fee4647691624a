//! While many threads move amounts between accounts, every snapshot shows the same total, in
//! tables that are larger than memory, with checkpoints running.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{Fixture, Random, accounts, delayed_session};
use onrush::{Database, Error, ScanOptions, Session, Table, Value};

const ACCOUNTS: i64 = 2000;
const TOTAL: i64 = ACCOUNTS * 100;
const WRITERS: u64 = 4;
const TRANSFERS: u64 = 300;

/// Moves a random amount; false on a conflict.
fn transfer(session: &mut Session, tables: &[Table; 2], random: &mut Random) -> bool {
    let mut transaction = session.begin().unwrap();
    let amount = random.id_below(50);
    let places = [random.id_below(ACCOUNTS), random.id_below(ACCOUNTS)];
    for (table, (id, change)) in tables.iter().zip(places.into_iter().zip([-amount, amount])) {
        let row = transaction.get(table, &[id.into()]).unwrap();
        let balance = row.map_or(0, |row| row[1].as_i64().unwrap()) + change;
        // An account without a balance has no row: rows come and go.
        if balance == 0 {
            transaction.delete(table, &[id.into()]).unwrap();
        } else {
            transaction.upsert(table, &[id.into(), balance.into()]).unwrap();
        }
    }
    match transaction.commit() {
        Ok(()) => true,
        Err(Error::Conflict { .. } | Error::DuplicateKey { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

fn total(session: &mut Session, tables: &[Table; 2]) -> i64 {
    let snapshot = session.snapshot().unwrap();
    let balance = |row: onrush::Result<onrush::Row>| row.unwrap()[1].as_i64().unwrap();
    let sum =
        |table| snapshot.scan(table, &ScanOptions::default()).unwrap().map(balance).sum::<i64>();
    sum(&tables[0]) + sum(&tables[1])
}

fn filled(fixture: &Fixture) -> (Database, [Table; 2]) {
    let (db, from) = fixture.create_with(accounts());
    let to = db.create_table(accounts().renamed("others").unwrap()).unwrap();
    let mut session = delayed_session(&db);
    for id in 0..ACCOUNTS {
        session.insert(&from, &[id.into(), Value::Int64(100)]).unwrap();
    }
    (db, [from, to])
}

#[test]
fn the_sum_over_all_accounts_never_changes() {
    let fixture = Fixture::in_memory().with_little_memory();
    let (db, tables) = filled(&fixture);
    let writers_left = AtomicU64::new(WRITERS);
    let reads = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 0..WRITERS {
            let (db, tables, writers_left) = (&db, &tables, &writers_left);
            scope.spawn(move || {
                let (mut session, mut random) = (delayed_session(db), Random(seed));
                let mut done = 0;
                while done < TRANSFERS {
                    done += u64::from(transfer(&mut session, tables, &mut random));
                }
                writers_left.fetch_sub(1, Ordering::AcqRel);
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let mut session = db.session().unwrap();
                while writers_left.load(Ordering::Acquire) > 0 {
                    assert_eq!(total(&mut session, &tables), TOTAL);
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(|| {
            while writers_left.load(Ordering::Acquire) > 0 {
                db.checkpoint().unwrap();
            }
        });
    });
    assert_eq!(total(&mut db.session().unwrap(), &tables), TOTAL);
    drop(db);
    let db = fixture.open();
    let tables = ["accounts", "others"].map(|name| db.table(name).unwrap());
    assert_eq!(total(&mut db.session().unwrap(), &tables), TOTAL);
}

#[test]
fn rows_inserted_together_are_seen_together() {
    let (db, table) = Fixture::in_memory().create_with(accounts());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3i64)
            .map(|thread| {
                let (db, table) = (&db, &table);
                scope.spawn(move || {
                    let mut session = delayed_session(db);
                    // Sixteen rows far apart, all with the same number.
                    for batch in 0..200 {
                        let id = |n: i64| Value::Int64((n * 1000 + batch) * 3 + thread);
                        let rows: Vec<_> = (0..16).map(|n| vec![id(n), batch.into()]).collect();
                        session.insert_many(table, rows.iter().map(Vec::as_slice)).unwrap();
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut session = db.session().unwrap();
            while !stop.load(Ordering::Acquire) {
                let scan = session.scan(&table, &ScanOptions::default()).unwrap();
                assert_eq!(scan.count() % 16, 0);
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        stop.store(true, Ordering::Release);
    });
    assert_eq!(common::all_rows(&mut db.session().unwrap(), &table).len(), 3 * 200 * 16);
}
