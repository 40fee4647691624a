//! Transactions too large for memory change every row of a table whose rows are in ranges, while threads flush and
//! compact, others insert, and readers look: each snapshot sees the rows of one transaction, all of them.

#![allow(clippy::unwrap_used)]

mod common;

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Fixture, Random, note, notes};
use onrush::{Database, OnlineOptions, PastMemory, ScanOptions, Snapshot, Table, Transaction};
use onrush_check::Progress;
use onrush_waits::Counter;

/// More than the memory holds.
const ROWS: i64 = 2500;
const ROUNDS: i64 = 8;

fn fixture() -> Fixture {
    let mut fixture = Fixture::in_memory().with_little_memory();
    fixture.options.past_memory = PastMemory::Always;
    fixture.options.large_transaction_bytes = 64 << 10;
    fixture
}

fn text(round: i64) -> String {
    format!("{round} {}", "x".repeat(500))
}

/// In an order in which neighbours do not follow each other.
fn scattered() -> impl Iterator<Item = i64> {
    (0..ROWS).map(|number| number * 1237 % ROWS)
}

fn set_all(transaction: &mut Transaction<'_>, table: &Table, round: i64) {
    let text = text(round);
    for id in scattered() {
        let set = [("note", text.as_str().into())];
        assert!(transaction.update(table, &[id.into()], &set).unwrap());
    }
}

/// The round that the rows are of, which is the same for all.
fn round_of_all(snapshot: &Snapshot, table: &Table) -> String {
    let rows = ScanOptions {
        from: Bound::Included(vec![0i64.into()]),
        to: Bound::Excluded(vec![ROWS.into()]),
        ..ScanOptions::default()
    };
    let mut rounds: Vec<String> = Vec::new();
    let mut count = 0;
    for row in snapshot.scan(table, &rows).unwrap() {
        let row = row.unwrap();
        count += 1;
        let round = row[1].as_str().unwrap().split(' ').next().unwrap();
        if rounds.last().is_none_or(|last| last != round) {
            rounds.push(round.to_owned());
        }
    }
    assert_eq!((count, rounds.len()), (ROWS, 1), "{rounds:?}");
    rounds.remove(0)
}

fn look(db: &Database, table: &Table, seed: u64, is_done: &AtomicBool) {
    let (mut random, mut session) = (Random(seed), db.session().unwrap());
    let mut last = 0;
    while !is_done.load(Ordering::Acquire) {
        let mut snapshot = session.snapshot().unwrap();
        let round = round_of_all(&snapshot, table);
        for _ in 0..50 {
            let id = random.id_below(ROWS);
            let row = snapshot.get(table, &[id.into()]).unwrap().unwrap();
            assert_eq!(row[1].as_str().unwrap().split(' ').next(), Some(round.as_str()), "{id}");
        }
        let number: i64 = round.parse().unwrap();
        assert!(number >= last, "{number} behind {last}");
        last = number;
    }
}

fn insert_others(db: &Database, table: &Table, is_done: &AtomicBool) -> usize {
    let (mut random, mut session) = (Random(7), db.session().unwrap());
    let mut count = 0;
    while !is_done.load(Ordering::Acquire) {
        let id = ROWS + 1 + random.id_below(1 << 40);
        session.insert(table, &note(id, "another")).unwrap();
        count += 1;
    }
    count
}

#[test]
fn each_snapshot_sees_one_transaction_in_all_rows() {
    let fixture = fixture();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    for id in scattered() {
        session.insert(&table, &note(id, &text(0))).unwrap();
    }
    let is_done = AtomicBool::new(false);
    let others = std::thread::scope(|scope| {
        let readers = [1, 2].map(|seed| {
            scope.spawn({
                let (db, table, is_done) = (&db, &table, &is_done);
                move || look(db, table, seed, is_done)
            })
        });
        let inserter = scope.spawn(|| insert_others(&db, &table, &is_done));
        for round in 1..=ROUNDS {
            let mut transaction = session.begin().unwrap();
            if round % 3 == 0 {
                let savepoint = transaction.savepoint();
                set_all(&mut transaction, &table, -round);
                transaction.rollback_to(savepoint).unwrap();
            }
            set_all(&mut transaction, &table, round);
            match round % 4 {
                3 => transaction.rollback(),
                _ => transaction.commit().unwrap(),
            }
        }
        is_done.store(true, Ordering::Release);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        inserter.join().unwrap()
    });
    let counter = |counter| db.statistics().totals.counter(counter);
    assert!(counter(Counter::RangeFlushes) > 0 && counter(Counter::RangeCompactions) > 0);
    drop(session);
    let report = db.check(&OnlineOptions::default(), &Progress::default()).unwrap();
    assert_eq!(report.findings, []);
    db.close().unwrap();
    let db = fixture.open();
    let (table, mut session) = (db.table("notes").unwrap(), db.session().unwrap());
    assert_eq!(round_of_all(&session.snapshot().unwrap(), &table), ROUNDS.to_string());
    let rows = session.scan(&table, &ScanOptions::default()).unwrap().count();
    assert_eq!(rows, ROWS as usize + others);
}
