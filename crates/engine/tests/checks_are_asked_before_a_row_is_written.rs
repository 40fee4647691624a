//! CHECK constraints, for somebody who understands one kind of expression: whatever writes a row asks
//! first, also after the table was altered and the database opened again.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{Fixture, all_rows};
use onrush::{
    CheckConstraint, CheckOptions, CheckProgress, ColumnDefinition, DataType, Database, Error,
    ExpressionCompiler, OnlineOptions, Result, RowCheck, RowView, Table, TableChange,
    TableDefinition, Value,
};

/// Understands `$n > m`.
struct Greater;

struct Limit(usize, i64);

impl ExpressionCompiler for Greater {
    fn compile_check(
        &self,
        definition: &TableDefinition,
        check: &CheckConstraint,
    ) -> Result<Box<dyn RowCheck>> {
        let (_, limit) = check.expression.split_once(" > ").unwrap();
        let column = definition.column_with_number(check.columns[0]).unwrap();
        Ok(Box::new(Limit(column, limit.parse().unwrap())))
    }
}

impl RowCheck for Limit {
    fn is_met(&self, row: &RowView<'_>) -> Result<bool> {
        let Limit(column, limit) = self;
        Ok(row.column(*column)?.as_i64().is_none_or(|value| value > *limit))
    }
}

fn greater(name: &str, number: u16, limit: i64) -> CheckConstraint {
    let expression = format!("${} > {limit}", number + 1);
    let columns = vec![number];
    CheckConstraint { name: name.to_owned(), columns, expression, form: None, is_validated: true }
}

/// `items (id, price, stars)`, in which the price is above 0.
fn items() -> TableDefinition {
    TableDefinition::builder("items")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("price", DataType::Int64).default_value(1i64))
        .column(ColumnDefinition::new("stars", DataType::Int64))
        .primary_key(["id"])
        .check_constraint(greater("positive", 1, 0))
        .build()
        .unwrap()
}

fn row(id: i64, price: i64) -> [Value<'static>; 3] {
    [id.into(), price.into(), Value::Null]
}

fn violated(outcome: Result<impl std::fmt::Debug>, name: &str) {
    match outcome {
        Err(Error::CheckViolated { constraint, .. }) => assert_eq!(constraint, name),
        other => panic!("{other:?}"),
    }
}

fn refuses_zero(db: &Database, items: &Table) {
    let mut session = db.session().unwrap();
    violated(session.insert(items, &row(9, 0)), "positive");
    violated(session.insert_token(items, &row(9, 0)).map(drop), "positive");
    violated(session.upsert(items, &row(1, 0)), "positive");
    let (good, bad) = (row(8, 8), row(9, 0));
    violated(session.insert_many(items, [good.as_slice(), bad.as_slice()]), "positive");
    violated(session.update(items, &[1i64.into()], &[("price", 0i64.into())]), "positive");
    let moved = [("id", 9i64.into()), ("price", 0i64.into())];
    violated(session.update(items, &[1i64.into()], &moved), "positive");
    let mut transaction = session.begin().unwrap();
    violated(transaction.insert(items, &row(9, 0)), "positive");
    violated(transaction.upsert(items, &row(1, 0)), "positive");
    violated(transaction.update(items, &[1i64.into()], &[("price", 0i64.into())]), "positive");
    transaction.commit().unwrap();
    assert_eq!(all_rows(&mut session, items), [row(1, 5).to_vec()]);
}

#[test]
fn whatever_writes_a_row_asks() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(items());
    let refused = db.session().unwrap().insert(&table, &row(1, 5)).unwrap_err();
    assert!(matches!(refused, Error::ChecksNotUnderstood { .. }), "{refused}");
    db.set_expression_compiler(Arc::new(Greater));
    db.session().unwrap().insert(&table, &row(1, 5)).unwrap();
    refuses_zero(&db, &table);
    // From the log, then from a checkpoint.
    drop((db, table));
    for _ in 0..2 {
        let db = fixture.open();
        assert_eq!(db.table("items").unwrap().definition(), &items());
        db.set_expression_compiler(Arc::new(Greater));
        refuses_zero(&db, &db.table("items").unwrap());
        let options = OnlineOptions { check: CheckOptions::default(), ..OnlineOptions::default() };
        let report = db.check(&options, &CheckProgress::default()).unwrap();
        assert!(report.is_sound(), "{report}");
        db.close().unwrap();
    }
}

#[test]
fn a_new_check_looks_at_the_rows_that_are_there() {
    let (db, old) = Fixture::in_memory().create_with(items());
    db.set_expression_compiler(Arc::new(Greater));
    db.session().unwrap().insert(&old, &row(1, 5)).unwrap();
    let add = |limit| [TableChange::AddCheck(greater("more", 1, limit))];
    match db.alter_table("items", &add(5)) {
        Err(Error::RowsViolateCheck { constraint, .. }) => assert_eq!(constraint, "more"),
        other => panic!("{:?}", other.map(|table| table.definition().clone())),
    }
    // It was as if nothing had been asked for.
    assert!(old.is_current());
    db.session().unwrap().insert(&old, &row(2, 5)).unwrap();
    let new = db.alter_table("items", &add(4)).unwrap();
    let mut session = db.session().unwrap();
    violated(session.insert(&new, &row(3, 4)), "more");
    session.insert(&new, &row(3, 5)).unwrap();
    let stale = session.insert(&old, &row(4, 4)).unwrap_err();
    assert!(matches!(stale, Error::TableChanged { .. }), "{stale}");
}

#[test]
fn rows_are_moved_only_where_they_meet_the_checks_already() {
    let (db, items) = Fixture::in_memory().create_with(items());
    db.set_expression_compiler(Arc::new(Greater));
    let alike = |name: &str, checks: &[CheckConstraint]| {
        let table = TableDefinition::builder(name);
        let table = items
            .definition()
            .columns()
            .iter()
            .cloned()
            .fold(table, |table, column| table.column(column));
        let table =
            checks.iter().cloned().fold(table, |table, check| table.check_constraint(check));
        db.create_table(table.primary_key(["id"]).build().unwrap()).unwrap()
    };
    let (unchecked, same) = (alike("unchecked", &[]), alike("same", items.definition().checks()));
    let mut session = db.session().unwrap();
    let refused = session.move_rows(&unchecked, &items, 10).unwrap_err();
    assert!(matches!(refused, Error::TablesDiffer { .. }), "{refused}");
    session.insert(&same, &row(1, 5)).unwrap();
    assert_eq!(session.move_rows(&same, &items, 10).unwrap(), 1);
    assert_eq!(session.move_rows(&items, &unchecked, 10).unwrap(), 1);
}
