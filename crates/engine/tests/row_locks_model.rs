//! Transactions that lock rows, renew their snapshots and change what they have locked, or have not, do what a simple
//! model of versions and locks says.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::Fixture;
use onrush::{
    ColumnDefinition, DataType, Database, Error, RowLock, RowLockOutcome, Session, Table,
    TableDefinition, Transaction,
};
use proptest::prelude::*;

const KEYS: i64 = 3;
const TRANSACTIONS: usize = 3;

#[derive(Debug, Clone, Copy)]
enum Step {
    Lock(i64, RowLock),
    Update(i64),
    Delete(i64),
    Read(i64),
    Renew,
    Commit,
    RollBack,
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let key = 0..KEYS;
    let lock = prop_oneof![
        Just(RowLock::KeyShare),
        Just(RowLock::Share),
        Just(RowLock::NoKeyUpdate),
        Just(RowLock::Update)
    ];
    let step = prop_oneof![
        4 => (key.clone(), lock).prop_map(|(key, lock)| Step::Lock(key, lock)),
        4 => key.clone().prop_map(Step::Update),
        1 => key.clone().prop_map(Step::Delete),
        2 => key.prop_map(Step::Read),
        2 => Just(Step::Renew),
        2 => Just(Step::Commit),
        1 => Just(Step::RollBack),
    ];
    (0..TRANSACTIONS, step)
}

/// A row's value, if it is there, and how often it was changed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Version {
    value: Option<i64>,
    changes: u32,
}

#[derive(Debug, Default, Clone)]
struct Open {
    snapshot: BTreeMap<i64, Version>,
    /// What was changed, and the version that it rests on.
    writes: BTreeMap<i64, (Option<i64>, u32)>,
    locks: BTreeMap<i64, RowLock>,
}

#[derive(Debug)]
struct Model {
    committed: BTreeMap<i64, Version>,
    open: Vec<Open>,
}

fn keeps_off(one: RowLock, other: RowLock) -> bool {
    use RowLock::{KeyShare, NoKeyUpdate, Share, Update};
    match (one, other) {
        (Update, _) | (_, Update) => true,
        (KeyShare, _) | (_, KeyShare) | (Share, Share) => false,
        (NoKeyUpdate | Share, NoKeyUpdate) | (NoKeyUpdate, Share) => true,
    }
}

impl Model {
    fn new() -> Model {
        let committed: BTreeMap<_, _> =
            (0..KEYS).map(|key| (key, Version { value: Some(0), changes: 0 })).collect();
        let open = Open { snapshot: committed.clone(), ..Open::default() };
        Model { committed, open: vec![open; TRANSACTIONS] }
    }

    fn is_kept_off(&self, who: usize, key: i64, lock: RowLock) -> bool {
        let others = self.open.iter().enumerate().filter(|(other, _)| *other != who);
        others.filter_map(|(_, open)| open.locks.get(&key)).any(|held| keeps_off(*held, lock))
    }

    fn lock(&mut self, who: usize, key: i64, lock: RowLock) -> RowLockOutcome {
        let held = self.open[who].locks.get(&key).copied();
        if held.is_some_and(|held| held >= lock) {
            return RowLockOutcome::Unchanged;
        }
        if self.is_kept_off(who, key, lock) {
            return RowLockOutcome::Taken;
        }
        let changes = self.committed[&key].changes;
        let open = &mut self.open[who];
        open.locks.insert(key, lock);
        match changes == open.snapshot[&key].changes {
            true => RowLockOutcome::Unchanged,
            false => RowLockOutcome::Changed,
        }
    }

    fn seen(&self, who: usize, key: i64) -> Option<i64> {
        let open = &self.open[who];
        open.writes.get(&key).map_or(open.snapshot[&key].value, |(value, _)| *value)
    }

    /// Whether there was a row.
    fn write(&mut self, who: usize, key: i64, value: Option<i64>) -> bool {
        let is_there = self.seen(who, key).is_some();
        if is_there {
            let open = &mut self.open[who];
            let changes = open.snapshot[&key].changes;
            open.writes.entry(key).and_modify(|write| write.0 = value).or_insert((value, changes));
        }
        is_there
    }

    /// Whether the commit happens.
    fn commit(&mut self, who: usize) -> bool {
        let writes = self.open[who].writes.clone();
        let happens = writes.iter().all(|(key, (value, changes))| {
            let lock = if value.is_some() { RowLock::NoKeyUpdate } else { RowLock::Update };
            self.committed[key].changes == *changes && !self.is_kept_off(who, *key, lock)
        });
        for (key, (value, changes)) in writes.into_iter().filter(|_| happens) {
            self.committed.insert(key, Version { value, changes: changes + 1 });
        }
        self.begin(who);
        happens
    }

    fn begin(&mut self, who: usize) {
        self.open[who] = Open { snapshot: self.committed.clone(), ..Open::default() };
    }
}

fn table() -> (Database, Table) {
    let db = Fixture::in_memory().create();
    let number = |name| ColumnDefinition::new(name, DataType::Int64).not_null();
    let table = TableDefinition::builder("t").column(number("id")).column(number("value"));
    let table = db.create_table(table.primary_key(["id"]).build().unwrap()).unwrap();
    let mut session = db.session().unwrap();
    (0..KEYS).for_each(|id| session.insert(&table, &[id.into(), 0i64.into()]).unwrap());
    drop(session);
    (db, table)
}

fn run(steps: Vec<(usize, Step)>) {
    let (db, table) = table();
    let mut model = Model::new();
    // A transaction borrows its session for good, so each has one of its own.
    let mut sessions: Vec<Session> =
        (0..TRANSACTIONS + steps.len()).map(|_| db.session().unwrap()).collect();
    let mut sessions = sessions.iter_mut();
    let mut open: Vec<Transaction<'_>> =
        sessions.by_ref().take(TRANSACTIONS).map(|session| session.begin().unwrap()).collect();
    for (number, (who, step)) in steps.into_iter().enumerate() {
        let transaction = &mut open[who];
        match step {
            Step::Lock(key, lock) => {
                let locked = transaction.lock_row(&table, &[key.into()], lock, false).unwrap();
                assert_eq!(locked, model.lock(who, key, lock));
            }
            Step::Update(key) => {
                let value = number as i64;
                let change = [("value", value.into())];
                let is_there = transaction.update(&table, &[key.into()], &change).unwrap();
                assert_eq!(is_there, model.write(who, key, Some(value)));
            }
            Step::Delete(key) => {
                let was_there = transaction.delete(&table, &[key.into()]).unwrap();
                assert_eq!(was_there, model.write(who, key, None));
            }
            Step::Read(key) => {
                let row = transaction.get(&table, &[key.into()]).unwrap();
                assert_eq!(row.and_then(|row| row[1].as_i64()), model.seen(who, key));
            }
            Step::Renew => {
                transaction.renew_snapshot().unwrap();
                model.open[who].snapshot = model.committed.clone();
            }
            Step::Commit => {
                let unused = sessions.next().unwrap();
                let committed = std::mem::replace(transaction, unused.begin().unwrap()).commit();
                let refused = matches!(committed, Err(Error::Conflict { .. }));
                assert!(committed.is_ok() || refused, "{committed:?}");
                assert_eq!(committed.is_ok(), model.commit(who));
                transaction.renew_snapshot().unwrap();
            }
            Step::RollBack => {
                let unused = sessions.next().unwrap();
                std::mem::replace(transaction, unused.begin().unwrap()).rollback();
                model.begin(who);
            }
        }
    }
    drop(open);
    let mut session = db.session().unwrap();
    for (key, version) in &model.committed {
        let row = session.get(&table, &[(*key).into()]).unwrap();
        assert_eq!(row.and_then(|row| row[1].as_i64()), version.value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn transactions_that_lock_rows_do_what_the_model_says(
        steps in prop::collection::vec(step(), 1..60)
    ) {
        run(steps);
    }
}
