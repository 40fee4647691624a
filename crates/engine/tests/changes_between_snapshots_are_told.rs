//! What a later snapshot sees otherwise than an earlier one is told, each row once and in key order, whoever has
//! changed it; and leaves that have not changed are not read for it.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::{Fixture, note, noted, notes, refused};
use onrush::{Database, Error, Result, RowChange, Session, Snapshot, Table};
use proptest::prelude::*;

/// Rows of all keys do not fit into memory.
const KEYS: i64 = 400;

type Rows = BTreeMap<i64, String>;

#[derive(Clone, Debug)]
enum Step {
    Upsert(i64),
    Delete(i64),
    /// Deletes every `n`th row and writes the others, in pieces.
    Large {
        every: i64,
        commits: bool,
    },
    /// A transaction of several rows over intents.
    Several(i64),
    Snapshot,
    Forget,
    Checkpoint,
    Compare(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..KEYS).prop_map(Step::Upsert),
        6 => (0..KEYS).prop_map(Step::Delete),
        1 => (2..5i64, any::<bool>()).prop_map(|(every, commits)| Step::Large { every, commits }),
        2 => (0..KEYS - 3).prop_map(Step::Several),
        3 => Just(Step::Snapshot),
        1 => Just(Step::Forget),
        1 => Just(Step::Checkpoint),
        4 => (0..8usize, 0..8usize).prop_map(|(one, two)| Step::Compare(one, two)),
    ]
}

fn text(number: usize) -> String {
    format!("{number} ").repeat(1_000)
}

fn differences(before: &Rows, after: &Rows) -> Vec<RowChange> {
    let row = |rows: &Rows, key: i64| rows.get(&key).map(|text| noted(key, text));
    let change = |key| RowChange { before: row(before, key), after: row(after, key) };
    (0..KEYS).map(change).filter(|change| change.before != change.after).collect()
}

struct Both {
    db: Database,
    table: Table,
    session: Session,
    rows: Rows,
    snapshots: Vec<(Snapshot, Rows)>,
}

impl Both {
    fn run(&mut self, number: usize, step: &Step) {
        match step {
            Step::Upsert(key) => {
                self.session.upsert(&self.table, &note(*key, &text(number))).unwrap();
                self.rows.insert(*key, text(number));
            }
            Step::Delete(key) => {
                let was_there = self.session.delete(&self.table, &[(*key).into()]).unwrap();
                assert_eq!(was_there, self.rows.remove(key).is_some());
            }
            Step::Several(first) => {
                let mut transaction = self.session.begin().unwrap();
                for key in *first..first + 3 {
                    transaction.upsert(&self.table, &note(key, &text(number))).unwrap();
                    self.rows.insert(key, text(number));
                }
                transaction.delete(&self.table, &[(*first).into()]).unwrap();
                self.rows.remove(first);
                transaction.commit().unwrap();
            }
            Step::Large { every, commits } => self.large(number, *every, *commits),
            Step::Snapshot => {
                self.snapshots.push((self.session.snapshot().unwrap(), self.rows.clone()));
            }
            Step::Forget => drop((!self.snapshots.is_empty()).then(|| self.snapshots.remove(0))),
            Step::Checkpoint => drop(self.db.checkpoint().unwrap()),
            Step::Compare(one, two) => self.compare(*one, *two),
        }
    }

    fn large(&mut self, number: usize, every: i64, commits: bool) {
        let mut rows = self.rows.clone();
        let mut transaction = self.session.begin().unwrap();
        for key in 0..KEYS {
            if key % every == 0 {
                transaction.delete(&self.table, &[key.into()]).unwrap();
                rows.remove(&key);
            } else {
                transaction.upsert(&self.table, &note(key, &text(number))).unwrap();
                rows.insert(key, text(number));
            }
        }
        if commits {
            transaction.commit().unwrap();
            self.rows = rows;
        }
    }

    fn compare(&self, one: usize, two: usize) {
        if self.snapshots.is_empty() {
            return;
        }
        let (one, two) = (one % self.snapshots.len(), two % self.snapshots.len());
        let (earlier, before) = &self.snapshots[one.min(two)];
        let (later, after) = &self.snapshots[one.max(two)];
        let changes = later.changes_since(earlier, &self.table).unwrap();
        let changes = changes.collect::<Result<Vec<_>>>().unwrap();
        assert!(changes == differences(before, after), "{one} to {two}: {} changes", changes.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_changes_between_two_snapshots_are_those_of_a_map(
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let fixture = Fixture::in_memory().with_little_memory();
        let (db, table) = fixture.create_with(notes());
        let session = db.session().unwrap();
        let mut both = Both { db, table, session, rows: Rows::new(), snapshots: Vec::new() };
        both.large(0, 3, true);
        for (number, step) in (1..).zip(&steps) {
            both.run(number, step);
        }
        both.run(0, &Step::Snapshot);
        for at in 0..both.snapshots.len() {
            both.compare(at, both.snapshots.len() - 1);
        }
    }
}

/// It is in no leaf any more, and the earlier snapshot has never seen it.
#[test]
fn a_row_that_came_between_the_snapshots_and_was_removed_after_them_is_told() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let earlier = session.snapshot().unwrap();
    session.insert(&table, &note(1, "between")).unwrap();
    let later = session.snapshot().unwrap();
    session.delete(&table, &[1.into()]).unwrap();
    let changes = later.changes_since(&earlier, &table).unwrap();
    let changes = changes.collect::<Result<Vec<_>>>().unwrap();
    assert_eq!(changes, [RowChange { before: None, after: Some(noted(1, "between")) }]);
}

/// How many leaves were read from disk.
fn leaves_read(db: &Database) -> u64 {
    let counters = db.statistics().totals.counters;
    counters.iter().find(|total| total.counter.name() == "LEAF_LOADS").unwrap().value
}

#[test]
fn leaves_that_have_not_changed_are_not_read() {
    let fixture = Fixture::in_memory().with_little_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    for id in 0..1000 {
        session.insert(&table, &note(id, &text(1000))).unwrap();
    }
    // An image that is written later may have changes that came later, for all that is known of it.
    db.checkpoint().unwrap();
    let earlier = session.snapshot().unwrap();
    session.upsert(&table, &note(1, "changed")).unwrap();
    session.delete(&table, &[900.into()]).unwrap();
    let later = session.snapshot().unwrap();
    let before = leaves_read(&db);
    assert_eq!(later.changes_since(&earlier, &table).unwrap().count(), 2);
    assert!(leaves_read(&db) - before <= 2, "{}", leaves_read(&db) - before);
    session.scan(&table, &onrush::ScanOptions::default()).unwrap().for_each(drop);
    assert!(leaves_read(&db) - before > 200);
}

#[test]
fn a_snapshot_from_before_a_table_was_emptied_has_no_changes_to_tell() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let earlier = session.snapshot().unwrap();
    db.truncate_table("notes").unwrap();
    let later = session.snapshot().unwrap();
    let error = refused(later.changes_since(&earlier, &table).map(drop), &["notes"]);
    assert!(matches!(error, Error::TableChanged { .. }));
}
