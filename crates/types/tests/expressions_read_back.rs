//! Typed expressions as bytes: every one reads back as itself, and damaged bytes are an error, or another
//! expression that can be evaluated, but never a panic.

use std::sync::Arc;

use onrush_types::expression::{
    Arithmetic, Comparison, Expression, Field, Function, Interval, Pattern, PreparedExpression,
    Truth, TypedExpression,
};
use onrush_types::{
    ColumnDefinition, DataType, Decimal, EncodedRow, Numeric, Schema, TableDefinition, Value,
};
use proptest::prelude::*;

fn table() -> TableDefinition {
    TableDefinition::builder("t")
        .column(ColumnDefinition::new("i", DataType::Int32).not_null())
        .column(ColumnDefinition::new("n", DataType::Decimal { precision: 28, scale: 10 }))
        .column(ColumnDefinition::new("t", DataType::Text))
        .column(ColumnDefinition::new("h", DataType::Char(5)))
        .column(ColumnDefinition::new("g", DataType::Float64))
        .column(ColumnDefinition::new("s", DataType::Timestamp))
        .column(ColumnDefinition::new("d", DataType::Date))
        .column(ColumnDefinition::new("u", DataType::Numeric(None)))
        .primary_key(["i"])
        .build()
        .expect("sound")
}

fn leaf() -> impl Strategy<Value = Expression> {
    prop_oneof![
        prop::sample::select(vec!["i", "n", "t", "h", "g", "s", "d", "u"])
            .prop_map(Expression::column),
        any::<i32>().prop_map(Expression::value),
        any::<i64>().prop_map(Expression::value),
        (-1e12f64..1e12).prop_map(Expression::value),
        (any::<i64>(), 0u32..=18)
            .prop_map(|(units, scale)| Expression::value(Decimal::new(units, scale))),
        "[a-c%_\\\\ 0-9é]{0,6}".prop_map(Expression::value),
        prop::sample::select(vec![Numeric::NaN, Numeric::Infinity, Numeric::from_f64(1e40)])
            .prop_map(Expression::value),
        any::<bool>().prop_map(Expression::value),
        Just(Expression::null()),
    ]
}

fn expression() -> impl Strategy<Value = Expression> {
    let comparison =
        prop::sample::select(vec![Comparison::Equal, Comparison::Less, Comparison::GreaterOrEqual]);
    let arithmetic = prop::sample::select(vec![
        Arithmetic::Add,
        Arithmetic::Subtract,
        Arithmetic::Multiply,
        Arithmetic::Divide,
        Arithmetic::Remainder,
    ]);
    let function = prop::sample::select(vec![
        Function::Length,
        Function::Lower,
        Function::Trim,
        Function::Left,
        Function::Right,
        Function::Substring,
        Function::Position,
        Function::Concatenate,
        Function::Like,
        Function::Absolute,
        Function::Round,
        Function::Floor,
        Function::Truncate,
        Function::Sign,
    ]);
    let field = prop::sample::select(vec![
        Field::Year,
        Field::Quarter,
        Field::Week,
        Field::Day,
        Field::Milliseconds,
        Field::DayOfWeek,
        Field::IsoYear,
        Field::Epoch,
    ]);
    leaf().prop_recursive(5, 40, 4, move |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (comparison.clone(), two.clone()).prop_map(|(by, (one, other))| one.compare(by, other)),
            (arithmetic.clone(), two.clone())
                .prop_map(|(by, (one, other))| one.arithmetic(by, other)),
            two.clone().prop_map(|(one, other)| one.and(other)),
            two.clone().prop_map(|(one, other)| one.or(other.not())),
            two.clone().prop_map(|(one, other)| one.null_if(other)),
            two.clone().prop_map(|(one, other)| Expression::coalesce([one, other])),
            two.clone().prop_map(|(one, other)| Expression::greatest([one, other])),
            two.clone().prop_map(|(one, other)| one.distinct_from(other, true)),
            inner.clone().prop_map(|one| one.is(Truth::NotNull)),
            inner.clone().prop_map(Expression::negated),
            inner.clone().prop_map(|one| one.cast(DataType::Text)),
            inner.clone().prop_map(|one| one.cast(DataType::Int32)),
            inner.clone().prop_map(|one| one.cast(DataType::Decimal { precision: 9, scale: 2 })),
            (inner.clone(), any::<i32>(), any::<i32>(), any::<i64>()).prop_map(
                |(one, months, days, micros)| one.plus(Interval { months, days, micros })
            ),
            (inner.clone(), any::<bool>()).prop_map(|(one, is_ignoring_case)| {
                one.matches(Pattern::new("^[a-c]+x?.*\\d$", is_ignoring_case).expect("sound"))
            }),
            (inner.clone(), field.clone()).prop_map(|(one, field)| one.extract(field)),
            (inner.clone(), field.clone()).prop_map(|(one, field)| one.truncated_to(field)),
            (inner.clone(), two.clone()).prop_map(|(when, (one, other))| {
                Expression::case([(when.is(Truth::Null), one)], Some(other))
            }),
            (function.clone(), prop::collection::vec(inner, 1..=3))
                .prop_map(|(function, arguments)| Expression::call(function, arguments)),
        ]
    })
}

fn rows() -> Vec<[Value<'static>; 8]> {
    let null = || Value::Null;
    let none = [1.into(), null(), null(), null(), null(), null(), null(), null()];
    let low = [
        i32::MIN.into(),
        Decimal::new(-1, 10).into(),
        "".into(),
        "a".into(),
        f64::NEG_INFINITY.into(),
        Value::Timestamp(-210_866_803_200_000_000),
        Value::Date(-2_440_588),
        Value::Numeric(Numeric::NegativeInfinity),
    ];
    let high = [
        i32::MAX.into(),
        Decimal::new(i64::MAX, 1).into(),
        "aé% b".into(),
        "abcde".into(),
        f64::NAN.into(),
        Value::Timestamp(i64::MAX),
        Value::Date(i32::MAX),
        Value::Numeric(Numeric::from_f64(-1e-40)),
    ];
    vec![none, low, high]
}

/// Whatever it comes to, or that it comes to nothing.
fn evaluate(table: &TableDefinition, form: &TypedExpression) {
    let Ok(prepared) = PreparedExpression::new(table, form) else { return };
    let schema = Schema::new(Arc::new(table.clone())).expect("sound");
    for row in rows() {
        let mut encoded = EncodedRow::default();
        let no_default = |_: usize, _: &_| unreachable!("every value is given");
        schema
            .encode_row::<onrush_types::TypeError, _>(&row, no_default, &mut encoded)
            .expect("fits");
        let view = schema.view(&encoded.key, &encoded.row).expect("sound");
        let _ = prepared.value(&view);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn what_was_bound_reads_back_and_comes_to_a_value_or_an_error(written in expression()) {
        let table = table();
        if let Ok(form) = written.bound(&table) {
            prop_assert_eq!(TypedExpression::from_bytes(&form.to_bytes()), Ok(form.clone()));
            evaluate(&table, &form);
        }
    }

    #[test]
    fn damaged_bytes_are_an_error_or_another_expression(
        written in expression(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let table = table();
        if let Ok(form) = written.bound(&table) {
            let mut bytes = form.to_bytes();
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if is_cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            if let Ok(other) = TypedExpression::from_bytes(&bytes) {
                evaluate(&table, &other);
            }
        }
    }
}

#[test]
fn an_expression_nested_too_deeply_is_refused_when_it_is_read() {
    // NOT of NOT of NOT and so on.
    let mut bytes = vec![1];
    for _ in 0..3000 {
        bytes.extend_from_slice(&[10, 1, 0]);
    }
    bytes.extend_from_slice(&[2, 1, 1, 1]);
    assert_eq!(TypedExpression::from_bytes(&bytes), Err("an expression is nested too deeply"));
}

#[test]
fn a_column_compared_with_a_constant_has_these_bytes() {
    let form = Expression::column("i").greater_than(7).bound(&table()).expect("typed");
    let expected = [1, 3, 5, 2, 0, 1, 3, 0, 0, 2, 3, 1, 7, 0, 0, 0];
    assert_eq!(form.to_bytes(), expected);
}
