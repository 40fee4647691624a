//! A UNIQUE constraint that is deferrable lets rows have one key for a while, and in the end no two of them.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::{Fixture, refused};
use onrush::{
    ColumnDefinition, DataType, Database, DeferrableUnique, Error, NewIndex, ScanOptions, Table,
    TableDefinition, Transaction, Value,
};
use proptest::prelude::*;

const AT_THE_COMMIT: DeferrableUnique = DeferrableUnique { is_deferred: true, nulls_equal: false };
const AT_THE_STATEMENT: DeferrableUnique =
    DeferrableUnique { is_deferred: false, nulls_equal: false };

fn definition() -> TableDefinition {
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let place = ColumnDefinition::new("place", DataType::Int64);
    TableDefinition::builder("seats").column(id).column(place).primary_key(["id"]).build().unwrap()
}

fn index(deferrable: DeferrableUnique) -> NewIndex {
    NewIndex::new("seats_place", ["place"]).unique_at_last(deferrable)
}

/// Seats 1 and 2 at the places 1 and 2.
fn seats(deferrable: DeferrableUnique) -> (Database, Table) {
    let db = Fixture::in_memory().create();
    db.create_table(definition()).unwrap();
    let table = db.create_index("seats", &index(deferrable)).unwrap();
    let mut session = db.session().unwrap();
    for id in 1..=2i64 {
        session.insert(&table, &[id.into(), id.into()]).unwrap();
    }
    drop(session);
    (db, table)
}

fn at(transaction: &mut Transaction<'_>, table: &Table, seat: i64, place: Value<'static>) {
    transaction.update(table, &[seat.into()], &[("place", place)]).unwrap();
}

fn places(db: &Database, table: &Table) -> Vec<(i64, Option<i64>)> {
    let mut session = db.session().unwrap();
    let rows = session.scan(table, &ScanOptions::default()).unwrap().map(Result::unwrap);
    rows.map(|row| (row[0].as_i64().unwrap(), row[1].as_i64())).collect()
}

#[test]
fn rows_change_places_in_one_transaction() {
    for deferrable in [AT_THE_COMMIT, AT_THE_STATEMENT] {
        let (db, table) = seats(deferrable);
        let mut session = db.session().unwrap();
        let mut transaction = session.begin().unwrap();
        at(&mut transaction, &table, 1, 2i64.into());
        at(&mut transaction, &table, 2, 1i64.into());
        transaction.settle_references().unwrap();
        transaction.commit().unwrap();
        assert_eq!(places(&db, &table), [(1, Some(2)), (2, Some(1))]);
    }
}

#[test]
fn two_rows_of_one_key_are_refused_by_the_commit() {
    let (db, table) = seats(AT_THE_COMMIT);
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    at(&mut transaction, &table, 1, 2i64.into());
    transaction.settle_references().unwrap();
    let error = refused(transaction.commit(), &["seats", "place = 2", "seats_place"]);
    assert!(matches!(error, Error::UniqueViolated { .. }), "{error}");
    assert_eq!(places(&db, &table), [(1, Some(1)), (2, Some(2))]);
}

#[test]
fn a_statement_that_leaves_two_is_refused_unless_the_look_is_put_off() {
    let (db, table) = seats(AT_THE_STATEMENT);
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    at(&mut transaction, &table, 1, 2i64.into());
    assert!(matches!(transaction.settle_references(), Err(Error::UniqueViolated { .. })));
    drop(transaction);

    let mut transaction = session.begin().unwrap();
    let which = [(table.id(), "seats_place".to_owned())];
    transaction.defer_references(Some(&which), true).unwrap();
    at(&mut transaction, &table, 1, 2i64.into());
    transaction.settle_references().unwrap();
    assert!(transaction.defer_references(None, false).is_err());
    at(&mut transaction, &table, 2, 3i64.into());
    transaction.defer_references(None, false).unwrap();
    transaction.commit().unwrap();
    assert_eq!(places(&db, &table), [(1, Some(2)), (2, Some(3))]);
}

#[test]
fn going_back_to_a_savepoint_takes_back_when_constraints_are_looked_at() {
    let (db, table) = seats(AT_THE_COMMIT);
    let mut session = db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    at(&mut transaction, &table, 1, 2i64.into());
    let before = transaction.savepoint();
    assert!(transaction.defer_references(None, false).is_err());
    transaction.rollback_to(before).unwrap();
    // It is put off still.
    transaction.settle_references().unwrap();
    at(&mut transaction, &table, 1, 3i64.into());
    transaction.commit().unwrap();
    assert_eq!(places(&db, &table), [(1, Some(3)), (2, Some(2))]);
}

#[test]
fn what_commits_by_itself_is_refused_at_once() {
    let (db, table) = seats(AT_THE_COMMIT);
    let mut session = db.session().unwrap();
    let taken = session.insert(&table, &[3i64.into(), 1i64.into()]);
    assert!(matches!(taken, Err(Error::UniqueViolated { .. })), "{taken:?}");
    assert!(session.update(&table, &[1i64.into()], &[("place", 2i64.into())]).is_err());
    let (three, four) = ([3i64.into(), 3i64.into()], [4i64.into(), 3i64.into()]);
    assert!(session.insert_many(&table, [&three[..], &four[..]]).is_err());
    assert_eq!(places(&db, &table), [(1, Some(1)), (2, Some(2))]);
}

#[test]
fn null_is_there_more_than_once_unless_null_equals_null() {
    for nulls_equal in [false, true] {
        let (db, table) = seats(DeferrableUnique { nulls_equal, ..AT_THE_COMMIT });
        let mut session = db.session().unwrap();
        session.insert(&table, &[3i64.into(), Value::Null]).unwrap();
        let second = session.insert(&table, &[4i64.into(), Value::Null]);
        assert_eq!(second.is_err(), nulls_equal, "{second:?}");
    }
}

#[test]
fn what_another_transaction_has_committed_meanwhile_is_met() {
    let (db, table) = seats(AT_THE_COMMIT);
    let (mut one, mut other) = (db.session().unwrap(), db.session().unwrap());
    let mut transaction = one.begin().unwrap();
    transaction.insert(&table, &[3i64.into(), 9i64.into()]).unwrap();
    transaction.settle_references().unwrap();
    other.insert(&table, &[4i64.into(), 9i64.into()]).unwrap();
    assert!(matches!(transaction.commit(), Err(Error::UniqueViolated { .. })));
    assert_eq!(places(&db, &table), [(1, Some(1)), (2, Some(2)), (4, Some(9))]);
}

#[test]
fn rows_that_are_there_must_differ_when_the_constraint_is_made() {
    let db = Fixture::in_memory().create();
    let table = db.create_table(definition()).unwrap();
    let mut session = db.session().unwrap();
    for (id, place) in [(1i64, 5i64), (2, 6), (3, 5)] {
        session.insert(&table, &[id.into(), place.into()]).unwrap();
    }
    let error = refused(db.create_index("seats", &index(AT_THE_COMMIT)), &["place = 5"]);
    assert!(matches!(error, Error::UniqueViolated { .. }), "{error}");
    session.delete(&table, &[3i64.into()]).unwrap();
    let table = db.create_index("seats", &index(AT_THE_COMMIT)).unwrap();
    assert!(session.insert(&table, &[3i64.into(), 5i64.into()]).is_err());
}

#[test]
fn a_large_transaction_is_looked_at_too() {
    let fixture = Fixture::in_memory();
    let db = fixture.create();
    db.create_table(definition()).unwrap();
    let table = db.create_index("seats", &index(AT_THE_COMMIT)).unwrap();
    let count = fixture.options.large_transaction_bytes as i64 / 16;
    for (place_of_last, is_taken) in [(7, true), (count, false)] {
        let mut session = db.session().unwrap();
        let mut transaction = session.begin().unwrap();
        for id in 0..count {
            transaction.insert(&table, &[id.into(), id.into()]).unwrap();
        }
        let last: [Value<'_>; 2] = [count.into(), Value::from(place_of_last)];
        transaction.insert(&table, &last).unwrap();
        let committed = transaction.commit();
        assert_eq!(matches!(committed, Err(Error::UniqueViolated { .. })), is_taken);
        assert_eq!(committed.is_err(), is_taken, "{committed:?}");
    }
}

#[test]
fn it_is_deferrable_still_when_the_database_is_opened_again() {
    let fixture = Fixture::in_memory();
    let db = fixture.create();
    db.create_table(definition()).unwrap();
    db.create_index("seats", &index(AT_THE_COMMIT)).unwrap();
    drop(db);
    let db = fixture.open();
    let table = db.table("seats").unwrap();
    assert_eq!(table.definition().indexes()[0].deferrable, Some(AT_THE_COMMIT));
    let mut session = db.session().unwrap();
    session.insert(&table, &[1i64.into(), 1i64.into()]).unwrap();
    assert!(session.insert(&table, &[2i64.into(), 1i64.into()]).is_err());
    let again = db.rebuild_index("seats_place", &onrush::IndexBuildOptions::default()).unwrap();
    assert!(session.insert(&again, &[2i64.into(), 1i64.into()]).is_err());
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Put(i64, Option<i64>),
    Delete(i64),
    Settle,
    Savepoint,
    RollBackTo,
    Commit,
}

fn step() -> impl Strategy<Value = Step> {
    let place = prop::option::weighted(0.9, 0..4i64);
    prop_oneof![
        6 => (0..4i64, place).prop_map(|(seat, place)| Step::Put(seat, place)),
        2 => (0..4i64).prop_map(Step::Delete),
        2 => Just(Step::Settle),
        1 => Just(Step::Savepoint),
        1 => Just(Step::RollBackTo),
        3 => Just(Step::Commit),
    ]
}

type Model = BTreeMap<i64, Option<i64>>;

fn is_unique(model: &Model) -> bool {
    let mut places: Vec<i64> = model.values().copied().flatten().collect();
    let count = places.len();
    places.sort_unstable();
    places.dedup();
    places.len() == count
}

fn run(deferrable: DeferrableUnique, steps: &[Step]) {
    let (db, table) = seats(deferrable);
    let mut committed: Model = BTreeMap::from([(1, Some(1)), (2, Some(2))]);
    let mut session = db.session().unwrap();
    for part in steps.split_inclusive(|step| matches!(step, Step::Commit)) {
        let mut transaction = session.begin().unwrap();
        let mut model = committed.clone();
        let mut savepoint = None;
        for step in part {
            match step {
                Step::Put(seat, place) => {
                    let value = place.map_or(Value::Null, Value::from);
                    transaction.upsert(&table, &[(*seat).into(), value]).unwrap();
                    model.insert(*seat, *place);
                }
                Step::Delete(seat) => {
                    let was_there = transaction.delete(&table, &[(*seat).into()]).unwrap();
                    assert_eq!(was_there, model.remove(seat).is_some());
                }
                Step::Settle => {
                    let settled = transaction.settle_references();
                    // Each key that was taken is alone, or it does not matter yet.
                    assert!(settled.is_ok() || !deferrable.is_deferred && !is_unique(&model));
                }
                Step::Savepoint => savepoint = Some((transaction.savepoint(), model.clone())),
                Step::RollBackTo => {
                    if let Some((savepoint, then)) = &savepoint {
                        transaction.rollback_to(*savepoint).unwrap();
                        model = then.clone();
                    }
                }
                Step::Commit => {}
            }
        }
        if !matches!(part.last(), Some(Step::Commit)) {
            break;
        }
        let outcome = transaction.commit();
        assert_eq!(outcome.is_ok(), is_unique(&model), "{model:?}: {outcome:?}");
        if outcome.is_ok() {
            committed = model;
        }
    }
    let rows: Vec<(i64, Option<i64>)> = committed.into_iter().collect();
    assert_eq!(places(&db, &table), rows);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_transaction_commits_if_no_two_rows_have_one_key_in_the_end(
        is_deferred in any::<bool>(),
        steps in prop::collection::vec(step(), 1..40)
    ) {
        run(DeferrableUnique { is_deferred, nulls_equal: false }, &steps);
    }
}

#[test]
fn an_index_of_no_constraint_is_not_deferrable() {
    let db = Fixture::in_memory().create();
    db.create_table(definition()).unwrap();
    let index = NewIndex { is_constraint: false, ..index(AT_THE_COMMIT) };
    assert!(db.create_index("seats", &index).is_err());
}
