//! Of a transaction that references a row and one that deletes it one fails, also where they commit at the same time,
//! and so it is with two that take one key of a deferrable UNIQUE constraint; and this test would notice if both looked
//! at what the other does without locking the key.
//!
//! `cargo test -p onrush-sim --features planted-faults --test references_meet_removals`. One test, because a fault
//! is planted in the whole process.

#![cfg(feature = "planted-faults")]
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use onrush::{
    ColumnDefinition, DataType, Database, DeferrableUnique, Durability, Error, Fault,
    NewForeignKey, NewIndex, Options, Result, Session, Table, TableDefinition, plant,
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

/// Whether seats 1 and 2 were both inserted with one place, in one of so many rounds.
fn both_took_one_key(db: &Database, rounds: i64) -> bool {
    let seats = db.table("seats").unwrap();
    let (barrier, is_found) = (Barrier::new(2), AtomicBool::new(false));
    let take = |session: &mut Session, seat: i64| {
        barrier.wait();
        let taken = match session.insert(&seats, &[seat.into(), 7i64.into()]) {
            Ok(()) => true,
            Err(error) => {
                let is_known =
                    matches!(error, Error::UniqueViolated { .. } | Error::Conflict { .. });
                assert!(is_known, "{error}");
                false
            }
        };
        barrier.wait();
        taken
    };
    std::thread::scope(|scope| {
        let run = |seat: i64| {
            let mut session = db.session().unwrap();
            for _ in 0..rounds {
                let taken = take(&mut session, seat);
                if seat == 1 {
                    let all = session.scan(&seats, &onrush::ScanOptions::default()).unwrap();
                    is_found.fetch_or(all.count() == 2, Ordering::Relaxed);
                }
                barrier.wait();
                if taken {
                    session.delete(&seats, &[seat.into()]).unwrap();
                }
                if is_found.load(Ordering::Relaxed) {
                    break;
                }
            }
        };
        scope.spawn(move || run(2));
        run(1);
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

    let seats = TableDefinition::builder("seats").column(number("id")).column(number("place"));
    db.create_table(seats.primary_key(["id"]).build().unwrap()).unwrap();
    let at_last = DeferrableUnique { is_deferred: true, nulls_equal: false };
    let place = NewIndex::new("seats_place", ["place"]).unique_at_last(at_last);
    db.create_index("seats", &place).unwrap();

    assert!(!one_stood_alone(&db, 3000));
    assert!(!both_took_one_key(&db, 3000));
    plant(Fault::ReferencesNotLocked);
    let is_noticed = one_stood_alone(&db, 1_000_000);
    let is_noticed_of_keys = both_took_one_key(&db, 1_000_000);
    plant(Fault::None);
    assert!(is_noticed);
    assert!(is_noticed_of_keys);
}
