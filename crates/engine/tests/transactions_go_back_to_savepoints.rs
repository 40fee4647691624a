//! A transaction that goes back to a savepoint is as it was there, and what it did before stays.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::{Fixture, all_rows, note, noted, notes, refused};
use onrush::{Error, Row, Savepoint, ScanOptions, Table, Transaction};
use proptest::prelude::*;

const KEYS: i64 = 6;

#[derive(Clone, Debug)]
enum Step {
    Insert(i64),
    Upsert(i64),
    Update(i64),
    Move(i64, i64),
    Delete(i64),
    Savepoint,
    RollbackTo(usize),
    Release(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..KEYS;
    prop_oneof![
        3 => key().prop_map(Step::Insert),
        2 => key().prop_map(Step::Upsert),
        2 => key().prop_map(Step::Update),
        2 => (key(), key()).prop_map(|(from, to)| Step::Move(from, to)),
        3 => key().prop_map(Step::Delete),
        3 => Just(Step::Savepoint),
        2 => (0..4usize).prop_map(Step::RollbackTo),
        1 => (0..4usize).prop_map(Step::Release),
    ]
}

type Rows = BTreeMap<i64, String>;

/// Does the step to the transaction and to the map, which must agree on its outcome.
fn take(
    transaction: &mut Transaction<'_>,
    table: &Table,
    rows: &mut Rows,
    step: &Step,
    text: &str,
) {
    match *step {
        Step::Insert(key) => {
            let inserted = transaction.insert(table, &note(key, text)).is_ok();
            assert_eq!(inserted, !rows.contains_key(&key), "{step:?}");
            rows.entry(key).or_insert_with(|| text.to_owned());
        }
        Step::Upsert(key) => {
            transaction.upsert(table, &note(key, text)).unwrap();
            rows.insert(key, text.to_owned());
        }
        Step::Update(key) => {
            let found = transaction.update(table, &[key.into()], &[("note", text.into())]);
            assert_eq!(found.unwrap(), rows.contains_key(&key), "{step:?}");
            rows.entry(key).and_modify(|note| text.clone_into(note));
        }
        Step::Move(from, to) => {
            let moved = transaction.update(table, &[from.into()], &[("id", to.into())]);
            let is_taken = from != to && rows.contains_key(&from) && rows.contains_key(&to);
            assert_eq!(moved.is_err(), is_taken, "{step:?}");
            if !is_taken && let Some(note) = rows.remove(&from) {
                rows.insert(to, note);
            }
        }
        Step::Delete(key) => {
            let found = transaction.delete(table, &[key.into()]).unwrap();
            assert_eq!(found, rows.remove(&key).is_some(), "{step:?}");
        }
        Step::Savepoint | Step::RollbackTo(_) | Step::Release(_) => {}
    }
}

fn rows_of(rows: &Rows) -> Vec<Row> {
    rows.iter().map(|(key, text)| noted(*key, text)).collect()
}

proptest! {
    #[test]
    fn as_a_stack_of_maps_does(
        before in proptest::collection::btree_set(0..KEYS, 0..4),
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let (db, table) = Fixture::in_memory().create_with(notes());
        let mut session = db.session().unwrap();
        let mut rows = Rows::new();
        for key in before {
            session.insert(&table, &note(key, "before")).unwrap();
            rows.insert(key, "before".to_owned());
        }
        let mut transaction = session.begin().unwrap();
        let mut savepoints: Vec<(Savepoint, Rows)> = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            match *step {
                Step::Savepoint => savepoints.push((transaction.savepoint(), rows.clone())),
                Step::RollbackTo(index) if index < savepoints.len() => {
                    savepoints.truncate(index + 1);
                    transaction.rollback_to(savepoints[index].0).unwrap();
                    rows.clone_from(&savepoints[index].1);
                }
                Step::Release(index) if index < savepoints.len() => {
                    transaction.release(savepoints[index].0).unwrap();
                    savepoints.truncate(index);
                }
                _ => take(&mut transaction, &table, &mut rows, step, &format!("step {number}")),
            }
            let seen: Vec<Row> =
                transaction.scan(&table, &ScanOptions::default()).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(seen, rows_of(&rows), "after step {} of {:?}", number, steps);
        }
        transaction.commit().unwrap();
        prop_assert_eq!(all_rows(&mut session, &table), rows_of(&rows));
    }
}

#[test]
fn a_savepoint_that_is_gone_is_refused() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    let first = transaction.savepoint();
    let second = transaction.savepoint();
    transaction.insert(&table, &note(1, "one")).unwrap();
    transaction.rollback_to(first).unwrap();
    let gone = refused(transaction.rollback_to(second), &["set a new one"]);
    assert!(matches!(gone, Error::NoSavepoint));
    transaction.release(first).unwrap();
    assert!(matches!(transaction.release(first), Err(Error::NoSavepoint)));
}

#[test]
fn a_savepoint_of_another_transaction_is_refused() {
    let (db, _) = Fixture::in_memory().create_with(notes());
    let (mut one, mut two) = (db.session().unwrap(), db.session().unwrap());
    let (mut one, mut two) = (one.begin().unwrap(), two.begin().unwrap());
    let (of_one, _) = (one.savepoint(), two.savepoint());
    assert!(matches!(two.rollback_to(of_one), Err(Error::NoSavepoint)));
}
