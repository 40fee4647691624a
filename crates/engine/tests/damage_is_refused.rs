//! Stored bytes that were changed behind the engine's back are noticed and named; nothing is
//! guessed, and nothing is written to a database that does not open.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use common::{Fixture, all_rows, delayed_session, ids, note, notes, refused};
use onrush::{Database, Error, Options, ScanOptions};

const ROWS: i64 = 1500;

/// A database whose last rows are in the log only; all its commits are durable.
fn stored() -> Fixture {
    let fixture = Fixture::new().with_little_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    let text = "x".repeat(500);
    for id in 0..ROWS {
        session.insert(&table, &note(id, &text)).unwrap();
        if id == ROWS / 2 {
            db.checkpoint().unwrap();
            db.checkpoint().unwrap();
        }
    }
    // Two blocks more, so that the log says itself up to where it was durable.
    for id in [ROWS, ROWS + 1] {
        session.insert(&table, &note(id, "last")).unwrap();
        db.barrier().unwrap();
    }
    drop((session, table, db));
    fixture
}

fn change_byte(path: &Path, at: u64) {
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x41], at).unwrap();
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

/// Every row that is there has its right content, in order; or a read says where the damage is.
fn opens_right_or_says_where(fixture: &Fixture, what: &str) -> bool {
    let before = files(&fixture.path());
    let db = match fixture.try_open() {
        Ok(db) => db,
        Err(error) => {
            let message = error.to_string();
            let named = matches!(error, Error::Damaged(_) | Error::DamagedLog(_));
            assert!(named && message.contains("restore"), "{what}: {message}");
            assert!(before == files(&fixture.path()), "{what}: something was written");
            return false;
        }
    };
    let table = db.table("notes").unwrap();
    let scan = db.session().unwrap().scan(&table, &ScanOptions::default()).unwrap();
    let mut rows = Vec::new();
    for row in scan {
        match row {
            Ok(row) => rows.push(row),
            Err(Error::Damaged(damage)) => {
                assert!(damage.path.exists(), "{what}: {damage}");
                return false;
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
    assert_eq!(ids(&rows), (0..ROWS + 2).collect::<Vec<_>>(), "{what}");
    true
}

/// Puts all files back as they were.
fn restore(fixture: &Fixture, copy: &BTreeMap<PathBuf, Vec<u8>>) {
    let now = files(&fixture.path());
    for path in now.keys().filter(|path| !copy.contains_key(*path)) {
        std::fs::remove_file(path).unwrap();
    }
    for (path, bytes) in copy.iter().filter(|(path, bytes)| now.get(*path) != Some(bytes)) {
        std::fs::write(path, bytes).unwrap();
    }
}

fn superblock(fixture: &Fixture) -> PathBuf {
    fixture.path().join("superblock.onrush")
}

#[test]
fn one_damaged_superblock_is_no_harm_two_are() {
    let fixture = stored();
    let path = superblock(&fixture);
    change_byte(&path, 40);
    change_byte(&path, (64 << 10) + 40);
    let error = refused(fixture.try_open(), &["superblock.onrush", "both", "restore"]);
    assert!(matches!(error, Error::Damaged(_)));
    change_byte(&path, 40);
    change_byte(&path, (64 << 10) + 40);
    assert!(opens_right_or_says_where(&fixture, "as it was"));
}

#[test]
fn a_superblock_that_is_cut_off_or_empty() {
    for bytes in [0, 100, 4096, 70_000, 130_000] {
        let fixture = stored();
        let file = std::fs::File::options().write(true).open(superblock(&fixture)).unwrap();
        file.set_len(bytes).unwrap();
        let error = refused(fixture.try_open(), &["superblock.onrush"]);
        assert!(matches!(error, Error::Damaged(_)), "{bytes}: {error:?}");
    }
}

/// Without its superblock a database is not taken for an empty folder, where a new one would take its place.
#[test]
fn a_superblock_that_is_missing() {
    let in_the_log_only = Fixture::new();
    let (db, table) = in_the_log_only.create_with(notes());
    db.session().unwrap().insert(&table, &note(1, "kept")).unwrap();
    drop((table, db));
    for fixture in [stored(), in_the_log_only] {
        std::fs::remove_file(superblock(&fixture)).unwrap();
        let before = files(&fixture.path());
        let told = ["superblock.onrush", "there is no superblock", "restore"];
        refused(fixture.try_open(), &told);
        refused(fixture.try_create(), &told);
        refused(Database::open_or_create(fixture.path(), Options::small()), &told);
        assert!(before == files(&fixture.path()), "something was written");
    }
}

#[test]
fn the_list_of_folders() {
    let fixture = stored();
    change_byte(&superblock(&fixture), (128 << 10) + 30);
    refused(fixture.try_open(), &["superblock.onrush", "folders"]);
}

/// A changed byte anywhere in the data file is noticed, or is in a place that nobody reads.
#[test]
fn a_byte_of_the_data_file() {
    let fixture = stored();
    let path = fixture.path().join("data-00.onrush");
    let length = std::fs::metadata(&path).unwrap().len();
    let copy = files(&fixture.path());
    let mut noticed = 0;
    // A byte of the header and of every third slot of 16 KiB, as far as they are in use.
    for slot in (0..(length >> 14).min(150)).step_by(3) {
        let at = (slot << 14) + if slot == 0 { 5 } else { (slot * 677) % 16384 };
        change_byte(&path, at);
        noticed += u64::from(!opens_right_or_says_where(&fixture, &format!("data byte {at}")));
        restore(&fixture, &copy);
    }
    assert!(noticed > 5, "only {noticed} changes were noticed");
}

/// Changes one byte of each log segment, one after the other; how many openings were refused.
fn change_log_bytes(places: impl Iterator<Item = u64> + Clone) -> u64 {
    let fixture = stored();
    let copy = files(&fixture.path());
    let mut refused = 0;
    for path in copy.keys().filter(|path| path.extension().is_some_and(|e| e == "segment")) {
        for at in places.clone() {
            change_byte(path, at);
            let what = format!("{} byte {at}", path.display());
            refused += u64::from(!log_opens_to_a_prefix(&fixture, &what));
            restore(&fixture, &copy);
        }
    }
    refused
}

#[test]
fn a_byte_of_the_log_below_what_was_durable() {
    let refused = change_log_bytes((1..16).step_by(3).map(|step| step * 4096 + step * 200));
    assert!(refused > 5, "only {refused} changes were noticed");
}

#[test]
fn a_byte_of_the_header_of_a_log_segment() {
    assert!(change_log_bytes([3, 20].into_iter()) > 5);
}

/// As for data; but a change above what the log itself says was durable looks like a torn tail:
/// then a prefix of the commits is there.
fn log_opens_to_a_prefix(fixture: &Fixture, what: &str) -> bool {
    let before = files(&fixture.path());
    let db = match fixture.try_open() {
        Ok(db) => db,
        Err(error) => {
            assert!(matches!(error, Error::DamagedLog(_)), "{what}: {error:?}");
            assert!(before == files(&fixture.path()), "{what}: something was written");
            return false;
        }
    };
    let rows = ids(&all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap()));
    assert_eq!(rows, (0..rows.len() as i64).collect::<Vec<_>>(), "{what}");
    assert!(rows.len() as i64 > ROWS, "{what}: {} rows", rows.len());
    true
}

#[test]
fn a_missing_log_segment_or_data_file() {
    let fixture = stored();
    let copy = files(&fixture.path());
    let newest = copy.keys().rfind(|path| path.extension().is_some_and(|e| e == "segment"));
    let newest = newest.unwrap().clone();
    for missing in [newest, fixture.path().join("data-00.onrush")] {
        std::fs::remove_file(&missing).unwrap();
        let opened = fixture.try_open().map(drop);
        if let Err(error) = &opened {
            assert!(!error.is_fatal(), "{}: {error}", missing.display());
        } else {
            assert!(missing.extension().unwrap() == "segment");
        }
        restore(&fixture, &copy);
    }
    assert!(opens_right_or_says_where(&fixture, "as it was"));
}

/// A damaged leaf hurts only those who read it, however often they try.
#[test]
fn the_rest_of_a_table_stays_readable() {
    let fixture = stored();
    let db = fixture.open();
    db.close().unwrap();
    let path = fixture.path().join("data-00.onrush");
    let length = std::fs::metadata(&path).unwrap().len();
    let copy = std::fs::read(&path).unwrap();
    let mut tried = false;
    for slot in 1..length >> 14 {
        let at = (slot << 14) + 2000;
        change_byte(&path, at);
        if let Ok(db) = fixture.try_open() {
            let table = db.table("notes").unwrap();
            let mut session = db.session().unwrap();
            let keys = (0..ROWS).step_by(10);
            let bad: Vec<i64> =
                keys.filter(|id| session.get(&table, &[(*id).into()]).is_err()).collect();
            if let Some(id) = bad.first() {
                tried = true;
                for _ in 0..200 {
                    let error = refused(session.get(&table, &[(*id).into()]), &["data-00.onrush"]);
                    assert!(matches!(error, Error::Damaged(_)), "{error:?}");
                }
                let good = (0..ROWS).step_by(10).filter(|id| !bad.contains(id));
                for id in good {
                    assert!(session.get(&table, &[id.into()]).unwrap().is_some());
                }
            }
        }
        std::fs::write(&path, &copy).unwrap();
        if tried {
            return;
        }
    }
    panic!("no slot held a leaf");
}
