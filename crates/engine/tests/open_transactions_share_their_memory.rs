//! What open transactions keep in memory is counted, and all of them together have a bound: who grows beyond it
//! writes to leaves and log before its own limit, and what it does is the same.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, all_rows, note, notes};
use onrush::{ColumnDefinition, DataType, Database, Error, Table, TableChange, Transaction, Value};

const LIMIT: u64 = 256 << 10;
/// Changes below it need not be counted.
const UNCOUNTED: u64 = 16 << 10;
const SESSIONS: i64 = 10;
const ROWS_EACH: i64 = 100;

/// A transaction's own limit is far above what any does here.
fn bounded() -> (Fixture, Database, Table) {
    let mut fixture = Fixture::in_memory();
    fixture.options.log_ring_bytes = 32 << 20;
    fixture.options.log_capacity_bytes = 128 << 20;
    fixture.options.open_transactions_bytes = LIMIT;
    let (db, table) = fixture.create_with(notes());
    (fixture, db, table)
}

fn counted(db: &Database) -> u64 {
    let statistics = db.statistics();
    statistics.memory.iter().find(|part| part.name == "open transactions").unwrap().used_bytes
}

fn insert(transaction: &mut Transaction<'_>, table: &Table, ids: impl IntoIterator<Item = i64>) {
    let text = "x".repeat(1000);
    ids.into_iter().for_each(|id| transaction.insert(table, &note(id, &text)).unwrap());
}

#[test]
fn all_together_take_no_more_than_they_may_and_commit_all_the_same() {
    let (_fixture, db, table) = bounded();
    let mut sessions: Vec<_> = (0..SESSIONS).map(|_| db.session().unwrap()).collect();
    let mut open: Vec<_> = sessions.iter_mut().map(|session| session.begin().unwrap()).collect();
    for row in 0..ROWS_EACH {
        for (number, transaction) in (0..).zip(&mut open) {
            insert(transaction, &table, [number * ROWS_EACH + row]);
            assert!(counted(&db) <= LIMIT + UNCOUNTED, "{} bytes", counted(&db));
        }
    }
    assert!(counted(&db) > LIMIT / 2);
    assert!(db.statistics().large_transactions.0 > 0);
    open.into_iter().for_each(|transaction| transaction.commit().unwrap());
    assert_eq!(counted(&db), 0);
    let rows = all_rows(&mut sessions[0], &table);
    assert_eq!(rows.len() as i64, SESSIONS * ROWS_EACH);
}

#[test]
fn what_is_taken_back_is_counted_no_longer() {
    let (_fixture, db, table) = bounded();
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    insert(&mut transaction, &table, 0..20);
    let savepoint = transaction.savepoint();
    let before = counted(&db);
    assert!(before > 0);
    insert(&mut transaction, &table, 20..80);
    assert!(counted(&db) > before + 60 * 1000);
    transaction.rollback_to(savepoint).unwrap();
    assert!(counted(&db) <= before + UNCOUNTED);
    transaction.rollback();
    assert_eq!(counted(&db), 0);
    // One transaction alone stays as it is as long as there is space.
    assert_eq!(db.statistics().large_transactions, (0, 0));
}

#[test]
fn rows_of_a_table_that_it_alters_are_refused_once_its_commit_cannot_hold_them() {
    let (db, _) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    let column = ColumnDefinition::new("more", DataType::Int64);
    let altered = transaction.alter_table("notes", &[TableChange::AddColumn(column)]).unwrap();
    let text = "x".repeat(1000);
    let row = |id: i64| [id.into(), text.as_str().into(), Value::Null];
    let refused = (0..10_000).find_map(|id| transaction.insert(&altered, &row(id)).err());
    assert!(matches!(refused, Some(Error::TransactionTooLarge { .. })), "{refused:?}");
    // The limit is 32 KiB.
    assert!(counted(&db) < 256 << 10, "{}", counted(&db));
    assert!(matches!(transaction.commit(), Err(Error::TransactionTooLarge { .. })));
    assert_eq!(counted(&db), 0);
}
