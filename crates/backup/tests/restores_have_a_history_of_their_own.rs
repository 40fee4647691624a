//! What is restored has a history of its own, and says which one it goes on from; a backup has that of its database.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use onrush::{Background, ColumnDefinition, DataType, Database, Options, TableDefinition};
use onrush_backup::{RestoreOptions, backup, restore};
use onrush_check::check;
use onrush_files::{Disk, MemoryDisk};

fn disk(disk: &MemoryDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

fn options() -> Options {
    Options { background: Background::Callers, ..Options::small() }
}

fn open(on: &MemoryDisk, folder: &str) -> Database {
    Database::open_on(disk(on), folder, options()).unwrap()
}

/// A database with one row, closed or not.
fn made(on: &MemoryDisk, is_checkpointed: bool) -> u128 {
    let db = Database::create_on(disk(on), "/shop", options()).unwrap();
    let table = TableDefinition::builder("numbers")
        .column(ColumnDefinition::new("n", DataType::Int64).not_null())
        .primary_key(["n"]);
    let table = db.create_table(table.build().unwrap()).unwrap();
    db.session().unwrap().insert(&table, &[1_i64.into()]).unwrap();
    let id = db.id();
    assert_eq!(db.restored_from(), None);
    if is_checkpointed {
        db.close().unwrap();
    }
    id
}

fn restored(on: &MemoryDisk, from: &str, into: &str) {
    let (options, progress) = Default::default();
    let (from, into) = (Path::new(from), Path::new(into));
    let made = restore(disk(on), from, into, &RestoreOptions::default(), &progress).unwrap();
    let checked = check(disk(on), into, &options, &progress).unwrap();
    assert!(checked.is_sound(), "{checked}");
    assert_ne!(made.history, made.database_id);
}

#[test]
fn a_restored_database_names_the_history_that_it_goes_on_from() {
    for is_checkpointed in [false, true] {
        let world = MemoryDisk::new();
        let id = made(&world, is_checkpointed);
        restored(&world, "/shop", "/again");
        let first = open(&world, "/again");
        let from = first.restored_from().unwrap();
        assert_eq!(from.history, id);
        assert_ne!(first.id(), id);
        assert_eq!(from.lsn, first.durable_lsn());
        let first_id = first.id();
        first.close().unwrap();

        // It is kept, and a backup has it, too.
        let (options, progress) = Default::default();
        let (again, copy) = (Path::new("/again"), Path::new("/copy"));
        backup(disk(&world), again, copy, &options, &progress).unwrap();
        for folder in ["/again", "/copy"] {
            let db = open(&world, folder);
            assert_eq!((db.id(), db.restored_from()), (first_id, Some(from)));
            db.close().unwrap();
        }

        // The next one goes on from that.
        restored(&world, "/copy", "/third");
        let third = open(&world, "/third");
        assert_eq!(third.restored_from().unwrap().history, first_id);
        assert!(![id, first_id].contains(&third.id()));
    }
}
