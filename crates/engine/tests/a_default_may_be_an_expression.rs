//! A default that is an expression is computed for each row by whoever understands it, and its value is
//! kept like one that was given.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use common::{Fixture, all_rows, refused};
use onrush::{
    CheckConstraint, CheckProgress, ColumnDefinition, DataType, Database, DefaultValue, Error,
    ExpressionCompiler, NeedsNoRows, OnlineOptions, Result, Row, RowCheck, RowDefault, Table,
    TableChange, TableDefinition, Value,
};

/// Understands `count from n`.
struct Counting;

struct Counter(AtomicI64);

impl ExpressionCompiler for Counting {
    fn compile_check(&self, _: &TableDefinition, _: &CheckConstraint) -> Result<Box<dyn RowCheck>> {
        unreachable!("the table has no checks")
    }

    fn compile_default(
        &self,
        definition: &TableDefinition,
        column: usize,
    ) -> Result<Box<dyn RowDefault>> {
        let DefaultValue::Expression(computed) = &definition.columns()[column].default else {
            unreachable!("only expressions are asked for")
        };
        let first = computed.expression.strip_prefix("count from ").unwrap().parse().unwrap();
        Ok(Box::new(Counter(AtomicI64::new(first))))
    }
}

impl RowDefault for Counter {
    fn value(&self, _: i64) -> Result<Value<'static>> {
        Ok(Value::Int64(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

/// `tickets (id, number)`, whose numbers count from 100.
fn tickets(fixture: &Fixture) -> (Database, Table) {
    let number = ColumnDefinition::new("number", DataType::Int64);
    let definition = TableDefinition::builder("tickets")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(number.default_expression("count from 100"))
        .primary_key(["id"]);
    fixture.create_with(definition.build().unwrap())
}

fn numbers(rows: &[Row]) -> Vec<i64> {
    rows.iter().map(|row| row[1].as_i64().unwrap()).collect()
}

#[test]
fn each_row_that_does_not_say_it_has_the_next_value() {
    let (db, tickets) = tickets(&Fixture::in_memory());
    db.set_expression_compiler(Arc::new(Counting));
    let mut session = db.session().unwrap();
    session.insert(&tickets, &[1i64.into(), Value::Default]).unwrap();
    session.insert(&tickets, &[2i64.into(), 7i64.into()]).unwrap();
    let rows = [[3i64.into(), Value::Default], [4i64.into(), Value::Default]];
    session.insert_many(&tickets, rows.iter().map(|row| &row[..])).unwrap();
    session.upsert(&tickets, &[2i64.into(), Value::Default]).unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.insert(&tickets, &[5i64.into(), Value::Default]).unwrap();
    transaction.commit().unwrap();
    assert_eq!(numbers(&all_rows(&mut session, &tickets)), [100, 103, 101, 102, 104]);
}

#[test]
fn a_value_that_was_computed_is_the_same_after_a_crash() {
    let fixture = Fixture::new();
    let (db, tickets) = tickets(&fixture);
    db.set_expression_compiler(Arc::new(Counting));
    let mut session = db.session().unwrap();
    (0..3i64).for_each(|id| session.insert(&tickets, &[id.into(), Value::Default]).unwrap());
    drop(session);
    // No close: the log must bring them back, with nobody there who understands expressions.
    drop((db, tickets));
    let db = fixture.open();
    let tickets = db.table("tickets").unwrap();
    let mut session = db.session().unwrap();
    assert_eq!(numbers(&all_rows(&mut session, &tickets)), [100, 101, 102]);
}

#[test]
fn without_anybody_who_understands_it_a_value_must_be_given() {
    let (db, tickets) = tickets(&Fixture::in_memory());
    let mut session = db.session().unwrap();
    let error = refused(
        session.insert(&tickets, &[1i64.into(), Value::Default]),
        &["number", "tickets", "give it a value"],
    );
    assert!(matches!(error, Error::DefaultNotUnderstood { .. }), "{error}");
    session.insert(&tickets, &[1i64.into(), 5i64.into()]).unwrap();
    assert_eq!(numbers(&all_rows(&mut session, &tickets)), [5]);
}

#[test]
fn rows_that_are_there_cannot_get_such_a_column() {
    let (db, tickets) = tickets(&Fixture::in_memory());
    let late = ColumnDefinition::new("late", DataType::Int64).default_expression("count from 1");
    let mut session = db.session().unwrap();
    session.insert(&tickets, &[1i64.into(), 5i64.into()]).unwrap();
    let add = [TableChange::AddColumn(late)];
    let error = db.alter_table("tickets", &add).map(|_| ()).unwrap_err();
    let Error::RowsInTheWay { reason, .. } = &error else { panic!("{error}") };
    assert_eq!(*reason, NeedsNoRows::ComputedValues);
    session.delete(&tickets, &[1i64.into()]).unwrap();
    db.alter_table("tickets", &add).unwrap();
}

#[test]
fn a_database_with_such_a_column_is_sound() {
    let (db, tickets) = tickets(&Fixture::in_memory());
    db.session().unwrap().insert(&tickets, &[1i64.into(), 5i64.into()]).unwrap();
    let report = db.check(&OnlineOptions::default(), &CheckProgress::default()).unwrap();
    assert!(report.is_sound(), "{report}");
}
