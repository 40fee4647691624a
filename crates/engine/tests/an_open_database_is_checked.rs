//! A check of an open database sees one checkpoint and the log behind it, whatever goes on meanwhile.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{Fixture, Random, note, notes, refused};
use onrush::{
    CheckOptions, CheckProgress, CheckReport, ColumnDefinition, DataType, Database, Durability,
    OnlineOptions, Options, PastMemory, Table, TableDefinition,
};
use onrush_check::Invariant;
use onrush_files::OpenMode;

fn full_speed() -> OnlineOptions {
    OnlineOptions { busy_percent: 100, ..OnlineOptions::default() }
}

/// Inserts, changes and removes rows until told to stop, with checkpoints all the time.
fn churn(db: &Database, table: &Table, seed: u64, stop: &AtomicBool) {
    let mut random = Random(seed);
    let mut session = db.session().unwrap();
    session.set_durability(Durability::Delayed);
    let text = "x".repeat(200);
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..500 {
            let id = random.id_below(5000);
            let length = random.below(200) as usize;
            match random.below(3) {
                0 => session.upsert(table, &note(id, &text[..length])).unwrap(),
                1 => drop(session.update(table, &[id.into()], &[("note", text[length..].into())])),
                _ => drop(session.delete(table, &[id.into()])),
            }
        }
        db.checkpoint().unwrap();
    }
}

#[test]
fn while_rows_change_nothing_is_found_in_a_sound_database() {
    let fixture = Fixture::in_memory().with_little_memory();
    let (db, table) = fixture.create_with(notes());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in [1, 2] {
            let (db, table, stop) = (&db, &table, &stop);
            scope.spawn(move || churn(db, table, seed, stop));
        }
        for round in 0..30 {
            let check = CheckOptions { dop: 1 + round % 3, ..CheckOptions::default() };
            let options = OnlineOptions { check, ..full_speed() };
            let report = db.check(&options, &CheckProgress::default()).unwrap();
            if !report.is_sound() || !report.findings.is_empty() {
                stop.store(true, Ordering::Relaxed);
            }
            assert!(report.is_sound() && report.findings.is_empty(), "round {round}: {report}");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn what_is_committed_is_seen_whether_a_checkpoint_has_it_or_the_log() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "image")).unwrap();
    db.checkpoint().unwrap();
    for id in 2..5 {
        session.insert(&table, &note(id, "log")).unwrap();
    }
    let report = db.check(&full_speed(), &CheckProgress::default()).unwrap();
    assert_eq!((report.tables[0].rows, report.log_records), (1, 3), "{report}");
    assert_eq!(report.log_end_lsn, db.durable_lsn());
}

/// Changes a letter of a stored row; its image gets the checksum of the new bytes, if it is told to.
fn change_a_letter(fixture: &Fixture, with_checksum: bool) {
    const SLOT_BYTES: usize = 16 << 10;
    let path = fixture.path().join("data-00.onrush");
    let file = fixture.disk.open(&path, OpenMode::ReadWrite).unwrap();
    let mut image = vec![0; SLOT_BYTES];
    file.read_at(&mut image, SLOT_BYTES as u64).unwrap();
    let at = image.windows(5).position(|bytes| bytes == b"a row").unwrap();
    image[at] = b'A';
    if with_checksum {
        let checksum = crc32c::crc32c(&image[8..]);
        image[4..8].copy_from_slice(&checksum.to_le_bytes());
    }
    file.write_at(&image, SLOT_BYTES as u64).unwrap();
}

#[test]
fn a_damaged_image_is_found_while_the_database_is_open() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    db.session().unwrap().insert(&table, &note(1, "a row to be damaged")).unwrap();
    db.checkpoint().unwrap();
    change_a_letter(&fixture, false);
    let options = OnlineOptions { compare_rows: false, ..full_speed() };
    let report = db.check(&options, &CheckProgress::default()).unwrap();
    assert_eq!(numbers(&report), [Invariant::ImageWhole], "{report}");
}

#[test]
fn a_row_in_memory_that_is_not_the_stored_one_is_found_with_its_keys() {
    let mut fixture = Fixture::in_memory();
    // A row of a stock is not in memory: who compares it reads the damaged image, and is refused.
    fixture.options = Options { past_memory: PastMemory::Off, ..fixture.options };
    let (db, table) = fixture.create_with(notes());
    db.session().unwrap().insert(&table, &note(1, "a row to be damaged")).unwrap();
    db.checkpoint().unwrap();
    change_a_letter(&fixture, true);
    let report = db.check(&full_speed(), &CheckProgress::default()).unwrap();
    assert_eq!(numbers(&report), [Invariant::ImageNamed, Invariant::LiveAsStored], "{report}");
    let finding = report.findings.last().unwrap();
    assert_eq!(finding.table.as_deref(), Some("notes"));
    assert_eq!(finding.keys.as_deref(), Some("keys from the lowest key to the highest"));
    assert!(finding.found.contains("1 rows on both sides, but not the same"), "{finding}");
}

#[test]
fn rows_of_a_table_that_is_not_logged_are_not_missed_in_the_log() {
    let fixture = Fixture::in_memory();
    let definition = TableDefinition::builder("front")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .primary_key(["id"])
        .unlogged();
    let (db, table) = fixture.create_with(definition.build().unwrap());
    db.session().unwrap().insert(&table, &[1i64.into()]).unwrap();
    let report = db.check(&full_speed(), &CheckProgress::default()).unwrap();
    assert_eq!(numbers(&report), [], "{report}");
}

fn numbers(report: &CheckReport) -> Vec<Invariant> {
    report.findings.iter().map(|finding| finding.invariant).collect()
}

#[test]
fn a_closed_database_is_not_checked_through_an_old_handle() {
    let fixture = Fixture::in_memory();
    let db = fixture.create();
    db.clone().close().unwrap();
    refused(db.check(&full_speed(), &CheckProgress::default()), &["closed"]);
}

#[test]
fn a_pace_out_of_range_is_refused() {
    let fixture = Fixture::in_memory();
    let db = fixture.create();
    let options = OnlineOptions { nice: 20, ..OnlineOptions::default() };
    refused(db.check(&options, &CheckProgress::default()), &["nice", "0 to 19"]);
    for busy_percent in [0, 101] {
        let options = OnlineOptions { busy_percent, ..OnlineOptions::default() };
        refused(db.check(&options, &CheckProgress::default()), &["busy_percent", "1 to 100"]);
    }
}

#[test]
fn the_log_that_a_check_has_read_is_free_again() {
    let mut fixture = Fixture::in_memory();
    fixture.options = Options { log_capacity_bytes: 4 << 20, ..fixture.options };
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    session.set_durability(Durability::Delayed);
    let text = "y".repeat(1000);
    for id in 0..20_000 {
        session.insert(&table, &note(id, &text)).unwrap();
        if id % 1000 == 0 {
            db.check(&full_speed(), &CheckProgress::default()).unwrap();
        }
    }
}
