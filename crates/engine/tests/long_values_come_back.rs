//! Rows with values of any length come back as they were written, beside a model: through inserts, updates, upserts,
//! deletes, transactions that end either way, savepoints, snapshots, truncation, other definitions, and a reopening.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use common::{Fixture, Random};
use onrush::{
    ColumnDefinition, DataType, Database, Error, NewIndex, OnlineOptions, Options, Row,
    ScanOptions, Session, Table, TableChange, TableDefinition, TypeError, Value,
};
use onrush_check::{CheckOptions, Progress, check};
use onrush_files::OsDisk;

const PIECE: usize = onrush::long_values::PIECE_BYTES;

/// `things (id, name, body, picture, number)`.
fn things() -> TableDefinition {
    TableDefinition::builder("things")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("name", DataType::Varchar(100)))
        .column(ColumnDefinition::new("body", DataType::Text))
        .column(ColumnDefinition::new("picture", DataType::Bytes))
        .column(ColumnDefinition::new("number", DataType::Int32).not_null().default_value(7i32))
        .primary_key(["id"])
        .build()
        .unwrap()
}

type Model = BTreeMap<i64, Row>;

fn text(random: &mut Random, bytes: usize) -> String {
    let first = random.below(26) as u8;
    (0..bytes).map(|at| char::from(b'a' + (first + (at % 26) as u8) % 26)).collect()
}

fn length(random: &mut Random) -> usize {
    let lengths =
        [0, 1, 63, 64, 3000, 4100, 7800, 7999, 8001, PIECE, PIECE + 1, 2 * PIECE, 65_535, 65_536];
    match random.below(20) {
        0 => 300_000 + random.below(100_000) as usize,
        1 => 2_000_000,
        2..8 => random.below(30_000) as usize,
        _ => lengths[random.below(lengths.len() as u64) as usize],
    }
}

fn body(random: &mut Random) -> Value<'static> {
    match random.below(8) {
        0 => Value::Null,
        _ => {
            let bytes = length(random);
            Value::Text(text(random, bytes).into())
        }
    }
}

fn picture(random: &mut Random) -> Value<'static> {
    match random.below(3) {
        0 => Value::Bytes(vec![random.below(256) as u8; length(random)].into()),
        _ => Value::Null,
    }
}

fn row(random: &mut Random, id: i64) -> Row {
    let name = text(random, (id % 100) as usize);
    let number = random.below(1000) as i32;
    vec![id.into(), Value::Text(name.into()), body(random), picture(random), number.into()]
}

fn all(session: &mut Session, table: &Table) -> Model {
    let rows = session.scan(table, &ScanOptions::default()).unwrap();
    rows.map(|row| row.unwrap()).map(|row| (row[0].as_i64().unwrap(), row)).collect()
}

fn assert_same(session: &mut Session, table: &Table, model: &Model) {
    let stored = all(session, table);
    assert!(stored == *model, "{:?} beside {:?}", stored.keys(), model.keys());
    for (id, row) in model {
        assert!(session.get(table, &[(*id).into()]).unwrap().as_ref() == Some(row), "row {id}");
    }
}

fn assert_sound(folder: &Path) {
    let disk = Arc::new(OsDisk::new());
    let report = check(disk, folder, &CheckOptions::default(), &Progress::default()).unwrap();
    assert!(report.is_sound(), "{report}");
}

fn assert_open_sound(db: &Database) {
    let report = db
        .check(
            &OnlineOptions { busy_percent: 100, ..OnlineOptions::default() },
            &Progress::default(),
        )
        .unwrap();
    assert!(report.is_sound(), "{report}");
}

/// One change, to the table and to the model; rows stand under keys of a few.
fn change(session: &mut Session, table: &Table, random: &mut Random, model: &mut Model) {
    let id = random.below(12) as i64;
    let key: [Value<'static>; 1] = [id.into()];
    let new = row(random, id);
    match random.below(7) {
        0..2 => match session.insert(table, &new) {
            Ok(()) => assert!(model.insert(id, new).is_none()),
            Err(error) => {
                assert!(matches!(error, Error::DuplicateKey { .. }), "{error}");
                assert!(model.contains_key(&id));
            }
        },
        2 => {
            session.upsert(table, &new).unwrap();
            model.insert(id, new);
        }
        3 => {
            let body = body(random);
            let set = session.update(table, &key, &[("body", body.clone())]).unwrap();
            assert_eq!(set, model.contains_key(&id));
            model.entry(id).and_modify(|row| row[2] = body);
        }
        4 => {
            // Long values stay as they are.
            let set = session.update(table, &key, &[("number", 5i32.into())]).unwrap();
            assert_eq!(set, model.contains_key(&id));
            model.entry(id).and_modify(|row| row[4] = 5i32.into());
        }
        5 => {
            let other = 12 + random.below(12) as i64;
            match session.update(table, &key, &[("id", other.into())]) {
                Ok(moved) => {
                    assert_eq!(moved, model.contains_key(&id));
                    if let Some(mut row) = model.remove(&id) {
                        row[0] = other.into();
                        assert!(model.insert(other, row).is_none());
                    }
                }
                Err(error) => assert!(matches!(error, Error::DuplicateKey { .. }), "{error}"),
            }
        }
        _ => {
            let gone = session.delete(table, &key).unwrap();
            assert_eq!(gone, model.remove(&id).is_some());
        }
    }
}

fn change_inside(session: &mut Session, table: &Table, random: &mut Random, model: &mut Model) {
    let (mut now, mut transaction) = (model.clone(), session.begin().unwrap());
    let mut savepoint = None;
    for _ in 0..1 + random.below(6) {
        let id = random.below(12) as i64;
        let key: [Value<'static>; 1] = [id.into()];
        match random.below(7) {
            0..2 => {
                let new = row(random, id);
                transaction.upsert(table, &new).unwrap();
                now.insert(id, new);
            }
            2 => {
                let picture = picture(random);
                let set = [("picture", picture.clone())];
                assert_eq!(transaction.update(table, &key, &set).unwrap(), now.contains_key(&id));
                now.entry(id).and_modify(|row| row[3] = picture);
            }
            3 => {
                let gone = transaction.delete(table, &key).unwrap();
                assert_eq!(gone, now.remove(&id).is_some());
            }
            4 => savepoint = Some((transaction.savepoint(), now.clone())),
            5 => {
                if let Some((savepoint, then)) = &savepoint {
                    transaction.rollback_to(*savepoint).unwrap();
                    now = then.clone();
                }
            }
            _ => assert!(transaction.get(table, &key).unwrap().as_ref() == now.get(&id)),
        }
    }
    let seen = transaction.scan(table, &ScanOptions::default()).unwrap();
    let seen: Model =
        seen.map(|row| row.unwrap()).map(|it| (it[0].as_i64().unwrap(), it)).collect();
    assert!(seen == now, "{:?} beside {:?}", seen.keys(), now.keys());
    let view = transaction.snapshot();
    for row in view.scan(table, &ScanOptions::default()).unwrap() {
        let row = row.unwrap();
        assert!(now.get(&row[0].as_i64().unwrap()) == Some(&row));
    }
    if random.below(3) > 0 {
        transaction.commit().unwrap();
        *model = now;
    }
}

fn history(seed: u64, indexed: bool) {
    let mut random = Random(seed);
    let mut fixture = Fixture::new();
    fixture.options = Options { large_transaction_bytes: 100_000, ..Options::small() };
    let (mut db, mut table) = fixture.create_with(things());
    if indexed {
        let mut session = db.session().unwrap();
        let mut transaction = session.begin().unwrap();
        transaction.create_index("things", &NewIndex::new("by_number", ["number"])).unwrap();
        table = transaction.create_index("things", &NewIndex::new("by_name", ["name"])).unwrap();
        transaction.commit().unwrap();
    }
    let mut model = Model::new();
    for round in 0..4 {
        let mut session = db.session().unwrap();
        for _ in 0..25 {
            match random.below(4) {
                0 => change_inside(&mut session, &table, &mut random, &mut model),
                _ => change(&mut session, &table, &mut random, &mut model),
            }
        }
        assert_same(&mut session, &table, &model);
        if round == 1 {
            let more = ColumnDefinition::new("more", DataType::Text);
            table = db.alter_table("things", &[TableChange::AddColumn(more)]).unwrap();
            let as_now = |mut row: Row| {
                row.push(Value::Null);
                row
            };
            assert!(
                all(&mut session, &table)
                    == model.clone().into_iter().map(|(id, row)| (id, as_now(row))).collect()
            );
            table = db
                .alter_table("things", &[TableChange::DropColumn { name: "more".into() }])
                .unwrap();
            assert_same(&mut session, &table, &model);
        }
        if round == 2 && random.below(2) == 0 {
            db.truncate_table("things").unwrap();
            model.clear();
        }
        drop(session);
        assert_open_sound(&db);
        db.close().unwrap();
        assert_sound(&fixture.path());
        db = fixture.open();
        table = db.table("things").unwrap();
        assert_same(&mut db.session().unwrap(), &table, &model);
    }
    db.drop_table("things").unwrap();
    assert!(db.tables().is_empty());
    db.close().unwrap();
    assert_sound(&fixture.path());
}

#[test]
fn any_history_of_any_lengths() {
    (0..6).for_each(|seed| history(seed, false));
}

#[test]
fn and_with_indexes() {
    (100..104).for_each(|seed| history(seed, true));
}

#[test]
fn a_batch_is_whole() {
    let fixture = Fixture::new();
    let (db, table) = fixture.create_with(things());
    let (mut session, mut random) = (db.session().unwrap(), Random(9));
    let model: Model = (0..40).map(|id| (id, row(&mut random, id))).collect();
    session.insert_many(&table, model.values().map(Vec::as_slice)).unwrap();
    assert_same(&mut session, &table, &model);
    let again = model.values().rev().map(Vec::as_slice);
    assert!(matches!(session.insert_many(&table, again), Err(Error::DuplicateKey { .. })));
    assert_same(&mut session, &table, &model);
    assert_open_sound(&db);
}

#[test]
fn a_snapshot_keeps_what_it_sees() {
    let fixture = Fixture::new();
    let (db, table) = fixture.create_with(things());
    let (mut session, mut random) = (db.session().unwrap(), Random(4));
    let model: Model = (0..12).map(|id| (id, row(&mut random, id))).collect();
    session.insert_many(&table, model.values().map(Vec::as_slice)).unwrap();
    let before = session.snapshot().unwrap();
    for id in 0..12i64 {
        session.upsert(&table, &row(&mut random, id)).unwrap();
        session.delete(&table, &[id.into()]).unwrap();
    }
    let seen = before.scan(&table, &ScanOptions::default()).unwrap().map(|row| row.unwrap());
    assert!(seen.map(|row| (row[0].as_i64().unwrap(), row)).collect::<Model>() == model);
    let changes = session.snapshot().unwrap().changes_since(&before, &table).unwrap();
    for change in changes {
        let change = change.unwrap();
        let before = change.before.unwrap();
        assert!(model.get(&before[0].as_i64().unwrap()) == Some(&before));
        assert!(change.after.is_none());
    }
    assert_open_sound(&db);
}

#[test]
fn a_row_is_read_as_a_whole_while_others_change_it() {
    let fixture = Fixture::new();
    let (db, table) = fixture.create_with(things());
    let row = |number: usize| -> Row {
        let text = char::from(b'a' + (number % 26) as u8).to_string();
        let body = Value::Text(text.repeat(20_000 + 1000 * (number % 26)).into());
        vec![1i64.into(), Value::Null, body, Value::Null, (number as i32).into()]
    };
    db.session().unwrap().insert(&table, &row(0)).unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut session = db.session().unwrap();
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let read = session.get(&table, &[1i64.into()]).unwrap().unwrap();
                    let number = read[4].as_i64().unwrap() as usize;
                    assert!(read == row(number), "{number}");
                    let mut scan = session.scan(&table, &ScanOptions::default()).unwrap();
                    let read = scan.next().unwrap().unwrap();
                    assert!(read == row(read[4].as_i64().unwrap() as usize));
                }
            });
        }
        let mut session = db.session().unwrap();
        session.set_durability(onrush::Durability::Delayed);
        for number in 1..2000 {
            session.upsert(&table, &row(number)).unwrap();
            if number % 500 == 0 {
                db.checkpoint().unwrap();
                assert_open_sound(&db);
            }
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_open_sound(&db);
}

#[test]
fn who_does_not_want_a_long_value_does_not_read_it() {
    let fixture = Fixture::new();
    let (db, table) = fixture.create_with(things());
    let mut session = db.session().unwrap();
    let long = "x".repeat(100_000);
    session
        .insert(&table, &[1i64.into(), "a".into(), long.as_str().into(), Value::Null, 3i32.into()])
        .unwrap();
    let scan = session.scan(&table, &ScanOptions::default()).unwrap().only_columns([0, 4]);
    let schema = table.schema();
    let rows = scan.visit_raw(|key, row| {
        assert!(row.len() < 1000, "{} bytes", row.len());
        let row = schema.view(key, row).unwrap();
        assert_eq!(row.column(4).unwrap(), 3i32.into());
        assert!(matches!(row.column(2), Err(TypeError::RowDamaged { .. })));
    });
    assert_eq!(rows.unwrap(), 1);
    let scan = session.scan(&table, &ScanOptions::default()).unwrap().only_columns([2]);
    scan.visit_raw(|key, row| {
        assert_eq!(schema.view(key, row).unwrap().column(2).unwrap(), long.as_str().into());
    })
    .unwrap();
}

#[test]
fn rows_move_with_their_long_values() {
    let fixture = Fixture::new();
    let (db, front) = fixture.create_with(things());
    let target = db.create_table(things().renamed("target").unwrap()).unwrap();
    let (mut session, mut random) = (db.session().unwrap(), Random(6));
    let model: Model = (0..12).map(|id| (id, row(&mut random, id))).collect();
    session.insert_many(&front, model.values().map(Vec::as_slice)).unwrap();
    while session.move_rows(&front, &target, 5).unwrap() > 0 {}
    assert_same(&mut session, &front, &Model::new());
    assert_same(&mut session, &target, &model);
    assert_open_sound(&db);
    drop(session);
    db.close().unwrap();
    assert_sound(&fixture.path());
}
