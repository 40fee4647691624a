//! Random operations of three sessions, with transactions, snapshots, checkpoints, evictions and
//! reopens, answer exactly as a sorted map with versions would.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use common::{Fixture, noted, notes};
use onrush::{
    Database, Direction, Durability, Error, Row, ScanOptions, Session, Snapshot, Table, Value,
};
use onrush_oracle::{History, Transaction};
use proptest::prelude::*;

const LANES: usize = 3;
/// A session that began a transaction is lent to it, so each lane then goes on with another one.
const SESSIONS: usize = 40;
const KEYS: i64 = 60;
/// Rows are this long or short, so that 64 leaves hold a fraction of the filler rows.
const LONG: usize = 3000;

#[derive(Clone, Debug)]
enum Step {
    Insert(i64, bool),
    Upsert(i64, bool),
    Update(i64, bool),
    Move(i64, i64),
    Delete(i64),
    Get(i64),
    Scan { from: i64, to: i64, backward: bool, limit: u64 },
    InsertMany(i64, u8),
    Begin,
    Commit,
    Rollback,
    TakeSnapshot,
    ReadSnapshot,
    Checkpoint,
    Reopen { cleanly: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..KEYS;
    prop_oneof![
        4 => (key(), any::<bool>()).prop_map(|(key, long)| Step::Insert(key, long)),
        4 => (key(), any::<bool>()).prop_map(|(key, long)| Step::Upsert(key, long)),
        4 => (key(), any::<bool>()).prop_map(|(key, long)| Step::Update(key, long)),
        2 => (key(), key()).prop_map(|(from, to)| Step::Move(from, to)),
        4 => key().prop_map(Step::Delete),
        3 => key().prop_map(Step::Get),
        2 => (key(), key(), any::<bool>(), 0..80u64).prop_map(|(from, to, backward, limit)| {
            Step::Scan { from, to, backward, limit }
        }),
        2 => (key(), 1..12u8).prop_map(|(key, count)| Step::InsertMany(key, count)),
        3 => Just(Step::Begin),
        3 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        1 => Just(Step::TakeSnapshot),
        2 => Just(Step::ReadSnapshot),
        1 => Just(Step::Checkpoint),
        1 => any::<bool>().prop_map(|cleanly| Step::Reopen { cleanly }),
    ]
}

type Rows = BTreeMap<i64, Arc<str>>;

/// What the database must hold.
type Model = History<Rows>;

fn text(number: usize, long: bool) -> String {
    let text = format!("{number} ");
    if long { text.repeat(LONG / text.len()) } else { text }
}

fn rows_between(rows: &Rows, from: i64, to: i64, backward: bool, limit: u64) -> Vec<Row> {
    let limit = usize::try_from(limit).unwrap();
    let inside = rows.iter().filter(|(key, _)| (from..to).contains(*key));
    let row = |(key, text): (&i64, &Arc<str>)| noted(*key, text);
    if backward {
        inside.rev().take(limit).map(row).collect()
    } else {
        inside.take(limit).map(row).collect()
    }
}

fn scan_options(from: i64, to: i64, backward: bool, limit: u64) -> ScanOptions<'static> {
    ScanOptions {
        from: Bound::Included(vec![from.into()]),
        to: Bound::Excluded(vec![to.into()]),
        direction: if backward { Direction::Backward } else { Direction::Forward },
        limit: Some(limit),
    }
}

/// One operation, alike outside and inside of a transaction.
macro_rules! operate {
    ($target:expr, $table:expr, $began:expr, $step:expr, $number:expr) => {{
        let (target, table, began, number) = ($target, $table, $began, $number);
        match $step {
            Step::Insert(key, long) => {
                let text = text(number, *long);
                let result = target.insert(table, &[(*key).into(), text.as_str().into()]);
                if began.view().contains_key(key) {
                    assert!(matches!(result, Err(Error::DuplicateKey { .. })), "{result:?}");
                } else {
                    result.unwrap();
                    began.insert((*key, Some(text.into())));
                }
            }
            Step::Upsert(key, long) => {
                let text = text(number, *long);
                target.upsert(table, &[(*key).into(), text.as_str().into()]).unwrap();
                began.upsert((*key, Some(text.into())));
            }
            Step::Update(key, long) => {
                let text = text(number, *long);
                let set = [("note", text.as_str().into())];
                let updated = target.update(table, &[(*key).into()], &set).unwrap();
                assert_eq!(updated, began.view().contains_key(key));
                if updated {
                    began.update((*key, Some(text.into())));
                }
            }
            Step::Move(from, to) => {
                let set: [(&str, Value<'_>); 1] = [("id", (*to).into())];
                let result = target.update(table, &[(*from).into()], &set);
                match began.view().get(from).cloned() {
                    None => assert!(!result.unwrap()),
                    Some(_) if from != to && began.view().contains_key(to) => {
                        assert!(matches!(result, Err(Error::DuplicateKey { .. })), "{result:?}");
                    }
                    Some(text) => {
                        assert!(result.unwrap());
                        if from == to {
                            began.update((*to, Some(text)));
                        } else {
                            began.insert((*to, Some(text)));
                            began.delete((*from, None));
                        }
                    }
                }
            }
            Step::Delete(key) => {
                let deleted = target.delete(table, &[(*key).into()]).unwrap();
                assert_eq!(deleted, began.view().contains_key(key));
                if deleted {
                    began.delete((*key, None));
                }
            }
            Step::Get(key) => {
                let row = target.get(table, &[(*key).into()]).unwrap();
                assert_eq!(row, began.view().get(key).map(|text| noted(*key, text)));
            }
            Step::Scan { from, to, backward, limit } => {
                let options = scan_options(*from, *to, *backward, *limit);
                let scan = target.scan(table, &options).unwrap();
                let rows: Vec<Row> = scan.map(|row| row.unwrap()).collect();
                let expected = rows_between(began.view(), *from, *to, *backward, *limit);
                assert!(rows == expected, "{options:?}");
            }
            _ => {}
        }
    }};
}

/// The database and its model, and what is open on them.
struct World {
    fixture: Fixture,
    db: Option<Database>,
    table: Option<Table>,
    sessions: Vec<Session>,
    snapshots: Vec<(Snapshot, Rows)>,
    model: Model,
}

impl World {
    fn new() -> World {
        let mut fixture = Fixture::in_memory();
        fixture.options.leaf_memory_bytes = 128 * 16 * 1024;
        // No transaction is a large one: those would keep each other off.
        fixture.options.log_ring_bytes = 2 << 20;
        fixture.options.log_capacity_bytes = 16 << 20;
        let mut world = World {
            fixture,
            db: None,
            table: None,
            sessions: Vec::new(),
            snapshots: Vec::new(),
            model: Model::new(Rows::new()),
        };
        let (db, table) = world.fixture.create_with(notes());
        world.adopt(db, table);
        // Far more rows than fit into memory, above the keys that the steps use.
        let mut rows = Rows::new();
        for key in KEYS..KEYS + 1000 {
            let text = text(0, true);
            world.sessions[0]
                .insert(world.table.as_ref().unwrap(), &common::note(key, &text))
                .unwrap();
            rows.insert(key, text.into());
        }
        world.model = Model::new(rows);
        world
    }

    fn adopt(&mut self, db: Database, table: Table) {
        let session = |number| {
            let mut session = db.session().unwrap();
            if number % 2 == 0 {
                session.set_durability(Durability::Delayed);
            }
            session
        };
        self.sessions = (0..SESSIONS).map(session).collect();
        (self.db, self.table) = (Some(db), Some(table));
    }

    fn run(&mut self, steps: &[(usize, Step)]) {
        let mut number = 0;
        while number < steps.len() {
            number = self.run_until_reopen(steps, number);
            if let Some((_, Step::Reopen { cleanly })) = steps.get(number) {
                self.reopen(*cleanly);
                number += 1;
            }
        }
        self.check_all();
        self.reopen(false);
        self.check_all();
    }

    /// Open transactions borrow their sessions, so they all live in this call.
    fn run_until_reopen(&mut self, steps: &[(usize, Step)], first: usize) -> usize {
        let World { db, table, sessions, snapshots, model, .. } = self;
        let (db, table) = (db.as_ref().unwrap(), table.as_ref().unwrap());
        let mut fresh = sessions.iter_mut();
        let mut idle: [Option<&mut Session>; LANES] = std::array::from_fn(|_| fresh.next());
        let mut open: [Option<_>; LANES] = std::array::from_fn(|_| None);
        for (number, (session, step)) in steps.iter().enumerate().skip(first) {
            let session = *session;
            match step {
                Step::Reopen { .. } => return number,
                Step::Checkpoint => drop(db.checkpoint().unwrap()),
                Step::ReadSnapshot => {
                    for (snapshot, rows) in snapshots.iter_mut() {
                        let options = scan_options(0, KEYS + 20, number % 2 == 0, 1000);
                        let scan = snapshot.scan(table, &options).unwrap();
                        let seen: Vec<Row> = scan.map(|row| row.unwrap()).collect();
                        let wanted = rows_between(rows, 0, KEYS + 20, number % 2 == 0, 1000);
                        assert!(seen == wanted, "a snapshot changed before step {number}");
                    }
                    if snapshots.len() > 3 {
                        snapshots.remove(number % 3);
                    }
                }
                Step::Begin => {
                    if let Some(session_of) = idle[session].take() {
                        open[session] =
                            Some((session_of.begin().unwrap(), Transaction::begin(model)));
                    }
                }
                Step::Commit => {
                    if let Some((transaction, began)) = open[session].take() {
                        let result = transaction.commit();
                        idle[session] = fresh.next();
                        let conflicts = began.is_overtaken(model);
                        match result {
                            Ok(()) => {
                                assert!(!conflicts, "step {number}: both committers won");
                                model.commit(0, began.into_changes());
                            }
                            Err(Error::Conflict { .. } | Error::DuplicateKey { .. }) => {
                                assert!(conflicts, "step {number}: nobody was in the way");
                            }
                            Err(error) => panic!("step {number}: {error}"),
                        }
                    }
                }
                Step::Rollback => {
                    if open[session].take().is_some() {
                        idle[session] = fresh.next();
                    }
                }
                Step::TakeSnapshot => {
                    if let Some(session) = &mut idle[session] {
                        snapshots.push((session.snapshot().unwrap(), model.now().clone()));
                    }
                }
                Step::InsertMany(key, count) => {
                    if let Some(session) = &mut idle[session] {
                        let keys = (0..i64::from(*count)).map(|n| (key + n * 5) % KEYS);
                        let rows: Vec<Row> =
                            keys.map(|key| noted(key, &text(number, false))).collect();
                        insert_many(session, table, model, &rows);
                    }
                }
                step => match (&mut idle[session], &mut open[session]) {
                    (Some(session), _) => {
                        let mut began = Transaction::begin(model);
                        operate!(&mut **session, table, &mut began, step, number);
                        model.commit(0, began.into_changes());
                    }
                    (None, Some((transaction, began))) => {
                        operate!(transaction, table, began, step, number);
                    }
                    // No session is left for this lane before the next reopen.
                    (None, None) => {}
                },
            }
        }
        steps.len()
    }

    fn reopen(&mut self, cleanly: bool) {
        self.sessions.clear();
        self.snapshots.clear();
        self.table = None;
        let db = self.db.take().unwrap();
        if cleanly {
            db.close().unwrap();
        } else {
            drop(db);
        }
        let db = self.fixture.open();
        let table = db.table("notes").unwrap();
        self.adopt(db, table);
    }

    fn check_all(&mut self) {
        let rows = common::all_rows(&mut self.sessions[0], self.table.as_ref().unwrap());
        let expected = rows_between(self.model.now(), 0, i64::MAX, false, u64::MAX);
        common::assert_same_rows(&rows, &expected, "in the end");
    }
}

fn insert_many(session: &mut Session, table: &Table, model: &mut Model, rows: &[Row]) {
    let result = session.insert_many(table, rows.iter().map(Vec::as_slice));
    let mut began = Transaction::begin(model);
    let mut duplicate = false;
    for row in rows {
        let key = row[0].as_i64().unwrap();
        duplicate |= began.view().contains_key(&key);
        began.insert((key, row[1].as_str().map(Arc::from)));
    }
    if duplicate {
        assert!(matches!(result, Err(Error::DuplicateKey { .. })), "{result:?}");
    } else {
        result.unwrap();
        model.commit(0, began.into_changes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    })]

    #[test]
    fn three_sessions(steps in prop::collection::vec((0..LANES, step()), 1..250)) {
        World::new().run(&steps);
    }
}
