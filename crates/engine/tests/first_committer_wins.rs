//! Two transactions that change one row: the first to commit wins, the other gets a conflict.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Barrier;

use common::{Fixture, accounts, all_rows, delayed_session, note, noted, notes, refused};
use onrush::{Error, Value};

#[test]
fn the_second_update_of_a_row_is_refused_at_commit() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let (mut a, mut b) = (db.session().unwrap(), db.session().unwrap());
    a.insert(&table, &note(1, "old")).unwrap();
    let mut first = a.begin().unwrap();
    let mut second = b.begin().unwrap();
    first.update(&table, &[1i64.into()], &[("note", "first".into())]).unwrap();
    second.update(&table, &[1i64.into()], &[("note", "second".into())]).unwrap();
    second.insert(&table, &note(2, "second")).unwrap();
    first.commit().unwrap();
    let error = refused(second.commit(), &["notes", "id = 1", "retry"]);
    assert!(matches!(error, Error::Conflict { .. }) && error.is_retryable(), "{error}");
    assert_eq!(all_rows(&mut a, &table), [noted(1, "first")]);

    // The retry sees the winner's row and succeeds.
    let mut again = b.begin().unwrap();
    assert_eq!(again.get(&table, &[1i64.into()]).unwrap(), Some(noted(1, "first")));
    again.update(&table, &[1i64.into()], &[("note", "second".into())]).unwrap();
    again.commit().unwrap();
    assert_eq!(all_rows(&mut a, &table), [noted(1, "second")]);
}

#[test]
fn an_insert_conflicts_with_a_row_that_came_and_went_meanwhile() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let (mut a, mut b) = (db.session().unwrap(), db.session().unwrap());
    let mut transaction = b.begin().unwrap();
    transaction.insert(&table, &note(1, "late")).unwrap();
    transaction.insert(&table, &note(2, "late")).unwrap();
    a.insert(&table, &note(2, "early")).unwrap();
    a.delete(&table, &[2i64.into()]).unwrap();
    refused(transaction.commit(), &["notes", "id = 2", "retry"]);
    assert!(all_rows(&mut a, &table).is_empty());
}

#[test]
fn every_kind_of_change_conflicts_with_every_other() {
    // What the winner does outside of a transaction, and what the loser does inside of one.
    for winner in ["update", "delete", "delete and insert"] {
        for loser in ["update", "delete", "upsert"] {
            let (db, table) = Fixture::in_memory().create_with(notes());
            let (mut a, mut b) = (db.session().unwrap(), db.session().unwrap());
            a.insert(&table, &note(1, "old")).unwrap();
            let mut transaction = b.begin().unwrap();
            let key: [Value<'_>; 1] = [1i64.into()];
            match loser {
                "update" => drop(transaction.update(&table, &key, &[("note", "b".into())])),
                "delete" => drop(transaction.delete(&table, &key)),
                _ => transaction.upsert(&table, &note(1, "b")).unwrap(),
            }
            if winner == "update" {
                a.update(&table, &key, &[("note", "a".into())]).unwrap();
            } else {
                a.delete(&table, &key).unwrap();
            }
            if winner == "delete and insert" {
                a.insert(&table, &note(1, "a")).unwrap();
            }
            let result = transaction.commit();
            assert!(
                matches!(result, Err(Error::Conflict { .. })),
                "{winner} then {loser}: {result:?}"
            );
        }
    }
}

#[test]
fn changes_of_different_rows_do_not_conflict() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let (mut a, mut b) = (db.session().unwrap(), db.session().unwrap());
    let mut first = a.begin().unwrap();
    let mut second = b.begin().unwrap();
    first.insert(&table, &note(1, "first")).unwrap();
    second.insert(&table, &note(2, "second")).unwrap();
    first.commit().unwrap();
    second.commit().unwrap();
    assert_eq!(all_rows(&mut a, &table), [noted(1, "first"), noted(2, "second")]);
}

/// Documented at `Transaction`: each reads what the other writes, and both commit.
#[test]
fn write_skew_is_possible() {
    let (db, table) = Fixture::in_memory().create_with(accounts());
    let (mut a, mut b) = (db.session().unwrap(), db.session().unwrap());
    for id in [1i64, 2] {
        a.insert(&table, &[id.into(), 100i64.into()]).unwrap();
    }
    let mut first = a.begin().unwrap();
    let mut second = b.begin().unwrap();
    for (transaction, read, write) in [(&mut first, 1i64, 2i64), (&mut second, 2, 1)] {
        let row = transaction.get(&table, &[read.into()]).unwrap().unwrap();
        assert_eq!(row[1], 100i64.into());
        transaction.update(&table, &[write.into()], &[("balance", (-100i64).into())]).unwrap();
    }
    first.commit().unwrap();
    second.commit().unwrap();
    let balances: Vec<_> = all_rows(&mut a, &table).into_iter().map(|row| row[1].clone()).collect();
    assert_eq!(balances, [Value::Int64(-100), Value::Int64(-100)]);
}

#[test]
fn a_counter_that_many_transactions_raise_loses_none() {
    let (db, table) = Fixture::in_memory().create_with(accounts());
    db.session().unwrap().insert(&table, &[1i64.into(), 0i64.into()]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = common::delayed_session(&db);
                let mut raised = 0;
                while raised < 100 {
                    let mut transaction = session.begin().unwrap();
                    let row = transaction.get(&table, &[1i64.into()]).unwrap().unwrap();
                    let next = row[1].as_i64().unwrap() + 1;
                    let set = [("balance", next.into())];
                    transaction.update(&table, &[1i64.into()], &set).unwrap();
                    match transaction.commit() {
                        Ok(()) => raised += 1,
                        Err(Error::Conflict { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    let row = db.session().unwrap().get(&table, &[1i64.into()]).unwrap().unwrap();
    assert_eq!(row[1], 400i64.into());
}

/// Two that change the same rows in opposite orders never wait for each other in a circle, and of
/// the two exactly one commits.
#[test]
fn opposite_orders_do_not_deadlock() {
    const ROUNDS: i64 = 200;
    let (db, table) = Fixture::in_memory().create_with(accounts());
    let rows: [i64; 4] = [1, 2, 3, 4];
    for id in rows {
        db.session().unwrap().insert(&table, &[id.into(), 0i64.into()]).unwrap();
    }
    let barrier = Barrier::new(2);
    let changes = |order: Vec<i64>| {
        let (db, table, barrier) = (&db, &table, &barrier);
        move || {
            let mut session = delayed_session(db);
            let mut wins = Vec::new();
            for round in 1..=ROUNDS {
                barrier.wait();
                let mut transaction = session.begin().unwrap();
                for id in &order {
                    let balance = [("balance", Value::Int64(round))];
                    assert!(transaction.update(table, &[(*id).into()], &balance).unwrap());
                }
                // Both have their snapshots, and so conflict whoever is first.
                barrier.wait();
                match transaction.commit() {
                    Ok(()) => wins.push(round),
                    Err(Error::Conflict { .. }) => {}
                    Err(error) => panic!("round {round}: {error}"),
                }
            }
            wins
        }
    };
    let wins = std::thread::scope(|scope| {
        let up = scope.spawn(changes(rows.to_vec()));
        let down = scope.spawn(changes(rows.into_iter().rev().collect()));
        let mut wins = up.join().unwrap();
        wins.extend(down.join().unwrap());
        wins.sort_unstable();
        wins
    });
    assert_eq!(wins, (1..=ROUNDS).collect::<Vec<_>>());
    let balances = all_rows(&mut db.session().unwrap(), &table);
    assert!(balances.iter().all(|row| row[1] == Value::Int64(ROUNDS)), "{balances:?}");
}
