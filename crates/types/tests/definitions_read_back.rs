//! Promise: a table definition comes back from its bytes unchanged, and unsound ones are refused.

mod common;

use common::any_schema;
use onrush_types::expression::{Arithmetic, Expression, Interval};
use onrush_types::{
    CheckConstraint, ColumnDefinition, DataType, DefaultValue, KeyStrategy, RowExpression,
    TableBuilder, TableChange, TableDefinition, TypeError, Value,
};
use proptest::prelude::*;

proptest! {
    #[test]
    fn definitions_read_back(schema in any_schema()) {
        let bytes = schema.definition().to_bytes();
        let read = TableDefinition::from_bytes(&bytes).expect("sound");
        // Through bytes again: NaN defaults differ from themselves.
        prop_assert_eq!(read.to_bytes(), bytes);
        prop_assert_eq!(read.primary_key(), schema.definition().primary_key());
    }
}

fn column(name: &str, data_type: DataType) -> ColumnDefinition {
    ColumnDefinition::new(name, data_type)
}

fn orders() -> TableBuilder {
    TableDefinition::builder("orders").column(column("id", DataType::Int64)).primary_key(["id"])
}

#[test]
fn every_default_reads_back() {
    let mut builder = orders()
        .version(7)
        .column(column("at", DataType::TimestampTz).default_now().not_null())
        .column(column("until", DataType::TimestampTz).default_expression("now() + '1 day'"))
        .column(column("none", DataType::Text).default_value(Value::Null));
    for (position, strategy) in KeyStrategy::ALL.into_iter().enumerate() {
        let name = format!("k{position}");
        builder = builder.column(column(&name, strategy.natural_type()).default_key(strategy));
    }
    let definition = builder.build().expect("sound");
    assert_eq!(TableDefinition::from_bytes(&definition.to_bytes()), Ok(definition));
}

#[test]
fn a_column_that_is_computed_of_others_reads_back() {
    let bare = orders().column(column("doubled", DataType::Int64)).build().expect("sound");
    let twice = Expression::column("id").arithmetic(Arithmetic::Multiply, 2i64);
    let doubled = RowExpression::new(&twice, &bare).expect("a number");
    let definition = bare.with_generated("doubled", doubled).expect("sound");
    let read = TableDefinition::from_bytes(&definition.to_bytes());
    assert_eq!(read.as_ref(), Ok(&definition));
    // Rows of earlier versions are read after it is none any more.
    let none = TableChange::SetColumn {
        name: "doubled".into(),
        nullable: true,
        default: DefaultValue::None,
    };
    let altered = definition.altered(&none, 0).expect("sound");
    assert!(!altered.columns()[1].is_always_generated);
    assert_eq!(TableDefinition::from_bytes(&altered.to_bytes()), Ok(altered));
}

#[test]
fn the_bytes_of_a_definition_do_not_change() {
    let definition = orders()
        .column(column("name", DataType::Char(3)).default_value("ab"))
        .build()
        .expect("sound");
    let expected: &[u8] = b"ORTD\x01\x01\x00\x06\x00orders\x02\x00\
        \x02\x00id\x04\x00\x00\
        \x04\x00name\x08\x03\x00\x01\x01\x03\x00ab \
        \x01\x00\x00\x00";
    assert_eq!(definition.to_bytes(), expected);
}

#[test]
fn only_a_table_that_is_not_logged_is_written_in_the_second_format() {
    let logged = orders().build().expect("sound");
    let unlogged = orders().unlogged().build().expect("sound");
    let [mut first, mut second] = [&logged, &unlogged].map(TableDefinition::to_bytes);
    assert_eq!((first[4], second[4]), (1, 2));
    assert_eq!(TableDefinition::from_bytes(&second), Ok(unlogged));
    assert_eq!(second.pop(), Some(1));
    (first[4], second[4]) = (0, 0);
    assert_eq!(first, second);
}

fn check(name: &str, columns: &[u16]) -> CheckConstraint {
    let expression = "$1 > 0".to_owned();
    CheckConstraint {
        name: name.to_owned(),
        columns: columns.to_vec(),
        expression,
        form: None,
        is_validated: true,
    }
}

#[test]
fn checks_read_back_and_have_a_format_of_their_own() {
    let plain = orders().build().expect("sound");
    let checked = orders().check_constraint(check("positive", &[0])).build().expect("sound");
    let [mut first, second] = [&plain, &checked].map(TableDefinition::to_bytes);
    assert_eq!((first[4], second[4]), (1, 4));
    first[4] = 4;
    let added = b"\x00\x00\x01\x00\x08\x00positive\x01\x00\x00\x00\x06\x00$1 > 0";
    first.extend_from_slice(added);
    assert_eq!(first, second);
    assert_eq!(TableDefinition::from_bytes(&second), Ok(checked));
}

#[test]
fn forms_of_expressions_read_back_and_have_a_format_of_their_own() {
    let soon = Expression::now().plus(Interval::days(1));
    let due = column("due", DataType::TimestampTz).default_computed(&soon).expect("typed");
    let tables = [
        orders().check("positive", Expression::column("id").greater_than(0)),
        orders().column(due.clone()),
        orders().column(due).check("positive", Expression::column("id").greater_than(0)),
    ];
    for table in tables {
        let table = table.build().expect("sound");
        let bytes = table.to_bytes();
        assert_eq!(bytes[4], 5);
        assert_eq!(TableDefinition::from_bytes(&bytes), Ok(table));
        for cut in 0..bytes.len() {
            assert!(TableDefinition::from_bytes(&bytes[..cut]).is_err(), "{cut}");
        }
    }
}

#[test]
fn a_form_that_does_not_suit_its_table_is_refused() {
    let other = TableDefinition::builder("other")
        .column(column("id", DataType::Text).not_null())
        .primary_key(["id"])
        .build()
        .expect("sound");
    let condition = Expression::column("id").not_equal_to("");
    let check = CheckConstraint::new("named", &condition, &other).expect("typed");
    let refused = orders().check_constraint(check).build().expect_err("of another type");
    assert!(refused.to_string().contains("of another type"), "{refused}");
}

#[test]
fn checks_follow_their_columns() {
    let start = orders()
        .column(column("a", DataType::Int32))
        .column(column("b", DataType::Int32))
        .unlogged()
        .check_constraint(check("of_a", &[1]))
        .check_constraint(check("of_both", &[1, 2]))
        .check_constraint(check("of_b", &[2]))
        .build()
        .expect("sound");
    let change = |table: &TableDefinition, change: TableChange| {
        let altered = table.altered(&change, 0).expect("possible");
        assert_eq!(TableDefinition::from_bytes(&altered.to_bytes()), Ok(altered.clone()));
        altered
    };
    let names = |table: &TableDefinition| {
        table.checks().iter().map(|check| check.name.clone()).collect::<Vec<_>>()
    };
    let without = change(&start, TableChange::DropColumn { name: "a".into() });
    assert_eq!(names(&without), ["of_b"]);
    let added = change(&without, TableChange::AddCheck(check("more", &[0, 2])));
    let renamed = TableChange::RenameCheck { from: "of_b".into(), to: "of_c".into() };
    let renamed = change(&added, renamed);
    assert_eq!(names(&renamed), ["of_c", "more"]);
    let dropped = change(&renamed, TableChange::DropCheck { name: "of_c".into() });
    assert_eq!(names(&dropped), ["more"]);
    assert!(dropped.altered(&TableChange::DropCheck { name: "of_c".into() }, 0).is_err());
    assert!(dropped.altered(&TableChange::AddCheck(check("more", &[0])), 0).is_err());
    assert!(dropped.altered(&TableChange::AddCheck(check("gone", &[1])), 0).is_err());
}

#[test]
fn unsound_tables_are_refused() {
    let refused: Vec<(TableBuilder, &str)> = vec![
        (orders().column(column("id", DataType::Text)), "orders.id is defined twice"),
        (orders().primary_key(["no"]), "orders has no column \"no\""),
        (orders().primary_key(["id", "id"]), "orders.id stands twice"),
        (orders().primary_key(Vec::<String>::new()), "orders has no primary key"),
        (orders().column(column("c", DataType::Char(0))), "orders.c"),
        (
            orders().column(column("c", DataType::Decimal { precision: 29, scale: 0 })),
            "precision is 1 to 28",
        ),
        (orders().column(column("", DataType::Text)), "empty"),
        (orders().column(column("c", DataType::Int16).default_value(1)), "it is integer"),
        (
            orders().column(column("c", DataType::Int64).not_null().default_value(Value::Null)),
            "orders.c is NOT NULL",
        ),
        (orders().column(column("c", DataType::Text).default_now()), "now needs date"),
        (
            orders().column(column("c", DataType::Text).default_expression("x".repeat(8001))),
            "8001 bytes, at most 8000",
        ),
        (
            orders().column(column("c", DataType::Uuid).default_key(KeyStrategy::BitReversed)),
            "it needs bigint",
        ),
        (
            orders().column(
                column("c", DataType::Int64).default_key(KeyStrategy::NodeOffset { node: 92_233 }),
            ),
            "0 to 92232",
        ),
        (orders().column(column("c", DataType::Char(8000))), "at most 8000"),
    ];
    for (builder, expected) in refused {
        let error = builder.build().expect_err(expected).to_string();
        assert!(error.contains(expected), "{error} / {expected}");
    }
}

#[test]
fn constant_defaults_take_the_type_of_their_column() {
    let definition =
        orders().column(column("n", DataType::Int64).default_value(1i16)).build().expect("sound");
    let default = &definition.columns()[1].default;
    assert_eq!(default, &onrush_types::DefaultValue::Constant(Value::Int64(1)));
}

#[test]
fn a_newer_format_is_refused() {
    let mut bytes = orders().build().expect("sound").to_bytes();
    bytes[4] = 2;
    let read = TableDefinition::from_bytes(&bytes);
    assert!(matches!(read, Err(TypeError::DefinitionDamaged { .. })));
}
