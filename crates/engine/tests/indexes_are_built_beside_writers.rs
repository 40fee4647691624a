//! An index is built while others write to its table: nobody is refused for it, and afterwards it has an entry for each
//! row and no other; one that cannot be built leaves nothing.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use common::Fixture;
use onrush::{
    ColumnDefinition, DataType, Database, Durability, Error, IndexBuildOptions, IndexBuildPhase,
    NewIndex, OnlineOptions, Options, Session, Table, TableChange, TableDefinition, Value, Waiting,
};
use onrush_check::Progress;
use parking_lot::Mutex;

/// More than a range of leaves holds, so that several are read, each from a snapshot of its own.
const ROWS: i64 = 120_000;

const WRITERS: i64 = 3;

fn items() -> TableDefinition {
    TableDefinition::builder("items")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("number", DataType::Int64).not_null())
        .column(ColumnDefinition::new("name", DataType::Text))
        .primary_key(["id"])
        .build()
        .unwrap()
}

/// In no order of the key.
fn number_of(id: i64) -> i64 {
    id.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed()) >> 8
}

fn item(id: i64) -> [Value<'static>; 3] {
    [id.into(), number_of(id).into(), "x".repeat(40).into()]
}

fn options() -> Options {
    let options = Options { durability: Durability::Delayed, ..Options::small() };
    Options { leaf_memory_bytes: 128 << 20, ..options }
}

fn fixture() -> Fixture {
    let mut fixture = Fixture::in_memory();
    fixture.options = options();
    fixture
}

fn filled(rows: i64) -> (Database, Table) {
    filled_in(&fixture(), rows)
}

fn filled_in(fixture: &Fixture, rows: i64) -> (Database, Table) {
    let (db, table) = fixture.create_with(items());
    let mut session = db.session().unwrap();
    for first in (0..rows).step_by(1000) {
        let items: Vec<_> = (first..rows.min(first + 1000)).map(item).collect();
        session.insert_many(&table, items.iter().map(<[_; 3]>::as_slice)).unwrap();
    }
    (db, table)
}

fn by_number() -> NewIndex {
    NewIndex::new("by_number", ["number"])
}

fn full_speed() -> OnlineOptions {
    OnlineOptions { busy_percent: 100, ..OnlineOptions::default() }
}

/// The indexes of all tables have the entries of their rows.
fn assert_sound(db: &Database) {
    let report = db.check(&full_speed(), &Progress::default()).unwrap();
    assert_eq!(report.findings, []);
}

fn entries(db: &Database, table: &Table) -> usize {
    let snapshot = db.session().unwrap().snapshot().unwrap();
    let entries = snapshot.index_entries(table, 0).unwrap();
    snapshot.scan(&entries, &onrush::ScanOptions::default()).unwrap().count()
}

/// Does something before each range of rows is read.
struct Between<F>(Mutex<F>);

impl<F: FnMut() -> bool + Send> Waiting for Between<F> {
    fn is_interrupted(&self) -> bool {
        (self.0.lock())()
    }
}

/// Options of a build that does `act` before each range; whether to give up is what it returns.
fn between(act: impl FnMut() -> bool + Send + 'static) -> IndexBuildOptions {
    IndexBuildOptions {
        threads: 1,
        waiting: Some(Arc::new(Between(Mutex::new(act)))),
        ..IndexBuildOptions::default()
    }
}

/// As a program does it whose handle is of an earlier version.
fn retried<T>(
    session: &mut Session,
    db: &Database,
    change: impl Fn(&mut Session, &Table) -> Result<T, Error>,
) -> T {
    loop {
        match change(session, &db.table("items").unwrap()) {
            Err(Error::TableChanged { .. }) => {}
            outcome => return outcome.unwrap(),
        }
    }
}

/// Others end, too, where a test fails.
struct SetWhenDropped<'f>(&'f AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn an_index_has_all_rows_that_were_there() {
    let (db, _) = filled(ROWS);
    for threads in [1, 3] {
        let options = IndexBuildOptions { threads, ..IndexBuildOptions::default() };
        let table = db.build_index("items", &by_number(), &options).unwrap();
        assert_eq!(entries(&db, &table), ROWS as usize);
        assert_sound(&db);
        db.drop_index("by_number").unwrap();
    }
}

#[test]
fn rows_that_are_written_between_the_ranges_have_their_entries() {
    let (db, _) = filled(ROWS);
    let (writer, calls) = (db.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    let mut session = db.session().unwrap();
    let options = between(move || {
        // Behind the first definition; each time the handle is the building table's.
        let Ok(table) = writer.table("items") else { return false };
        if table.definition().indexes().is_empty() {
            return false;
        }
        let at = counted.fetch_add(1, Ordering::Relaxed) as i64;
        for step in 0..20 {
            let (near, far) = (at * 5000 + step, ROWS - 1 - at * 300 - step);
            session.insert(&table, &item(ROWS + at * 100 + step)).unwrap();
            session.update(&table, &[near.into()], &[("number", 7i64.into())]).unwrap();
            session.delete(&table, &[(near + 100).into()]).unwrap();
            session.delete(&table, &[far.into()]).unwrap();
            session.insert(&table, &item(far)).unwrap();
        }
        false
    });
    db.build_index("items", &by_number(), &options).unwrap();
    assert!(calls.load(Ordering::Relaxed) > 1, "there were several ranges");
    assert_sound(&db);
}

#[test]
fn writers_beside_a_build_are_refused_nothing() {
    let (db, _) = filled(ROWS);
    let (next, is_over) = (AtomicI64::new(ROWS), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, next, is_over) = (&db, &next, &is_over);
            scope.spawn(move || {
                let mut session = db.session().unwrap();
                // Each writer has rows of its own.
                for step in (0..ROWS / WRITERS - 2).cycle() {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let id = step * WRITERS + writer;
                    let new = next.fetch_add(1, Ordering::Relaxed);
                    retried(&mut session, db, |session, table| session.insert(table, &item(new)));
                    let (key, changed) = ([Value::from(id)], [("number", (-new).into())]);
                    retried(&mut session, db, |session, table| {
                        session.update(table, &key, &changed)
                    });
                    let other = id + WRITERS;
                    let was_there = retried(&mut session, db, |session, table| {
                        session.delete(table, &[other.into()])
                    });
                    if was_there && step % 2 == 0 {
                        let again = item(other);
                        retried(&mut session, db, |session, table| session.insert(table, &again));
                    }
                }
            });
        }
        let _ends = SetWhenDropped(&is_over);
        for _ in 0..3 {
            db.build_index("items", &by_number(), &IndexBuildOptions::default()).unwrap();
            assert_sound(&db);
            db.drop_index("by_number").unwrap();
        }
    });
}

#[test]
fn a_transaction_that_began_before_an_entry_was_written_may_change_its_row() {
    let (db, _) = filled(2_000);
    let mut session = db.session().unwrap();
    let mut before = session.begin().unwrap();
    let table = db.create_index("items", &by_number()).unwrap();
    assert!(before.delete(&table, &[5i64.into()]).unwrap());
    before.update(&table, &[6i64.into()], &[("number", 3i64.into())]).unwrap();
    before.commit().unwrap();
    assert_sound(&db);
}

#[test]
fn a_large_transaction_may_be_open_while_an_index_is_built() {
    let mut fixture = Fixture::in_memory();
    fixture.options = Options { large_transaction_bytes: 4096, ..options() };
    for commits in [true, false] {
        let (db, table) = fixture.create_with(items());
        let mut session = db.session().unwrap();
        for id in 0..3_000 {
            session.insert(&table, &item(id)).unwrap();
        }
        let (other, mut is_done) = (db.clone(), false);
        let builder = std::thread::scope(|scope| {
            let (began, has_begun) = std::sync::mpsc::channel();
            scope.spawn(move || {
                let mut session = other.session().unwrap();
                has_begun.recv().unwrap();
                let table = other.table("items").unwrap();
                let mut large = session.begin().unwrap();
                for id in 0..1_000i64 {
                    large.update(&table, &[id.into()], &[("number", id.into())]).unwrap();
                    large.delete(&table, &[(id + 1_500).into()]).unwrap();
                }
                match commits {
                    true => large.commit().unwrap(),
                    false => drop(large),
                }
            });
            let watched = db.clone();
            let options = between(move || {
                let table = watched.table("items").unwrap();
                if !is_done && !table.definition().indexes().is_empty() {
                    is_done = true;
                    began.send(()).unwrap();
                }
                false
            });
            db.build_index("items", &by_number(), &options)
        });
        builder.unwrap();
        assert_sound(&db);
        db.drop_table("items").unwrap();
        db.close().unwrap();
        fixture.folder = tempfile::tempdir().unwrap();
    }
}

/// Its entries stay the same, whatever it is called.
#[test]
fn an_index_may_get_another_name_while_it_is_built() {
    let (db, _) = filled(ROWS);
    let renamer = db.clone();
    let renamed = std::thread::spawn(move || {
        while renamer.table("items").unwrap().definition().indexes().is_empty() {
            std::thread::yield_now();
        }
        renamer.rename_index("by_number", "renamed").unwrap();
        let renamed = TableChange::Rename { to: "others".to_owned() };
        renamer.alter_table("items", &[renamed]).unwrap();
    });
    db.build_index("items", &by_number(), &IndexBuildOptions::default()).unwrap();
    renamed.join().unwrap();
    let table = db.table("others").unwrap();
    let indexes = table.definition().indexes();
    assert_eq!((indexes[0].name.as_str(), indexes[0].is_building), ("renamed", false));
    assert_eq!(entries(&db, &table), ROWS as usize);
    assert_sound(&db);
}

#[test]
fn two_rows_with_one_key_leave_no_index() {
    let (db, table) = filled(5_000);
    let mut session = db.session().unwrap();
    session.update(&table, &[4_321i64.into()], &[("number", number_of(17).into())]).unwrap();
    let failed = db.create_index("items", &by_number().unique()).map(drop).unwrap_err();
    assert!(
        matches!(&failed, Error::UniqueViolated { index, .. } if index == "by_number"),
        "{failed}"
    );
    let table = db.table("items").unwrap();
    assert!(table.definition().indexes().is_empty());
    assert_eq!(db.index_builds(), []);
    session.insert(&table, &item(-1)).unwrap();
    session.update(&table, &[17i64.into()], &[("number", 1i64.into())]).unwrap();
    let table = db.create_index("items", &by_number().unique()).unwrap();
    let again = session.update(&table, &[18i64.into()], &[("number", 1i64.into())]);
    assert!(matches!(again, Err(Error::UniqueViolated { .. })));
    assert_sound(&db);
}

/// Two rows had the key at once while the index was built, and the one that was there before goes.
#[test]
fn a_key_that_two_rows_had_for_a_while_is_no_half_index() {
    let (db, _) = filled(ROWS);
    let (writer, mut is_done) = (db.clone(), false);
    let mut session = db.session().unwrap();
    let options = between(move || {
        let table = writer.table("items").unwrap();
        if !is_done && !table.definition().indexes().is_empty() {
            is_done = true;
            let twin = [Value::from(-5i64), number_of(ROWS - 1).into(), Value::Null];
            session.insert(&table, &twin).unwrap();
            session.delete(&table, &[(ROWS - 1).into()]).unwrap();
        }
        false
    });
    match db.build_index("items", &by_number().unique(), &options) {
        Ok(_) | Err(Error::UniqueViolated { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    assert_sound(&db);
}

#[test]
fn who_is_told_to_give_up_leaves_nothing() {
    let (db, _) = filled(ROWS);
    let (watched, mut phases) = (db.clone(), Vec::new());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let options = between(move || {
        let states = watched.index_builds();
        phases.extend(states.iter().map(|state| (state.phase, state.rows_done)));
        let gives_up = phases.iter().any(|(_, rows)| *rows > 0);
        told.lock().clone_from(&phases);
        gives_up
    });
    let given_up = db.build_index("items", &by_number(), &options);
    assert!(matches!(given_up, Err(Error::Interrupted)));
    let phases = seen.lock().clone();
    assert!(phases.iter().all(|(phase, _)| *phase == IndexBuildPhase::Filling), "{phases:?}");
    assert!(db.table("items").unwrap().definition().indexes().is_empty());
    assert_eq!(db.index_builds(), []);
    db.create_index("items", &by_number()).unwrap();
    assert_sound(&db);
}

#[test]
fn an_index_that_was_not_whole_is_gone_when_the_database_is_opened() {
    let fixture = fixture();
    let (db, _) = filled_in(&fixture, ROWS);
    let copy = fixture.folder.path().join("copy");
    let (to, other, mut is_done) = (copy.clone(), db.clone(), false);
    let slowly = between(move || {
        let is_filling = other.index_builds().iter().any(|state| state.rows_done > 0);
        if is_filling && !std::mem::replace(&mut is_done, true) {
            other.backup(&to, &full_speed(), &Progress::default()).unwrap();
        }
        false
    });
    let table = db.build_index("items", &by_number(), &slowly).unwrap();
    assert_eq!(table.definition().indexes().len(), 1);
    let db = Database::open_on(Arc::clone(&fixture.disk), copy, options()).unwrap();
    let table = db.table("items").unwrap();
    assert!(table.definition().indexes().is_empty());
    assert_sound(&db);
    db.session().unwrap().insert(&table, &item(-1)).unwrap();
}

#[test]
fn entries_are_made_anew_and_rows_are_found_by_the_old_ones_meanwhile() {
    let (db, _) = filled(ROWS);
    let table = db.create_index("items", &by_number().unique()).unwrap();
    let before = table.definition().indexes()[0].clone();
    let watched = db.clone();
    let options = between(move || {
        let table = watched.table("items").unwrap();
        assert_eq!(entries(&watched, &table), ROWS as usize);
        false
    });
    let table = db.rebuild_index("by_number", &options).unwrap();
    let [after] = table.definition().indexes() else { panic!("one index") };
    assert_ne!(after.entries, before.entries);
    assert_eq!(onrush::IndexDefinition { entries: before.entries, ..after.clone() }, before);
    assert_eq!(entries(&db, &table), ROWS as usize);
    assert_sound(&db);
    let unknown = db.rebuild_index("nothing", &IndexBuildOptions::default());
    assert!(matches!(unknown, Err(Error::UnknownIndex { .. })));
}
