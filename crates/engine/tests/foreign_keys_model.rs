//! Random transactions leave no row without the row that it references, whatever the foreign key says, whatever is
//! rolled back, and whatever happens to the process.

#![allow(clippy::unwrap_used)]

#[path = "common/library.rs"]
mod library;

use std::collections::BTreeSet;
use std::sync::Arc;

use library::{authors, books, books_author, row, rows};
use onrush::{
    Database, Error, NewIndex, Options, ReferentialAction, Result, Session, Table, Value,
};
use onrush_files::MemoryDisk;
use proptest::prelude::*;

/// One step of a transaction, or its end.
#[derive(Clone, Copy, Debug)]
enum Step {
    InsertAuthor(i64),
    DeleteAuthor(i64),
    MoveAuthor(i64, i64),
    InsertBook(i64, Option<i64>),
    ChangeBook(i64, Option<i64>),
    DeleteBook(i64),
    Settle,
    Savepoint,
    BackToSavepoint,
    Commit,
    Checkpoint,
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = 0..6i64;
    let author = prop::option::weighted(0.8, 0..6i64);
    let step = prop_oneof![
        3 => id.clone().prop_map(Step::InsertAuthor),
        2 => id.clone().prop_map(Step::DeleteAuthor),
        2 => (id.clone(), id.clone()).prop_map(|(from, to)| Step::MoveAuthor(from, to)),
        4 => (id.clone(), author.clone()).prop_map(|(id, author)| Step::InsertBook(id, author)),
        2 => (id.clone(), author).prop_map(|(id, author)| Step::ChangeBook(id, author)),
        1 => id.prop_map(Step::DeleteBook),
        2 => Just(Step::Settle),
        1 => Just(Step::Savepoint),
        1 => Just(Step::BackToSavepoint),
        4 => Just(Step::Commit),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Crash),
    ];
    prop::collection::vec(step, 1..60)
}

fn action() -> impl Strategy<Value = ReferentialAction> {
    prop_oneof![
        Just(ReferentialAction::NoAction),
        Just(ReferentialAction::Restrict),
        Just(ReferentialAction::Cascade),
        Just(ReferentialAction::SetNull),
    ]
}

/// No book references an author that is not there.
fn assert_holds(db: &Database) {
    let authors: BTreeSet<Option<i64>> = rows(db, "authors").iter().map(|row| row[0]).collect();
    for book in rows(db, "books") {
        assert!(book[1].is_none() || authors.contains(&book[1]), "{book:?} of {authors:?}");
    }
}

/// One transaction's steps, as long as none is refused; whether it was committed.
fn take_steps(session: &mut Session, tables: &[Table; 2], steps: &[Step]) -> Result<()> {
    let [authors, books] = tables;
    let mut transaction = session.begin()?;
    let mut savepoint = None;
    for step in steps {
        let author = |author: Option<i64>| author.map_or(Value::Null, Value::Int64);
        let refused = match *step {
            Step::InsertAuthor(id) => transaction.insert(authors, &row([Some(id), None])),
            Step::DeleteAuthor(id) => transaction.delete(authors, &[id.into()]).map(drop),
            Step::MoveAuthor(from, to) => {
                transaction.update(authors, &[from.into()], &[("id", to.into())]).map(drop)
            }
            Step::InsertBook(id, by) => transaction.insert(books, &[id.into(), author(by)]),
            Step::ChangeBook(id, by) => {
                transaction.update(books, &[id.into()], &[("author", author(by))]).map(drop)
            }
            Step::DeleteBook(id) => transaction.delete(books, &[id.into()]).map(drop),
            Step::Settle => {
                transaction.settle_references()?;
                Ok(())
            }
            Step::Savepoint => {
                savepoint = Some(transaction.savepoint());
                Ok(())
            }
            Step::BackToSavepoint => {
                savepoint.map_or(Ok(()), |savepoint| transaction.rollback_to(savepoint))
            }
            Step::Commit | Step::Checkpoint | Step::Crash => Ok(()),
        };
        assert!(matches!(refused, Ok(()) | Err(Error::DuplicateKey { .. })), "{refused:?}");
    }
    transaction.commit()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    /// Random transactions leave no book without its author, with and without an index, whatever foreign keys do.
    #[test]
    fn no_reference_is_ever_without_its_row(
        steps in steps(),
        (on_delete, on_update, is_indexed) in (action(), action(), any::<bool>()),
    ) {
        let disk = MemoryDisk::new();
        let mut db = Database::create_on(Arc::new(disk.clone()), "/db", Options::small()).unwrap();
        authors(&db);
        books(&db);
        db.add_foreign_key("books", &books_author().on_delete(on_delete).on_update(on_update)).unwrap();
        if is_indexed {
            db.create_index("books", &NewIndex::new("by_author", ["author"])).unwrap();
        }
        let ends = |step: &Step| matches!(step, Step::Commit | Step::Checkpoint | Step::Crash);
        let mut disk = disk;
        for part in steps.split_inclusive(ends) {
            let tables = [db.table("authors").unwrap(), db.table("books").unwrap()];
            let before = (rows(&db, "authors"), rows(&db, "books"));
            let taken = take_steps(&mut db.session().unwrap(), &tables, part);
            match taken {
                Ok(()) => {}
                Err(Error::ReferenceMissing { .. } | Error::StillReferenced { .. }) => {
                    prop_assert_eq!((rows(&db, "authors"), rows(&db, "books")), before);
                }
                Err(error) => panic!("{error}"),
            }
            match part.last() {
                Some(Step::Checkpoint) => drop(db.checkpoint().unwrap()),
                Some(Step::Crash) => {
                    disk = disk.copy();
                    db = Database::open_on(Arc::new(disk.clone()), "/db", Options::small()).unwrap();
                }
                _ => {}
            }
            assert_holds(&db);
        }
    }
}
