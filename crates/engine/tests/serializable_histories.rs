//! Serializable transactions that run beside each other and commit have read what they would have read one after the
//! other, in some order.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use common::Fixture;
use onrush::{
    ColumnDefinition, DataType, Database, Error, NewIndex, Row, ScanOptions, Session, Table,
    TableDefinition, Transaction, Value,
};
use proptest::prelude::*;

const KEYS: i64 = 6;
const VALUES: i64 = 3;
const TRANSACTIONS: usize = 3;

#[derive(Debug, Clone, Copy)]
enum Step {
    Get(i64),
    /// Rows with keys between these, both included.
    Range(i64, i64),
    /// Rows with this value, by the index.
    ByValue(i64),
    Insert(i64, i64),
    Update(i64, i64),
    Delete(i64),
    Commit,
    RollBack,
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let (key, value) = (0..KEYS, 0..VALUES);
    let row = (key.clone(), value.clone());
    let step = prop_oneof![
        3 => key.clone().prop_map(Step::Get),
        2 => (key.clone(), key.clone()).prop_map(|(a, b)| Step::Range(a.min(b), a.max(b))),
        2 => value.prop_map(Step::ByValue),
        2 => row.clone().prop_map(|(key, value)| Step::Insert(key, value)),
        3 => row.prop_map(|(key, value)| Step::Update(key, value)),
        1 => key.prop_map(Step::Delete),
        4 => Just(Step::Commit),
        1 => Just(Step::RollBack),
    ];
    (0..TRANSACTIONS, step)
}

/// What a step has told: rows, or whether there was one.
#[derive(Debug, Clone, PartialEq)]
enum Answer {
    Rows(Vec<(i64, i64)>),
    IsThere(bool),
}

type Rows = BTreeMap<i64, i64>;

/// What a step tells if nothing else goes on.
fn alone(rows: &mut Rows, step: Step) -> Answer {
    let all = |rows: &Rows, wanted: &dyn Fn(i64, i64) -> bool| {
        let rows = rows.iter().map(|(key, value)| (*key, *value));
        Answer::Rows(rows.filter(|(key, value)| wanted(*key, *value)).collect())
    };
    match step {
        Step::Get(own) => all(rows, &|key, _| key == own),
        Step::Range(from, to) => all(rows, &|key, _| (from..=to).contains(&key)),
        Step::ByValue(own) => all(rows, &|_, value| value == own),
        Step::Insert(key, value) => {
            let is_there = rows.contains_key(&key);
            rows.entry(key).or_insert(value);
            Answer::IsThere(is_there)
        }
        Step::Update(key, value) => {
            Answer::IsThere(rows.get_mut(&key).map(|row| *row = value).is_some())
        }
        Step::Delete(key) => Answer::IsThere(rows.remove(&key).is_some()),
        Step::Commit | Step::RollBack => unreachable!("no step of a transaction"),
    }
}

fn numbers(row: &Row) -> (i64, i64) {
    (row[0].as_i64().unwrap(), row[1].as_i64().unwrap())
}

/// What a step tells beside others; none where the transaction has met another one's change.
fn beside(transaction: &mut Transaction<'_>, table: &Table, step: Step) -> Option<Answer> {
    let key_of = |key: i64| -> [Value<'static>; 1] { [key.into()] };
    let is_there = |changed: Result<bool, Error>| match changed {
        Ok(is_there) => Some(Answer::IsThere(is_there)),
        Err(Error::Conflict { .. }) => None,
        Err(error) => panic!("{error}"),
    };
    match step {
        Step::Get(key) => {
            let row = transaction.get(table, &key_of(key)).unwrap();
            Some(Answer::Rows(row.iter().map(numbers).collect()))
        }
        Step::Range(from, to) => {
            let options = ScanOptions {
                from: Bound::Included(vec![from.into()]),
                to: Bound::Included(vec![to.into()]),
                ..ScanOptions::default()
            };
            let rows = transaction.scan(table, &options).unwrap();
            Some(Answer::Rows(rows.map(|row| numbers(&row.unwrap())).collect()))
        }
        Step::ByValue(value) => {
            let snapshot = transaction.snapshot();
            let entries = snapshot.index_entries(table, 0).unwrap();
            let options = ScanOptions {
                from: Bound::Included(vec![value.into()]),
                to: Bound::Included(vec![value.into()]),
                ..ScanOptions::default()
            };
            let entries = snapshot.scan(&entries, &options).unwrap();
            // An entry is the value, and the key of its row.
            let rows =
                entries.map(|entry| numbers(&entry.unwrap())).map(|(value, key)| (key, value));
            Some(Answer::Rows(rows.collect()))
        }
        Step::Insert(key, value) => match transaction.insert(table, &[key.into(), value.into()]) {
            Err(Error::DuplicateKey { .. }) => Some(Answer::IsThere(true)),
            inserted => is_there(inserted.map(|()| false)),
        },
        Step::Update(key, value) => {
            is_there(transaction.update(table, &key_of(key), &[("value", value.into())]))
        }
        Step::Delete(key) => is_there(transaction.delete(table, &key_of(key))),
        Step::Commit | Step::RollBack => unreachable!("no step of a transaction"),
    }
}

fn table() -> (Database, Table, Rows) {
    let db = Fixture::in_memory().create();
    let number = |name| ColumnDefinition::new(name, DataType::Int64).not_null();
    let table = TableDefinition::builder("t").column(number("id")).column(number("value"));
    db.create_table(table.primary_key(["id"]).build().unwrap()).unwrap();
    db.create_index("t", &NewIndex::new("t_value", ["value"])).unwrap();
    let table = db.table("t").unwrap();
    let rows: Rows = (0..KEYS).step_by(2).map(|key| (key, key % VALUES)).collect();
    let mut session = db.session().unwrap();
    for (key, value) in &rows {
        session.insert(&table, &[(*key).into(), (*value).into()]).unwrap();
    }
    drop(session);
    (db, table, rows)
}

fn serializable(session: &mut Session) -> Transaction<'_> {
    let mut transaction = session.begin().unwrap();
    transaction.make_serializable().unwrap();
    transaction
}

struct Open<'s> {
    transaction: Transaction<'s>,
    told: Vec<(Step, Answer)>,
    /// How many had committed when it began.
    begun_behind: usize,
}

/// A transaction that has committed: what it was told, and the commits between which it ran.
struct Ran {
    told: Vec<(Step, Answer)>,
    begun_behind: usize,
    ended_before: usize,
}

/// Whether all could have run one after the other from these rows, each told what it was told, to the rows at the end.
/// Nobody runs behind one that began when it had ended, so that only those beside each other change places.
fn could_have_run_alone(rows: &Rows, ran: &[Ran], end: &Rows) -> bool {
    fn search(
        rows: Rows,
        ran: &[Ran],
        left: &mut Vec<usize>,
        end: &Rows,
        failed: &mut HashSet<Vec<usize>>,
    ) -> bool {
        if left.is_empty() {
            return rows == *end;
        }
        if failed.contains(left) {
            return false;
        }
        let first_end = left.iter().map(|at| ran[*at].ended_before).min().unwrap();
        for place in 0..left.len() {
            let at = left[place];
            if ran[at].begun_behind >= first_end {
                continue;
            }
            let mut after = rows.clone();
            let is_as_told =
                ran[at].told.iter().all(|(step, answer)| alone(&mut after, *step) == *answer);
            if is_as_told {
                left.remove(place);
                if search(after, ran, left, end, failed) {
                    return true;
                }
                left.insert(place, at);
            }
        }
        failed.insert(left.clone());
        false
    }
    let mut left = (0..ran.len()).collect();
    search(rows.clone(), ran, &mut left, end, &mut HashSet::new())
}

/// How many commits were refused for what their transactions had read.
fn run(steps: &[(usize, Step)]) -> usize {
    let (db, table, rows) = table();
    // A transaction borrows its session for good, so each has one of its own.
    let mut sessions: Vec<Session> =
        (0..TRANSACTIONS + steps.len()).map(|_| db.session().unwrap()).collect();
    let mut sessions = sessions.iter_mut();
    let begun = sessions.by_ref().take(TRANSACTIONS).map(|session| Open {
        transaction: serializable(session),
        told: Vec::new(),
        begun_behind: 0,
    });
    let mut open: Vec<Open<'_>> = begun.collect();
    let (mut refused, mut ran) = (0, Vec::new());
    for (who, step) in steps {
        let Open { transaction, told, begun_behind } = &mut open[*who];
        let ends = match step {
            Step::Commit | Step::RollBack => true,
            step => match beside(transaction, &table, *step) {
                Some(answer) => {
                    told.push((*step, answer));
                    false
                }
                None => true,
            },
        };
        if !ends {
            continue;
        }
        let transaction = std::mem::replace(transaction, serializable(sessions.next().unwrap()));
        let told = std::mem::take(told);
        let own = std::mem::replace(begun_behind, ran.len());
        if !matches!(step, Step::Commit) {
            transaction.rollback();
            continue;
        }
        // The next one of this place began before the commit.
        match transaction.commit() {
            Ok(()) => ran.push(Ran { told, begun_behind: own, ended_before: ran.len() + 1 }),
            Err(Error::NotSerializable) => refused += 1,
            Err(Error::Conflict { .. } | Error::DuplicateKey { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    drop(open);
    let mut session = db.session().unwrap();
    let left = session.scan(&table, &ScanOptions::default()).unwrap();
    let left: Rows = left.map(|row| numbers(&row.unwrap())).collect();
    assert!(could_have_run_alone(&rows, &ran, &left), "{steps:?}");
    refused
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn transactions_that_commit_could_have_run_one_after_the_other(
        steps in prop::collection::vec(step(), 1..80)
    ) {
        run(&steps);
    }
}

#[test]
fn of_two_that_have_read_what_the_other_changed_one_is_refused() {
    use Step::{ByValue, Commit, Delete, Get, Insert, Range, Update};
    for (read, change) in [
        (Get(0), Update(0, 2)),
        (Get(0), Delete(0)),
        // What is not there yet was read, too.
        (Get(1), Insert(1, 1)),
        (Range(0, 3), Insert(1, 1)),
        (Range(0, 3), Delete(2)),
        (ByValue(1), Insert(1, 1)),
        (ByValue(0), Update(0, 2)),
        (ByValue(2), Update(0, 2)),
    ] {
        // Each reads what the other changes, and another row is changed by the reader.
        let skewed =
            [(0, read), (1, Get(4)), (1, change), (0, Update(4, 2)), (1, Commit), (0, Commit)];
        assert_eq!(run(&skewed), 1, "{read:?}, {change:?}");
        // Who comes to an end before the other one begins is not refused.
        let apart = [(0, read), (0, Update(4, 2)), (0, Commit)];
        let then = [(1, Commit), (1, Get(4)), (1, change), (1, Commit)];
        assert_eq!(run(&[&apart[..], &then].concat()), 0, "{read:?}, {change:?}");
    }
}

#[test]
fn who_has_read_what_another_one_changed_runs_before_it_if_it_can() {
    use Step::{Commit, Get, Insert, Range, Update};
    for (read, change) in [(Get(0), Update(0, 2)), (Range(0, 3), Insert(1, 1))] {
        let steps = [(0, read), (1, change), (1, Commit), (0, Update(4, 2)), (0, Commit)];
        assert_eq!(run(&steps), 0, "{read:?}, {change:?}");
    }
}

#[test]
fn who_reads_other_keys_is_not_refused() {
    use Step::{ByValue, Commit, Get, Insert, Range, Update};
    for (read, change) in
        [(Get(0), Update(2, 0)), (Range(0, 2), Insert(3, 0)), (ByValue(1), Insert(1, 0))]
    {
        let steps = [(0, read), (0, Update(4, 2)), (1, change), (1, Commit), (0, Commit)];
        assert_eq!(run(&steps), 0, "{read:?}, {change:?}");
    }
}

#[test]
fn who_only_reads_sees_what_its_snapshot_sees_and_is_not_refused() {
    use Step::{Commit, Get, Range, Update};
    let steps = [(0, Get(0)), (1, Update(0, 2)), (1, Commit), (0, Range(0, 5)), (0, Commit)];
    assert_eq!(run(&steps), 0);
}

#[test]
fn a_large_transaction_is_looked_at_by_its_tables() {
    let (db, table, _) = table();
    let (mut a, mut b) = (db.session().unwrap(), db.session().unwrap());
    let (mut large, mut reader) = (serializable(&mut a), serializable(&mut b));
    assert!(reader.get(&table, &[3i64.into()]).unwrap().is_none());
    assert!(large.get(&table, &[1i64.into()]).unwrap().is_none());
    let count = db.options().large_transaction_bytes as i64 / 16;
    for key in KEYS..KEYS + count {
        large.insert(&table, &[key.into(), 0i64.into()]).unwrap();
    }
    large.commit().unwrap();
    reader.insert(&table, &[1i64.into(), 1i64.into()]).unwrap();
    assert!(matches!(reader.commit(), Err(Error::NotSerializable)));
}

#[test]
fn what_was_read_under_another_isolation_cannot_be_serializable() {
    let (db, table, _) = table();
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.get(&table, &[0i64.into()]).unwrap();
    assert!(transaction.make_serializable().is_err());
}
