//! What happens at the limits: it works up to each, and behind it there is an error that says so.
//! Ends of key strategies: used_up_keys_are_an_error.rs.

#![allow(clippy::unwrap_used)]

mod common;

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use common::{Fixture, all_rows, delayed_session, note, noted, notes, refused};
use onrush::{
    ColumnDefinition, DataType, Database, Error, Lsn, Options, TableDefinition, TypeError, Value,
};
use onrush_check::{CheckOptions, Progress, check};
use onrush_files::OsDisk;

fn assert_sound(folder: &Path) {
    let disk = Arc::new(OsDisk::new());
    let report = check(disk, folder, &CheckOptions::default(), &Progress::default()).unwrap();
    assert!(report.is_sound(), "{report}");
}

/// Closes the database, checks it and opens it again.
fn reopened(fixture: &Fixture, db: Database) -> Database {
    db.close().unwrap();
    assert_sound(&fixture.path());
    fixture.open()
}

#[test]
fn a_row_of_exactly_the_most_bytes() {
    let fixture = Fixture::new();
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    // The key has 8 bytes, the row some more than the text: the largest that is stored in one place, and the next.
    let text = "x".repeat(8000);
    let bytes = |session: &mut onrush::Session, bytes: usize| {
        session.upsert(&table, &note(1, &text[..bytes])).unwrap();
        let scan = session.scan(&table, &onrush::ScanOptions::default()).unwrap();
        let mut stored = 0;
        scan.only_columns([0]).visit_raw(|key, row| stored = key.len() + row.len()).unwrap();
        stored
    };
    let largest = (7900..8000).rev().find(|of| bytes(&mut session, *of) > 4000).unwrap();
    assert_eq!(bytes(&mut session, largest), 8000);
    assert!(bytes(&mut session, largest + 1) < 100);
    for id in 2..40 {
        session.insert(&table, &note(id, &text[..largest + id as usize % 2])).unwrap();
    }
    drop(session);
    let db = reopened(&fixture, db);
    let table = db.table("notes").unwrap();
    let row = db.session().unwrap().get(&table, &[Value::Int64(39)]).unwrap();
    assert_eq!(row, Some(noted(39, &text[..=largest])));
}

#[test]
fn a_row_of_more_than_a_row_may_have() {
    let fixture = Fixture::new();
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    let text = "x".repeat(256 << 20);
    let error = refused(session.insert(&table, &note(1, &text)), &["notes", "268435456"]);
    assert!(matches!(error, Error::Type(TypeError::RowTooLarge { .. })));
    session.insert(&table, &note(1, &text[..text.len() - 100])).unwrap();
    drop(session);
    let db = reopened(&fixture, db);
    let table = db.table("notes").unwrap();
    let row = db.session().unwrap().get(&table, &[Value::Int64(1)]).unwrap();
    assert_eq!(row, Some(noted(1, &text[..text.len() - 100])));
    // What cannot stand elsewhere must fit as it did.
    let mut wide = TableDefinition::builder("wide")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("note", DataType::Text));
    for at in 0..500 {
        wide = wide.column(ColumnDefinition::new(format!("c{at}"), DataType::Text));
    }
    let wide = db.create_table(wide.primary_key(["id"]).build().unwrap()).unwrap();
    let mut row = vec![Value::Int64(1), text[..10_000].into()];
    row.extend((0..500).map(|_| Value::from("not so long that it would move")));
    let error = refused(db.session().unwrap().insert(&wide, &row), &["wide", "8000"]);
    assert!(matches!(error, Error::Type(TypeError::RowTooLarge { .. })));
}

#[test]
fn a_key_of_exactly_the_most_bytes() {
    let fixture = Fixture::new();
    let name = ColumnDefinition::new("name", DataType::Text).not_null();
    let table = TableDefinition::builder("t").column(name).primary_key(["name"]).build().unwrap();
    let (db, table) = fixture.create_with(table);
    let mut session = delayed_session(&db);
    // Text ends with two bytes; a zero takes two.
    let key = |first: char| format!("{first}{}", "k".repeat(1021));
    for first in 'a'..='z' {
        session.insert(&table, &[key(first).into()]).unwrap();
    }
    refused(session.insert(&table, &[format!("{}k", key('a')).into()]), &["1024"]);
    let zeros = "\0".repeat(511);
    session.insert(&table, &[zeros.as_str().into()]).unwrap();
    refused(session.insert(&table, &[format!("{zeros}k").into()]), &["1024"]);
    drop(session);
    let db = reopened(&fixture, db);
    let table = db.table("t").unwrap();
    let mut session = db.session().unwrap();
    assert_eq!(all_rows(&mut session, &table).len(), 27);
    assert!(session.delete(&table, &[key('m').into()]).unwrap());
}

#[test]
fn the_most_columns_with_the_longest_names() {
    let wide = |columns: usize, name_bytes: usize| {
        let name = |number: usize| format!("{number:0name_bytes$}");
        let mut builder = TableDefinition::builder("t".repeat(name_bytes));
        for number in 0..columns {
            builder = builder.column(ColumnDefinition::new(name(number), DataType::Int16));
        }
        builder.primary_key([name(0)]).build()
    };
    let error = wide(1025, 128).unwrap_err();
    assert!(matches!(error, TypeError::ColumnCount { count: 1025, limit: 1024, .. }), "{error}");
    refused(wide(2, 129).map_err(Error::from), &["128"]);

    // Its definition is a log record, and there is little space for records.
    let fixture = Fixture::new();
    let db = fixture.create();
    let error = refused(db.create_table(wide(1024, 128).unwrap()), &["log_ring_bytes"]);
    assert!(matches!(error, Error::TransactionTooLarge { .. }));
    drop(db);

    let mut fixture = Fixture::new();
    fixture.options =
        Options { log_ring_bytes: 2 << 20, log_capacity_bytes: 16 << 20, ..Options::small() };
    let (db, table) = fixture.create_with(wide(1024, 128).unwrap());
    let row: Vec<Value<'_>> = (0..1024i16).map(Value::Int16).collect();
    db.session().unwrap().insert(&table, &row).unwrap();
    // Once from the log, once from the directory.
    drop((table, db));
    let db = reopened(&fixture, fixture.open());
    let table = db.table(&"t".repeat(128)).unwrap();
    assert_eq!(all_rows(&mut db.session().unwrap(), &table), [row]);
}

/// Bytes of the superblock: copies of a block, sealed by a checksum over all but itself.
const COPIES: [u64; 2] = [0, 64 << 10];

/// Changes both copies of the superblock of a closed database and seals them again.
fn plant(folder: &Path, change: impl Fn(&mut [u8])) {
    let path = folder.join("superblock.onrush");
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    for copy in COPIES {
        let mut block = [0; 4096];
        file.read_exact_at(&mut block, copy).unwrap();
        change(&mut block);
        let sum = crc32c::crc32c_append(crc32c::crc32c(&block[..12]), &block[16..]);
        block[12..16].copy_from_slice(&sum.to_le_bytes());
        file.write_all_at(&block, copy).unwrap();
    }
}

fn put(block: &mut [u8], at: usize, number: u64) {
    block[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

/// Where each counter stands (docs/data-file.md), and what it is called.
const COUNTERS: [(usize, &str); 8] = [
    (32, "generation"),
    (40, "checkpoint"),
    (48, "incarnation"),
    (56, "E, an LSN"),
    (64, "C, an LSN"),
    (72, "log segment"),
    (80, "offset"),
    (88, "incarnation of C"),
];

#[test]
fn a_counter_at_its_end_is_refused_and_nothing_is_changed() {
    for (at, name) in COUNTERS {
        for number in [u64::MAX, u64::MAX - 1, 1 << 63, 1 << 62, 1 << 61] {
            let fixture = Fixture::new();
            fixture.create().close().unwrap();
            plant(&fixture.path(), |block| put(block, at, number));
            let path = fixture.path().join("superblock.onrush");
            let before = std::fs::read(&path).unwrap();
            let error = refused(fixture.try_open(), &[name, &number.to_string(), "restore"]);
            assert!(matches!(error, Error::Damaged(_)), "{error:?}");
            assert!(before == std::fs::read(&path).unwrap());
        }
    }
}

#[test]
fn a_place_in_the_log_that_is_none_is_refused() {
    let plants: [(usize, u64, &str); 4] = [
        (80, 8192 + 255, "no log block begins"),
        (80, 0, "no log block begins"),
        (80, 100, "no log block begins"),
        (64, 1 << 40, "is below C"),
    ];
    for (at, number, words) in plants {
        let fixture = Fixture::new();
        fixture.create().close().unwrap();
        plant(&fixture.path(), |block| put(block, at, number));
        let error = refused(fixture.try_open(), &[words, "superblock.onrush", "restore"]);
        assert!(matches!(error, Error::Damaged(_)), "{error:?}");
    }
}

/// The incarnation may stand in the log only: the superblock has the one before.
#[test]
fn an_incarnation_of_the_log_at_its_end_is_refused() {
    for number in [u64::MAX, 1 << 61] {
        let fixture = Fixture::new();
        let (db, table) = fixture.create_with(notes());
        db.session().unwrap().insert(&table, &note(1, "one")).unwrap();
        drop((table, db)); // as in a crash: redo starts at the first block
        let path = fixture.path().join("log/log-0000000000000001.segment");
        let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
        let (mut at, mut previous) = (4096, None);
        loop {
            let mut block = [0; 4096];
            file.read_exact_at(&mut block, at).unwrap();
            if block[..8] != *b"ONRUSHLB" {
                break;
            }
            put(&mut block, 32, number);
            if let Some(previous) = previous {
                block[84..88].copy_from_slice(&u32::to_le_bytes(previous));
            }
            let sum = crc32c::crc32c_append(crc32c::crc32c(&block[..92]), &block[96..]);
            block[92..96].copy_from_slice(&sum.to_le_bytes());
            file.write_all_at(&block, at).unwrap();
            (at, previous) = (at + 4096, Some(sum));
        }
        let error = refused(fixture.try_open(), &["incarnation", &number.to_string(), "restore"]);
        assert!(matches!(error, Error::DamagedLog(_)), "{error:?}");
    }
}

/// The log begins at an LSN that takes years to get to; all goes on from there.
#[test]
fn high_lsns_and_numbers_work() {
    const HIGH: u64 = (1 << 61) - (1 << 30);
    let fixture = Fixture::new();
    let (db, table) = fixture.create_with(notes());
    db.session().unwrap().insert(&table, &note(1, "before")).unwrap();
    drop(table);
    db.close().unwrap();
    plant(&fixture.path(), |block| {
        // Checkpoint, incarnation, E and C, which has the incarnation again.
        for at in [40, 48, 56, 64, 88] {
            put(block, at, HIGH);
        }
        // Generations tell the copies apart.
        let generation = u64::from_le_bytes(block[32..40].try_into().unwrap());
        put(block, 32, HIGH + generation);
    });
    let mut db = fixture.open();
    for round in 0..3 {
        let table = db.table("notes").unwrap();
        let mut session = db.session().unwrap();
        for id in 0..200 {
            session.upsert(&table, &note(id, &"x".repeat(100))).unwrap();
        }
        assert!(session.last_commit_lsn() > Some(Lsn(HIGH)));
        drop((session, table));
        db = if round == 1 {
            drop(db); // without a checkpoint: the log is redone
            fixture.open()
        } else {
            reopened(&fixture, db)
        };
    }
    let table = db.table("notes").unwrap();
    assert_eq!(all_rows(&mut db.session().unwrap(), &table).len(), 200);
}

#[test]
fn the_last_numbers_for_tables_and_then_an_error() {
    let fixture = Fixture::new();
    let (db, table) = fixture.create_with(notes());
    db.session().unwrap().insert(&table, &note(1, "before")).unwrap();
    drop(table);
    db.close().unwrap();
    raise_next_object(&fixture.path(), u32::MAX - 20);
    let db = fixture.open();
    // One that has to wait for log space takes two.
    let truncates = (0..20).take_while(|_| db.truncate_table("notes").is_ok()).count();
    assert!((10..=20).contains(&truncates), "{truncates}");
    let table = db.table("notes").unwrap();
    db.session().unwrap().insert(&table, &note(2, "after")).unwrap();
    let words = ["numbers for tables", "export"];
    let error = refused(db.truncate_table("notes"), &words);
    assert!(matches!(error, Error::TableNumbersUsedUp));
    refused(db.create_table(common::accounts()), &words);
    drop((table, db));
    // From the log, and from the directory.
    let db = reopened(&fixture, fixture.open());
    refused(db.create_table(common::accounts()), &words);
    let table = db.table("notes").unwrap();
    assert_eq!(all_rows(&mut db.session().unwrap(), &table), [noted(2, "after")]);
}

/// Writes another number into the root, whose place the superblock names (docs/data-file.md).
fn raise_next_object(folder: &Path, next: u32) {
    let superblock = std::fs::read(folder.join("superblock.onrush")).unwrap();
    let newer = COPIES.map(|copy| &superblock[copy as usize..][..4096]);
    let generation = |block: &&[u8]| u64::from_le_bytes(block[32..40].try_into().unwrap());
    let newer = newer.into_iter().max_by_key(generation).unwrap().to_vec();
    let number = |at: usize| u64::from_le_bytes(newer[at..at + 8].try_into().unwrap());
    let (slot, bytes) = (number(101), number(109) as usize);
    let data = std::fs::File::options().read(true).write(true).open(folder.join("data-00.onrush"));
    let (data, mut page) = (data.unwrap(), vec![0; 16384]);
    data.read_exact_at(&mut page, slot * 16384).unwrap();
    page[48..52].copy_from_slice(&next.to_le_bytes());
    let sum = crc32c::crc32c(&page[8..]);
    page[4..8].copy_from_slice(&sum.to_le_bytes());
    data.write_all_at(&page, slot * 16384).unwrap();
    let blob = crc32c::crc32c(&page[48..48 + bytes]);
    let is_newer = |block: &[u8]| block[32..40] == newer[32..40];
    plant(folder, |block| {
        if is_newer(block) {
            block[117..121].copy_from_slice(&blob.to_le_bytes());
        }
    });
}

/// A leaf in which a transaction has placed a row stays in memory until the transaction is over.
#[test]
fn a_transaction_over_more_leaves_than_there_is_memory_for() {
    const LEAVES: i64 = 100;
    let (db, table) = Fixture::in_memory().with_little_memory().create_with(notes());
    let mut session = delayed_session(&db);
    // Two rows fill a leaf.
    let text = "x".repeat(7000);
    for id in 0..2 * LEAVES {
        session.insert(&table, &note(id, &text)).unwrap();
    }
    let change = |session: &mut onrush::Session, leaves: i64| {
        let mut transaction = session.begin().unwrap();
        for id in (0..2 * leaves).step_by(2) {
            let short = [("note", "short".into())];
            assert!(transaction.update(&table, &[id.into()], &short).unwrap());
        }
        transaction.commit()
    };
    let error = refused(change(&mut session, LEAVES), &["64 frames", "leaf_memory_bytes"]);
    assert!(matches!(error, Error::LeafMemoryTooSmall { frames: 64 }), "{error:?}");
    assert_eq!(session.get(&table, &[0i64.into()]).unwrap(), Some(noted(0, &text)));
    change(&mut session, LEAVES / 4).unwrap();
    assert_eq!(session.get(&table, &[0i64.into()]).unwrap(), Some(noted(0, "short")));
}
