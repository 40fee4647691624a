//! Columns come, go and get other names, and so do tables: rows from before are read as the table is
//! now, nothing is rewritten, and all of it is there after a reopen, with and without a checkpoint.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, all_rows, definition_of, generated, ids, note, notes, refused};
use onrush::{
    CheckOptions, CheckProgress, ColumnDefinition, DataType, Database, DefaultValue, Error,
    KeyStrategy, NeedsNoRows, OnlineOptions, Row, TableChange, Value,
};

fn add(column: ColumnDefinition) -> TableChange {
    TableChange::AddColumn(column)
}

fn drop_column(name: &str) -> TableChange {
    TableChange::DropColumn { name: name.into() }
}

fn rename_column(from: &str, to: &str) -> TableChange {
    TableChange::RenameColumn { from: from.into(), to: to.into() }
}

fn rename(to: &str) -> TableChange {
    TableChange::Rename { to: to.into() }
}

fn stars() -> ColumnDefinition {
    ColumnDefinition::new("stars", DataType::Int32).not_null().default_value(3i32)
}

fn rows_of(db: &Database, name: &str) -> Vec<Row> {
    all_rows(&mut db.session().unwrap(), &db.table(name).unwrap())
}

fn checks_out(db: &Database) {
    let report = db.check(&OnlineOptions::default(), &CheckProgress::default()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn rows_of_every_version_are_read_as_the_table_is_now() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "first")).unwrap();
    let table = db.alter_table("notes", &[add(stars())]).unwrap();
    session.insert(&table, &[2i64.into(), "second".into(), 5i32.into()]).unwrap();
    db.checkpoint().unwrap();
    let table = db.alter_table("notes", &[drop_column("note")]).unwrap();
    session.insert(&table, &[3i64.into(), Value::Default]).unwrap();
    let changes = [
        rename_column("stars", "points"),
        add(ColumnDefinition::new("note", DataType::Bytes)),
        rename("marks"),
    ];
    let table = db.alter_table("notes", &changes).unwrap();
    session.insert(&table, &[4i64.into(), 4i32.into(), vec![7u8].into()]).unwrap();
    let row = |id: i64, points: i32, note: Value<'static>| vec![id.into(), points.into(), note];
    let mut expected = vec![
        row(1, 3, Value::Null),
        row(2, 5, Value::Null),
        row(3, 3, Value::Null),
        row(4, 4, vec![7u8].into()),
    ];
    assert_eq!(rows_of(&db, "marks"), expected);
    checks_out(&db);
    // A row that is changed becomes one of today.
    session.update(&table, &[1i64.into()], &[("points", 9i32.into())]).unwrap();
    expected[0] = row(1, 9, Value::Null);
    drop((session, table, db));
    for _ in 0..2 {
        let db = fixture.open();
        assert_eq!(rows_of(&db, "marks"), expected);
        refused(db.table("notes"), &["notes"]);
        checks_out(&db);
        db.close().unwrap();
    }
    let (disk, path) = (fixture.disk.clone(), fixture.path());
    let options = CheckOptions::default();
    let report = onrush_check::check(disk, &path, &options, &CheckProgress::default()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn a_handle_from_before_neither_writes_nor_misreads() {
    let fixture = Fixture::in_memory();
    let (db, old) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&old, &note(1, "old")).unwrap();
    let mut before = session.snapshot().unwrap();
    let mut other = db.session().unwrap();
    let mut transaction = other.begin().unwrap();
    transaction.insert(&old, &note(2, "late")).unwrap();
    let new = db.alter_table("notes", &[add(stars())]).unwrap();
    assert!(new.is_current() && !old.is_current());

    let changed = |error: Error| assert!(matches!(error, Error::TableChanged { .. }), "{error}");
    changed(refused(session.insert(&old, &note(3, "no")), &["notes", "altered"]));
    changed(refused(session.insert_many(&old, [&note(3, "no")[..]]), &["notes"]));
    changed(refused(session.update(&old, &[1i64.into()], &[("note", "no".into())]), &["notes"]));
    changed(refused(session.delete(&old, &[1i64.into()]), &["notes"]));
    changed(refused(transaction.commit(), &["notes"]));
    // What it reads was written before; a newer row it does not take for one of its own.
    assert_eq!(session.get(&old, &[1i64.into()]).unwrap(), Some(note(1, "old").into()));
    session.insert(&new, &[4i64.into(), "new".into(), 1i32.into()]).unwrap();
    changed(refused(session.get(&old, &[4i64.into()]), &["notes"]));
    // A snapshot from before has its rows, seen by either.
    assert_eq!(before.get(&new, &[1i64.into()]).unwrap().unwrap()[2], 3i32.into());
    assert_eq!(before.get(&new, &[4i64.into()]).unwrap(), None);
    assert_eq!(ids(&all_rows(&mut session, &new)), [1, 4]);
}

#[test]
fn a_column_without_a_value_for_the_rows_needs_an_empty_table() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let bare = || ColumnDefinition::new("bare", DataType::Int32).not_null();
    let key = || ColumnDefinition::new("key", DataType::Uuid).default_key(KeyStrategy::UuidV4);
    session.insert(&table, &note(1, "a row")).unwrap();
    for (column, wanted) in [(bare(), NeedsNoRows::NoValue), (key(), NeedsNoRows::GeneratedKeys)] {
        match db.alter_table("notes", &[add(stars()), add(column)]) {
            Err(Error::RowsInTheWay { reason, .. }) => assert_eq!(reason, wanted),
            other => panic!("{:?}", other.map(|_| ())),
        }
    }
    // Nothing has changed, and the handle is as good as it was.
    assert!(table.is_current());
    session.delete(&table, &[1i64.into()]).unwrap();
    let table = db.alter_table("notes", &[add(bare()), add(key())]).unwrap();
    session.insert(&table, &[2i64.into(), "x".into(), 1i32.into(), Value::Default]).unwrap();
    assert!(matches!(rows_of(&db, "notes")[0][3], Value::Uuid(_)));
}

#[test]
fn changes_that_cannot_be_made_are_refused_and_change_nothing() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    db.create_table(common::accounts()).unwrap();
    let cases: [(&[TableChange], &[&str]); 6] = [
        (&[drop_column("id")], &["id", "primary key"]),
        (&[drop_column("missing")], &["missing"]),
        (&[add(stars()), add(stars())], &["stars", "twice"]),
        (&[rename_column("note", "id")], &["id", "twice"]),
        (&[rename("accounts")], &["accounts", "exists"]),
        (&[rename("")], &["empty"]),
    ];
    for (changes, words) in cases {
        refused(db.alter_table("notes", changes), words);
    }
    refused(db.alter_table("missing", &[add(stars())]), &["missing"]);
    assert!(table.is_current());
    assert_eq!(definition_of(&table), notes());
}

#[test]
fn generated_keys_go_on_through_alterations_and_crashes() {
    let fixture = Fixture::in_memory();
    let identity = KeyStrategy::Identity { start: 1, strict: true };
    let mut definition = onrush::TableDefinition::builder("log");
    for (name, key) in [("gone", false), ("id", true)] {
        let column = ColumnDefinition::new(name, DataType::Int64);
        definition = definition.column(if key { column.default_key(identity) } else { column });
    }
    let (db, table) = fixture.create_with(definition.primary_key(["id"]).build().unwrap());
    let mut session = db.session().unwrap();
    for _ in 0..10 {
        session.insert(&table, &[]).unwrap();
    }
    // The key stands at another place from now on.
    let table = db.alter_table("log", &[drop_column("gone"), rename("journal")]).unwrap();
    for _ in 0..2000 {
        session.insert(&table, &[]).unwrap();
    }
    drop((session, table, db));
    for round in 0..3 {
        let db = fixture.open();
        let table = db.table("journal").unwrap();
        let mut session = db.session().unwrap();
        let last = ids(&all_rows(&mut session, &table)).last().copied().unwrap();
        session.insert(&table, &[]).unwrap();
        let all = ids(&all_rows(&mut session, &table));
        assert!(all.last().unwrap() > &last, "{round}");
        assert_eq!(all.len(), 2011 + round);
        checks_out(&db);
        if round == 1 {
            db.checkpoint().unwrap();
        }
    }
}

#[test]
fn inserts_go_on_while_a_table_is_altered() {
    let fixture = Fixture::in_memory();
    let (db, _) = fixture.create_with(generated(KeyStrategy::SessionOffset));
    std::thread::scope(|scope| {
        let inserters: Vec<_> = (0..3)
            .map(|_| {
                let db = db.clone();
                scope.spawn(move || {
                    let (mut session, mut rows, mut refusals) = (db.session().unwrap(), 0, 0);
                    let mut table = db.table("log").unwrap();
                    while rows < 2000 {
                        match session.insert_token(&table, &[]) {
                            Ok(_) => rows += 1,
                            Err(Error::TableChanged { .. }) => {
                                refusals += 1;
                                table = db.table("log").unwrap();
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                    refusals
                })
            })
            .collect();
        for number in 0..40 {
            let name = format!("c{number}");
            db.alter_table("log", &[add(ColumnDefinition::new(&name, DataType::Int32))]).unwrap();
            if number % 2 == 0 {
                db.alter_table("log", &[drop_column(&name)]).unwrap();
            }
        }
        for inserter in inserters {
            inserter.join().unwrap();
        }
    });
    let table = db.table("log").unwrap();
    assert_eq!(table.definition().columns().len(), 2 + 20);
    assert_eq!(all_rows(&mut db.session().unwrap(), &table).len(), 6000);
    checks_out(&db);
    drop(table);
    drop(db);
    let db = fixture.open();
    assert_eq!(rows_of(&db, "log").len(), 6000);
}

#[test]
fn the_version_of_definitions_grows_when_a_name_comes_to_mean_something_else() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let created = db.definitions_version();
    session.insert(&table, &note(1, "one")).unwrap();
    assert_eq!(db.definitions_version(), created);
    let mut last = created;
    let mut grows = || {
        let now = db.definitions_version();
        assert!(std::mem::replace(&mut last, now) < now);
    };
    db.alter_table("notes", &[add(stars())]).unwrap();
    grows();
    db.alter_table("notes", &[rename("remarks")]).unwrap();
    grows();
    db.drop_table("remarks").unwrap();
    grows();
    db.create_table(notes()).unwrap();
    grows();
}

fn set(name: &str, nullable: bool, default: DefaultValue) -> TableChange {
    TableChange::SetColumn { name: name.into(), nullable, default }
}

/// The log leaves out what is at its default: each row comes back with the default of its own time.
#[test]
fn rows_keep_the_values_of_the_defaults_that_they_were_inserted_with() {
    for (checkpoint_at, cleanly) in [(None, false), (Some(1), false), (Some(2), true)] {
        let fixture = Fixture::in_memory();
        let (db, _) = fixture.create_with(notes());
        let mut session = db.session().unwrap();
        let defaults = [
            (true, DefaultValue::Constant("first".into())),
            (false, DefaultValue::Constant("second".into())),
            (true, DefaultValue::None),
        ];
        for (id, (nullable, default)) in (1i64..).zip(defaults) {
            let table = db.alter_table("notes", &[set("note", nullable, default)]).unwrap();
            session.insert(&table, &[id.into(), Value::Default]).unwrap();
            if checkpoint_at == Some(id) {
                db.checkpoint().unwrap();
            }
        }
        let table = db.alter_table("notes", &[rename_column("note", "text")]).unwrap();
        let expected: [Row; 3] = [
            vec![1i64.into(), "first".into()],
            vec![2i64.into(), "second".into()],
            vec![3i64.into(), Value::Null],
        ];
        assert_eq!(all_rows(&mut session, &table), expected);
        checks_out(&db);
        drop(session);
        if cleanly {
            db.close().unwrap();
        } else {
            drop((db, table));
        }
        let db = fixture.open();
        assert_eq!(rows_of(&db, "notes"), expected);
        checks_out(&db);
        db.alter_table("notes", &[drop_column("text")]).unwrap();
        assert_eq!(ids(&rows_of(&db, "notes")), [1, 2, 3]);
        checks_out(&db);
    }
}

#[test]
fn a_column_with_nulls_stays_one_that_may_be_null() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&table, &[1i64.into(), Value::Null]).unwrap();
    let not_null = [set("note", false, DefaultValue::None)];
    let error = refused(db.alter_table("notes", &not_null), &["notes", "note", "null"]);
    assert!(matches!(error, Error::RowsHoldNull { .. }));
    session.update(&table, &[1i64.into()], &[("note", "one".into())]).unwrap();
    let table = db.alter_table("notes", &not_null).unwrap();
    refused(session.insert(&table, &[2i64.into(), Value::Null]), &["note"]);
    session.insert(&table, &note(2, "two")).unwrap();
    assert_eq!(ids(&all_rows(&mut session, &table)), [1, 2]);
    checks_out(&db);
}
