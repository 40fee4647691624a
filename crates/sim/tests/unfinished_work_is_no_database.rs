//! The power fails in a backup, a restore and a repair, at each boundary: what is left is no database that opens or
//! checks, or it has all rows.

use std::path::Path;
use std::sync::Arc;

use onrush::{
    Background, ColumnDefinition, DataType, Database, Error, Options, ScanOptions, TableDefinition,
};
use onrush_backup::{RestoreOptions, backup, restore};
use onrush_check::{CheckError, CheckOptions, Progress, check};
use onrush_files::{Disk, Unfinished};
use onrush_repair::{RepairOptions, RepairProgress, repair};
use onrush_sim::CrashDisk;

const ROWS: i64 = 40;
const FROM: &str = "/shop";
const INTO: &str = "/new";

fn options() -> Options {
    Options { background: Background::Callers, ..Options::small() }
}

/// A disk with a database of which half the rows are in images and half in the log, at boundary 0.
fn disk_with_rows() -> CrashDisk {
    let disk = CrashDisk::new();
    let db = Database::create_on(shared(&disk), FROM, options()).expect("a database");
    let column = ColumnDefinition::new("n", DataType::Int64).not_null();
    let definition = TableDefinition::builder("numbers").column(column).primary_key(["n"]);
    let table = db.create_table(definition.build().expect("a definition")).expect("a table");
    let mut session = db.session().expect("a session");
    for number in 0..ROWS {
        session.insert(&table, &[number.into()]).expect("a row");
        if number == ROWS / 2 {
            db.checkpoint().expect("a checkpoint");
        }
    }
    drop((session, table, db));
    disk.forget_history();
    disk
}

fn shared(disk: &CrashDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

/// What is in the new folder.
#[derive(Debug, PartialEq, Eq)]
enum Left {
    NoDatabase,
    Marked,
    Whole,
}

fn looked_at(disk: &CrashDisk) -> Left {
    let into = Path::new(INTO);
    let checked = check(shared(disk), into, &CheckOptions::default(), &Progress::default());
    let by_check = match checked {
        Ok(report) => {
            assert!(report.is_sound(), "{report}");
            Left::Whole
        }
        Err(CheckError::Unfinished(_)) => Left::Marked,
        Err(CheckError::NotFound { .. }) => Left::NoDatabase,
        Err(error) => panic!("{error}"),
    };
    let opened = Database::open_on(shared(disk), into, options());
    let by_opening = match opened {
        Ok(db) => {
            let table = db.table("numbers").expect("the table");
            let mut session = db.session().expect("a session");
            let rows = session.scan(&table, &ScanOptions::default()).expect("a scan").count();
            assert_eq!(rows as i64, ROWS, "a part of the rows");
            Left::Whole
        }
        Err(Error::Unfinished(_)) => Left::Marked,
        Err(Error::NotFound { .. }) => Left::NoDatabase,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(by_check, by_opening);
    by_opening
}

/// Cuts the power everywhere in `work`, which makes a database in the new folder.
fn cut_everywhere(work: impl FnOnce(&CrashDisk)) {
    let disk = disk_with_rows();
    work(&disk);
    assert_eq!(looked_at(&disk), Left::Whole);
    let mut sweep = disk.sweep();
    let mut seen = Vec::new();
    loop {
        for (_, image) in sweep.images(7) {
            let left = looked_at(&image);
            if left == Left::Marked {
                let unfinished = Unfinished::of_folder(&image, Path::new(INTO)).expect("a mark");
                assert!(unfinished.is_some());
            }
            seen.push(left);
        }
        if !sweep.advance() {
            break;
        }
    }
    for left in [Left::NoDatabase, Left::Marked, Left::Whole] {
        assert!(seen.contains(&left), "{left:?} was never seen in {} images", seen.len());
    }
}

#[test]
fn a_backup_that_is_cut_off() {
    cut_everywhere(|disk| {
        let (options, progress) = Default::default();
        backup(shared(disk), Path::new(FROM), Path::new(INTO), &options, &progress)
            .expect("a backup");
    });
}

#[test]
fn a_restore_that_is_cut_off() {
    cut_everywhere(|disk| {
        let (options, progress) = (RestoreOptions::default(), Progress::default());
        restore(shared(disk), Path::new(FROM), Path::new(INTO), &options, &progress)
            .expect("a restore");
    });
}

#[test]
fn a_repair_that_is_cut_off() {
    cut_everywhere(|disk| {
        let options = RepairOptions { engine: options(), ..RepairOptions::default() };
        let progress = RepairProgress::default();
        repair(shared(disk), Path::new(FROM), Path::new(INTO), &options, &progress)
            .expect("a repair");
    });
}
