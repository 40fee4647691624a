//! What rows were before takes a bounded memory: when that is used up the oldest snapshot is given up, is told so
//! where it would miss something, and never sees anything wrong.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, Random, accounts, all_rows, delayed_session, note, noted, notes, refused};
use onrush::{
    Database, Durability, Error, Row, ScanOptions, Session, Snapshot, Table, Transaction, Value,
};
use onrush_waits::Counter;

const LIMIT: u64 = 64 << 10;
/// Changes whose old versions take more than the limit.
const MANY: i64 = 2000;

fn bounded() -> Fixture {
    let mut fixture = Fixture::in_memory();
    fixture.options.old_versions_bytes = LIMIT;
    fixture
}

fn old_version_bytes(db: &Database) -> u64 {
    let statistics = db.statistics();
    statistics.memory.iter().find(|part| part.name == "old versions").unwrap().used_bytes
}

fn given_up(db: &Database) -> u64 {
    db.statistics().totals.counter(Counter::SnapshotsGivenUp)
}

fn update(session: &mut Session, table: &Table, id: i64, text: &str) {
    assert!(session.update(table, &[id.into()], &[("note", text.into())]).unwrap());
}

/// Changes the row `id` so often that old versions of nothing else are kept.
fn wear(session: &mut Session, table: &Table, id: i64) {
    (0..MANY).for_each(|round| update(session, table, id, &format!("worn {round}")));
}

fn rows(snapshot: &Snapshot, table: &Table) -> Result<Vec<Row>, Error> {
    snapshot.scan(table, &ScanOptions::default()).unwrap().collect()
}

fn is_too_old<T>(result: Result<T, Error>) {
    let error = refused(result, &["snapshot too old", "old_versions_bytes", "memory_bytes"]);
    assert!(matches!(error, Error::SnapshotTooOld { .. }) && error.is_retryable(), "{error:?}");
}

#[test]
fn the_oldest_snapshot_is_given_up_and_told_and_a_new_one_reads_on() {
    let (db, table) = bounded().create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "before")).unwrap();
    let mut old = session.snapshot().unwrap();
    wear(&mut session, &table, 1);
    assert_eq!(given_up(&db), 1);
    assert!(old_version_bytes(&db) <= LIMIT);
    is_too_old(old.get(&table, &[1i64.into()]));
    is_too_old(rows(&old, &table));
    let mut new = session.snapshot().unwrap();
    let last = noted(1, &format!("worn {}", MANY - 1));
    assert_eq!(new.get(&table, &[1i64.into()]).unwrap(), Some(last.clone()));
    update(&mut session, &table, 1, "after");
    assert_eq!(rows(&new, &table).unwrap(), [last]);
}

#[test]
fn a_deleted_row_is_not_silently_missing() {
    let (db, table) = bounded().create_with(notes());
    let mut session = db.session().unwrap();
    for id in 0..MANY {
        session.insert(&table, &note(id, "there")).unwrap();
    }
    let mut old = session.snapshot().unwrap();
    for id in 0..MANY {
        session.delete(&table, &[id.into()]).unwrap();
    }
    is_too_old(old.get(&table, &[1i64.into()]));
    is_too_old(rows(&old, &table));
    assert_eq!(all_rows(&mut session, &table), [] as [Row; 0]);
}

/// A leaf looks as if nothing had changed in it once the version of a row that was deleted has gone.
#[test]
fn a_deleted_row_is_not_silently_missing_among_the_changes_since_a_snapshot() {
    let (db, table) = bounded().create_with(notes());
    let mut session = db.session().unwrap();
    for id in 1..=3000 {
        session.insert(&table, &note(id, "before")).unwrap();
    }
    let old = session.snapshot().unwrap();
    session.delete(&table, &[3i64.into()]).unwrap();
    wear(&mut session, &table, 2999);
    let changes = session.snapshot().unwrap().changes_since(&old, &table).unwrap();
    is_too_old(changes.collect::<Result<Vec<_>, _>>());
}

#[test]
fn what_is_still_there_is_read_by_a_snapshot_that_was_given_up() {
    let (db, worn) = bounded().create_with(notes());
    let other = db.create_table(accounts()).unwrap();
    let mut session = db.session().unwrap();
    session.insert(&worn, &note(1, "before")).unwrap();
    session.insert(&worn, &note(2, "never changed")).unwrap();
    session.insert(&other, &[1i64.into(), 5i64.into()]).unwrap();
    let mut old = session.snapshot().unwrap();
    wear(&mut session, &worn, 1);
    assert_eq!(given_up(&db), 1);
    session.update(&other, &[1i64.into()], &[("balance", 6i64.into())]).unwrap();
    let unchanged = old.get(&worn, &[2i64.into()]).unwrap();
    assert_eq!(unchanged, Some(noted(2, "never changed")));
    let before: Vec<Row> = vec![vec![Value::Int64(1), Value::Int64(5)]];
    assert_eq!(rows(&old, &other).unwrap(), before);
}

#[test]
fn younger_snapshots_stay_when_giving_up_the_oldest_is_enough() {
    let (db, table) = bounded().create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "first")).unwrap();
    let oldest = session.snapshot().unwrap();
    let mut rounds = 0;
    while old_version_bytes(&db) < LIMIT / 2 {
        update(&mut session, &table, 1, &format!("round {rounds}"));
        rounds += 1;
    }
    let younger = session.snapshot().unwrap();
    while given_up(&db) == 0 {
        update(&mut session, &table, 1, "later");
    }
    is_too_old(rows(&oldest, &table));
    let seen = noted(1, &format!("round {}", rounds - 1));
    assert_eq!(rows(&younger, &table).unwrap(), [seen]);
}

/// What becomes of a transaction with these changes, if another one removes row 1 meanwhile and that is forgotten.
fn commits_after_a_forgotten_removal(
    changes: impl Fn(&mut Transaction<'_>, &Table) -> Result<(), Error>,
) -> Error {
    let (db, table) = bounded().create_with(notes());
    let (mut one, mut two) = (db.session().unwrap(), db.session().unwrap());
    two.insert(&table, &note(2, "worn")).unwrap();
    let mut transaction = one.begin().unwrap();
    changes(&mut transaction, &table).unwrap();
    two.upsert(&table, &note(1, "of another")).unwrap();
    assert!(two.delete(&table, &[1i64.into()]).unwrap());
    wear(&mut two, &table, 2);
    assert_eq!(given_up(&db), 1);
    let error = transaction.commit().unwrap_err();
    assert_eq!(two.get(&table, &[1i64.into()]).unwrap(), None);
    error
}

#[test]
fn a_transaction_whose_snapshot_was_given_up_is_refused_rather_than_missing_a_conflict() {
    for error in [
        commits_after_a_forgotten_removal(|own, table| own.insert(table, &note(1, "mine"))),
        commits_after_a_forgotten_removal(|own, table| own.upsert(table, &note(1, "mine"))),
    ] {
        assert!(matches!(error, Error::Conflict { .. }), "{error:?}");
    }
}

#[test]
fn a_large_transaction_whose_snapshot_was_given_up_is_refused_where_it_could_miss_a_conflict() {
    let mut fixture = bounded();
    fixture.options.large_transaction_bytes = 1;
    let (db, table) = fixture.create_with(notes());
    let (mut one, mut two) = (db.session().unwrap(), db.session().unwrap());
    two.insert(&table, &note(1, "of another")).unwrap();
    two.insert(&table, &note(2, "worn")).unwrap();
    let mut transaction = one.begin().unwrap();
    transaction.insert(&table, &note(3, "spilled")).unwrap();
    two.delete(&table, &[1i64.into()]).unwrap();
    wear(&mut two, &table, 2);
    assert_eq!(given_up(&db), 1);
    let error = transaction.upsert(&table, &note(1, "mine")).unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error:?}");
    drop(transaction);
    assert_eq!(two.get(&table, &[3i64.into()]).unwrap(), None);
}

#[test]
fn changes_of_single_rows_leave_no_old_versions_behind() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    for round in 0..3 * MANY {
        session.upsert(&table, &note(round % 7, "upserted")).unwrap();
        update(&mut session, &table, round % 7, "updated");
    }
    assert!(old_version_bytes(&db) < 1 << 20, "{}", old_version_bytes(&db));
}

#[test]
fn who_does_not_wait_for_the_log_does_so_once_old_versions_are_too_many() {
    let mut fixture = bounded();
    fixture.options.delayed_window_ms = 1_000_000;
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    for id in 0..MANY {
        session.insert(&table, &note(id, "there")).unwrap();
    }
    for id in 0..MANY {
        session.delete(&table, &[id.into()]).unwrap();
        assert!(old_version_bytes(&db) <= LIMIT);
    }
    assert_eq!(given_up(&db), 0);
}

#[test]
fn the_bound_is_that_of_all_tables_and_what_a_dropped_one_had_is_free() {
    let (db, first) = bounded().create_with(notes());
    let second = db.create_table(accounts()).unwrap();
    let mut session = db.session().unwrap();
    session.insert(&first, &note(1, "before")).unwrap();
    session.insert(&second, &[1i64.into(), 0i64.into()]).unwrap();
    let _old = session.snapshot().unwrap();
    for round in 0..MANY {
        update(&mut session, &first, 1, &format!("round {round}"));
        let set = [("balance", Value::Int64(round))];
        session.update(&second, &[1i64.into()], &set).unwrap();
        assert!(old_version_bytes(&db) <= LIMIT);
    }
    drop(session);
    db.drop_table("notes").unwrap();
    db.drop_table("accounts").unwrap();
    assert_eq!(old_version_bytes(&db), 0);
}

/// Transfers between accounts by several threads; whatever a snapshot sees adds up, or it is told that it is too
/// old.
#[test]
fn beside_many_writers_a_snapshot_sees_what_adds_up_or_is_told() {
    const ACCOUNTS: i64 = 40;
    const EACH: i64 = 1000;
    let mut fixture = Fixture::in_memory();
    fixture.options.old_versions_bytes = 4096;
    let (db, table) = fixture.create_with(accounts());
    let mut session = db.session().unwrap();
    for id in 0..ACCOUNTS {
        session.insert(&table, &[id.into(), EACH.into()]).unwrap();
    }
    let transfer = |seed: u64| {
        let mut session = db.session().unwrap();
        session.set_durability(Durability::Delayed);
        let mut random = Random(seed);
        for _ in 0..2000 {
            let (from, to) = (random.id_below(ACCOUNTS), random.id_below(ACCOUNTS));
            let _ = pay(&mut session, &table, from, to);
        }
    };
    let read = || {
        let mut session = db.session().unwrap();
        for _ in 0..2000 {
            let snapshot = session.snapshot().unwrap();
            for _ in 0..3 {
                match rows(&snapshot, &table) {
                    Ok(rows) => {
                        let sum: i64 = rows.iter().map(|row| row[1].as_i64().unwrap()).sum();
                        assert_eq!((rows.len() as i64, sum), (ACCOUNTS, ACCOUNTS * EACH));
                    }
                    Err(error) => is_too_old::<()>(Err(error)),
                }
            }
        }
    };
    std::thread::scope(|scope| {
        (0..2).for_each(|seed| drop(scope.spawn(move || transfer(seed))));
        (0..2).for_each(|_| drop(scope.spawn(read)));
    });
    assert!(given_up(&db) > 0);
    let sum: i64 = all_rows(&mut session, &table).iter().map(|row| row[1].as_i64().unwrap()).sum();
    assert_eq!(sum, ACCOUNTS * EACH);
}

/// Moves one unit: the payer's row is removed and comes back, so that readers need what was removed.
fn pay(session: &mut Session, table: &Table, from: i64, to: i64) -> Result<(), Error> {
    if from == to {
        return Ok(());
    }
    let mut transaction = session.begin()?;
    let balance = |row: Option<Row>| row.unwrap()[1].as_i64().unwrap();
    let payer = balance(transaction.get(table, &[from.into()])?);
    let payee = balance(transaction.get(table, &[to.into()])?);
    transaction.delete(table, &[from.into()])?;
    transaction.insert(table, &[from.into(), (payer - 1).into()])?;
    transaction.update(table, &[to.into()], &[("balance", (payee + 1).into())])?;
    transaction.commit()
}
