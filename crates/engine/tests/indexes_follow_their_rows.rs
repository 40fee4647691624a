//! Each index of a table has exactly one entry for each row, whatever happens to rows, indexes, transactions and the
//! process; and a unique one lets no two rows have the same values.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::Fixture;
use onrush::{
    ColumnDefinition, DataType, Database, Direction, Durability, Error, KeyOrder, NewIndex,
    OnlineOptions, Options, PastMemory, Row, Savepoint, ScanOptions, Session, Snapshot, Table,
    TableChange, TableDefinition, Transaction, Uniqueness, Value,
};
use onrush_check::Progress;
use onrush_files::MemoryDisk;
use proptest::prelude::*;

const DESCENDING: KeyOrder = KeyOrder { descending: true, nulls_first: true };

/// id, a number and a text, both of which may be NULL.
fn items() -> TableDefinition {
    TableDefinition::builder("items")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("number", DataType::Int32))
        .column(ColumnDefinition::new("name", DataType::Text))
        .primary_key(["id"])
        .build()
        .unwrap()
}

fn item(id: i64, number: Option<i32>, name: Option<&str>) -> [Value<'static>; 3] {
    let name = name.map_or(Value::Null, |name| name.to_owned().into());
    [id.into(), number.map_or(Value::Null, Value::Int32), name]
}

fn database() -> Database {
    Fixture::in_memory().create()
}

fn all(snapshot: &Snapshot, table: &Table) -> Vec<Row> {
    snapshot.scan(table, &ScanOptions::default()).unwrap().map(Result::unwrap).collect()
}

/// The columns of the table's entries in one of its indexes, by name.
fn columns(entries: &Table) -> Vec<String> {
    entries.definition().columns().iter().map(|column| column.name.clone()).collect()
}

/// Every index has the entries of the rows, no more and no fewer, each with its row's values.
fn assert_follows(snapshot: &Snapshot, table: &Table) {
    let definition = table.definition();
    let rows = all(snapshot, table);
    for (position, index) in definition.indexes().iter().enumerate() {
        let entries = snapshot.index_entries(table, position).unwrap();
        let of_entry: Vec<Option<usize>> =
            columns(&entries).iter().map(|name| definition.column_index(name).ok()).collect();
        let text = |values: &[Value<'static>]| format!("{values:?}");
        let shown = |row: &Row| -> Vec<Value<'static>> {
            of_entry.iter().flatten().map(|column| row[*column].clone()).collect()
        };
        let expected: BTreeSet<String> = rows.iter().map(|row| text(&shown(row))).collect();
        let found: Vec<String> = all(snapshot, &entries)
            .iter()
            .map(|entry| {
                let values = entry.iter().zip(&of_entry).filter(|(_, column)| column.is_some());
                text(&values.map(|(value, _)| value.clone()).collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(found.len(), rows.len(), "{}", index.name);
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected, "{}", index.name);
    }
}

fn assert_all_follow(db: &Database) {
    let snapshot = db.session().unwrap().snapshot().unwrap();
    for definition in db.tables() {
        assert_follows(&snapshot, &db.table(definition.name()).unwrap());
    }
}

fn indexed(db: &Database) -> Table {
    db.create_table(items()).unwrap();
    db.create_index("items", &NewIndex::new("by_number", ["number"])).unwrap();
    let mut by_name = NewIndex::new("by_name", ["name", "number"]);
    by_name.columns[0].1 = DESCENDING;
    by_name.included = vec!["id".into()];
    db.create_index("items", &by_name).unwrap()
}

fn taken(outcome: Result<(), Error>, index: &str) {
    let Err(Error::UniqueViolated { index: by, .. }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(by, index);
}

#[test]
fn rows_that_come_change_and_go_take_their_entries_along() {
    let db = database();
    let table = indexed(&db);
    let mut session = db.session().unwrap();
    session.insert(&table, &item(1, Some(10), Some("one"))).unwrap();
    session.insert(&table, &item(2, None, None)).unwrap();
    session
        .insert_many(&table, [&item(3, Some(10), Some("three"))[..], &item(4, Some(7), None)])
        .unwrap();
    assert_all_follow(&db);
    assert!(session.update(&table, &[1i64.into()], &[("number", Value::Int32(11))]).unwrap());
    assert!(session.update(&table, &[2i64.into()], &[("id", 20i64.into())]).unwrap());
    session.upsert(&table, &item(3, None, Some("drei"))).unwrap();
    session.upsert(&table, &item(5, Some(5), Some("five"))).unwrap();
    assert!(session.delete(&table, &[4i64.into()]).unwrap());
    assert!(!session.delete(&table, &[4i64.into()]).unwrap());
    assert_all_follow(&db);
    let numbers = entries(&db, &table, 0);
    let ids: Vec<&Value<'_>> = numbers.iter().map(|entry| &entry[1]).collect();
    assert_eq!(ids, [&5i64.into(), &1i64.into(), &3i64.into(), &20i64.into()]);
}

fn entries(db: &Database, table: &Table, position: usize) -> Vec<Row> {
    let snapshot = db.session().unwrap().snapshot().unwrap();
    all(&snapshot, &snapshot.index_entries(table, position).unwrap())
}

#[test]
fn entries_stand_in_the_order_that_was_asked_for() {
    let db = database();
    let table = indexed(&db);
    let mut session = db.session().unwrap();
    let names = [None, Some(""), Some("a"), Some("a\0"), Some("a\0b"), Some("ab"), Some("b")];
    for (id, name) in (1i64..).zip(names) {
        session.insert(&table, &item(id, Some(1), name)).unwrap();
    }
    let descending: Vec<Value<'static>> =
        entries(&db, &table, 1).into_iter().map(|entry| entry[0].clone()).collect();
    let wanted = [None, Some("b"), Some("ab"), Some("a\0b"), Some("a\0"), Some("a"), Some("")];
    let wanted: Vec<Value<'static>> =
        wanted.iter().map(|name| name.map_or(Value::Null, |name| name.to_owned().into())).collect();
    assert_eq!(descending, wanted);
    let snapshot = session.snapshot().unwrap();
    let by_name = snapshot.index_entries(&table, 1).unwrap();
    let backward = ScanOptions { direction: Direction::Backward, ..ScanOptions::default() };
    let ascending: Vec<Value<'static>> = snapshot
        .scan(&by_name, &backward)
        .unwrap()
        .map(|entry| entry.unwrap()[0].clone())
        .collect();
    assert!(ascending.iter().eq(wanted.iter().rev()));
}

#[test]
fn a_unique_index_lets_a_value_be_there_once_and_null_often() {
    let db = database();
    db.create_table(items()).unwrap();
    let by_number = NewIndex::new("by_number", ["number"]).unique();
    let table = db.create_index("items", &by_number).unwrap();
    let mut session = db.session().unwrap();
    session.insert(&table, &item(1, Some(10), None)).unwrap();
    session.insert(&table, &item(2, None, None)).unwrap();
    session.insert(&table, &item(3, None, None)).unwrap();
    taken(session.insert(&table, &item(4, Some(10), None)), "by_number");
    taken(session.upsert(&table, &item(4, Some(10), None)), "by_number");
    let update = session.update(&table, &[2i64.into()], &[("number", Value::Int32(10))]);
    taken(update.map(drop), "by_number");
    let both = [item(5, Some(50), None), item(6, Some(50), None)];
    taken(session.insert_many(&table, both.iter().map(|row| &row[..])), "by_number");
    assert!(session.get(&table, &[5i64.into()]).unwrap().is_none());
    // What was freed can be taken, by the same transaction too.
    let mut transaction = session.begin().unwrap();
    assert!(transaction.delete(&table, &[1i64.into()]).unwrap());
    transaction.insert(&table, &item(7, Some(10), None)).unwrap();
    taken(transaction.insert(&table, &item(8, Some(10), None)), "by_number");
    transaction.commit().unwrap();
    assert_all_follow(&db);
}

#[test]
fn a_unique_index_may_let_null_be_there_once() {
    let db = database();
    db.create_table(items()).unwrap();
    let by_number =
        NewIndex { uniqueness: Uniqueness::NullsEqual, ..NewIndex::new("by_number", ["number"]) };
    let table = db.create_index("items", &by_number).unwrap();
    let mut session = db.session().unwrap();
    session.insert(&table, &item(1, None, None)).unwrap();
    taken(session.insert(&table, &item(2, None, None)), "by_number");
    assert_all_follow(&db);
}

#[test]
fn of_those_who_insert_one_value_at_a_time_one_gets_it() {
    const THREADS: usize = 4;
    const VALUES: i32 = 300;
    let db = database();
    db.create_table(items()).unwrap();
    let by_number = NewIndex::new("by_number", ["number"]).unique();
    let table = db.create_index("items", &by_number).unwrap();
    let got = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, table, got) = (&db, &table, &got);
            scope.spawn(move || {
                let mut session = db.session().unwrap();
                session.set_durability(Durability::Delayed);
                for value in 0..VALUES {
                    let id = i64::from(value) * 10 + thread as i64;
                    match session.insert(table, &item(id, Some(value), None)) {
                        Ok(()) => drop(got.fetch_add(1, Ordering::Relaxed)),
                        Err(Error::UniqueViolated { .. } | Error::Conflict { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    assert_eq!(got.load(Ordering::Relaxed), VALUES as usize);
    assert_eq!(entries(&db, &table, 0).len(), VALUES as usize);
    assert_all_follow(&db);
}

#[test]
fn the_rows_that_there_are_are_indexed_or_tell_why_not() {
    let db = database();
    let table = db.create_table(items()).unwrap();
    let mut session = db.session().unwrap();
    for id in 0..500 {
        session.insert(&table, &item(id, Some(id as i32 / 2), Some("x"))).unwrap();
    }
    let unique = NewIndex::new("by_number", ["number"]).unique();
    taken(db.create_index("items", &unique).map(drop), "by_number");
    assert!(db.table("items").unwrap().definition().indexes().is_empty());
    let table = db.create_index("items", &NewIndex::new("by_number", ["number"])).unwrap();
    assert_eq!(entries(&db, &table, 0).len(), 500);
    assert_all_follow(&db);
}

#[test]
fn a_transaction_goes_on_without_the_index_that_it_could_not_make() {
    let db = database();
    db.create_table(items()).unwrap();
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    let table = transaction.table("items").unwrap();
    transaction.insert(&table, &item(1, Some(1), None)).unwrap();
    transaction.insert(&table, &item(2, Some(1), None)).unwrap();
    let unique = NewIndex::new("by_number", ["number"]).unique();
    taken(transaction.create_index("items", &unique).map(drop), "by_number");
    let table = transaction.create_index("items", &NewIndex::new("by_number", ["number"])).unwrap();
    transaction.insert(&table, &item(3, Some(1), None)).unwrap();
    let snapshot = transaction.snapshot();
    assert_follows(&snapshot, &table);
    drop(snapshot);
    transaction.commit().unwrap();
    assert_eq!(entries(&db, &db.table("items").unwrap(), 0).len(), 3);
}

#[test]
fn whoever_has_a_handle_from_before_the_index_cannot_write_past_it() {
    let db = database();
    let old = db.create_table(items()).unwrap();
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.insert(&old, &item(1, None, None)).unwrap();
    db.create_index("items", &NewIndex::new("by_number", ["number"])).unwrap();
    assert!(matches!(transaction.commit(), Err(Error::TableChanged { .. })));
    assert!(matches!(session.insert(&old, &item(1, None, None)), Err(Error::TableChanged { .. })));
    let mut transaction = session.begin().unwrap();
    let before = transaction.table("items").unwrap();
    transaction.create_index("items", &NewIndex::new("by_name", ["name"])).unwrap();
    let past_it = transaction.insert(&before, &item(1, None, None));
    assert!(matches!(past_it, Err(Error::TableChanged { .. })));
}

#[test]
fn an_index_is_named_dropped_and_emptied_with_its_table() {
    let db = &database();
    let table = indexed(db);
    db.session().unwrap().insert(&table, &item(1, Some(1), Some("one"))).unwrap();
    assert!(matches!(db.table("by_number"), Err(Error::IsIndex { .. })));
    assert!(matches!(db.drop_table("by_number"), Err(Error::IsIndex { .. })));
    assert!(matches!(db.truncate_table("by_number"), Err(Error::IsIndex { .. })));
    let by_number = NewIndex::new("by_number", ["number"]);
    assert!(matches!(db.create_index("items", &by_number), Err(Error::TableExists { .. })));
    assert!(matches!(
        db.create_index("by_name", &NewIndex::new("x", ["name"])),
        Err(Error::IsIndex { .. })
    ));
    assert!(matches!(db.drop_index("items"), Err(Error::UnknownIndex { .. })));
    let own = db.create_table(items().renamed("by_number").unwrap());
    assert!(matches!(own, Err(Error::TableExists { .. })));
    assert_eq!(db.tables().len(), 1);
    let table = db.rename_index("by_number", "numbers").unwrap();
    assert_eq!(table.definition().indexes()[0].name, "numbers");
    db.session().unwrap().insert(&table, &item(2, Some(2), None)).unwrap();
    assert_all_follow(db);
    db.truncate_table("items").unwrap();
    assert!(entries(db, &db.table("items").unwrap(), 0).is_empty());
    db.session().unwrap().insert(&db.table("items").unwrap(), &item(3, Some(3), None)).unwrap();
    assert_all_follow(db);
    db.drop_index("numbers").unwrap();
    db.create_table(items().renamed("numbers").unwrap()).unwrap();
    db.drop_table("items").unwrap();
    db.create_table(items().renamed("by_name").unwrap()).unwrap();
    assert_eq!(db.tables().len(), 2);
}

#[test]
fn a_dropped_column_takes_its_indexes_along() {
    let db = database();
    let table = indexed(&db);
    db.session().unwrap().insert(&table, &item(1, Some(1), Some("one"))).unwrap();
    let drop_name = TableChange::DropColumn { name: "name".into() };
    let table = db.alter_table("items", &[drop_name]).unwrap();
    let names: Vec<&str> =
        table.definition().indexes().iter().map(|index| index.name.as_str()).collect();
    assert_eq!(names, ["by_number"]);
    db.session().unwrap().insert(&table, &[2i64.into(), Value::Int32(2)]).unwrap();
    assert_all_follow(&db);
}

#[test]
fn a_table_in_the_place_of_another_has_its_indexes() {
    let db = database();
    let table = indexed(&db);
    let mut session = db.session().unwrap();
    session.insert(&table, &item(1, Some(1), Some("one"))).unwrap();
    let mut transaction = session.begin().unwrap();
    let new = transaction.create_substitute(table.definition().clone()).unwrap();
    transaction.insert(&new, &item(5, Some(5), None)).unwrap();
    transaction.replace_table(&table, &new).unwrap();
    transaction.commit().unwrap();
    let table = db.table("items").unwrap();
    assert_eq!(table.definition().indexes().len(), 2);
    assert_eq!(entries(&db, &table, 0).len(), 1);
    assert_all_follow(&db);
}

#[test]
fn entries_are_written_with_rows_alone() {
    let db = database();
    let table = indexed(&db);
    let mut session = db.session().unwrap();
    session.insert(&table, &item(1, Some(1), None)).unwrap();
    let by_number = session.snapshot().unwrap().index_entries(&table, 0).unwrap();
    let entry = [Value::Int32(1), 1i64.into()];
    assert!(matches!(session.insert(&by_number, &entry), Err(Error::IsIndex { .. })));
    assert!(matches!(session.upsert(&by_number, &entry), Err(Error::IsIndex { .. })));
    assert!(matches!(session.delete(&by_number, &entry), Err(Error::IsIndex { .. })));
    assert!(matches!(session.insert_many(&by_number, [&entry[..]]), Err(Error::IsIndex { .. })));
    let mut transaction = session.begin().unwrap();
    assert!(matches!(transaction.insert(&by_number, &entry), Err(Error::IsIndex { .. })));
    assert!(matches!(transaction.delete(&by_number, &entry), Err(Error::IsIndex { .. })));
}

#[test]
fn a_large_transaction_takes_its_entries_along() {
    let db = Fixture::in_memory().with_little_memory().create();
    let table = indexed(&db);
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    for id in 0..20_000 {
        transaction
            .insert(&table, &item(id, Some((id % 977) as i32), Some("a name of some length")))
            .unwrap();
    }
    for id in (0..20_000).step_by(3) {
        transaction.update(&table, &[id.into()], &[("number", Value::Int32(-1))]).unwrap();
    }
    transaction.commit().unwrap();
    assert_all_follow(&db);
}

/// What is stored is as it must be, that of entries too, and indexes agree with their tables.
fn assert_sound(db: &Database) {
    let options = OnlineOptions { busy_percent: 100, ..OnlineOptions::default() };
    let report = db.check(&options, &Progress::default()).unwrap();
    assert!(report.is_sound(), "{report}");
}

#[test]
fn entries_are_kept_in_cold_ranges() {
    let mut fixture = Fixture::in_memory().with_little_memory();
    fixture.options.past_memory = PastMemory::Always;
    let db = fixture.create();
    let table = indexed(&db);
    let mut session = db.session().unwrap();
    let number = |id: i64| (id * 7919 % 4001) as i32;
    for id in 0..4_000 {
        session.insert(&table, &item(id, Some(number(id)), Some("some text"))).unwrap();
    }
    db.checkpoint().unwrap();
    for id in (0..4_000).step_by(5) {
        session.update(&table, &[id.into()], &[("number", Value::Int32(-number(id)))]).unwrap();
        session.delete(&table, &[(id + 1).into()]).unwrap();
    }
    assert_all_follow(&db);
    assert_sound(&db);
    drop(session);
    db.close().unwrap();
    let db = fixture.open();
    assert_all_follow(&db);
    assert_sound(&db);
}

/// A change in a random history.
#[derive(Clone, Debug)]
enum Step {
    Insert(i64, Option<i32>),
    Upsert(i64, Option<i32>),
    Update(i64, Option<i32>),
    Move(i64, i64),
    Delete(i64),
    InsertMany(i64, u8),
    Savepoint,
    RollBackTo,
    Commit,
    RollBack,
    Truncate,
    MakeIndex,
    DropIndex,
    Checkpoint,
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let id = || 0..30i64;
    let number = || proptest::option::weighted(0.8, 0..12i32);
    prop_oneof![
        6 => (id(), number()).prop_map(|(id, number)| Step::Insert(id, number)),
        4 => (id(), number()).prop_map(|(id, number)| Step::Upsert(id, number)),
        6 => (id(), number()).prop_map(|(id, number)| Step::Update(id, number)),
        3 => (id(), id()).prop_map(|(from, to)| Step::Move(from, to)),
        4 => id().prop_map(Step::Delete),
        2 => (id(), 1..5u8).prop_map(|(id, count)| Step::InsertMany(id, count)),
        2 => Just(Step::Savepoint),
        2 => Just(Step::RollBackTo),
        4 => Just(Step::Commit),
        1 => Just(Step::RollBack),
        1 => Just(Step::Truncate),
        1 => Just(Step::MakeIndex),
        1 => Just(Step::DropIndex),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Crash),
    ]
}

/// What the rows must be: id to number, where no number is there twice.
type Model = BTreeMap<i64, Option<i32>>;

fn is_free(model: &Model, id: i64, number: Option<i32>) -> bool {
    number.is_none() || model.iter().all(|(other, taken)| *other == id || *taken != number)
}

/// Does a change to rows, which must succeed exactly where the model says so.
fn change(transaction: &mut Transaction<'_>, table: &Table, model: &mut Model, step: &Step) {
    let set = |number: Option<i32>| number.map_or(Value::Null, Value::Int32);
    let refused = |outcome: Result<bool, Error>| match outcome {
        Ok(done) => done,
        Err(Error::UniqueViolated { .. } | Error::DuplicateKey { .. }) => false,
        Err(other) => panic!("{other}"),
    };
    match *step {
        Step::Insert(id, number) => {
            let fits = !model.contains_key(&id) && is_free(model, id, number);
            let row = item(id, number, Some("row"));
            assert_eq!(refused(transaction.insert(table, &row).map(|()| true)), fits);
            fits.then(|| model.insert(id, number));
        }
        Step::Upsert(id, number) => {
            let fits = is_free(model, id, number);
            let row = item(id, number, None);
            assert_eq!(refused(transaction.upsert(table, &row).map(|()| true)), fits);
            fits.then(|| model.insert(id, number));
        }
        Step::Update(id, number) => {
            let fits = model.contains_key(&id) && is_free(model, id, number);
            let updated = transaction.update(table, &[id.into()], &[("number", set(number))]);
            assert_eq!(refused(updated), fits);
            fits.then(|| model.insert(id, number));
        }
        Step::Move(from, to) => {
            let fits = model.contains_key(&from) && (from == to || !model.contains_key(&to));
            let updated = transaction.update(table, &[from.into()], &[("id", to.into())]);
            assert_eq!(refused(updated), fits);
            if let (true, Some(number)) = (fits, model.get(&from).copied()) {
                model.remove(&from);
                model.insert(to, number);
            }
        }
        Step::Delete(id) => {
            let deleted = transaction.delete(table, &[id.into()]).unwrap();
            assert_eq!(deleted, model.remove(&id).is_some());
        }
        Step::InsertMany(first, count) => {
            for id in first..first + i64::from(count) {
                change(transaction, table, model, &Step::Insert(id, None));
            }
        }
        _ => unreachable!(),
    }
}

fn unique_numbers() -> NewIndex {
    NewIndex::new("numbers", ["number"]).unique()
}

/// Runs a history of one transaction after the other, and compares behind each.
fn run(steps: &[Step]) {
    let disk = Arc::new(MemoryDisk::new());
    let open = |disk: &Arc<MemoryDisk>| {
        Database::open_on(Arc::clone(disk) as _, "/db", Options::small()).unwrap()
    };
    let mut db = Database::create_on(Arc::clone(&disk) as _, "/db", Options::small()).unwrap();
    let mut disk = disk;
    indexed(&db);
    db.create_index("items", &unique_numbers()).unwrap();
    let mut committed = Model::new();
    let mut steps = steps.iter();
    while steps.len() > 0 {
        let mut session: Session = db.session().unwrap();
        let mut transaction = session.begin().unwrap();
        let mut model = committed.clone();
        let mut table = transaction.table("items").unwrap();
        let mut savepoints: Vec<(Savepoint, Model)> = Vec::new();
        let mut crashes = false;
        let mut is_kept = true;
        for step in steps.by_ref() {
            match step {
                Step::Commit => break,
                Step::RollBack => {
                    is_kept = false;
                    break;
                }
                Step::Crash => {
                    crashes = true;
                    break;
                }
                Step::Savepoint => savepoints.push((transaction.savepoint(), model.clone())),
                Step::RollBackTo => {
                    if let Some((savepoint, then)) = savepoints.pop() {
                        transaction.rollback_to(savepoint).unwrap();
                        model = then;
                        table = transaction.table("items").unwrap();
                    }
                }
                Step::Truncate => {
                    table = transaction.truncate_table("items").unwrap();
                    model.clear();
                }
                Step::MakeIndex => {
                    match transaction.create_index("items", &NewIndex::new("more", ["name"])) {
                        Ok(made) => table = made,
                        Err(Error::TableExists { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                Step::DropIndex => match transaction.drop_index("more") {
                    Ok(without) => table = without,
                    Err(Error::UnknownIndex { .. }) => {}
                    Err(other) => panic!("{other}"),
                },
                Step::Checkpoint => drop(db.checkpoint().unwrap()),
                rows => change(&mut transaction, &table, &mut model, rows),
            }
            let snapshot = transaction.snapshot();
            assert_follows(&snapshot, &table);
        }
        if is_kept {
            transaction.commit_as(Durability::Durable).unwrap();
            committed = model;
        } else {
            transaction.rollback();
        }
        drop(session);
        if crashes {
            disk = Arc::new(disk.copy());
            db = open(&disk);
        }
        assert_all_follow(&db);
        let snapshot = db.session().unwrap().snapshot().unwrap();
        let rows = all(&snapshot, &db.table("items").unwrap());
        let found: Model = rows
            .iter()
            .map(|row| (row[0].as_i64().unwrap(), row[1].as_i64().map(|number| number as i32)))
            .collect();
        assert_eq!(found, committed);
    }
    assert_sound(&db);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn indexes_follow_random_histories(steps in proptest::collection::vec(step(), 1..80)) {
        run(&steps);
    }
}
