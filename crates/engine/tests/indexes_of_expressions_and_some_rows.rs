//! An index may be ordered by expressions over the row, and have entries of the rows alone that meet a condition.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::Fixture;
use onrush::expression::{Arithmetic, Expression, Function, Truth};
use onrush::{
    ColumnDefinition, DataType, Database, Error, KeyOrder, NewIndex, NewIndexed, OnlineOptions,
    RowExpression, ScanOptions, Table, TableChange, TableDefinition, TypeError, Value,
};
use onrush_check::Progress;
use proptest::prelude::*;

/// Who wrote what, and whether it was deleted.
fn notes() -> TableDefinition {
    TableDefinition::builder("notes")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("author", DataType::Text))
        .column(ColumnDefinition::new("size", DataType::Int32))
        .column(ColumnDefinition::new("deleted", DataType::Boolean))
        .primary_key(["id"])
        .build()
        .unwrap()
}

fn note(id: i64, author: &str, size: i32, deleted: Option<bool>) -> [Value<'static>; 4] {
    let deleted = deleted.map_or(Value::Null, Value::Boolean);
    [id.into(), author.to_owned().into(), Value::Int32(size), deleted]
}

fn lower_author(table: &TableDefinition) -> RowExpression {
    let lower = Expression::call(Function::Lower, [Expression::column("author")]);
    RowExpression::new(&lower, table).unwrap()
}

fn not_deleted(table: &TableDefinition) -> RowExpression {
    let condition = Expression::column("deleted").is(Truth::False);
    RowExpression::condition(&condition, table).unwrap()
}

/// No two notes that are not deleted are of authors of the same name, small or large letters.
fn one_each(table: &TableDefinition) -> NewIndex {
    let index = NewIndex::new("one_each", Vec::<String>::new()).expression(lower_author(table));
    index.only_where(not_deleted(table)).unique()
}

fn created() -> (Database, Table) {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let table = db.create_index("notes", &one_each(table.definition())).unwrap();
    (db, table)
}

/// The lower names that the first index has.
fn entries(db: &Database, table: &Table) -> Vec<String> {
    let snapshot = db.session().unwrap().snapshot().unwrap();
    let entries = snapshot.index_entries(table, 0).unwrap();
    let rows = snapshot.scan(&entries, &ScanOptions::default()).unwrap();
    rows.map(|row| row.unwrap()[0].as_str().unwrap_or("NULL").to_owned()).collect()
}

fn assert_sound(db: &Database) {
    let options = OnlineOptions { busy_percent: 100, ..OnlineOptions::default() };
    let report = db.check(&options, &Progress::default()).unwrap();
    assert!(report.is_sound(), "{report}");
}

fn is_taken(outcome: Result<(), Error>) -> bool {
    match outcome {
        Ok(()) => false,
        Err(Error::UniqueViolated { .. }) => true,
        Err(other) => panic!("{other}"),
    }
}

/// Notes with one column before the others, so that each has another number.
fn notes_with_a_number_before() -> TableDefinition {
    let columns = notes().columns().to_vec();
    let first = ColumnDefinition::new("number", DataType::Text);
    let builder = TableDefinition::builder("notes").column(first);
    columns
        .into_iter()
        .fold(builder, |all, one| all.column(one))
        .primary_key(["id"])
        .build()
        .unwrap()
}

#[test]
fn an_index_made_of_an_older_definition_follows_its_columns_by_name() {
    let index = one_each(&notes()).made_of(&notes());
    let (db, table) = Fixture::in_memory().create_with(notes_with_a_number_before());
    let mut session = db.session().unwrap();
    let row = |id: i64, author: &str, deleted| {
        let [id, author, size, deleted] = note(id, author, 1, deleted);
        [Value::from("another"), id, author, size, deleted]
    };
    session.insert(&table, &row(1, "Ann", Some(false))).unwrap();
    session.insert(&table, &row(2, "Bob", Some(true))).unwrap();
    let table = db.create_index("notes", &index).unwrap();
    assert_eq!(entries(&db, &table), ["ann"]);
    assert!(is_taken(session.insert(&table, &row(3, "ANN", Some(false)))));
    assert_sound(&db);
}

#[test]
fn an_index_made_of_an_older_definition_is_refused_where_a_column_has_another_type() {
    let author = |data_type| {
        let id = ColumnDefinition::new("id", DataType::Int64).not_null();
        let author = ColumnDefinition::new("author", data_type);
        let table = TableDefinition::builder("notes").column(id).column(author).primary_key(["id"]);
        table.build().unwrap()
    };
    let before = author(DataType::Text);
    let index = NewIndex::new("by_author", Vec::<String>::new()).expression(lower_author(&before));
    let (db, _) = Fixture::in_memory().create_with(author(DataType::Int32));
    let refused = db.create_index("notes", &index.made_of(&before)).err().unwrap();
    assert!(matches!(refused, Error::TableChanged { .. }), "{refused}");
}

#[test]
fn rows_have_entries_only_while_they_meet_the_condition() {
    let (db, table) = created();
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "Ada", 1, Some(false))).unwrap();
    session.insert(&table, &note(2, "ADA", 1, Some(true))).unwrap();
    session.insert(&table, &note(3, "ADA", 1, None)).unwrap();
    assert_eq!(entries(&db, &table), ["ada"]);
    session.update(&table, &[1i64.into()], &[("deleted", Value::Boolean(true))]).unwrap();
    assert!(entries(&db, &table).is_empty());
    session.update(&table, &[2i64.into()], &[("deleted", Value::Boolean(false))]).unwrap();
    session.update(&table, &[2i64.into()], &[("author", "Grace".into())]).unwrap();
    assert_eq!(entries(&db, &table), ["grace"]);
    session.delete(&table, &[2i64.into()]).unwrap();
    assert!(entries(&db, &table).is_empty());
    assert_sound(&db);
}

#[test]
fn a_unique_one_refuses_the_same_value_among_its_rows_alone() {
    let (db, table) = created();
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "Ada", 1, Some(false))).unwrap();
    assert!(is_taken(session.insert(&table, &note(2, "aDA", 1, Some(false)))));
    session.insert(&table, &note(2, "aDA", 1, Some(true))).unwrap();
    let back = session.update(&table, &[2i64.into()], &[("deleted", Value::Boolean(false))]);
    assert!(is_taken(back.map(drop)));
    let mut transaction = session.begin().unwrap();
    transaction.delete(&table, &[1i64.into()]).unwrap();
    transaction.update(&table, &[2i64.into()], &[("deleted", Value::Boolean(false))]).unwrap();
    transaction.commit().unwrap();
    assert_eq!(entries(&db, &table), ["ada"]);
    assert_sound(&db);
}

#[test]
fn it_is_made_of_the_rows_that_there_are() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    for (id, deleted) in [(1, Some(false)), (2, Some(true)), (3, None), (4, Some(true))] {
        session.insert(&table, &note(id, "Ada", 1, deleted)).unwrap();
    }
    let table = db.create_index("notes", &one_each(table.definition())).unwrap();
    assert_eq!(entries(&db, &table), ["ada"]);
    assert_sound(&db);
}

#[test]
fn it_is_there_after_the_database_was_opened_again() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(notes());
    let table = db.create_index("notes", &one_each(table.definition())).unwrap();
    db.session().unwrap().insert(&table, &note(1, "Ada", 1, Some(false))).unwrap();
    drop(table);
    db.close().unwrap();
    let db = fixture.open();
    let table = db.table("notes").unwrap();
    let mut session = db.session().unwrap();
    assert!(is_taken(session.insert(&table, &note(2, "ADA", 1, Some(false)))));
    assert_eq!(entries(&db, &table), ["ada"]);
    assert_sound(&db);
}

#[test]
fn it_goes_with_a_column_that_it_looks_at() {
    for column in ["author", "deleted"] {
        let (db, table) = created();
        let by_size = NewIndex::new("by_size", ["size"]);
        db.create_index(table.name(), &by_size).unwrap();
        let change = TableChange::DropColumn { name: column.to_owned() };
        let table = db.alter_table("notes", &[change]).unwrap();
        let names: Vec<&str> =
            table.definition().indexes().iter().map(|index| index.name.as_str()).collect();
        assert_eq!(names, ["by_size"], "without {column}");
    }
}

#[test]
fn columns_that_it_looks_at_may_get_other_names_and_places() {
    let (db, _) = created();
    let rename = TableChange::RenameColumn { from: "author".into(), to: "writer".into() };
    let drop = TableChange::DropColumn { name: "size".into() };
    let table = db.alter_table("notes", &[rename, drop]).unwrap();
    let mut session = db.session().unwrap();
    let row = |id: i64, writer: &str| [id.into(), writer.to_owned().into(), Value::Boolean(false)];
    session.insert(&table, &row(1, "Ada")).unwrap();
    assert!(is_taken(session.insert(&table, &row(2, "ADA"))));
}

#[test]
fn what_fails_to_be_computed_leaves_no_row_behind() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let share =
        Expression::value(100i32).arithmetic(Arithmetic::Divide, Expression::column("size"));
    let share = RowExpression::new(&share, table.definition()).unwrap();
    let index = NewIndex::new("shares", Vec::<String>::new()).expression(share);
    let table = db.create_index("notes", &index).unwrap();
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "Ada", 50, None)).unwrap();
    let failed = session.insert(&table, &note(2, "Ada", 0, None));
    assert!(matches!(failed, Err(Error::CheckFailed(_))), "{failed:?}");
    assert!(session.get(&table, &[2i64.into()]).unwrap().is_none());
    assert_sound(&db);
}

#[test]
fn what_may_come_to_something_else_is_not_indexed() {
    let table = notes();
    let random = Expression::call(Function::Random, []);
    let refused = RowExpression::new(&random, &table);
    assert!(matches!(refused, Err(TypeError::Expression { .. })), "{refused:?}");
    let no_condition = RowExpression::condition(&Expression::column("size"), &table);
    assert!(matches!(no_condition, Err(TypeError::Expression { .. })), "{no_condition:?}");
}

#[derive(Debug, Clone)]
enum Step {
    Put(i64, u8, Option<bool>),
    Remove(i64),
}

fn steps() -> impl Strategy<Value = Vec<(bool, Vec<Step>)>> {
    let id = 0..8i64;
    let deleted = proptest::option::of(any::<bool>());
    let put = (id.clone(), 0..3u8, deleted).prop_map(|(id, name, is)| Step::Put(id, name, is));
    let step = prop_oneof![3 => put, 1 => id.prop_map(Step::Remove)];
    proptest::collection::vec((any::<bool>(), proptest::collection::vec(step, 1..5)), 1..12)
}

/// The name and whether it is deleted, by number.
type Model = BTreeMap<i64, (u8, Option<bool>)>;

/// Whether no name stands twice among those that are not deleted.
fn is_allowed(model: &Model) -> bool {
    let mut seen = BTreeSet::new();
    let mut counted = model.values().filter(|(_, deleted)| *deleted == Some(false));
    counted.all(|(name, _)| seen.insert(*name))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Transactions, of one change or of several, succeed when what they leave is allowed at each step, and the
    /// entries are those of the model.
    #[test]
    fn entries_are_those_of_a_model(transactions in steps()) {
        let (db, table) = created();
        let mut by_size = NewIndex::new("by_size", ["size"]).only_where(not_deleted(table.definition()));
        by_size.columns.push((NewIndexed::Column("author".into()), KeyOrder::ASCENDING));
        let table = db.create_index("notes", &by_size).unwrap();
        let names = ["Ada", "Grace", "Edsger"];
        let mut session = db.session().unwrap();
        let mut model = Model::new();
        for (is_alone, steps) in transactions {
            let steps = if is_alone { &steps[..1] } else { &steps[..] };
            let (mut after, mut refused) = (model.clone(), false);
            let mut transaction = session.begin().unwrap();
            for step in steps {
                let outcome = match step {
                    Step::Put(id, name, deleted) => {
                        after.insert(*id, (*name, *deleted));
                        let row = note(*id, names[usize::from(*name)], i32::from(*name), *deleted);
                        transaction.upsert(&table, &row)
                    }
                    Step::Remove(id) => {
                        after.remove(id);
                        transaction.delete(&table, &[(*id).into()]).map(drop)
                    }
                };
                refused = is_taken(outcome);
                prop_assert_eq!(refused, !is_allowed(&after));
                if refused {
                    break;
                }
            }
            if refused {
                transaction.rollback();
            } else {
                transaction.commit().unwrap();
                model = after;
            }
            let counted = model.values().filter(|(_, deleted)| *deleted == Some(false));
            let mut expected: Vec<String> =
                counted.map(|(name, _)| names[usize::from(*name)].to_lowercase()).collect();
            expected.sort();
            prop_assert_eq!(entries(&db, &table), expected);
        }
        assert_sound(&db);
    }
}
