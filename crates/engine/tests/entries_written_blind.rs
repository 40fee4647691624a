//! Entries of indexes are written without a look for their keys. So the same entries are made and removed again and
//! again, by many sessions at once, one by one and in transactions, in leaves that split, are imaged and evicted: at
//! every moment each row has one entry in each index, and the check finds nothing.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::{Fixture, Random, delayed_session};
use onrush::{
    ColumnDefinition, DataType, Database, Error, NewIndex, OnlineOptions, Row, ScanOptions,
    Session, Snapshot, Table, TableDefinition, Value,
};
use onrush_check::Progress;

const THREADS: u64 = 4;
const OPERATIONS: u64 = 4_000;
/// All sessions meet on so few rows, beside which others only fill the leaves.
const IDS: i64 = 40;
const TAGS: i64 = 3;
const INDEXES: usize = 3;

fn indexed(db: &Database) -> Table {
    let definition = TableDefinition::builder("items")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("tag", DataType::Int64))
        .primary_key(["id"]);
    db.create_table(definition.build().unwrap()).unwrap();
    db.create_index("items", &NewIndex::new("by_tag", ["tag"])).unwrap();
    db.create_index("items", &NewIndex::new("by_both", ["id", "tag"]).unique()).unwrap();
    let mut again = NewIndex::new("by_tag_again", ["tag"]);
    again.included = vec!["id".into()];
    db.create_index("items", &again).unwrap()
}

/// Whether a change was made; who meets another one does not make it.
fn made(outcome: Result<(), Error>) -> bool {
    match outcome {
        Ok(()) => true,
        Err(Error::DuplicateKey { .. } | Error::Conflict { .. } | Error::UniqueViolated { .. }) => {
            false
        }
        Err(other) => panic!("{other}"),
    }
}

fn work(session: &mut Session, table: &Table, thread: u64) {
    let mut random = Random(thread + 1);
    for number in 0..OPERATIONS {
        let (id, tag) = (Value::Int64(random.id_below(IDS)), Value::Int64(random.id_below(TAGS)));
        match random.below(8) {
            0..3 => drop(made(session.insert(table, &[id, tag]))),
            3 => drop(made(session.delete(table, &[id]).map(|_| ()))),
            4 => drop(made(session.update(table, &[id], &[("tag", tag)]).map(|_| ()))),
            5 => {
                let mut transaction = session.begin().unwrap();
                let removed = transaction.delete(table, std::slice::from_ref(&id)).unwrap();
                if !removed || made(transaction.insert(table, &[id, tag])) {
                    made(transaction.commit());
                }
            }
            _ => {
                let filler = IDS + (thread * OPERATIONS + number).cast_signed();
                session.insert(table, &[filler.into(), tag]).unwrap();
            }
        }
    }
}

fn rows(snapshot: &Snapshot, table: &Table) -> Vec<Row> {
    snapshot.scan(table, &ScanOptions::default()).unwrap().map(Result::unwrap).collect()
}

fn assert_follow(snapshot: &Snapshot, table: &Table) {
    let expected = rows(snapshot, table);
    for position in 0..INDEXES {
        let entries = snapshot.index_entries(table, position).unwrap();
        let column = |name| entries.definition().column_index(name).unwrap();
        let (id, tag) = (column("id"), column("tag"));
        let found = rows(snapshot, &entries);
        assert_eq!(found.len(), expected.len(), "index {position}");
        let by_id: BTreeMap<String, Row> = found
            .into_iter()
            .map(|entry| (entry[id].to_string(), vec![entry[id].clone(), entry[tag].clone()]))
            .collect();
        for row in &expected {
            assert_eq!(by_id.get(&row[0].to_string()), Some(row), "index {position}");
        }
    }
}

fn assert_sound(db: &Database) {
    let options = OnlineOptions { busy_percent: 100, ..OnlineOptions::default() };
    let report = db.check(&options, &Progress::default()).unwrap();
    assert!(report.is_sound(), "{report}");
}

fn crowd_meets(fixture: &Fixture) {
    let db = fixture.create();
    let table = indexed(&db);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, table) = (&db, &table);
            scope.spawn(move || work(&mut delayed_session(db), table, thread));
        }
        for _ in 0..10 {
            db.checkpoint().unwrap();
            assert_follow(&db.session().unwrap().snapshot().unwrap(), &table);
        }
    });
    assert_follow(&db.session().unwrap().snapshot().unwrap(), &table);
    assert_sound(&db);
    db.barrier().unwrap();
    drop((table, db));
    // Left as it is, so the log is redone.
    let db = fixture.open();
    let table = db.table("items").unwrap();
    assert_follow(&db.session().unwrap().snapshot().unwrap(), &table);
    assert_sound(&db);
}

#[test]
fn entries_that_come_and_go_in_a_crowd_stay_those_of_their_rows() {
    crowd_meets(&Fixture::in_memory());
}

#[test]
fn so_they_do_where_leaves_are_evicted() {
    crowd_meets(&Fixture::in_memory().with_little_memory());
}

#[test]
fn one_row_that_a_crowd_inserts_and_removes_has_one_entry() {
    let db = Fixture::in_memory().create();
    let table = indexed(&db);
    std::thread::scope(|scope| {
        for thread in 0..2 * THREADS {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                let mut session = delayed_session(db);
                for _ in 0..5 * OPERATIONS {
                    match thread % 2 {
                        0 => drop(made(session.insert(table, &[1i64.into(), 1i64.into()]))),
                        _ => drop(made(session.delete(table, &[1i64.into()]).map(|_| ()))),
                    }
                }
            });
        }
    });
    assert_follow(&db.session().unwrap().snapshot().unwrap(), &table);
    assert_sound(&db);
}
