//! A row that a transaction has locked stays as it is until the transaction ends; who wants it waits, and then knows
//! whether it is still the row that its snapshot sees.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use common::Fixture;
use onrush::{
    ColumnDefinition, DataType, Database, Error, NewIndex, RowLock, RowLockOutcome, Session, Table,
    TableDefinition, Transaction, Waiting,
};

const ONE: [onrush::Value<'static>; 1] = [onrush::Value::Int64(1)];

/// A table of counters, of which 1 and 2 are there and stand at 0.
fn counters() -> (Database, Table) {
    let db = Fixture::in_memory().create();
    let number = |name| ColumnDefinition::new(name, DataType::Int64).not_null();
    let table = TableDefinition::builder("counters").column(number("id")).column(number("count"));
    let table = db.create_table(table.primary_key(["id"]).build().unwrap()).unwrap();
    let mut session = db.session().unwrap();
    for id in [1i64, 2] {
        session.insert(&table, &[id.into(), 0i64.into()]).unwrap();
    }
    drop(session);
    (db, table)
}

fn count_of(session: &mut Session, table: &Table, id: i64) -> i64 {
    session.get(table, &[id.into()]).unwrap().unwrap()[1].as_i64().unwrap()
}

fn lock(transaction: &mut Transaction<'_>, table: &Table, lock: RowLock) -> RowLockOutcome {
    transaction.lock_row(table, &ONE, lock, false).unwrap()
}

/// Tells when the session begins to wait.
struct Told(Mutex<Sender<()>>);

impl Waiting for Told {
    fn run(&self, wait: &mut dyn FnMut()) {
        self.0.lock().unwrap().send(()).unwrap();
        wait();
    }
}

fn session_that_tells(db: &Database) -> (Session, Receiver<()>) {
    let mut session = db.session().unwrap();
    let (sender, waits) = channel();
    session.set_waiting(Some(Arc::new(Told(Mutex::new(sender)))));
    (session, waits)
}

/// Does `change` in another session while a transaction has counter 1 locked; returns what the transaction saw of the
/// counter when the other one had begun to wait, and what it is when both are done.
fn beside_a_lock(
    change: impl FnOnce(&mut Session, &Table) + Send,
    own: impl FnOnce(&mut Transaction<'_>, &Table),
) -> (i64, i64) {
    let (db, table) = counters();
    let (mut other, waits) = session_that_tells(&db);
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    assert_eq!(lock(&mut transaction, &table, RowLock::NoKeyUpdate), RowLockOutcome::Unchanged);
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| change(&mut other, &table));
        waits.recv().unwrap();
        let seen = count_of(&mut db.session().unwrap(), &table, 1);
        own(&mut transaction, &table);
        transaction.commit().unwrap();
        seen
    });
    (seen, count_of(&mut session, &table, 1))
}

fn set(transaction: &mut Transaction<'_>, table: &Table, count: i64) {
    assert!(transaction.update(table, &ONE, &[("count", count.into())]).unwrap());
}

#[test]
fn an_update_that_commits_by_itself_waits_for_a_locked_row() {
    let update = |session: &mut Session, table: &Table| {
        assert!(session.update(table, &ONE, &[("count", 2i64.into())]).unwrap());
    };
    assert_eq!(beside_a_lock(update, |own, table| set(own, table, 1)), (0, 2));
}

#[test]
fn an_upsert_that_commits_by_itself_waits_for_a_locked_row() {
    let upsert = |session: &mut Session, table: &Table| {
        session.upsert(table, &[1i64.into(), 2i64.into()]).unwrap();
    };
    assert_eq!(beside_a_lock(upsert, |own, table| set(own, table, 1)), (0, 2));
}

#[test]
fn a_delete_that_commits_by_itself_waits_for_a_locked_row() {
    let replace = |session: &mut Session, table: &Table| {
        assert!(session.delete(table, &ONE).unwrap());
        session.insert(table, &[1i64.into(), 3i64.into()]).unwrap();
    };
    assert_eq!(beside_a_lock(replace, |own, table| set(own, table, 1)), (0, 3));
}

#[test]
fn who_waited_for_a_row_learns_that_it_was_changed_and_sees_how() {
    let add = |session: &mut Session, table: &Table| {
        let mut transaction = session.begin().unwrap();
        let locked = transaction.lock_row(table, &ONE, RowLock::NoKeyUpdate, true).unwrap();
        assert_eq!(locked, RowLockOutcome::Changed);
        assert_eq!(transaction.get(table, &ONE).unwrap().unwrap()[1].as_i64(), Some(0));
        transaction.renew_snapshot().unwrap();
        let count = transaction.get(table, &ONE).unwrap().unwrap()[1].as_i64().unwrap();
        set(&mut transaction, table, count + 10);
        transaction.commit().unwrap();
    };
    assert_eq!(beside_a_lock(add, |own, table| set(own, table, 1)), (0, 11));
}

#[test]
fn who_waited_for_a_row_that_stayed_as_it_was_goes_on() {
    let lock = |session: &mut Session, table: &Table| {
        let mut transaction = session.begin().unwrap();
        let locked = transaction.lock_row(table, &ONE, RowLock::Update, true).unwrap();
        assert_eq!(locked, RowLockOutcome::Unchanged);
        set(&mut transaction, table, 5);
        transaction.commit().unwrap();
    };
    assert_eq!(beside_a_lock(lock, |_, _| {}), (0, 5));
}

#[test]
fn a_commit_that_has_locked_nothing_fails_at_a_row_that_another_one_has_locked() {
    let (db, table) = counters();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let mut holder = first.begin().unwrap();
    assert_eq!(lock(&mut holder, &table, RowLock::Share), RowLockOutcome::Unchanged);
    let mut other = second.begin().unwrap();
    set(&mut other, &table, 1);
    assert!(matches!(other.commit(), Err(Error::Conflict { .. })));
    drop(holder);
    let mut other = second.begin().unwrap();
    set(&mut other, &table, 1);
    other.commit().unwrap();
}

#[test]
fn a_change_that_rests_on_an_older_snapshot_is_refused_after_a_new_one_was_taken() {
    let (db, table) = counters();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let mut transaction = first.begin().unwrap();
    set(&mut transaction, &table, 1);
    second.update(&table, &ONE, &[("count", 2i64.into())]).unwrap();
    transaction.renew_snapshot().unwrap();
    set(&mut transaction, &table, 3);
    assert!(matches!(transaction.commit(), Err(Error::Conflict { .. })));
    assert_eq!(count_of(&mut second, &table, 1), 2);
}

#[test]
fn what_others_commit_is_seen_by_a_new_snapshot_only() {
    let (db, table) = counters();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let mut transaction = first.begin().unwrap();
    second.update(&table, &ONE, &[("count", 2i64.into())]).unwrap();
    assert_eq!(transaction.get(&table, &ONE).unwrap().unwrap()[1].as_i64(), Some(0));
    transaction.renew_snapshot().unwrap();
    assert_eq!(transaction.get(&table, &ONE).unwrap().unwrap()[1].as_i64(), Some(2));
}

#[test]
fn threads_that_lock_a_counter_before_they_count_lose_nothing() {
    const THREADS: i64 = 4;
    const ROUNDS: i64 = 200;
    let (db, table) = counters();
    let count = |how: usize| {
        let mut session = db.session().unwrap();
        for round in 0..ROUNDS {
            // One in four counts without a lock, and begins again when another one came first.
            if (how as i64 + round) % 4 == 0 {
                loop {
                    let mut transaction = session.begin().unwrap();
                    let count = transaction.get(&table, &ONE).unwrap().unwrap()[1].as_i64();
                    set(&mut transaction, &table, count.unwrap() + 1);
                    match transaction.commit() {
                        Err(Error::Conflict { .. }) => {}
                        committed => break committed.unwrap(),
                    }
                }
                continue;
            }
            let mut transaction = session.begin().unwrap();
            let locked = transaction.lock_row(&table, &ONE, RowLock::NoKeyUpdate, true).unwrap();
            if locked == RowLockOutcome::Changed {
                transaction.renew_snapshot().unwrap();
            }
            let count = transaction.get(&table, &ONE).unwrap().unwrap()[1].as_i64().unwrap();
            set(&mut transaction, &table, count + 1);
            transaction.commit().unwrap();
        }
    };
    std::thread::scope(|scope| {
        (0..THREADS as usize).for_each(|how| drop(scope.spawn(move || count(how))));
    });
    assert_eq!(count_of(&mut db.session().unwrap(), &table, 1), THREADS * ROUNDS);
}

#[test]
fn of_two_that_wait_for_each_others_rows_one_is_refused() {
    let (db, table) = counters();
    let (mut first, waits) = session_that_tells(&db);
    let mut second = db.session().unwrap();
    let two = [2i64.into()];
    let mut one = first.begin().unwrap();
    let mut other = second.begin().unwrap();
    one.lock_row(&table, &ONE, RowLock::Update, true).unwrap();
    other.lock_row(&table, &two, RowLock::Update, true).unwrap();
    let outcomes = std::thread::scope(|scope| {
        let table = &table;
        let waiter = scope.spawn(move || one.lock_row(table, &two, RowLock::Update, true));
        waits.recv().unwrap();
        let outcome = other.lock_row(table, &ONE, RowLock::Update, true);
        drop(other);
        [outcome, waiter.join().unwrap()]
    });
    let refused = outcomes.iter().filter(|one| matches!(one, Err(Error::Deadlock { .. })));
    assert_eq!(refused.count(), 1, "{outcomes:?}");
    let locked = outcomes.iter().filter(|one| matches!(one, Ok(RowLockOutcome::Unchanged)));
    assert_eq!(locked.count(), 1, "{outcomes:?}");
}

#[test]
fn who_waits_no_longer_than_told_hears_of_it() {
    let (db, table) = counters();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let mut holder = first.begin().unwrap();
    lock(&mut holder, &table, RowLock::Update);
    second.set_lock_timeout(Some(std::time::Duration::from_millis(1)));
    let mut other = second.begin().unwrap();
    let waited = other.lock_row(&table, &ONE, RowLock::KeyShare, true);
    assert!(matches!(waited, Err(Error::LockTimeout { .. })), "{waited:?}");
    drop(holder);
    assert_eq!(lock(&mut other, &table, RowLock::KeyShare), RowLockOutcome::Unchanged);
}

#[test]
fn a_lock_ends_with_its_transaction_however_that_ends() {
    let (db, table) = counters();
    let mut second = db.session().unwrap();
    let ends: [fn(Transaction<'_>); 3] = [
        |transaction| transaction.rollback(),
        |transaction| drop(transaction),
        |transaction| transaction.commit().unwrap(),
    ];
    for end in ends {
        let mut first = db.session().unwrap();
        let mut holder = first.begin().unwrap();
        assert_eq!(lock(&mut holder, &table, RowLock::Update), RowLockOutcome::Unchanged);
        let mut other = second.begin().unwrap();
        assert_eq!(lock(&mut other, &table, RowLock::KeyShare), RowLockOutcome::Taken);
        end(holder);
        assert_eq!(lock(&mut other, &table, RowLock::KeyShare), RowLockOutcome::Unchanged);
    }
}

#[test]
fn going_back_to_a_savepoint_gives_later_locks_back() {
    let (db, table) = counters();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let mut holder = first.begin().unwrap();
    let before = holder.savepoint();
    lock(&mut holder, &table, RowLock::Share);
    let between = holder.savepoint();
    lock(&mut holder, &table, RowLock::Update);
    let mut other = second.begin().unwrap();
    assert_eq!(lock(&mut other, &table, RowLock::KeyShare), RowLockOutcome::Taken);
    holder.rollback_to(between).unwrap();
    assert_eq!(lock(&mut other, &table, RowLock::Share), RowLockOutcome::Unchanged);
    assert_eq!(lock(&mut other, &table, RowLock::Update), RowLockOutcome::Taken);
    holder.rollback_to(before).unwrap();
    assert_eq!(lock(&mut other, &table, RowLock::Update), RowLockOutcome::Unchanged);
}

#[test]
fn a_statement_that_begins_again_keeps_its_locks() {
    let (db, table) = counters();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let mut holder = first.begin().unwrap();
    second.update(&table, &ONE, &[("count", 2i64.into())]).unwrap();
    let before = holder.statement_savepoint();
    set(&mut holder, &table, 7);
    assert_eq!(holder.lock_changed_rows(before).unwrap(), RowLockOutcome::Changed);
    holder.rollback_to(before).unwrap();
    holder.release(before).unwrap();
    let mut other = second.begin().unwrap();
    assert_eq!(lock(&mut other, &table, RowLock::Share), RowLockOutcome::Taken);
    drop(other);
    holder.renew_snapshot().unwrap();
    let before = holder.statement_savepoint();
    set(&mut holder, &table, 7);
    assert_eq!(holder.lock_changed_rows(before).unwrap(), RowLockOutcome::Unchanged);
    holder.release(before).unwrap();
    holder.commit().unwrap();
    assert_eq!(count_of(&mut second, &table, 1), 7);
}

#[test]
fn a_key_that_a_transaction_is_about_to_insert_is_not_inserted_by_another() {
    let (db, table) = counters();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let three = [3i64.into(), 0i64.into()];
    let mut holder = first.begin().unwrap();
    let before = holder.statement_savepoint();
    holder.insert(&table, &three).unwrap();
    assert_eq!(holder.lock_changed_rows(before).unwrap(), RowLockOutcome::Unchanged);
    assert!(matches!(second.insert(&table, &three), Err(Error::Conflict { .. })));
    let many = second.insert_many(&table, [&three[..], &[4i64.into(), 0i64.into()]]);
    assert!(matches!(many, Err(Error::Conflict { .. })), "{many:?}");
    holder.commit().unwrap();
    assert!(matches!(second.insert(&table, &three), Err(Error::DuplicateKey { .. })));
}

#[test]
fn a_value_of_a_unique_index_is_locked_with_its_row() {
    let (db, _) = counters();
    let mut session = db.session().unwrap();
    let table = db.table("counters").unwrap();
    session.update(&table, &[2i64.into()], &[("count", 2i64.into())]).unwrap();
    db.create_index("counters", &NewIndex::new("by_count", ["count"]).unique()).unwrap();
    let table = db.table("counters").unwrap();
    let mut holder = session.begin().unwrap();
    let before = holder.statement_savepoint();
    holder.insert(&table, &[3i64.into(), 3i64.into()]).unwrap();
    assert_eq!(holder.lock_changed_rows(before).unwrap(), RowLockOutcome::Unchanged);
    let mut other = db.session().unwrap();
    let same_value = [4i64.into(), 3i64.into()];
    assert!(matches!(other.insert(&table, &same_value), Err(Error::Conflict { .. })));
    holder.rollback();
    other.insert(&table, &same_value).unwrap();
}

#[test]
fn a_transaction_locks_so_many_rows_and_then_none_more() {
    let (db, table) = counters();
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    let mut locked = 1i64;
    let refused = loop {
        let key = [onrush::Value::Int64(locked)];
        match transaction.lock_row(&table, &key, RowLock::Update, true).unwrap() {
            RowLockOutcome::Unchanged => locked += 1,
            outcome => break outcome,
        }
    };
    assert_eq!((locked - 1, refused), (16_384, RowLockOutcome::TooMany));
    assert_eq!(lock(&mut transaction, &table, RowLock::Update), RowLockOutcome::Unchanged);
}
