//! Tables that a transaction creates, alters, empties and drops: seen by it alone until it commits, there or
//! not with its rows, also after a crash, and kept from others meanwhile.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Fixture, accounts, all_rows, generated, ids, note, noted, notes, refused};
use onrush::{
    ColumnDefinition, DataType, Database, Error, KeyStrategy, TableChange, TableDefinition,
    Transaction,
};

fn renamed(to: &str) -> [TableChange; 1] {
    [TableChange::Rename { to: to.to_owned() }]
}

fn called(name: &str) -> TableDefinition {
    notes().renamed(name.to_owned()).unwrap()
}

fn names(db: &Database) -> Vec<String> {
    db.tables().iter().map(|table| table.name().to_owned()).collect()
}

fn ids_in(db: &Database, table: &str) -> Vec<i64> {
    let table = db.table(table).unwrap();
    ids(&all_rows(&mut db.session().unwrap(), &table))
}

#[test]
fn what_a_transaction_defines_is_its_own_until_it_commits() {
    let fixture = Fixture::in_memory();
    let (db, _) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    let made = transaction.create_table(called("made")).unwrap();
    transaction.insert(&made, &note(1, "one")).unwrap();
    transaction.drop_table("notes").unwrap();
    assert_eq!(names(&db), ["notes"]);
    let seen: Vec<String> =
        transaction.tables().iter().map(|table| table.name().to_owned()).collect();
    assert_eq!(seen, ["made"]);
    refused(transaction.table("notes"), &["notes"]);
    assert_eq!(transaction.get(&made, &[1i64.into()]).unwrap(), Some(noted(1, "one")));
    transaction.commit().unwrap();
    assert_eq!(names(&db), ["made"]);
    assert_eq!(ids_in(&db, "made"), [1]);
}

#[test]
fn a_transaction_that_is_rolled_back_leaves_nothing() {
    let fixture = Fixture::in_memory();
    let (db, notes) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&notes, &note(1, "one")).unwrap();
    let leaves = db.statistics().leaves;
    let mut transaction = session.begin().unwrap();
    let made = transaction.create_table(called("made")).unwrap();
    transaction.insert(&made, &note(1, "one")).unwrap();
    let emptied = transaction.truncate_table("notes").unwrap();
    transaction.insert(&emptied, &note(7, "seven")).unwrap();
    transaction.alter_table("notes", &renamed("other")).unwrap();
    transaction.rollback();
    assert_eq!(names(&db), ["notes"]);
    assert_eq!(ids_in(&db, "notes"), [1]);
    session.insert(&notes, &note(2, "two")).unwrap();
    assert_eq!(db.statistics().leaves, leaves, "a table that never was leaves nothing behind");
}

#[test]
fn names_change_hands_in_one_transaction() {
    let fixture = Fixture::in_memory();
    let (db, one) = fixture.create_with(called("one"));
    let two = db.create_table(called("two")).unwrap();
    let mut session = db.session().unwrap();
    session.insert(&one, &note(1, "of one")).unwrap();
    session.insert(&two, &note(2, "of two")).unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.alter_table("one", &renamed("spare")).unwrap();
    transaction.alter_table("two", &renamed("one")).unwrap();
    transaction.alter_table("spare", &renamed("two")).unwrap();
    transaction.commit().unwrap();
    assert_eq!((ids_in(&db, "one"), ids_in(&db, "two")), (vec![2], vec![1]));
    drop((session, one, two, db));
    let db = fixture.open();
    assert_eq!((ids_in(&db, "one"), ids_in(&db, "two")), (vec![2], vec![1]));
}

#[test]
fn definitions_and_rows_are_there_after_a_crash_with_and_without_a_checkpoint() {
    for checkpointed in [false, true] {
        let fixture = Fixture::in_memory();
        let identity = KeyStrategy::Identity { start: 1, strict: false };
        let (db, old) = fixture.create_with(notes());
        let mut session = db.session().unwrap();
        session.insert(&old, &note(1, "old")).unwrap();
        let mut transaction = session.begin().unwrap();
        let log = transaction.create_table(generated(identity)).unwrap();
        transaction.insert(&log, &[]).unwrap();
        transaction.insert(&log, &[]).unwrap();
        let emptied = transaction.truncate_table("notes").unwrap();
        let stars = ColumnDefinition::new("stars", DataType::Int32).not_null().default_value(3i32);
        transaction.insert(&emptied, &note(5, "before the column")).unwrap();
        let altered = transaction.alter_table("notes", &[TableChange::AddColumn(stars)]).unwrap();
        transaction.insert(&altered, &[6i64.into(), "behind it".into(), 4i32.into()]).unwrap();
        transaction.commit().unwrap();
        if checkpointed {
            db.checkpoint().unwrap();
        }
        drop((session, old, db));
        let db = fixture.open();
        let mut session = db.session().unwrap();
        let notes = db.table("notes").unwrap();
        let rows = all_rows(&mut session, &notes);
        let stars: Vec<_> = rows.iter().map(|row| row[2].clone()).collect();
        assert_eq!((ids(&rows), stars), (vec![5, 6], vec![3i32.into(), 4i32.into()]));
        let log = db.table("log").unwrap();
        let next = session.insert_returning_key(&log, &[]).unwrap();
        assert!(next[0].as_i64().unwrap() > 2, "{next:?} was handed out before");
        assert_eq!(all_rows(&mut session, &log).len(), 3);
    }
}

#[test]
fn a_savepoint_takes_definitions_back() {
    let fixture = Fixture::in_memory();
    let (db, notes) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&notes, &note(1, "one")).unwrap();
    let mut transaction = session.begin().unwrap();
    let first = transaction.savepoint();
    transaction.drop_table("notes").unwrap();
    let other = transaction.create_table(called("notes")).unwrap();
    transaction.insert(&other, &note(9, "other")).unwrap();
    let second = transaction.savepoint();
    transaction.alter_table("notes", &renamed("moved")).unwrap();
    transaction.rollback_to(second).unwrap();
    assert!(transaction.table("notes").unwrap() == other);
    transaction.rollback_to(first).unwrap();
    assert!(transaction.table("notes").unwrap() == notes);
    transaction.insert(&notes, &note(2, "two")).unwrap();
    transaction.commit().unwrap();
    assert_eq!((names(&db), ids_in(&db, "notes")), (vec!["notes".to_owned()], vec![1, 2]));
}

#[test]
fn who_writes_to_a_table_that_is_being_altered_waits() {
    let fixture = Fixture::in_memory();
    let (db, old) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    let stars = ColumnDefinition::new("stars", DataType::Int32);
    transaction.alter_table("notes", &[TableChange::AddColumn(stars)]).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut session = db.session().unwrap();
            session.insert(&old, &note(1, "late"))
        });
        wait_until_somebody_waits(&db);
        assert!(!writer.is_finished());
        transaction.commit().unwrap();
        let refused = refused(writer.join().unwrap(), &["notes", "altered"]);
        assert!(matches!(refused, Error::TableChanged { .. }));
    });
}

#[test]
fn a_writer_goes_on_when_the_definition_is_rolled_back() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.drop_table("notes").unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| db.session().unwrap().insert(&table, &note(1, "late")));
        wait_until_somebody_waits(&db);
        transaction.rollback();
        writer.join().unwrap().unwrap();
    });
    assert_eq!(ids_in(&db, "notes"), [1]);
}

fn wait_until_somebody_waits(db: &Database) {
    let waits = || {
        let waits = db.statistics().totals.waits;
        waits.iter().any(|wait| wait.wait.name().starts_with("LCK_M_SCH") && wait.count > 0)
    };
    while !waits() {
        std::thread::yield_now();
    }
}

#[test]
fn a_definition_waits_for_a_transaction_that_holds_the_table() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.hold_table(&table).unwrap();
    transaction.insert(&table, &note(1, "held")).unwrap();
    let mut other = db.session().unwrap();
    other.set_lock_timeout(Some(Duration::ZERO));
    let mut impatient = other.begin().unwrap();
    let error = refused(impatient.drop_table("notes"), &["notes", "retry"]);
    assert!(matches!(error, Error::LockTimeout { .. }));
    drop(impatient);
    std::thread::scope(|scope| {
        let dropper = scope.spawn(|| db.drop_table("notes"));
        wait_until_somebody_waits(&db);
        // Whoever is waited for does not wait for who waits.
        transaction.commit().unwrap();
        dropper.join().unwrap().unwrap();
    });
    assert!(names(&db).is_empty());
}

#[test]
fn who_goes_back_to_a_savepoint_gives_back_what_it_has_locked_since() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let kept = db.create_table(called("kept")).unwrap();
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.insert(&table, &note(1, "before")).unwrap();
    transaction.truncate_table("kept").unwrap();
    let savepoint = transaction.savepoint();
    transaction.drop_table("notes").unwrap();
    transaction.create_table(called("new")).unwrap();
    transaction.rollback_to(savepoint).unwrap();

    let mut other = db.session().unwrap();
    other.set_lock_timeout(Some(Duration::ZERO));
    other.insert(&table, &note(2, "another's")).unwrap();
    let mut definer = other.begin().unwrap();
    definer.create_table(called("new")).unwrap();
    definer.commit().unwrap();
    let error = refused(other.insert(&kept, &note(3, "kept out")), &["retry"]);
    assert!(matches!(error, Error::LockTimeout { .. }));
    transaction.commit().unwrap();
    assert_eq!(ids_in(&db, "notes"), [1, 2]);
    assert_eq!(names(&db), ["kept", "new", "notes"]);
}

#[test]
fn of_two_that_wait_for_each_other_one_is_refused() {
    let fixture = Fixture::in_memory();
    let (db, one) = fixture.create_with(called("one"));
    let two = db.create_table(called("two")).unwrap();
    let both_hold = std::sync::Barrier::new(2);
    let both_hold = &both_hold;
    let refusals: usize = std::thread::scope(|scope| {
        let threads = [(&one, "two"), (&two, "one")].map(|(held, wanted)| {
            let db = &db;
            scope.spawn(move || {
                let mut session = db.session().unwrap();
                let mut transaction = session.begin().unwrap();
                transaction.hold_table(held).unwrap();
                both_hold.wait();
                match transaction.drop_table(wanted) {
                    Err(Error::Deadlock { .. }) => 1,
                    outcome => {
                        outcome.unwrap();
                        transaction.commit().unwrap();
                        0
                    }
                }
            })
        });
        threads.map(|thread| thread.join().unwrap()).into_iter().sum()
    });
    assert_eq!(refusals, 1);
    assert_eq!(names(&db).len(), 1);
}

/// The commit itself may have to wait for a table that it has only written to.
#[test]
fn a_circle_that_a_commit_closes_is_found() {
    let fixture = Fixture::in_memory();
    let (db, one) = fixture.create_with(called("one"));
    db.create_table(called("two")).unwrap();
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    let mut writer = session.begin().unwrap();
    writer.insert(&one, &note(1, "written before it was locked")).unwrap();
    writer.lock_table("two").unwrap();
    let mut definer = other.begin().unwrap();
    definer.drop_table("one").unwrap();
    std::thread::scope(|scope| {
        let definer = scope.spawn(move || definer.drop_table("two").and(definer.commit()));
        wait_until_somebody_waits(&db);
        assert!(matches!(writer.commit(), Err(Error::Deadlock { .. })));
        definer.join().unwrap().unwrap();
    });
    assert!(names(&db).is_empty());
}

#[test]
fn a_table_that_is_emptied_where_it_was_created_keeps_its_number_after_a_crash() {
    let fixture = Fixture::in_memory();
    let (db, old) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    let identity = KeyStrategy::Identity { start: 1, strict: false };
    let created = transaction.create_table(generated(identity)).unwrap();
    transaction.insert(&created, &[]).unwrap();
    let emptied = transaction.truncate_table("log").unwrap();
    transaction.insert(&emptied, &[]).unwrap();
    transaction.commit().unwrap();
    let number = db.table("log").unwrap().id();
    assert_eq!(number, created.id());
    drop((session, created, emptied, old, db));
    let db = fixture.open();
    let log = db.table("log").unwrap();
    assert_eq!(log.id(), number);
    let mut session = db.session().unwrap();
    let next = session.insert_returning_key(&log, &[]).unwrap();
    assert!(next[0].as_i64().unwrap() > 2, "{next:?} was handed out before");
    assert_eq!(all_rows(&mut session, &log).len(), 2);
}

#[test]
fn a_handle_of_a_definition_that_was_taken_back_never_writes() {
    let fixture = Fixture::in_memory();
    let (db, _) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let column = |name: &str| ColumnDefinition::new(name, DataType::Int32);
    let mut transaction = session.begin().unwrap();
    let taken_back =
        transaction.alter_table("notes", &[TableChange::AddColumn(column("gone"))]).unwrap();
    transaction.rollback();
    db.alter_table("notes", &[TableChange::AddColumn(column("stays"))]).unwrap();
    let row = [1i64.into(), "one".into(), 1i32.into()];
    let error = refused(session.insert(&taken_back, &row), &["notes"]);
    assert!(matches!(error, Error::TableChanged { .. }));
}

#[test]
fn a_snapshot_does_not_see_a_later_table_as_an_empty_one() {
    let fixture = Fixture::in_memory();
    let (db, notes) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    session.insert(&notes, &note(1, "one")).unwrap();
    let mut older = db.session().unwrap();
    let mut older = older.begin().unwrap();
    db.truncate_table("notes").unwrap();
    session.insert(&db.table("notes").unwrap(), &note(2, "two")).unwrap();
    let mut transaction = session.begin().unwrap();
    let later = transaction.create_table(accounts()).unwrap();
    transaction.insert(&later, &[2i64.into(), 1i64.into()]).unwrap();
    transaction.commit().unwrap();
    for table in [&db.table("notes").unwrap(), &later] {
        let read = older.get(table, &[2i64.into()]);
        assert!(matches!(read, Err(Error::TableChanged { .. })), "{read:?}");
    }
    // It has read nothing, so it may begin anew.
    older.refresh();
    assert_eq!(
        older.get(&db.table("notes").unwrap(), &[2i64.into()]).unwrap(),
        Some(noted(2, "two"))
    );
}

#[test]
fn rows_of_a_table_that_was_emptied_meanwhile_are_not_left_behind_by_a_later_definition() {
    let fixture = Fixture::in_memory();
    let (db, notes) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let define: [fn(&mut Transaction<'_>) -> onrush::Result<()>; 5] = [
        |own| own.table("notes").and_then(|notes| own.hold_table(&notes)),
        |own| own.reserve_table("notes").map(drop),
        |own| own.lock_table("notes").map(drop),
        |own| own.truncate_table("notes").map(drop),
        |own| own.drop_table("notes"),
    ];
    let mut notes = notes;
    for define in define {
        let mut transaction = session.begin().unwrap();
        transaction.insert(&notes, &note(1, "one")).unwrap();
        db.truncate_table("notes").unwrap();
        let error = refused(define(&mut transaction), &["notes"]);
        assert!(matches!(error, Error::TableChanged { .. }));
        // What was refused holds nothing.
        notes = db.table("notes").unwrap();
        let mut other = db.session().unwrap();
        other.set_lock_timeout(Some(Duration::ZERO));
        other.insert(&notes, &note(2, "two")).unwrap();
        let error = refused(transaction.commit(), &["notes"]);
        assert!(matches!(error, Error::TableChanged { .. }));
        db.truncate_table("notes").unwrap();
        notes = db.table("notes").unwrap();
    }
}

#[test]
fn who_waited_for_a_table_that_was_emptied_has_locked_the_new_one() {
    let fixture = Fixture::in_memory();
    let (db, _) = fixture.create_with(notes());
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let mut emptying = first.begin().unwrap();
    emptying.truncate_table("notes").unwrap();
    std::thread::scope(|scope| {
        let locking = scope.spawn(|| {
            let mut transaction = second.begin().unwrap();
            let notes = transaction.lock_table("notes").unwrap();
            let mut other = db.session().unwrap();
            other.set_lock_timeout(Some(Duration::ZERO));
            let error = refused(other.insert(&notes, &note(1, "one")), &["retry"]);
            assert!(matches!(error, Error::LockTimeout { .. }), "{error}");
        });
        wait_until_somebody_waits(&db);
        emptying.commit().unwrap();
        locking.join().unwrap();
    });
}
