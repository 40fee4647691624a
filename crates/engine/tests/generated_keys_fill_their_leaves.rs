//! A block of identity values has a leaf of its own, which is as good as full in the end: whether the rows
//! come one a commit, in one transaction, or from sessions that end after a row or two.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, generated};
use onrush::{Database, KeyStrategy, Table, Value};

const IDENTITY: KeyStrategy = KeyStrategy::Identity { start: 1, strict: false };

fn log_table() -> (Database, Table) {
    Fixture::in_memory().create_with(generated(IDENTITY))
}

fn key_of(row: &[Value<'_>]) -> i64 {
    row[0].as_i64().unwrap()
}

#[test]
fn rows_of_one_transaction_take_as_many_leaves_as_rows_by_themselves() {
    const ROWS: usize = 20_000;
    let (one_by_one, table) = log_table();
    let mut session = one_by_one.session().unwrap();
    (0..ROWS).for_each(|_| session.insert(&table, &[]).unwrap());

    let (at_once, table) = log_table();
    let mut session = at_once.session().unwrap();
    let mut transaction = session.begin().unwrap();
    (0..ROWS).for_each(|_| transaction.insert(&table, &[]).unwrap());
    transaction.commit().unwrap();

    let leaves = |db: &Database| db.statistics().leaves;
    assert!(leaves(&one_by_one) > 10, "the table is large");
    assert_eq!(leaves(&at_once), leaves(&one_by_one));
}

#[test]
fn sessions_one_after_the_other_go_on_in_one_block() {
    const SESSIONS: i64 = 2_000;
    let (db, table) = log_table();
    let keys: Vec<i64> = (0..SESSIONS)
        .map(|_| key_of(&db.session().unwrap().insert_returning_key(&table, &[]).unwrap()))
        .collect();
    assert_eq!(keys, (1..=SESSIONS).collect::<Vec<_>>());
    assert!(db.statistics().leaves < 100, "{} leaves", db.statistics().leaves);
}

#[test]
fn sessions_at_the_same_time_never_share_a_number() {
    let (db, table) = log_table();
    let mut keys = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let mut sessions: Vec<_> = (0..8).map(|_| db.session().unwrap()).collect();
        for session in &mut sessions {
            let key = key_of(&session.insert_returning_key(&table, &[]).unwrap());
            assert!(keys.insert(key), "{key} came twice");
        }
    }
    let highest = *keys.last().unwrap();
    assert!(highest < 20_000, "{highest}: sessions take new blocks where others left some");
}
