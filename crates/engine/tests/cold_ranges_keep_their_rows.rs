//! Random keys in a table larger than memory: cold key ranges keep their rows in stocks on the disk, and everything is
//! as it was in leaves.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::rows_of;
use common::{Fixture, Random, all_rows, assert_same_rows, delayed_session, note, noted, notes};
use onrush::{
    Background, Database, Direction, Error, Options, PastMemory, Row, ScanOptions, Session, Table,
    Value,
};
use onrush_files::MemoryDisk;
use onrush_waits::Counter;

type Model = BTreeMap<i64, String>;

fn fixture(past_memory: PastMemory) -> Fixture {
    let mut fixture = Fixture::in_memory().with_little_memory();
    let options = Options { past_memory, background: Background::Callers, ..fixture.options };
    fixture.options = options;
    fixture
}

fn count(db: &Database, counter: Counter) -> u64 {
    db.statistics().totals.counter(counter)
}

fn text(random: &mut Random, id: i64) -> String {
    format!("{id} {}", "x".repeat(random.below(400) as usize))
}

fn rows(model: &Model) -> Vec<Row> {
    model.iter().map(|(id, text)| noted(*id, text)).collect()
}

/// One change of a random key, in the table and in the model.
fn change(session: &mut Session, table: &Table, random: &mut Random, model: &mut Model) {
    let id = random.id_below(20_000);
    let new = text(random, id);
    match random.below(8) {
        0..5 => match session.insert(table, &note(id, &new)) {
            Ok(()) => assert!(model.insert(id, new).is_none(), "{id} was taken"),
            Err(Error::DuplicateKey { .. }) => assert!(model.contains_key(&id), "{id} was free"),
            Err(error) => panic!("{error}"),
        },
        5 => {
            let changed = session.update(table, &[id.into()], &[("note", new.as_str().into())]);
            assert_eq!(changed.unwrap(), model.contains_key(&id));
            model.entry(id).and_modify(|text| *text = new);
        }
        6 => {
            let deleted = session.delete(table, &[id.into()]).unwrap();
            assert_eq!(deleted, model.remove(&id).is_some());
        }
        _ => {
            let found = session.get(table, &[id.into()]).unwrap();
            assert_eq!(found, model.get(&id).map(|text| noted(id, text)));
        }
    }
}

/// Makes a table of ranges with fragments, removals and rows in front of them.
fn filled(fixture: &Fixture, random: &mut Random, changes: u64) -> (Database, Table, Model) {
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    let mut model = Model::new();
    for number in 0..changes {
        change(&mut session, &table, random, &mut model);
        if number % 2500 == 2499 {
            db.checkpoint().unwrap();
        }
    }
    drop(session);
    (db, table, model)
}

#[test]
fn leaves_that_are_read_for_inserts_again_and_again_become_ranges() {
    let fixture = fixture(PastMemory::Auto);
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    let (mut random, mut model) = (Random(1), Model::new());
    for number in 0..20_000 {
        let id = random.id_below(i64::MAX);
        let text = "x".repeat(150);
        session.insert(&table, &note(id, &text)).unwrap();
        model.insert(id, text);
        if number % 4000 == 3999 {
            db.checkpoint().unwrap();
        }
    }
    assert!(count(&db, Counter::RangesMade) > 0);
    assert!(count(&db, Counter::RangeFlushes) > count(&db, Counter::RangesMade));
    assert_same_rows(&all_rows(&mut session, &table), &rows(&model), "in ranges");
}

#[test]
fn ascending_keys_stay_in_leaves() {
    let fixture = fixture(PastMemory::Auto);
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    for id in 0..20_000 {
        session
            .insert(&table, &note(id, "a note of a hundred bytes or so, with nothing in it"))
            .unwrap();
        if id % 4000 == 3999 {
            db.checkpoint().unwrap();
        }
    }
    assert_eq!(count(&db, Counter::RangesMade), 0);
}

#[test]
fn changes_over_stocks_are_what_they_are_in_a_map() {
    let fixture = fixture(PastMemory::Always);
    let (db, table, model) = filled(&fixture, &mut Random(2), 40_000);
    assert!(count(&db, Counter::RangeFlushes) > 0 && count(&db, Counter::RangeCompactions) > 0);
    let mut session = db.session().unwrap();
    assert_same_rows(&all_rows(&mut session, &table), &rows(&model), "forward");
    let backward = ScanOptions { direction: Direction::Backward, ..ScanOptions::default() };
    let mut expected = rows(&model);
    expected.reverse();
    assert_same_rows(&rows_of(&mut session, &table, &backward), &expected, "backward");
}

#[test]
fn a_range_that_grows_is_divided() {
    let fixture = fixture(PastMemory::Always);
    let (db, table, model) = filled(&fixture, &mut Random(3), 40_000);
    assert!(count(&db, Counter::RangesDivided) > 0);
    let mut session = db.session().unwrap();
    assert_same_rows(&all_rows(&mut session, &table), &rows(&model), "in two ranges");
}

#[test]
fn a_database_that_was_not_closed_comes_back_whole() {
    let disk = Arc::new(MemoryDisk::new());
    let mut fixture = Fixture { disk: disk.clone(), ..fixture(PastMemory::Always) };
    let mut random = Random(4);
    let (db, table, mut model) = filled(&fixture, &mut random, 30_000);
    let mut session = delayed_session(&db);
    for _ in 0..1000 {
        change(&mut session, &table, &mut random, &mut model);
    }
    db.barrier().unwrap();
    fixture.disk = Arc::new(disk.copy());
    let db = fixture.open();
    assert!(db.recovery().rows > 0);
    let table = db.table("notes").unwrap();
    let mut session = delayed_session(&db);
    assert_same_rows(&all_rows(&mut session, &table), &rows(&model), "redone");
    for _ in 0..10_000 {
        change(&mut session, &table, &mut random, &mut model);
    }
    db.checkpoint().unwrap();
    assert_same_rows(&all_rows(&mut session, &table), &rows(&model), "changed behind redo");
}

/// All tables in ranges, with log for many changes behind one checkpoint.
fn with_much_log() -> Fixture {
    let mut fixture = fixture(PastMemory::Always);
    fixture.options.leaf_memory_bytes = 4 << 20;
    fixture.options.log_capacity_bytes = 256 << 20;
    fixture
}

/// Makes a table, takes a checkpoint, and writes its rows some times over, with a space install after so many of them,
/// if that is to be.
fn written_anew(fixture: &Fixture, install_every: Option<i64>) -> (Database, Table, Model) {
    const ROWS: i64 = 12_000;
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    let (mut random, mut model) = (Random(8), Model::new());
    for number in 0..4 * ROWS {
        let id = if number < ROWS { number } else { random.id_below(ROWS) };
        let text = format!("{number} {}", "x".repeat(1500));
        session.upsert(&table, &note(id, &text)).unwrap();
        model.insert(id, text);
        if number + 1 == ROWS {
            db.checkpoint().unwrap();
        }
        if install_every.is_some_and(|every| number > ROWS && number % every == 0) {
            db.install_space().unwrap();
        }
    }
    db.barrier().unwrap();
    drop(session);
    (db, table, model)
}

#[test]
fn slots_of_stocks_that_were_written_anew_are_free_before_the_next_checkpoint() {
    let (kept, freed) = (with_much_log(), with_much_log());
    let (kept, _, _) = written_anew(&kept, None);
    let (freed, _, _) = written_anew(&freed, Some(500));
    assert_eq!((count(&kept, Counter::Checkpoints), count(&freed, Counter::Checkpoints)), (1, 1));
    assert!(count(&freed, Counter::SpaceInstalls) > 10);
    let (kept, freed) = (kept.statistics().slots, freed.statistics().slots);
    assert!(freed < kept, "{freed} slots, without space installs {kept}");
}

#[test]
fn a_crash_behind_a_space_install_loses_nothing() {
    let disk = Arc::new(MemoryDisk::new());
    let mut fixture = Fixture { disk: disk.clone(), ..with_much_log() };
    let (db, _, model) = written_anew(&fixture, Some(1000));
    assert!(count(&db, Counter::SpaceInstalls) > 10);
    fixture.disk = Arc::new(disk.copy());
    let again = fixture.open();
    let table = again.table("notes").unwrap();
    assert!(again.recovery().rows > 0);
    assert_same_rows(&all_rows(&mut delayed_session(&again), &table), &rows(&model), "redone");
}

#[test]
fn a_snapshot_sees_what_was_there_before_flushes_and_compactions() {
    let fixture = fixture(PastMemory::Always);
    let mut random = Random(5);
    let (db, table, mut model) = filled(&fixture, &mut random, 5000);
    let mut session = delayed_session(&db);
    let before = model.clone();
    let snapshot = db.session().unwrap().snapshot().unwrap();
    let compactions = count(&db, Counter::RangeCompactions);
    for number in 0..10_000 {
        change(&mut session, &table, &mut random, &mut model);
        if number % 1000 == 999 {
            db.checkpoint().unwrap();
        }
    }
    assert!(count(&db, Counter::RangeCompactions) > compactions);
    let seen: Vec<Row> =
        snapshot.scan(&table, &ScanOptions::default()).unwrap().map(|row| row.unwrap()).collect();
    assert_same_rows(&seen, &rows(&before), "the snapshot");
}

#[test]
fn a_table_that_was_emptied_has_nothing_of_its_stocks() {
    let fixture = fixture(PastMemory::Always);
    let (db, table, _) = filled(&fixture, &mut Random(7), 20_000);
    db.truncate_table("notes").unwrap();
    db.checkpoint().unwrap();
    let mut session = db.session().unwrap();
    assert_eq!(all_rows(&mut session, &table), Vec::<Row>::new());
    session.insert(&table, &[Value::Int64(1), "again".into()]).unwrap();
    db.close().unwrap();
    let db = fixture.open();
    let table = db.table("notes").unwrap();
    assert_eq!(all_rows(&mut db.session().unwrap(), &table), [noted(1, "again")]);
}
