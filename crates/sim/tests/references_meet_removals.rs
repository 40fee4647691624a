//! Of a transaction that references a row and one that deletes it one fails, also where they commit at the same time;
//! and this test would notice if both looked at the other's table without locking the key.
//!
//! `cargo test -p onrush-sim --features planted-faults --test references_meet_removals`. One test, because a fault
//! is planted in the whole process.

#![cfg(feature = "planted-faults")]
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use onrush::{
    ColumnDefinition, DataType, Database, Durability, Error, Fault, NewForeignKey, Options, Result,
    Session, Table, TableDefinition, plant,
};
use onrush_files::MemoryDisk;

fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::ReferenceMissing { .. } | Error::StillReferenced { .. } | Error::Conflict { .. }
    )
}

/// Whether a book of author 1 was inserted and author 1 deleted, in one of so many rounds.
fn one_stood_alone(db: &Database, rounds: i64) -> bool {
    let (authors, books) = (db.table("authors").unwrap(), db.table("books").unwrap());
    let (barrier, is_found) = (Barrier::new(2), AtomicBool::new(false));
    let both = |session: &mut Session, change: &dyn Fn(&mut Session) -> Result<()>| {
        barrier.wait();
        let changed = match change(session) {
            Ok(()) => true,
            Err(error) => {
                assert!(is_refusal(&error), "{error}");
                false
            }
        };
        barrier.wait();
        changed
    };
    let count = |session: &mut Session, table: &Table| {
        session.scan(table, &onrush::ScanOptions::default()).unwrap().count()
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = db.session().unwrap();
            for _ in 0..rounds {
                both(&mut session, &|session| session.insert(&books, &[1i64.into(), 1i64.into()]));
                barrier.wait();
                if is_found.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let mut session = db.session().unwrap();
        for _ in 0..rounds {
            both(&mut session, &|session| session.delete(&authors, &[1i64.into()]).map(drop));
            // The other one waits meanwhile.
            let (left, alone) = (count(&mut session, &authors), count(&mut session, &books));
            is_found.fetch_or(left == 0 && alone == 1, Ordering::Relaxed);
            if alone == 1 {
                session.delete(&books, &[1i64.into()]).unwrap();
            }
            if left == 0 {
                session.insert(&authors, &[1i64.into()]).unwrap();
            }
            barrier.wait();
            if is_found.load(Ordering::Relaxed) {
                break;
            }
        }
    });
    is_found.into_inner()
}

#[test]
fn and_whoever_does_not_lock_the_key_is_noticed() {
    let options = Options { durability: Durability::Delayed, ..Options::small() };
    let db = Database::create_on(Arc::new(MemoryDisk::new()), "/db", options).unwrap();
    let number = |name| ColumnDefinition::new(name, DataType::Int64).not_null();
    let authors = TableDefinition::builder("authors").column(number("id")).primary_key(["id"]);
    let books = TableDefinition::builder("books").column(number("id")).column(number("author"));
    let authors = db.create_table(authors.build().unwrap()).unwrap();
    db.create_table(books.primary_key(["id"]).build().unwrap()).unwrap();
    db.session().unwrap().insert(&authors, &[1i64.into()]).unwrap();
    db.add_foreign_key("books", &NewForeignKey::new("author", ["author"], "authors")).unwrap();

    assert!(!one_stood_alone(&db, 3000));
    plant(Fault::ReferencesNotLocked);
    let is_noticed = one_stood_alone(&db, 1_000_000);
    plant(Fault::None);
    assert!(is_noticed);
}
