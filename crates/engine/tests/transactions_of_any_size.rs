//! A transaction may be as large as the disk: what does not fit into memory is in leaves and log before the
//! commit, seen by nobody else, and after any crash it is there as a whole or not at all.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{Fixture, all_rows, note, noted, notes, refused};
use onrush::{
    ColumnDefinition, DataType, Database, Error, OnlineOptions, PastMemory, Row, ScanOptions,
    Session, Table, TableDefinition, Transaction,
};
use onrush_check::Progress;
use onrush_files::MemoryDisk;

/// Rows that make a transaction twenty times the log ring of [`Options::small`](onrush::Options::small).
const MANY: i64 = 20 * (256 << 10) / TEXT_BYTES;
const TEXT_BYTES: i64 = 1000;

fn text(id: i64, tag: &str) -> String {
    format!("{tag} {id} ").repeat((TEXT_BYTES / 12) as usize)
}

fn insert(transaction: &mut Transaction<'_>, table: &Table, ids: impl IntoIterator<Item = i64>) {
    for id in ids {
        transaction.insert(table, &note(id, &text(id, "new"))).unwrap();
    }
}

fn fill(session: &mut Session, table: &Table, ids: std::ops::Range<i64>) {
    let rows: Vec<Row> = ids.map(|id| noted(id, &text(id, "old"))).collect();
    for some in rows.chunks(10) {
        session.insert_many(table, some.iter().map(Vec::as_slice)).unwrap();
    }
}

fn count(session: &mut Session, table: &Table) -> usize {
    session.scan(table, &ScanOptions::default()).unwrap().map(Result::unwrap).count()
}

fn tags(session: &mut Session, table: &Table) -> Vec<String> {
    let rows = all_rows(session, table);
    let mut tags: Vec<String> = rows
        .iter()
        .map(|row| row[1].as_str().unwrap().split(' ').next().unwrap().to_owned())
        .collect();
    tags.dedup();
    tags
}

/// That what is stored is sound, and what sessions see is what is stored.
fn check(db: &Database) {
    let report = db.check(&OnlineOptions::default(), &Progress::default()).unwrap();
    assert_eq!(report.findings, []);
}

/// Each test is made with all rows in leaves, and with all of them in ranges that have a stock.
macro_rules! in_leaves_and_in_ranges {
    ($($test:ident)*) => {
        mod in_leaves {
            $(#[test] fn $test() { super::$test(super::with_little_memory(super::PastMemory::Off)); })*
        }

        mod in_ranges {
            $(#[test] fn $test() { super::$test(super::with_little_memory(super::PastMemory::Always)); })*
        }
    };
}

in_leaves_and_in_ranges! {
    a_transaction_twenty_times_the_ring_commits_whole_and_is_seen_by_nobody_before
    updates_and_deletes_of_many_rows_are_atomic_to_a_snapshot
    one_that_is_rolled_back_leaves_nothing_and_its_keys_are_free
    what_it_has_inserted_it_changes_again_and_again
    statistics_and_prometheus_tell_of_those_that_are_open
    whoever_meets_a_row_of_an_open_large_transaction_is_refused_and_goes_on
    the_first_to_commit_wins_over_a_large_transaction
    it_goes_back_to_savepoints_in_front_of_its_pieces_and_between_them
    a_view_of_its_own_does_not_see_what_it_changes_later
    a_batch_larger_than_a_record_is_whole
    a_table_that_it_has_spilled_rows_of_cannot_be_defined_in_it
    after_a_crash_it_is_there_as_a_whole_or_not_at_all
    a_table_is_made_or_emptied_and_filled_by_one_transaction
    after_a_crash_a_table_that_was_made_or_emptied_has_all_its_rows_or_is_as_before
}

fn with_little_memory(past_memory: PastMemory) -> Fixture {
    let mut fixture = Fixture::in_memory().with_little_memory();
    fixture.options.past_memory = past_memory;
    fixture
}

fn a_transaction_twenty_times_the_ring_commits_whole_and_is_seen_by_nobody_before(
    fixture: Fixture,
) {
    let (db, table) = fixture.create_with(notes());
    let (mut one, mut two) = (db.session().unwrap(), db.session().unwrap());
    let mut transaction = one.begin().unwrap();
    insert(&mut transaction, &table, 0..MANY);
    assert_eq!(count(&mut two, &table), 0);
    assert_eq!(two.get(&table, &[1i64.into()]).unwrap(), None);
    let before = two.snapshot().unwrap();
    assert_eq!(transaction.scan(&table, &ScanOptions::default()).unwrap().count(), MANY as usize);
    transaction.commit().unwrap();
    assert_eq!(before.scan(&table, &ScanOptions::default()).unwrap().count(), 0);
    assert_eq!(count(&mut two, &table), MANY as usize);
    drop((before, one, two));
    check(&db);
    db.close().unwrap();
    let db = fixture.open();
    let mut session = db.session().unwrap();
    let table = db.table("notes").unwrap();
    assert_eq!(count(&mut session, &table), MANY as usize);
}

fn updates_and_deletes_of_many_rows_are_atomic_to_a_snapshot(fixture: Fixture) {
    let (db, table) = fixture.create_with(notes());
    let (mut one, mut two) = (db.session().unwrap(), db.session().unwrap());
    fill(&mut one, &table, 0..MANY);
    let before = two.snapshot().unwrap();
    let mut transaction = one.begin().unwrap();
    for id in 0..MANY {
        let changed = if id % 3 == 0 {
            transaction.delete(&table, &[id.into()]).unwrap()
        } else {
            let new = text(id, "new");
            transaction.update(&table, &[id.into()], &[("note", new.as_str().into())]).unwrap()
        };
        assert!(changed);
    }
    assert_eq!(tags(&mut two, &table), ["old"]);
    db.checkpoint().unwrap();
    assert_eq!(tags(&mut two, &table), ["old"]);
    transaction.commit().unwrap();
    assert_eq!(before.scan(&table, &ScanOptions::default()).unwrap().count(), MANY as usize);
    db.checkpoint().unwrap();
    assert_eq!(before.scan(&table, &ScanOptions::default()).unwrap().count(), MANY as usize);
    assert_eq!(tags(&mut two, &table), ["new"]);
    drop(before);
    db.checkpoint().unwrap();
    db.checkpoint().unwrap();
    let left = (0..MANY).filter(|id| id % 3 != 0).count();
    assert_eq!((count(&mut two, &table), tags(&mut two, &table)), (left, vec!["new".to_owned()]));
    drop((one, two));
    check(&db);
    db.close().unwrap();
    check(&fixture.open());
}

fn what_it_has_inserted_it_changes_again_and_again(fixture: Fixture) {
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let before = session.snapshot().unwrap();
    let mut transaction = session.begin().unwrap();
    insert(&mut transaction, &table, 0..MANY / 2);
    for tag in ["once", "twice"] {
        for id in 0..MANY / 2 {
            let new = text(id, tag);
            transaction.update(&table, &[id.into()], &[("note", new.as_str().into())]).unwrap();
        }
        db.checkpoint().unwrap();
    }
    transaction.commit().unwrap();
    assert_eq!(before.scan(&table, &ScanOptions::default()).unwrap().count(), 0);
    assert_eq!(tags(&mut session, &table), ["twice"]);
    drop((before, session));
    check(&db);
    db.close().unwrap();
    let db = fixture.open();
    let (mut session, table) = (db.session().unwrap(), db.table("notes").unwrap());
    let found = (count(&mut session, &table), tags(&mut session, &table));
    assert_eq!(found, ((MANY / 2) as usize, vec!["twice".to_owned()]));
}

fn one_that_is_rolled_back_leaves_nothing_and_its_keys_are_free(fixture: Fixture) {
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    fill(&mut session, &table, 0..MANY / 2);
    let mut transaction = session.begin().unwrap();
    insert(&mut transaction, &table, MANY / 2..MANY);
    for id in 0..MANY / 2 {
        transaction.delete(&table, &[id.into()]).unwrap();
    }
    transaction.rollback();
    assert_eq!(
        (count(&mut session, &table), tags(&mut session, &table)),
        ((MANY / 2) as usize, vec!["old".to_owned()])
    );
    fill(&mut session, &table, MANY / 2..MANY);
    assert_eq!(
        (count(&mut session, &table), tags(&mut session, &table)),
        (MANY as usize, vec!["old".to_owned()])
    );
    drop(session);
    check(&db);
    db.close().unwrap();
    check(&fixture.open());
}

fn statistics_and_prometheus_tell_of_those_that_are_open(fixture: Fixture) {
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let told = |open: &str| {
        let page = db.statistics().to_prometheus();
        let line = format!("\nonrush_large_transactions {open}\n");
        assert!(page.contains(&line), "{line}{page}");
        assert_eq!(page.contains("\nonrush_large_transaction_bytes 0\n"), open == "0");
    };
    told("0");
    let mut transaction = session.begin().unwrap();
    insert(&mut transaction, &table, 0..MANY / 10);
    told("1");
    transaction.rollback();
    told("0");
}

fn whoever_meets_a_row_of_an_open_large_transaction_is_refused_and_goes_on(fixture: Fixture) {
    let (db, table) = fixture.create_with(notes());
    let (mut one, mut two, mut three) =
        (db.session().unwrap(), db.session().unwrap(), db.session().unwrap());
    fill(&mut one, &table, 0..10);
    let mut transaction = one.begin().unwrap();
    transaction.delete(&table, &[3i64.into()]).unwrap();
    insert(&mut transaction, &table, 10..MANY);
    let conflict = |error: Error| assert!(matches!(error, Error::Conflict { .. }), "{error}");
    conflict(two.update(&table, &[3i64.into()], &[("note", "two".into())]).unwrap_err());
    conflict(two.insert(&table, &note(11, "two")).unwrap_err());
    conflict(two.delete(&table, &[3i64.into()]).unwrap_err());
    let mut other = two.begin().unwrap();
    other.upsert(&table, &note(11, "two")).unwrap();
    conflict(other.commit().unwrap_err());
    let mut large = three.begin().unwrap();
    large.upsert(&table, &note(12, "three")).unwrap();
    let met =
        (MANY..2 * MANY).find_map(|id| large.insert(&table, &note(id, &text(id, "three"))).err());
    conflict(met.unwrap());
    conflict(large.commit().unwrap_err());
    transaction.commit().unwrap();
    two.update(&table, &[11i64.into()], &[("note", "two".into())]).unwrap();
    assert_eq!(two.get(&table, &[3i64.into()]).unwrap(), None);
    assert_eq!(count(&mut three, &table), MANY as usize - 1);
}

fn the_first_to_commit_wins_over_a_large_transaction(fixture: Fixture) {
    let (db, table) = fixture.create_with(notes());
    let (mut one, mut two) = (db.session().unwrap(), db.session().unwrap());
    fill(&mut one, &table, 0..MANY);
    let mut transaction = one.begin().unwrap();
    two.update(&table, &[(MANY - 1).into()], &[("note", "two".into())]).unwrap();
    let lost = (0..MANY).find_map(|id| transaction.delete(&table, &[id.into()]).err());
    let lost = lost.unwrap_or_else(|| transaction.commit().unwrap_err());
    assert!(matches!(lost, Error::Conflict { .. }), "{lost}");
    assert_eq!(count(&mut two, &table), MANY as usize);
}

fn it_goes_back_to_savepoints_in_front_of_its_pieces_and_between_them(fixture: Fixture) {
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    fill(&mut session, &table, 0..MANY);
    let mut transaction = session.begin().unwrap();
    let first = transaction.savepoint();
    let change = |transaction: &mut Transaction<'_>, ids: std::ops::Range<i64>, tag: &str| {
        for id in ids {
            let new = text(id, tag);
            transaction.update(&table, &[id.into()], &[("note", new.as_str().into())]).unwrap();
        }
    };
    let kinds = |transaction: &mut Transaction<'_>| -> Vec<(String, usize)> {
        let mut kinds: Vec<(String, usize)> = Vec::new();
        for row in transaction.scan(&table, &ScanOptions::default()).unwrap() {
            let tag = row.unwrap()[1].as_str().unwrap().split(' ').next().unwrap().to_owned();
            match kinds.last_mut() {
                Some((last, count)) if *last == tag => *count += 1,
                _ => kinds.push((tag, 1)),
            }
        }
        kinds
    };
    let of = |parts: &[(&str, i64)]| -> Vec<(String, usize)> {
        parts.iter().map(|(tag, count)| ((*tag).to_owned(), *count as usize)).collect()
    };
    change(&mut transaction, 0..MANY / 2, "a");
    let second = transaction.savepoint();
    change(&mut transaction, MANY / 4..MANY, "b");
    db.checkpoint().unwrap();
    let third = transaction.savepoint();
    for id in 0..MANY {
        transaction.delete(&table, &[id.into()]).unwrap();
    }
    insert(&mut transaction, &table, MANY..MANY + 100);
    assert_eq!(kinds(&mut transaction), of(&[("new", 100)]));
    transaction.rollback_to(third).unwrap();
    assert_eq!(kinds(&mut transaction), of(&[("a", MANY / 4), ("b", MANY - MANY / 4)]));
    change(&mut transaction, 0..MANY, "c");
    transaction.rollback_to(second).unwrap();
    assert_eq!(kinds(&mut transaction), of(&[("a", MANY / 2), ("old", MANY - MANY / 2)]));
    transaction.rollback_to(first).unwrap();
    assert_eq!(kinds(&mut transaction), of(&[("old", MANY)]));
    change(&mut transaction, 0..MANY / 2, "d");
    transaction.commit().unwrap();
    assert_eq!(tags(&mut session, &table), ["d", "old"]);
    drop(session);
    check(&db);
    db.close().unwrap();
    check(&fixture.open());
}

fn a_view_of_its_own_does_not_see_what_it_changes_later(fixture: Fixture) {
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    fill(&mut session, &table, 0..MANY);
    let mut transaction = session.begin().unwrap();
    for id in 0..MANY {
        let new = text(id, "a");
        transaction.update(&table, &[id.into()], &[("note", new.as_str().into())]).unwrap();
    }
    let view = transaction.snapshot();
    // As `insert into notes select id + MANY from notes` does, and `delete` of some of those that it read.
    let mut seen = 0;
    for row in view.scan(&table, &ScanOptions::default()).unwrap() {
        let row = row.unwrap();
        let id = row[0].as_i64().unwrap();
        assert!(row[1].as_str().unwrap().starts_with("a "), "{id}");
        transaction.insert(&table, &note(id + MANY, &text(id, "b"))).unwrap();
        if id % 2 == 0 {
            transaction.delete(&table, &[(id + 1).into()]).unwrap();
        }
        seen += 1;
    }
    assert_eq!(seen, MANY);
    let left = transaction.scan(&table, &ScanOptions::default()).unwrap().count();
    assert_eq!(left as i64, MANY + MANY / 2);
    transaction.rollback();
    assert!(view.scan(&table, &ScanOptions::default()).unwrap().any(|row| row.is_err()));
    assert_eq!(tags(&mut session, &table), ["old"]);
}

fn a_batch_larger_than_a_record_is_whole(fixture: Fixture) {
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let rows: Vec<Row> = (0..MANY).map(|id| noted(id, &text(id, "new"))).collect();
    session.insert_many(&table, rows.iter().map(Vec::as_slice)).unwrap();
    assert_eq!(count(&mut session, &table), MANY as usize);
    let twice = rows.iter().map(Vec::as_slice);
    refused(session.insert_many(&table, twice), &["notes"]);
    assert_eq!(count(&mut session, &table), MANY as usize);
}

fn a_table_that_it_has_spilled_rows_of_cannot_be_defined_in_it(fixture: Fixture) {
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    insert(&mut transaction, &table, 0..MANY);
    let error =
        refused(transaction.drop_table("notes").map(drop), &["notes", "define the table first"]);
    assert!(matches!(error, Error::DefinedTooLate { .. }));
    transaction.commit().unwrap();
    assert_eq!(count(&mut session, &table), MANY as usize);
}

/// The database after a crash of `db`: behind the commit of the transaction and so many checkpoints, or while it is
/// open, with all that it has written.
fn crash(
    fixture: &Fixture,
    disk: &MemoryDisk,
    db: &Database,
    transaction: Transaction<'_>,
    checkpoints_behind_commit: Option<i32>,
) -> Database {
    let mut open = Some(transaction);
    if let Some(checkpoints) = checkpoints_behind_commit {
        open.take().unwrap().commit().unwrap();
        (0..checkpoints).for_each(|_| assert!(db.checkpoint().is_ok()));
    }
    db.barrier().unwrap();
    let crashed = Arc::new(disk.copy());
    drop(open);
    Database::open_on(crashed, fixture.path(), fixture.options.clone()).unwrap()
}

fn after_a_crash_it_is_there_as_a_whole_or_not_at_all(fixture: Fixture) {
    for (commits, checkpoints) in
        [(false, 0), (true, 0), (false, 1), (true, 1), (true, 2), (true, 3)]
    {
        let disk = MemoryDisk::new();
        let options = fixture.options.clone();
        let fixture = Fixture { options, ..Fixture::on(Arc::new(disk.clone())) };
        let (db, table) = fixture.create_with(notes());
        let mut session = db.session().unwrap();
        fill(&mut session, &table, 0..MANY);
        let mut transaction = session.begin().unwrap();
        for id in 0..MANY {
            let new = text(id, "new");
            transaction.update(&table, &[id.into()], &[("note", new.as_str().into())]).unwrap();
            if id == MANY / 2 && checkpoints > 0 {
                db.checkpoint().unwrap();
            }
        }
        let behind = commits.then(|| checkpoints - i32::from(checkpoints > 0));
        let db = crash(&fixture, &disk, &db, transaction, behind);
        let mut session = db.session().unwrap();
        let table = db.table("notes").unwrap();
        let expected = if commits { "new" } else { "old" };
        assert_eq!(tags(&mut session, &table), [expected], "{commits} {checkpoints}");
        assert_eq!(count(&mut session, &table), MANY as usize);
        check(&db);
        fill_again(&mut session, &table);
        db.checkpoint().unwrap();
        check(&db);
    }
}

fn a_table_is_made_or_emptied_and_filled_by_one_transaction(fixture: Fixture) {
    let (db, table) = fixture.create_with(notes());
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    fill(&mut session, &table, 0..10);
    for commits in [false, true] {
        let mut transaction = session.begin().unwrap();
        let emptied = transaction.truncate_table("notes").unwrap();
        let made = transaction.create_table(named("made")).unwrap();
        let savepoint = transaction.savepoint();
        insert(&mut transaction, &made, 0..MANY);
        transaction.rollback_to(savepoint).unwrap();
        insert(&mut transaction, &emptied, 0..MANY);
        db.checkpoint().unwrap();
        insert(&mut transaction, &made, 0..MANY / 2);
        assert_eq!(
            transaction.scan(&made, &ScanOptions::default()).unwrap().count() as i64,
            MANY / 2
        );
        assert_eq!(count(&mut other, &table), 10);
        check(&db);
        if commits {
            transaction.commit().unwrap();
        } else {
            transaction.rollback();
            assert!(db.table("made").is_err());
            assert_eq!(tags(&mut other, &table), ["old"]);
            db.checkpoint().unwrap();
            check(&db);
        }
    }
    let made = db.table("made").unwrap();
    assert_eq!(
        (count(&mut other, &table) as i64, count(&mut other, &made) as i64),
        (MANY, MANY / 2)
    );
    db.checkpoint().unwrap();
    check(&db);
    drop((session, other));
    db.close().unwrap();
    let db = fixture.open();
    check(&db);
    let mut session = db.session().unwrap();
    let (table, made) = (db.table("notes").unwrap(), db.table("made").unwrap());
    assert_eq!(
        (count(&mut session, &table) as i64, count(&mut session, &made) as i64),
        (MANY, MANY / 2)
    );
}

fn named(name: &str) -> TableDefinition {
    let [id, note] = [("id", DataType::Int64), ("note", DataType::Text)]
        .map(|(column, data_type)| ColumnDefinition::new(column, data_type).not_null());
    TableDefinition::builder(name).column(id).column(note).primary_key(["id"]).build().unwrap()
}

fn after_a_crash_a_table_that_was_made_or_emptied_has_all_its_rows_or_is_as_before(
    fixture: Fixture,
) {
    for checkpoint_at in [None, Some(MANY / 4), Some(MANY - 1)] {
        for (commits, checkpoints) in [(false, 0), (true, 0), (true, 1), (true, 2)] {
            let disk = MemoryDisk::new();
            let options = fixture.options.clone();
            let fixture = Fixture { options, ..Fixture::on(Arc::new(disk.clone())) };
            let (db, table) = fixture.create_with(notes());
            let mut session = db.session().unwrap();
            fill(&mut session, &table, 0..10);
            let mut transaction = session.begin().unwrap();
            let made = transaction.create_table(named("made")).unwrap();
            let emptied = transaction.truncate_table("notes").unwrap();
            for id in 0..MANY {
                insert(&mut transaction, if id % 2 == 0 { &made } else { &emptied }, [id]);
                if Some(id) == checkpoint_at {
                    db.checkpoint().unwrap();
                }
            }
            let db = crash(&fixture, &disk, &db, transaction, commits.then_some(checkpoints));
            check(&db);
            let mut session = db.session().unwrap();
            let table = db.table("notes").unwrap();
            if commits {
                let made = db.table("made").unwrap();
                assert_eq!(count(&mut session, &made) as i64, MANY / 2);
                assert_eq!(count(&mut session, &table) as i64, MANY / 2);
                assert_eq!(tags(&mut session, &table), ["new"]);
            } else {
                assert!(db.table("made").is_err());
                assert_eq!(tags(&mut session, &table), ["old"]);
            }
            fill(&mut session, &table, 2 * MANY..2 * MANY + 100);
            db.checkpoint().unwrap();
            check(&db);
        }
    }
}

/// Every row can be written again, whatever stands beside it.
fn fill_again(session: &mut Session, table: &Table) {
    for id in 0..MANY {
        assert!(session.update(table, &[id.into()], &[("note", "again".into())]).unwrap());
    }
    assert_eq!(tags(session, table), ["again"]);
}
