//! A folder that is missing, taken, or not writable is an error that names it.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::faulty_disk::{Failure, FaultyDisk, Operation};
use common::{Fixture, all_rows, note, noted, notes, refused};
use onrush::{Database, Error, Options};
use onrush_files::DiskErrorKind;

#[test]
fn opening_what_is_not_there() {
    let fixture = Fixture::new();
    let path = fixture.path();
    let error = refused(fixture.try_open(), &[path.to_str().unwrap(), "create"]);
    assert!(matches!(error, Error::NotFound { .. }));
    std::fs::create_dir(&path).unwrap();
    assert!(matches!(fixture.try_open(), Err(Error::NotFound { .. })), "an empty folder");
    let db = Database::open_or_create(&path, Options::small()).unwrap();
    db.create_table(notes()).unwrap();
    drop(db);
    Database::open_or_create(&path, Options::small()).unwrap().table("notes").unwrap();
}

#[test]
fn creating_over_a_database() {
    let fixture = Fixture::new();
    let (db, table) = fixture.create_with(notes());
    db.session().unwrap().insert(&table, &note(1, "kept")).unwrap();
    drop(db);
    let error = refused(fixture.try_create(), &[fixture.path().to_str().unwrap(), "already"]);
    assert!(matches!(error, Error::AlreadyExists { .. }));
    let db = fixture.open();
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(rows, [noted(1, "kept")]);
}

#[test]
fn a_file_in_the_way() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path(), "not a folder").unwrap();
    let path = fixture.path();
    let path = path.to_str().unwrap();
    let error = refused(fixture.try_create(), &[path, "taken", "choose another"]);
    assert!(matches!(error, Error::Disk(_)));
    refused(fixture.try_open(), &[path]);
    let below = fixture.path().join("deeper");
    refused(Database::create(&below, Options::small()), &[path]);
    refused(Database::open(&below, Options::small()), &[path]);
    assert_eq!(std::fs::read(fixture.path()).unwrap(), b"not a folder");
}

#[test]
fn a_folder_that_cannot_be_written() {
    for kind in [DiskErrorKind::ReadOnly, DiskErrorKind::Permission] {
        let disk = FaultyDisk::default();
        let fixture = Fixture::on(Arc::new(disk.clone()));
        disk.fail(Failure { operation: Operation::Change, path: "", skip: 0, kind });
        let error = refused(fixture.try_create(), &[fixture.path().to_str().unwrap()]);
        assert!(matches!(error, Error::Disk(_)), "{error:?}");
        disk.repair();
        fixture.create();
    }
}

#[test]
fn a_database_that_cannot_be_written() {
    for kind in [DiskErrorKind::ReadOnly, DiskErrorKind::Permission] {
        let disk = FaultyDisk::default();
        let fixture = Fixture::on(Arc::new(disk.clone()));
        let (db, table) = fixture.create_with(notes());
        db.session().unwrap().insert(&table, &note(1, "kept")).unwrap();
        drop((table, db));
        disk.fail(Failure { operation: Operation::Write, path: "", skip: 0, kind });
        let error = refused(fixture.try_open(), &[fixture.path().to_str().unwrap()]);
        assert!(matches!(error, Error::Disk(_)), "{error:?}");
        disk.repair();
        let db = fixture.open();
        let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
        assert_eq!(rows, [noted(1, "kept")]);
    }
}

/// Wherever creating fails, the next try starts afresh.
#[test]
fn a_creation_that_was_cut_off_is_no_database() {
    for operation in [Operation::Change, Operation::Write, Operation::Sync] {
        for skip in 0.. {
            let disk = FaultyDisk::default();
            let fixture = Fixture::on(Arc::new(disk.clone()));
            let kind = DiskErrorKind::Other;
            disk.fail(Failure { operation, path: "", skip, kind });
            let created = fixture.try_create().map(drop);
            if disk.failed() == 0 {
                created.unwrap();
                break;
            }
            disk.repair();
            if created.is_err() {
                // The last steps may fail after the database has come to be.
                match fixture.try_open().map(drop) {
                    Ok(()) => continue,
                    Err(Error::NotFound { .. }) => {}
                    Err(error) => panic!("{operation:?} {skip}: {error}"),
                }
            }
            match fixture.try_create() {
                Ok(db) => drop(db.create_table(notes()).unwrap()),
                Err(Error::AlreadyExists { .. }) if created.is_ok() => {}
                Err(error) => panic!("{operation:?} {skip}: {error}"),
            }
        }
    }
}

#[test]
fn data_and_log_may_have_folders_of_their_own() {
    let mut fixture = Fixture::new();
    let folder = |name: &str| fixture.folder.path().join(name);
    let (data, log) = (vec![folder("a"), folder("b"), "c".into()], folder("log"));
    (fixture.options.data_folders, fixture.options.log_folder) = (data.clone(), Some(log.clone()));
    let (db, table) = fixture.create_with(notes());
    let mut session = common::delayed_session(&db);
    let text = "x".repeat(1000);
    for id in 0..2000 {
        session.insert(&table, &note(id, &text)).unwrap();
    }
    db.checkpoint().unwrap();
    drop((session, db));
    assert!(std::fs::read_dir(&log).unwrap().count() > 0);

    // The folders are remembered; the settings need not name them.
    (fixture.options.data_folders, fixture.options.log_folder) = (Vec::new(), None);
    let db = fixture.open();
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(rows.len(), 2000);
    drop(db);
    let aside = folder("aside");
    for moved in [&data[1], &log] {
        std::fs::rename(moved, &aside).unwrap();
        refused(fixture.try_open(), &[moved.to_str().unwrap(), "put it back", "backup"]);
        std::fs::rename(&aside, moved).unwrap();
    }
    fixture.open();
}

#[test]
fn sixteen_data_files_and_not_one_may_be_missing() {
    let mut fixture = Fixture::new();
    let folder = |number: usize| fixture.folder.path().join(format!("disk-{number}"));
    let folders: Vec<_> = (0..16).map(folder).collect();
    fixture.options.data_folders = folders.clone();
    let (db, table) = fixture.create_with(notes());
    db.session().unwrap().insert(&table, &note(1, "kept")).unwrap();
    drop(table);
    db.close().unwrap();
    for (number, folder) in folders.iter().enumerate() {
        let file = folder.join(format!("data-{number:02}.onrush"));
        let aside = folder.join("aside");
        std::fs::rename(&file, &aside).unwrap();
        refused(fixture.try_open(), &[file.to_str().unwrap(), "put it back"]);
        std::fs::rename(&aside, &file).unwrap();
    }
    let db = fixture.open();
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(rows, [noted(1, "kept")]);
}

/// The system says of some folders that the one above is missing, though it is there.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_where_none_can_be_made() {
    for path in ["/proc/onrush", "/proc/onrush/deeper"] {
        let error = refused(Database::create(path, Options::small()), &["/proc/onrush"]);
        assert!(matches!(error, Error::Disk(_)), "{error:?}");
    }
}
