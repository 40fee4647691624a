//! A table takes the place of another one in a transaction that holds nobody's writes off before its last moment:
//! all of it is there or nothing, no change of others is lost, and no number of a generated key comes again.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Fixture, all_rows, generated, ids, note, notes, refused};
use onrush::{
    Database, Error, KeyStrategy, OnlineOptions, RowChange, ScanOptions, Session, Snapshot, Table,
    TableChange, Transaction, Value,
};
use onrush_check::Progress;
use onrush_files::MemoryDisk;

/// Rows that make the copy a large transaction.
const MANY: i64 = 2_000;

fn text(id: i64) -> String {
    format!("{id} ").repeat(250)
}

fn fill(session: &mut Session, table: &Table, ids: std::ops::Range<i64>) {
    for id in ids {
        session.insert(table, &note(id, &text(id))).unwrap();
    }
}

fn copy_rows(transaction: &mut Transaction<'_>, from: &Snapshot, table: &Table, to: &Table) {
    for row in from.scan(table, &ScanOptions::default()).unwrap() {
        transaction.insert(to, &row.unwrap()).unwrap();
    }
}

fn catch_up(
    transaction: &mut Transaction<'_>,
    (seen, now): (&Snapshot, &Snapshot),
    (table, to): (&Table, &Table),
) -> usize {
    let changes = now.changes_since(seen, table).unwrap();
    let changes: Vec<RowChange> = changes.map(Result::unwrap).collect();
    for RowChange { before, after } in &changes {
        match (before, after) {
            (_, Some(row)) => transaction.upsert(to, row).unwrap(),
            (Some(row), None) => assert!(transaction.delete(to, &row[..1]).unwrap()),
            (None, None) => unreachable!(),
        }
    }
    changes.len()
}

fn check(db: &Database) {
    let options = OnlineOptions { busy_percent: 100, ..OnlineOptions::default() };
    let report = db.check(&options, &Progress::default()).unwrap();
    assert_eq!(report.findings, []);
}

fn names(db: &Database) -> Vec<String> {
    db.tables().iter().map(|table| table.name().to_owned()).collect()
}

#[test]
fn the_new_table_has_what_others_have_changed_while_it_was_made() {
    let fixture = Fixture::in_memory().with_little_memory();
    let (db, old) = fixture.create_with(notes());
    let (mut one, mut two) = (db.session().unwrap(), db.session().unwrap());
    fill(&mut two, &old, 0..MANY);
    let mut transaction = one.begin().unwrap();
    let table = transaction.reserve_table("notes").unwrap();
    let new = transaction.create_substitute(notes()).unwrap();
    let first = transaction.committed_snapshot();
    copy_rows(&mut transaction, &first, &table, &new);
    // Nobody waits for any of it.
    fill(&mut two, &old, MANY..MANY + 10);
    two.update(&old, &[5i64.into()], &[("note", "changed".into())]).unwrap();
    two.delete(&old, &[6i64.into()]).unwrap();
    db.checkpoint().unwrap();
    transaction.refresh();
    let second = transaction.committed_snapshot();
    assert_eq!(catch_up(&mut transaction, (&first, &second), (&table, &new)), 12);
    drop(first);
    two.delete(&old, &[5i64.into()]).unwrap();
    two.insert(&old, &note(6, "again")).unwrap();
    let expected = all_rows(&mut two, &old);
    transaction.lock_table("notes").unwrap();
    let third = transaction.committed_snapshot();
    assert_eq!(catch_up(&mut transaction, (&second, &third), (&table, &new)), 2);
    transaction.replace_table(&table, &new).unwrap();
    drop((second, third));
    assert_eq!(all_rows(&mut two, &old), expected, "before the commit everybody sees the old one");
    transaction.commit().unwrap();
    let now = db.table("notes").unwrap();
    assert_ne!(now.id(), old.id());
    assert_eq!(all_rows(&mut two, &now), expected);
    assert_eq!(names(&db), ["notes"]);
    drop((one, two));
    check(&db);
    db.close().unwrap();
    let db = fixture.open();
    let now = db.table("notes").unwrap();
    assert_eq!(all_rows(&mut db.session().unwrap(), &now), expected);
    check(&db);
}

#[test]
fn who_wants_to_define_a_reserved_table_waits_and_keeps_no_writer_off() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.reserve_table("notes").unwrap();
    std::thread::scope(|scope| {
        let dropper = scope.spawn(|| db.drop_table("notes"));
        let waits = || {
            let waits = db.statistics().totals.waits;
            waits.iter().any(|wait| wait.wait.name().starts_with("LCK_M_SCH") && wait.count > 0)
        };
        while !waits() {
            std::thread::yield_now();
        }
        let mut writer = db.session().unwrap();
        writer.insert(&table, &note(1, "while one waits")).unwrap();
        let mut holder = writer.begin().unwrap();
        holder.insert(&table, &note(2, "in a transaction")).unwrap();
        holder.commit().unwrap();
        assert!(!dropper.is_finished());
        assert_eq!(ids(&all_rows(&mut writer, &table)), [1, 2]);
        transaction.rollback();
        dropper.join().unwrap().unwrap();
    });
    assert!(names(&db).is_empty());
}

#[test]
fn a_reserved_table_is_given_up_after_the_time_to_wait_for_it() {
    let fixture = Fixture::in_memory();
    let (db, _) = fixture.create_with(notes());
    let (mut one, mut two) = (db.session().unwrap(), db.session().unwrap());
    let mut transaction = one.begin().unwrap();
    transaction.reserve_table("notes").unwrap();
    two.set_lock_timeout(Some(Duration::ZERO));
    let mut other = two.begin().unwrap();
    let error = refused(other.reserve_table("notes"), &["notes", "retry"]);
    assert!(matches!(error, Error::LockTimeout { .. }));
    let gone = [TableChange::Rename { to: "gone".into() }];
    let error = refused(other.alter_table("notes", &gone), &["notes"]);
    assert!(matches!(error, Error::LockTimeout { .. }));
}

/// Whoever has reserved the table will lock it, and so wait for all who hold it.
#[test]
fn who_holds_a_table_does_not_wait_for_one_who_has_reserved_it() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let (mut one, mut two) = (db.session().unwrap(), db.session().unwrap());
    let mut reserving = one.begin().unwrap();
    reserving.reserve_table("notes").unwrap();
    let mut holding = two.begin().unwrap();
    holding.hold_table(&table).unwrap();
    let error = refused(holding.lock_table("notes"), &["notes"]);
    assert!(matches!(error, Error::Deadlock { .. }));
    drop(holding);
    reserving.lock_table("notes").unwrap();
}

#[test]
fn numbers_go_on_behind_those_that_were_handed_out() {
    let fixture = Fixture::in_memory();
    let identity = KeyStrategy::Identity { start: 10, strict: false };
    let (db, old) = fixture.create_with(generated(identity));
    let mut writer = db.session().unwrap();
    let last = (0..50)
        .map(|_| writer.insert_returning_key(&old, &[]).unwrap()[0].as_i64().unwrap())
        .max()
        .unwrap();
    for id in ids(&all_rows(&mut writer, &old)) {
        writer.delete(&old, &[id.into()]).unwrap();
    }
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    let new = transaction.create_substitute(generated(identity)).unwrap();
    transaction.replace_table(&old, &new).unwrap();
    transaction.commit().unwrap();
    let next = |db: &Database| {
        let table = db.table("log").unwrap();
        let mut session = db.session().unwrap();
        session.insert_returning_key(&table, &[Value::Default, Value::Default]).unwrap()[0].as_i64()
    };
    assert!(next(&db) > Some(last), "{:?} after {last}", next(&db));
    drop((writer, session));
    db.close().unwrap();
    assert!(next(&fixture.open()) > Some(last));
}

#[test]
fn a_crash_before_the_commit_leaves_the_old_table_and_nothing_of_the_new_one() {
    let disk = MemoryDisk::new();
    let fixture = Fixture::on(Arc::new(disk.clone())).with_little_memory();
    let (db, old) = fixture.create_with(notes());
    let mut writer = db.session().unwrap();
    fill(&mut writer, &old, 0..MANY);
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    let new = transaction.create_substitute(notes()).unwrap();
    let seen = transaction.committed_snapshot();
    copy_rows(&mut transaction, &seen, &old, &new);
    drop(seen);
    let mut crashes = vec![disk.copy()];
    db.checkpoint().unwrap();
    crashes.push(disk.copy());
    transaction.replace_table(&old, &new).unwrap();
    crashes.push(disk.copy());
    let opened = |disk: MemoryDisk| {
        let db = Database::open_on(Arc::new(disk), fixture.path(), fixture.options.clone());
        let db = db.unwrap();
        check(&db);
        assert_eq!(names(&db), ["notes"]);
        let table = db.table("notes").unwrap();
        let rows = all_rows(&mut db.session().unwrap(), &table);
        assert_eq!(ids(&rows), (0..MANY).collect::<Vec<_>>());
        table.id()
    };
    for disk in crashes {
        assert_eq!(opened(disk), old.id());
    }
    transaction.commit().unwrap();
    assert_eq!(opened(disk.copy()), new.id());
}

#[test]
fn a_table_that_takes_no_place_is_gone_with_its_transaction() {
    let fixture = Fixture::in_memory().with_little_memory();
    let (db, old) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    fill(&mut session, &old, 0..3);
    let leaves = db.statistics().leaves;
    for commits in [false, true] {
        let mut transaction = session.begin().unwrap();
        let new = transaction.create_substitute(notes()).unwrap();
        for id in 0..MANY {
            transaction.insert(&new, &note(id, &text(id))).unwrap();
        }
        transaction.insert(&old, &note(100 + i64::from(commits), "kept")).unwrap();
        db.checkpoint().unwrap();
        match commits {
            true => transaction.commit().unwrap(),
            false => transaction.rollback(),
        }
        assert_eq!(db.statistics().leaves, leaves);
        db.checkpoint().unwrap();
    }
    assert_eq!(ids(&all_rows(&mut session, &old)), [0, 1, 2, 101]);
    assert_eq!(names(&db), ["notes"]);
    drop(session);
    check(&db);
    db.close().unwrap();
    check(&fixture.open());
}

#[test]
fn only_a_table_that_was_made_for_it_takes_the_place_of_another() {
    let fixture = Fixture::in_memory();
    let (db, old) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    let other = transaction.create_table(notes().renamed("other").unwrap()).unwrap();
    refused(transaction.replace_table(&old, &other), &["notes"]);
    let called_other = transaction.create_substitute(notes().renamed("else").unwrap());
    refused(transaction.replace_table(&old, &called_other.unwrap()), &["notes"]);
    refused(transaction.table("else"), &["else"]);
}
