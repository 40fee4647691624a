//! Databases of each format version, kept as they were written: each is sound, opens, and has every
//! row, and work goes on in it.
//!
//! They are made by
//! `cargo test -p onrush --test databases_of_earlier_releases_open -- --ignored`, once for a format
//! version; after a release they never change again.

#![allow(clippy::unwrap_used)]

mod golden;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onrush::{Database, KeyStrategy};
use onrush_check::{CheckOptions, Progress, check};
use onrush_files::OsDisk;

/// The version that is written now.
const VERSION: &str = "format-1";

/// Path without ending: `.packed` is the folder, `.txt` its rows.
fn all() -> Vec<PathBuf> {
    let folders = std::fs::read_dir(golden::kept()).unwrap();
    let folders = folders.map(|folder| folder.unwrap().path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let files = files.map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "packed")).collect()
}

fn assert_sound(folder: &Path) {
    let disk = Arc::new(OsDisk::new());
    let report = check(disk, folder, &CheckOptions::default(), &Progress::default()).unwrap();
    assert!(report.is_sound(), "{report}");
}

#[test]
fn every_kept_database_opens_with_all_its_rows() {
    assert!(all().len() >= 3, "{:?}", golden::kept());
    for path in all() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("db");
        golden::unpack(&std::fs::read(&path).unwrap(), &folder);
        assert_sound(&folder);
        let db = Database::open(&folder, golden::options()).unwrap();
        let expected = std::fs::read_to_string(path.with_extension("txt")).unwrap();
        assert_eq!(golden::write_down(&db), expected, "{}", path.display());

        // Generated keys go on where they were.
        let mut session = db.session().unwrap();
        for definition in db.tables() {
            if definition.name().starts_with("key_") {
                let table = db.table(definition.name()).unwrap();
                (0..40).for_each(|_| session.insert(&table, &[]).unwrap());
            }
        }
        let more = golden::write_down(&db);
        drop(session);
        db.close().unwrap();
        assert_sound(&folder);
        let db = Database::open(&folder, golden::options()).unwrap();
        assert_eq!(golden::write_down(&db), more);
        let is_there = |line: &&str| more.lines().any(|found| found == *line);
        assert_eq!(expected.lines().find(|line| !is_there(line)), None);
    }
}

/// One that was left without a close has rows that only its log has.
#[test]
fn a_kept_database_without_a_close_is_recovered() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("db");
    let path = golden::kept().join(VERSION).join("left-open.packed");
    golden::unpack(&std::fs::read(path).unwrap(), &folder);
    let db = Database::open(&folder, golden::options()).unwrap();
    assert!(db.recovery().records >= 15, "{:?}", db.recovery());
}

#[test]
fn packing_leaves_nothing_out() {
    let scratch = tempfile::tempdir().unwrap();
    let (one, other) = (scratch.path().join("one"), scratch.path().join("other"));
    std::fs::create_dir_all(one.join("inside")).unwrap();
    let mut bytes = vec![0; 1000];
    (bytes[70], bytes[127], bytes[128], bytes[999]) = (1, 2, 3, 4);
    std::fs::write(one.join("bytes"), &bytes).unwrap();
    std::fs::write(one.join("inside/empty"), []).unwrap();
    golden::unpack(&golden::pack(&one), &other);
    assert_eq!(std::fs::read(other.join("bytes")).unwrap(), bytes);
    assert!(std::fs::read(other.join("inside/empty")).unwrap().is_empty());
}

/// Not a test: writes the databases that are to be kept, unless they are there.
#[test]
#[ignore = "makes files of the repository"]
fn make_the_kept_databases() {
    let scratch = tempfile::tempdir().unwrap();
    let keep = |name: &str, db: Database, closes: bool| {
        let path = golden::kept().join(VERSION).join(name).with_extension("packed");
        assert!(!path.exists(), "{} is kept for ever", path.display());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let folder = db.folder().to_owned();
        let mut text = golden::write_down(&db);
        // What is not logged is gone after the next open.
        if let Some((before, after)) = text.split_once("table unlogged: id bigint\n") {
            let after = after.strip_prefix("  1\n").unwrap_or(after);
            text = format!("{before}table unlogged: id bigint\n{after}");
        }
        if closes {
            db.clone().close().unwrap();
        }
        // Else it is packed while it is open, as if its machine had stopped.
        std::fs::write(&path, golden::pack(&folder)).unwrap();
        std::fs::write(path.with_extension("txt"), text).unwrap();
    };
    keep("closed", golden::make(&scratch.path().join("closed")), true);
    keep("left-open", golden::make(&scratch.path().join("left-open")), false);
    let empty = Database::create(scratch.path().join("empty"), golden::options()).unwrap();
    keep("empty", empty, true);
    assert_eq!(KeyStrategy::ALL.len(), 8, "a new strategy belongs into the kept databases");
}
