//! The rows that were written since a position in the log are told, each once and in key order with the position of its
//! own record, also by a database that was closed and opened since; and leaves that have none are not read for it.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::ops::Bound;

use common::{Fixture, note, noted, notes, refused};
use onrush::{
    Database, Error, Lsn, Result, Row, ScanOptions, Session, Table, TableChange, WrittenRow,
    WrittenRows,
};
use proptest::prelude::*;

/// Rows of all keys do not fit into memory.
const KEYS: i64 = 400;

#[derive(Clone, Debug)]
enum Step {
    Upsert(i64),
    Delete(i64),
    /// Writes every `n`th row anew, in pieces.
    Large {
        every: i64,
        commits: bool,
    },
    Note,
    Checkpoint,
    Reopen,
    Compare(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..KEYS).prop_map(Step::Upsert),
        4 => (0..KEYS).prop_map(Step::Delete),
        1 => (1..4i64, any::<bool>()).prop_map(|(every, commits)| Step::Large { every, commits }),
        3 => Just(Step::Note),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Reopen),
        4 => (0..8usize).prop_map(Step::Compare),
    ]
}

fn text(number: usize) -> String {
    format!("{number} ").repeat(1_000)
}

/// A row, and the number of the step that wrote it.
type Rows = BTreeMap<i64, usize>;

struct Open {
    db: Database,
    table: Table,
    session: Session,
}

struct Both {
    fixture: Fixture,
    open: Option<Open>,
    rows: Rows,
    /// Positions, and the first step behind each.
    noted: Vec<(Lsn, usize)>,
}

impl Both {
    fn new(fixture: Fixture) -> Both {
        let (db, table) = fixture.create_with(notes());
        let session = db.session().unwrap();
        let open = Some(Open { db, table, session });
        Both { fixture, open, rows: Rows::new(), noted: Vec::new() }
    }

    fn run(&mut self, number: usize, step: &Step) {
        let Open { db, table, session } = self.open.as_mut().unwrap();
        match step {
            Step::Upsert(key) => {
                session.upsert(table, &note(*key, &text(number))).unwrap();
                self.rows.insert(*key, number);
            }
            Step::Delete(key) => {
                let was_there = session.delete(table, &[(*key).into()]).unwrap();
                assert_eq!(was_there, self.rows.remove(key).is_some());
            }
            Step::Large { every, commits } => {
                let mut transaction = session.begin().unwrap();
                let keys = (0..KEYS).filter(|key| key % every == 0);
                for key in keys.clone() {
                    transaction.upsert(table, &note(key, &text(number))).unwrap();
                }
                if *commits {
                    transaction.commit().unwrap();
                    self.rows.extend(keys.map(|key| (key, number)));
                }
            }
            Step::Note => self.noted.push((session.snapshot().unwrap().lsn(), number)),
            Step::Checkpoint => drop(db.checkpoint().unwrap()),
            Step::Reopen => {
                self.open = None;
                let db = self.fixture.open();
                let (table, session) = (db.table("notes").unwrap(), db.session().unwrap());
                self.open = Some(Open { db, table, session });
            }
            Step::Compare(at) => self.compare(*at),
        }
    }

    fn compare(&mut self, at: usize) {
        if self.noted.is_empty() {
            return;
        }
        let (since, number) = self.noted[at % self.noted.len()];
        let Open { table, session, .. } = self.open.as_mut().unwrap();
        let snapshot = session.snapshot().unwrap();
        let found = snapshot.written_since(table, since).unwrap();
        let found = found.collect::<Result<Vec<WrittenRow>>>().unwrap();
        let expected = self.rows.iter().filter(|(_, written_by)| **written_by >= number);
        let expected: Vec<Row> =
            expected.map(|(key, written_by)| noted(*key, &text(*written_by))).collect();
        let is_inside = |row: &WrittenRow| row.lsn >= since && row.lsn < snapshot.lsn();
        assert!(found.iter().all(is_inside));
        // A part of the keys, in ranges, gives the same rows as far as it reaches.
        let (low, high) = (at as i64 * 40, at as i64 * 40 + 150);
        let bounds = ScanOptions {
            from: Bound::Included(vec![low.into()]),
            to: Bound::Excluded(vec![high.into()]),
            ..ScanOptions::default()
        };
        let within = |row: &&WrittenRow| (low..high).contains(&row.row[0].as_i64().unwrap());
        let of_range: Vec<WrittenRow> = found.iter().filter(within).cloned().collect();
        let ranges = snapshot.key_ranges(table, &bounds, 3).unwrap();
        let parts = ranges
            .iter()
            .flat_map(|range| visited(snapshot.written_in(table, range, since).unwrap(), table));
        let parts: Vec<WrittenRow> =
            parts.map(|(lsn, row)| WrittenRow { lsn: lsn.unwrap(), row }).collect();
        assert!(parts == of_range, "{} rows, not {}", parts.len(), of_range.len());
        let found: Vec<Row> = found.into_iter().map(|row| row.row).collect();
        assert!(found == expected, "{} rows, not {}", found.len(), expected.len());
    }
}

/// All rows, a few at a time.
fn visited(mut rows: WrittenRows, table: &Table) -> Vec<(Option<Lsn>, Row)> {
    let mut all = Vec::new();
    loop {
        let visit = |lsn, key: &[u8], row: &[u8]| {
            all.push((lsn, table.schema().decode_row(key, row).unwrap()));
        };
        if rows.visit_part(7, usize::MAX, visit).unwrap().is_over {
            return all;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn rows_written_since_a_position_are_those_of_a_map(
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let mut both = Both::new(Fixture::in_memory().with_little_memory());
        both.run(0, &Step::Large { every: 1, commits: true });
        for (number, step) in (1..).zip(&steps) {
            both.run(number, step);
        }
        both.run(steps.len() + 1, &Step::Reopen);
        for at in 0..both.noted.len() {
            both.compare(at);
        }
    }
}

#[test]
fn rows_of_one_transaction_have_one_position_and_later_ones_a_higher() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.insert(&table, &note(3, "first")).unwrap();
    transaction.insert(&table, &note(1, "first")).unwrap();
    transaction.commit().unwrap();
    session.insert(&table, &note(2, "second")).unwrap();
    let rows = session.snapshot().unwrap().written_since(&table, Lsn::FIRST).unwrap();
    let lsns: Vec<Lsn> = rows.map(|row| row.unwrap().lsn).collect();
    assert_eq!(lsns[0], lsns[2]);
    assert!(lsns[1] > lsns[0]);
}

#[test]
fn a_transaction_is_told_its_own_rows_too_without_a_position() {
    for is_large in [false, true] {
        let (db, table) = Fixture::in_memory().with_little_memory().create_with(notes());
        let mut session = db.session().unwrap();
        session.insert(&table, &note(1, "older")).unwrap();
        let since = session.snapshot().unwrap().lsn();
        session.insert(&table, &note(2, "newer")).unwrap();
        let mut transaction = session.begin().unwrap();
        let last = if is_large { KEYS } else { 10 };
        for key in 3..last {
            transaction.insert(&table, &note(key, &text(1))).unwrap();
        }
        let snapshot = transaction.snapshot();
        let ranges = snapshot.key_ranges(&table, &ScanOptions::default(), 1).unwrap();
        let rows = visited(snapshot.written_in(&table, &ranges[0], since).unwrap(), &table);
        let (committed, own): (Vec<_>, Vec<_>) = rows.iter().partition(|(lsn, _)| lsn.is_some());
        assert_eq!(committed.len(), 1);
        assert_eq!(committed[0].1, noted(2, "newer"));
        let mut own: Vec<i64> = own.iter().map(|(_, row)| row[0].as_i64().unwrap()).collect();
        own.sort_unstable();
        assert_eq!(own, (3..last).collect::<Vec<_>>());
        // Nobody else is told of them, nor is a drain.
        assert_eq!(snapshot.written_since(&table, since).unwrap().count(), 1);
    }
}

/// How many leaves were read from disk.
fn leaves_read(db: &Database) -> u64 {
    let counters = db.statistics().totals.counters;
    counters.iter().find(|total| total.counter.name() == "LEAF_LOADS").unwrap().value
}

#[test]
fn leaves_without_such_rows_are_not_read_also_after_a_restart() {
    let fixture = Fixture::in_memory().with_little_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    for id in 0..1000 {
        session.insert(&table, &note(id, &text(1000))).unwrap();
    }
    db.checkpoint().unwrap();
    drop((session, table));
    db.close().unwrap();

    let db = fixture.open();
    let (table, mut session) = (db.table("notes").unwrap(), db.session().unwrap());
    let since = session.snapshot().unwrap().lsn();
    session.insert(&table, &note(1000, "new")).unwrap();
    let before = leaves_read(&db);
    let written = session.snapshot().unwrap().written_since(&table, since).unwrap();
    assert_eq!(written.count(), 1);
    assert!(leaves_read(&db) - before <= 1, "{}", leaves_read(&db) - before);
    session.scan(&table, &ScanOptions::default()).unwrap().for_each(drop);
    assert!(leaves_read(&db) - before > 200);
}

#[test]
fn rows_that_were_redone_and_evicted_by_the_restart_are_told() {
    let fixture = Fixture::in_memory().with_little_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    for id in 0..KEYS {
        session.insert(&table, &note(id, &text(0))).unwrap();
    }
    db.checkpoint().unwrap();
    let since = session.snapshot().unwrap().lsn();
    // No checkpoint has them, and memory is too little to redo all of them in it.
    for id in 0..KEYS {
        session.upsert(&table, &note(id, &text(1))).unwrap();
    }
    drop((session, table, db));

    let db = fixture.open();
    let (table, mut session) = (db.table("notes").unwrap(), db.session().unwrap());
    let written = session.snapshot().unwrap().written_since(&table, since).unwrap();
    assert_eq!(written.count(), KEYS as usize);
}

#[test]
fn rows_that_are_inserted_only_are_neither_changed_nor_deleted() {
    let fixture = Fixture::in_memory();
    let (db, _) = fixture.create_with(notes());
    let table = db.alter_table("notes", &[TableChange::SetAppendsOnly(true)]).unwrap();
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "stays")).unwrap();
    let words = ["notes", "inserted only"];
    let is_refused = |result: Result<()>| {
        assert!(matches!(refused(result, &words), Error::AppendsOnly { .. }));
    };
    is_refused(session.upsert(&table, &note(1, "changed")));
    is_refused(session.update(&table, &[1.into()], &[("note", "changed".into())]).map(drop));
    is_refused(session.delete(&table, &[1.into()]).map(drop));
    is_refused(db.truncate_table("notes"));
    let mut transaction = session.begin().unwrap();
    is_refused(transaction.upsert(&table, &note(1, "changed")));
    is_refused(transaction.update(&table, &[1.into()], &[("note", "x".into())]).map(drop));
    is_refused(transaction.delete(&table, &[1.into()]).map(drop));
    transaction.insert(&table, &note(2, "more")).unwrap();
    transaction.commit().unwrap();
    drop((session, table));
    db.close().unwrap();

    // The definition says so, so it holds after a restart, and until another one is made.
    let db = fixture.open();
    let mut session = db.session().unwrap();
    is_refused(session.delete(&db.table("notes").unwrap(), &[1.into()]).map(drop));
    let table = db.alter_table("notes", &[TableChange::SetAppendsOnly(false)]).unwrap();
    assert!(session.delete(&table, &[1.into()]).unwrap());
    assert_eq!(session.scan(&table, &ScanOptions::default()).unwrap().count(), 1);
}
