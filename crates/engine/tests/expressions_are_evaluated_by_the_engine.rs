//! CHECK constraints and computed defaults in the form that the engine understands: an embedded program makes
//! them and keeps them with nobody's help, whichever way it writes, also after the table was altered and the
//! database opened again.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, all_rows, definition_of, refused};
use onrush::expression::{Arithmetic, Expression, Function, Interval};
use onrush::{
    CheckConstraint, CheckOptions, CheckProgress, ColumnDefinition, DataType, Database, Error,
    OnlineOptions, Result, Table, TableChange, TableDefinition, Value,
};

const DAY_MICROS: i64 = 86_400_000_000;

/// `payments (id, amount, name, due)`: an amount above 0, a short name, due in 30 days.
fn payments() -> TableDefinition {
    let due = Expression::now().plus(Interval::days(30));
    let name_length = Expression::call(Function::Length, [Expression::column("name")]);
    TableDefinition::builder("payments")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("amount", DataType::Int64))
        .column(ColumnDefinition::new("name", DataType::Text))
        .column(ColumnDefinition::new("due", DataType::TimestampTz).default_computed(&due).unwrap())
        .primary_key(["id"])
        .check("positive", Expression::column("amount").greater_than(0i64))
        .check("short", name_length.less_than(10))
        .build()
        .unwrap()
}

fn row(id: i64, amount: i64, name: &'static str) -> [Value<'static>; 4] {
    [id.into(), amount.into(), name.into(), Value::TimestampTz(0)]
}

fn violated(outcome: Result<impl std::fmt::Debug>, name: &str) {
    match outcome {
        Err(Error::CheckViolated { constraint, .. }) => assert_eq!(constraint, name),
        other => panic!("{other:?}"),
    }
}

fn refuses_zero(db: &Database, table: &Table) {
    let mut session = db.session().unwrap();
    let (good, zero) = (row(8, 8, "good"), row(9, 0, "zero"));
    violated(session.insert(table, &zero), "positive");
    violated(session.insert_token(table, &zero).map(drop), "positive");
    violated(session.upsert(table, &row(1, 0, "zero")), "positive");
    violated(session.insert_many(table, [good.as_slice(), zero.as_slice()]), "positive");
    violated(session.update(table, &[1i64.into()], &[("amount", 0i64.into())]), "positive");
    violated(session.update(table, &[1i64.into()], &[("name", "much too long".into())]), "short");
    let mut transaction = session.begin().unwrap();
    violated(transaction.insert(table, &zero), "positive");
    violated(transaction.upsert(table, &row(1, 0, "zero")), "positive");
    violated(transaction.update(table, &[1i64.into()], &[("amount", 0i64.into())]), "positive");
    transaction.commit().unwrap();
    // NULL is not false.
    session.insert(table, &[7i64.into(), Value::Null, Value::Null, Value::Null]).unwrap();
    session.delete(table, &[7i64.into()]).unwrap();
    assert_eq!(all_rows(&mut session, table), [row(1, 5, "one").to_vec()]);
}

#[test]
fn whatever_writes_a_row_keeps_the_checks() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(payments());
    db.session().unwrap().insert(&table, &row(1, 5, "one")).unwrap();
    refuses_zero(&db, &table);
    // From the log, then from a checkpoint.
    drop((db, table));
    for _ in 0..2 {
        let db = fixture.open();
        assert_eq!(definition_of(&db.table("payments").unwrap()), payments());
        refuses_zero(&db, &db.table("payments").unwrap());
        let options = OnlineOptions { check: CheckOptions::default(), ..OnlineOptions::default() };
        let report = db.check(&options, &CheckProgress::default()).unwrap();
        assert!(report.is_sound(), "{report}");
        db.close().unwrap();
    }
}

#[test]
fn a_default_is_computed_for_each_row() {
    let (db, table) = Fixture::in_memory().create_with(payments());
    let mut session = db.session().unwrap();
    let clock = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        i64::try_from(now.as_micros()).unwrap()
    };
    let before = clock();
    session.insert(&table, &[1i64.into(), 5i64.into(), "one".into(), Value::Default]).unwrap();
    let rows = [[2i64.into(), 5i64.into(), "two".into(), Value::Default]];
    session.insert_many(&table, rows.iter().map(|row| &row[..])).unwrap();
    let between = before + 30 * DAY_MICROS..=clock() + 30 * DAY_MICROS;
    for row in all_rows(&mut session, &table) {
        let Value::TimestampTz(due) = row[3] else { panic!("{row:?}") };
        assert!(between.contains(&due), "{due} is not in {between:?}");
    }
}

#[test]
fn a_rule_follows_its_column_to_another_name_and_place() {
    let (db, _) = Fixture::in_memory().create_with(payments());
    let mut session = db.session().unwrap();
    let changes = [
        TableChange::RenameColumn { from: "name".into(), to: "label".into() },
        TableChange::DropColumn { name: "amount".into() },
        TableChange::AddColumn(ColumnDefinition::new("amount", DataType::Text)),
    ];
    let table = db.alter_table("payments", &changes).unwrap();
    let row = |name: &'static str| [1i64.into(), name.into(), Value::Null, "-5".into()];
    violated(session.insert(&table, &row("much too long")), "short");
    session.insert(&table, &row("short")).unwrap();
}

#[test]
fn a_new_check_looks_at_the_rows_that_are_there() {
    let (db, table) = Fixture::in_memory().create_with(payments());
    db.session().unwrap().insert(&table, &row(1, 5, "one")).unwrap();
    let more = |limit: i64| {
        let condition = Expression::column("amount").greater_than(limit);
        TableChange::AddCheck(CheckConstraint::new("more", &condition, table.definition()).unwrap())
    };
    match db.alter_table("payments", &[more(5)]) {
        Err(Error::RowsViolateCheck { constraint, .. }) => assert_eq!(constraint, "more"),
        other => panic!("{:?}", other.map(|table| table.definition().clone())),
    }
    let table = db.alter_table("payments", &[more(4)]).unwrap();
    violated(db.session().unwrap().insert(&table, &row(2, 4, "two")), "more");
}

#[test]
fn a_condition_that_comes_to_nothing_is_an_error_with_its_cause() {
    let ratio = Expression::value(100).arithmetic(Arithmetic::Divide, Expression::column("a"));
    let table = TableDefinition::builder("ratios")
        .column(ColumnDefinition::new("a", DataType::Int32).not_null())
        .primary_key(["a"])
        .check("even", ratio.greater_than(1))
        .build()
        .unwrap();
    let (db, table) = Fixture::in_memory().create_with(table);
    let mut session = db.session().unwrap();
    let error = refused(session.insert(&table, &[0.into()]), &["division by zero"]);
    assert!(matches!(error, Error::CheckFailed(_)), "{error}");
    session.insert(&table, &[7.into()]).unwrap();
}

#[test]
fn what_is_no_condition_or_of_no_type_is_refused_when_the_table_is_defined() {
    let column = Expression::column;
    let refused = |condition: Expression| {
        let table = TableDefinition::builder("t")
            .column(ColumnDefinition::new("a", DataType::Int32).not_null())
            .column(ColumnDefinition::new("t", DataType::Text))
            .primary_key(["a"]);
        table.check("wrong", condition).build().unwrap_err().to_string()
    };
    assert!(refused(column("a")).contains("true or false"));
    assert!(refused(column("b").equal_to(1)).contains("no column \"b\""));
    assert!(refused(column("a").equal_to(column("t"))).contains("not compared"));
    assert!(refused(column("a").equal_to("one")).contains("one"));
    assert!(refused(Expression::now().greater_than("2024-01-01")).contains("always"));
    let deep = (0..1000).fold(column("a"), |inner, _| inner.negated());
    assert!(refused(deep.equal_to(1)).contains("deep"));
    let of_row = ColumnDefinition::new("c", DataType::Int32).default_computed(&column("a"));
    assert!(of_row.unwrap_err().to_string().contains("no column"));
}
