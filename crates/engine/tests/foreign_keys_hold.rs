//! A row that references another one never stands without it, whatever happens to rows, tables, transactions and the
//! process; and what foreign keys say of referencing rows is done.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/library.rs"]
mod library;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::Fixture;
use library::{authors, books, books_author, number, row, rows};
use onrush::{
    ColumnDefinition, DataType, Database, Deferral, Error, NewForeignKey, NewIndex, Options,
    ReferentialAction, Result, Session, Table, TableChange, TableDefinition, Transaction, Value,
};
use onrush_files::MemoryDisk;

fn database() -> Database {
    Fixture::in_memory().create()
}

/// Authors 1 to 3 and 7, books 10 to 30 of authors 1 to 3, and how the books reference their authors.
fn library(foreign_key: &NewForeignKey) -> (Database, Table, Table) {
    let db = database();
    authors(&db);
    books(&db);
    let books = db.add_foreign_key("books", foreign_key).unwrap();
    let authors = db.table("authors").unwrap();
    let mut session = db.session().unwrap();
    for id in [1, 2, 3, 7] {
        session.insert(&authors, &row([Some(id), Some(id * 100)])).unwrap();
    }
    for id in 1..4 {
        session.insert(&books, &row([Some(id * 10), Some(id)])).unwrap();
    }
    drop(session);
    (db, authors, books)
}

#[track_caller]
fn is_missing<T>(outcome: Result<T>) {
    let outcome = outcome.map(drop);
    assert!(matches!(outcome, Err(Error::ReferenceMissing { .. })), "{outcome:?}");
}

#[track_caller]
fn is_still_referenced<T>(outcome: Result<T>) {
    let outcome = outcome.map(drop);
    assert!(matches!(outcome, Err(Error::StillReferenced { .. })), "{outcome:?}");
}

#[track_caller]
fn is_conflict(outcome: Result<()>) {
    assert!(matches!(outcome, Err(Error::Conflict { .. })), "{outcome:?}");
}

#[test]
fn a_row_without_the_row_that_it_references_is_refused() {
    let (db, _, books) = library(&books_author());
    let mut session = db.session().unwrap();
    let missing = session.insert(&books, &row([Some(40), Some(4)])).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "table books: (author = 4) references a row that table authors does not have (books_author); insert that \
         row first"
    );
    is_missing(
        session.insert_many(&books, [&row([Some(41), Some(1)])[..], &row([Some(42), Some(4)])]),
    );
    is_missing(session.update(&books, &[10i64.into()], &[("author", 4i64.into())]));
    is_missing(session.upsert(&books, &row([Some(10), Some(4)])));
    session.insert(&books, &row([Some(43), None])).unwrap();
    let expected: [[Option<i64>; 2]; 4] =
        [[Some(10), Some(1)], [Some(20), Some(2)], [Some(30), Some(3)], [Some(43), None]];
    assert_eq!(rows(&db, "books"), expected);
}

#[test]
fn a_row_that_is_referenced_stays() {
    let (db, authors, _) = library(&books_author());
    let mut session = db.session().unwrap();
    let referenced = session.delete(&authors, &[1i64.into()]).unwrap_err();
    assert_eq!(
        referenced.to_string(),
        "table authors: rows of table books reference (id = 1) (books_author); change or delete those first"
    );
    is_still_referenced(session.update(&authors, &[1i64.into()], &[("id", 5i64.into())]));
    // What nobody references, and what is no part of the key, may change.
    assert!(session.update(&authors, &[1i64.into()], &[("code", 5i64.into())]).unwrap());
    assert!(session.delete(&authors, &[7i64.into()]).unwrap());
    assert_eq!(rows(&db, "authors").len(), 3);
}

#[test]
fn referencing_rows_go_with_the_referenced_one_and_take_its_new_key() {
    let cascade = ReferentialAction::Cascade;
    let (db, authors, _) = library(&books_author().on_delete(cascade).on_update(cascade));
    let mut session = db.session().unwrap();
    assert!(session.delete(&authors, &[1i64.into()]).unwrap());
    assert!(session.update(&authors, &[2i64.into()], &[("id", 22i64.into())]).unwrap());
    assert_eq!(rows(&db, "books"), [[Some(20), Some(22)], [Some(30), Some(3)]]);
}

#[test]
fn keys_that_move_up_by_one_take_their_own_rows_along() {
    let (db, authors, _) = library(&books_author().on_update(ReferentialAction::Cascade));
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    for id in [3i64, 2, 1] {
        let up = [("id", (id + 1).into())];
        assert!(transaction.update(&authors, &[id.into()], &up).unwrap());
    }
    transaction.commit().unwrap();
    assert_eq!(rows(&db, "books"), [[Some(10), Some(2)], [Some(20), Some(3)], [Some(30), Some(4)]]);
}

#[test]
fn references_become_null_or_their_default() {
    let (set_null, set_default) = (ReferentialAction::SetNull, ReferentialAction::SetDefault);
    let (db, authors, _) = library(&books_author().on_delete(set_null).on_update(set_default));
    let mut session = db.session().unwrap();
    assert!(session.delete(&authors, &[1i64.into()]).unwrap());
    assert!(session.update(&authors, &[2i64.into()], &[("id", 22i64.into())]).unwrap());
    assert_eq!(rows(&db, "books"), [[Some(10), None], [Some(20), Some(7)], [Some(30), Some(3)]]);
    // The default is a reference like any other.
    assert!(session.delete(&authors, &[7i64.into()]).unwrap());
    is_missing(session.update(&authors, &[3i64.into()], &[("id", 33i64.into())]));
}

#[test]
fn deletions_go_on_through_tables_and_end_at_one_that_forbids_them() {
    let (db, authors, _) = library(&books_author().on_delete(ReferentialAction::Cascade));
    let pages = TableDefinition::builder("pages").column(number("book").not_null());
    let pages = pages.column(number("page").not_null()).primary_key(["book", "page"]);
    db.create_table(pages.build().unwrap()).unwrap();
    let of_book = NewForeignKey::new("pages_book", ["book"], "books");
    let pages = db
        .add_foreign_key("pages", &of_book.clone().on_delete(ReferentialAction::Cascade))
        .unwrap();
    let mut session = db.session().unwrap();
    for page in [[10, 1], [10, 2], [20, 1]] {
        session.insert(&pages, &row(page.map(Some))).unwrap();
    }
    assert!(session.delete(&authors, &[1i64.into()]).unwrap());
    assert_eq!(rows(&db, "pages"), [[Some(20), Some(1)]]);
    db.drop_foreign_key("pages", "pages_book").unwrap();
    db.add_foreign_key("pages", &of_book).unwrap();
    is_still_referenced(session.delete(&authors, &[2i64.into()]));
    assert_eq!(rows(&db, "books"), [[Some(20), Some(2)], [Some(30), Some(3)]]);
}

#[test]
fn a_unique_index_is_referenced_like_a_primary_key() {
    let db = database();
    authors(&db);
    books(&db);
    let by_code = NewForeignKey {
        referenced_columns: vec!["code".into()],
        on_update: ReferentialAction::Cascade,
        ..books_author()
    };
    let refused = db.add_foreign_key("books", &by_code);
    assert!(matches!(refused, Err(Error::NoReferencedKey { .. })));
    db.create_index("authors", &NewIndex::new("authors_code", ["code"]).unique()).unwrap();
    let books = db.add_foreign_key("books", &by_code).unwrap();
    let authors = db.table("authors").unwrap();
    let mut session = db.session().unwrap();
    session.insert(&authors, &row([Some(1), Some(100)])).unwrap();
    session.insert(&authors, &row([Some(2), None])).unwrap();
    session.insert(&books, &row([Some(10), Some(100)])).unwrap();
    is_missing(session.insert(&books, &row([Some(11), Some(1)])));
    is_still_referenced(session.delete(&authors, &[1i64.into()]));
    assert!(session.delete(&authors, &[2i64.into()]).unwrap());
    assert!(session.update(&authors, &[1i64.into()], &[("code", 101i64.into())]).unwrap());
    assert_eq!(rows(&db, "books"), [[Some(10), Some(101)]]);
    let dropped = db.drop_index("authors_code");
    assert!(matches!(dropped, Err(Error::TableReferenced { .. })));
}

#[test]
fn rows_of_one_table_reference_each_other() {
    let db = database();
    let people = TableDefinition::builder("people").column(number("id").not_null());
    let people = people.column(number("boss")).primary_key(["id"]).build().unwrap();
    db.create_table(people).unwrap();
    let boss = NewForeignKey::new("boss", ["boss"], "people").on_delete(ReferentialAction::Cascade);
    let people = db.add_foreign_key("people", &boss).unwrap();
    let mut session = db.session().unwrap();
    session.insert(&people, &row([Some(1), Some(1)])).unwrap();
    let two: [Value<'_>; 2] = row([Some(2), Some(3)]);
    session.insert_many(&people, [&two[..], &row([Some(3), Some(1)])]).unwrap();
    is_missing(session.insert(&people, &row([Some(4), Some(5)])));
    assert!(session.delete(&people, &[3i64.into()]).unwrap());
    assert_eq!(rows(&db, "people"), [[Some(1), Some(1)]]);
    assert!(session.delete(&people, &[1i64.into()]).unwrap());
}

#[test]
fn a_transaction_is_looked_at_when_it_commits_or_asks() {
    let (db, authors, books) = library(&books_author());
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.insert(&books, &row([Some(40), Some(4)])).unwrap();
    transaction.insert(&authors, &row([Some(4), None])).unwrap();
    transaction.settle_references().unwrap();
    let before = transaction.savepoint();
    transaction.insert(&books, &row([Some(50), Some(5)])).unwrap();
    is_missing(transaction.settle_references());
    transaction.rollback_to(before).unwrap();
    transaction.commit().unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.insert(&books, &row([Some(60), Some(6)])).unwrap();
    is_missing(transaction.commit());
    assert_eq!(rows(&db, "books").len(), 4);
}

#[test]
fn what_is_put_off_is_looked_at_by_the_commit() {
    let deferred = NewForeignKey { deferral: Deferral::InitiallyDeferred, ..books_author() };
    let (db, authors, books) = library(&deferred);
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.insert(&books, &row([Some(40), Some(4)])).unwrap();
    transaction.settle_references().unwrap();
    let which = [(books.id(), "books_author".to_owned())];
    is_missing(transaction.defer_references(Some(&which), false));
    transaction.rollback();
    let mut transaction = session.begin().unwrap();
    assert!(transaction.delete(&authors, &[1i64.into()]).unwrap());
    transaction.settle_references().unwrap();
    is_still_referenced(transaction.commit());
    assert_eq!(rows(&db, "authors").len(), 4);
}

#[test]
fn of_two_transactions_that_do_not_agree_one_fails() {
    let (db, authors, books) = library(&books_author());
    let (mut one, mut other) = (db.session().unwrap(), db.session().unwrap());
    let insert = |session: &mut Session| -> Result<()> {
        let mut transaction = session.begin()?;
        transaction.insert(&books, &row([Some(70), Some(7)]))?;
        transaction.settle_references()?;
        transaction.commit()
    };
    let mut deleting = one.begin().unwrap();
    assert!(deleting.delete(&authors, &[7i64.into()]).unwrap());
    deleting.settle_references().unwrap();
    insert(&mut other).unwrap();
    is_conflict(deleting.commit());

    assert!(other.delete(&books, &[70i64.into()]).unwrap());
    let mut inserting = one.begin().unwrap();
    inserting.insert(&books, &row([Some(70), Some(7)])).unwrap();
    inserting.settle_references().unwrap();
    assert!(other.delete(&authors, &[7i64.into()]).unwrap());
    is_conflict(inserting.commit());
    is_missing(insert(&mut other));
}

#[test]
fn whoever_has_changed_rows_before_a_foreign_key_was_made_is_refused() {
    let db = database();
    let (authors, books) = (authors(&db), books(&db));
    let mut session = db.session().unwrap();
    session.insert(&authors, &row([Some(1), None])).unwrap();
    session.insert(&books, &row([Some(10), Some(1)])).unwrap();
    let (mut one, mut other) = (db.session().unwrap(), db.session().unwrap());
    let (mut deleting, mut inserting) = (one.begin().unwrap(), other.begin().unwrap());
    assert!(deleting.delete(&authors, &[1i64.into()]).unwrap());
    inserting.insert(&books, &row([Some(20), Some(2)])).unwrap();
    db.add_foreign_key("books", &books_author()).unwrap();
    let deleted = deleting.commit();
    assert!(matches!(deleted, Err(Error::TableChanged { .. })), "{deleted:?}");
    let inserted = inserting.commit();
    assert!(matches!(inserted, Err(Error::TableChanged { .. })), "{inserted:?}");
}

#[test]
fn a_foreign_key_that_rows_do_not_meet_is_refused_or_not_looked_at() {
    let db = database();
    authors(&db);
    let books = books(&db);
    let mut session = db.session().unwrap();
    session.insert(&books, &row([Some(10), Some(1)])).unwrap();
    is_missing(db.add_foreign_key("books", &books_author()));
    assert!(db.table("books").unwrap().definition().foreign_keys().is_empty());
    let unlooked = NewForeignKey { is_validated: false, ..books_author() };
    let books = db.add_foreign_key("books", &unlooked).unwrap();
    is_missing(session.insert(&books, &row([Some(20), Some(1)])));
    let mut transaction = session.begin().unwrap();
    is_missing(transaction.validate_foreign_key("books", "books_author"));
    transaction.rollback();
    let authors = db.table("authors").unwrap();
    session.insert(&authors, &row([Some(1), None])).unwrap();
    let mut transaction = session.begin().unwrap();
    let books = transaction.validate_foreign_key("books", "books_author").unwrap();
    assert!(books.definition().foreign_keys()[0].is_validated);
    transaction.commit().unwrap();
}

#[test]
fn types_that_cannot_be_compared_are_refused() {
    let db = database();
    authors(&db);
    let notes = TableDefinition::builder("notes").column(number("id").not_null());
    let notes = notes.column(ColumnDefinition::new("author", DataType::Text)).primary_key(["id"]);
    db.create_table(notes.build().unwrap()).unwrap();
    let refused = db.add_foreign_key("notes", &NewForeignKey::new("a", ["author"], "authors"));
    let refused = refused.map(drop);
    assert!(matches!(refused, Err(Error::ReferenceTypes { .. })), "{refused:?}");
}

#[test]
fn a_value_that_no_referenced_row_can_have_is_missing() {
    let db = database();
    let small = ColumnDefinition::new("id", DataType::Int16).not_null();
    let authors = TableDefinition::builder("authors").column(small).primary_key(["id"]);
    db.create_table(authors.build().unwrap()).unwrap();
    books(&db);
    let books = db.add_foreign_key("books", &books_author()).unwrap();
    let mut session = db.session().unwrap();
    is_missing(session.insert(&books, &row([Some(1), Some(1_000_000)])));
    let authors = db.table("authors").unwrap();
    session.insert(&authors, &[Value::Int16(5)]).unwrap();
    session.insert(&books, &row([Some(1), Some(5)])).unwrap();
    is_still_referenced(session.delete(&authors, &[Value::Int16(5)]));
}

#[test]
fn either_all_columns_are_null_or_none_where_that_is_asked() {
    let db = database();
    let points = TableDefinition::builder("points").column(number("x").not_null());
    let points = points.column(number("y").not_null()).primary_key(["x", "y"]);
    db.create_table(points.build().unwrap()).unwrap();
    let marks = TableDefinition::builder("marks").column(number("id").not_null());
    let marks = marks.column(number("x")).column(number("y")).primary_key(["id"]);
    db.create_table(marks.build().unwrap()).unwrap();
    let full = NewForeignKey {
        // Not in the order of the key.
        referenced_columns: vec!["y".into(), "x".into()],
        is_match_full: true,
        ..NewForeignKey::new("point", ["y", "x"], "points")
    };
    let marks = db.add_foreign_key("marks", &full).unwrap();
    let points = db.table("points").unwrap();
    let mut session = db.session().unwrap();
    session.insert(&points, &row([Some(1), Some(2)])).unwrap();
    session.insert(&marks, &row([Some(1), Some(1), Some(2)])).unwrap();
    session.insert(&marks, &row([Some(2), None, None])).unwrap();
    is_missing(session.insert(&marks, &row([Some(3), Some(2), Some(1)])));
    let mixed = session.insert(&marks, &row([Some(3), Some(1), None]));
    assert!(matches!(mixed, Err(Error::ReferenceMixed { .. })), "{mixed:?}");
}

#[test]
fn tables_that_are_referenced_are_neither_dropped_nor_emptied() {
    let (db, _, books) = library(&books_author());
    let is_referenced = |outcome: Result<()>| {
        assert!(matches!(outcome, Err(Error::TableReferenced { .. })), "{outcome:?}")
    };
    is_referenced(db.drop_table("authors"));
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    is_referenced(transaction.truncate_table("authors").map(drop));
    transaction.truncate_table("books").unwrap();
    transaction.truncate_table("authors").unwrap();
    transaction.commit().unwrap();
    is_missing(session.insert(&db.table("books").unwrap(), &row([Some(10), Some(1)])));
    drop(books);
    // In one transaction, the later one sees that the earlier is gone.
    let mut transaction = session.begin().unwrap();
    transaction.drop_table("books").unwrap();
    transaction.drop_table("authors").unwrap();
    transaction.commit().unwrap();
    assert!(db.tables().is_empty());
}

#[test]
fn columns_and_tables_that_are_renamed_keep_their_foreign_keys() {
    let (db, ..) = library(&books_author());
    let rename =
        |from: &str, to: &str| TableChange::RenameColumn { from: from.into(), to: to.into() };
    db.alter_table("books", &[rename("author", "writer")]).unwrap();
    db.alter_table("authors", &[rename("id", "number")]).unwrap();
    db.alter_table("authors", &[TableChange::Rename { to: "writers".into() }]).unwrap();
    let books = db.table("books").unwrap();
    let mut session = db.session().unwrap();
    is_missing(session.insert(&books, &row([Some(40), Some(4)])));
    is_still_referenced(session.delete(&db.table("writers").unwrap(), &[1i64.into()]));
    let dropped = db.alter_table("books", &[TableChange::DropColumn { name: "writer".into() }]);
    assert!(dropped.unwrap().definition().foreign_keys().is_empty());
    assert!(session.delete(&db.table("writers").unwrap(), &[1i64.into()]).unwrap());
}

#[test]
fn a_table_that_takes_the_place_of_another_has_its_foreign_keys() {
    let (db, authors, books) = library(&books_author());
    let mut session = db.session().unwrap();
    for table in [authors, books] {
        let mut transaction = session.begin().unwrap();
        let definition = table.definition().clone();
        let definition = TableDefinition::builder(definition.name());
        let names = table.definition().columns().iter();
        let definition = names.fold(definition, |built, column| built.column(column.clone()));
        let substitute =
            transaction.create_substitute(definition.primary_key(["id"]).build().unwrap()).unwrap();
        for row in rows(&db, table.name()) {
            let values: Vec<Value<'_>> =
                row.into_iter().map(|value| value.map_or(Value::Null, Value::Int64)).collect();
            transaction.insert(&substitute, &values).unwrap();
        }
        transaction.replace_table(&db.table(table.name()).unwrap(), &substitute).unwrap();
        transaction.commit().unwrap();
    }
    let (authors, books) = (db.table("authors").unwrap(), db.table("books").unwrap());
    assert!(books.definition().foreign_keys()[0].is_validated);
    is_missing(session.insert(&books, &row([Some(40), Some(4)])));
    is_still_referenced(session.delete(&authors, &[1i64.into()]));
}

#[test]
fn foreign_keys_outlive_a_crash() {
    let disk = MemoryDisk::new();
    let db = Database::create_on(Arc::new(disk.clone()), "/db", Options::small()).unwrap();
    authors(&db);
    books(&db);
    db.add_foreign_key("books", &books_author().on_delete(ReferentialAction::SetNull)).unwrap();
    let mut session = db.session().unwrap();
    session.insert(&db.table("authors").unwrap(), &row([Some(1), None])).unwrap();
    session.insert(&db.table("books").unwrap(), &row([Some(10), Some(1)])).unwrap();
    let db = Database::open_on(Arc::new(disk.copy()), "/db", Options::small()).unwrap();
    let mut session = db.session().unwrap();
    is_missing(session.insert(&db.table("books").unwrap(), &row([Some(20), Some(2)])));
    assert!(session.delete(&db.table("authors").unwrap(), &[1i64.into()]).unwrap());
    assert_eq!(rows(&db, "books"), [[Some(10), None]]);
}

#[test]
fn transactions_larger_than_memory_are_looked_at_too() {
    let options = Options { large_transaction_bytes: 64 << 10, ..Options::small() };
    let db = Database::create_on(Arc::new(MemoryDisk::new()), "/db", options).unwrap();
    authors(&db);
    books(&db);
    let cascade = books_author().on_delete(ReferentialAction::Cascade);
    let books = db.add_foreign_key("books", &cascade).unwrap();
    db.create_index("books", &NewIndex::new("books_by_author", ["author"])).unwrap();
    let (books, authors) = (db.table(books.name()).unwrap(), db.table("authors").unwrap());
    let mut session = db.session().unwrap();
    const COUNT: i64 = 5000;
    let load = |transaction: &mut Transaction<'_>, books_of: i64| -> Result<()> {
        // Books come before their authors: only the commit can tell.
        for id in 0..COUNT {
            transaction.insert(&books, &row([Some(id), Some(id % books_of)]))?;
        }
        (0..500).try_for_each(|id| transaction.insert(&authors, &row([Some(id), None])))
    };
    let mut transaction = session.begin().unwrap();
    load(&mut transaction, 501).unwrap();
    is_missing(transaction.commit());
    assert_eq!(rows(&db, "books").len(), 0);
    let mut transaction = session.begin().unwrap();
    load(&mut transaction, 500).unwrap();
    transaction.commit().unwrap();
    let mut transaction = session.begin().unwrap();
    for id in 0..499i64 {
        assert!(transaction.delete(&authors, &[id.into()]).unwrap());
    }
    transaction.commit().unwrap();
    assert_eq!(rows(&db, "books").len(), 10);
}

#[test]
fn rows_that_come_while_their_referenced_row_goes_never_stand_alone() {
    const ROUNDS: i64 = 300;
    const ROUNDS_MAX: i64 = 1_000_000;
    let (db, authors, books) = library(&books_author());
    let inserted = AtomicUsize::new(0);
    let insert = |from: i64| {
        let mut session = db.session().unwrap();
        for id in 0..ROUNDS_MAX {
            // The author may have been away in all rounds that were meant.
            if id >= ROUNDS && inserted.load(Ordering::Relaxed) > 0 {
                return;
            }
            match session.insert(&books, &row([Some(from + id), Some(7)])) {
                Ok(()) => {
                    inserted.fetch_add(1, Ordering::Relaxed);
                    // Else the author could never be deleted again.
                    session.delete(&books, &[(from + id).into()]).unwrap();
                }
                Err(Error::ReferenceMissing { .. } | Error::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    let come_and_go = || {
        let mut session = db.session().unwrap();
        for _ in 0..ROUNDS {
            match session.delete(&authors, &[7i64.into()]) {
                Ok(_) => {
                    let left = rows(&db, "books");
                    assert!(left.iter().all(|row| row[1] != Some(7)), "{left:?}");
                    session.insert(&authors, &row([Some(7), None])).unwrap();
                }
                Err(Error::StillReferenced { .. } | Error::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| insert(1000));
        scope.spawn(|| insert(1000 + ROUNDS_MAX));
        scope.spawn(come_and_go);
    });
    assert!(inserted.into_inner() > 0);
}

#[test]
fn what_a_savepoint_takes_back_is_missed_again() {
    let options = Options { large_transaction_bytes: 64 << 10, ..Options::small() };
    let db = Database::create_on(Arc::new(MemoryDisk::new()), "/db", options).unwrap();
    authors(&db);
    books(&db);
    let books = db.add_foreign_key("books", &books_author()).unwrap();
    let authors = db.table("authors").unwrap();
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.insert(&books, &row([Some(1), Some(1)])).unwrap();
    let before = transaction.savepoint();
    // So many that they go to the leaves, and are looked at.
    for id in 1..5000 {
        transaction.insert(&authors, &row([Some(id), None])).unwrap();
    }
    transaction.settle_references().unwrap();
    transaction.rollback_to(before).unwrap();
    is_missing(transaction.settle_references());
    is_missing(transaction.commit());
    assert_eq!(rows(&db, "books").len(), 0);
}
