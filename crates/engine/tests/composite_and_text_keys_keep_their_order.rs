//! Keys of several columns order column by column, text by its bytes; bounds may be a prefix.

#![allow(clippy::unwrap_used)]

mod common;

use std::ops::Bound;

use common::{Fixture, rows_of};
use onrush::{
    ColumnDefinition, DataType, Database, Direction, Row, ScanOptions, Session, Table,
    TableDefinition, Value,
};

/// `places (country text, city text, number int32, primary key (country, city, number))`.
fn places() -> TableDefinition {
    TableDefinition::builder("places")
        .column(ColumnDefinition::new("people", DataType::Int64))
        .column(ColumnDefinition::new("country", DataType::Text).not_null())
        .column(ColumnDefinition::new("city", DataType::Varchar(20)).not_null())
        .column(ColumnDefinition::new("number", DataType::Int32).not_null())
        .primary_key(["country", "city", "number"])
        .build()
        .unwrap()
}

fn key(row: &Row) -> (String, String, i64) {
    let text = |value: &Value<'_>| value.as_str().unwrap().to_owned();
    (text(&row[1]), text(&row[2]), row[3].as_i64().unwrap())
}

fn filled() -> (Database, Session, Table, Vec<(String, String, i64)>) {
    let (db, table) = Fixture::in_memory().create_with(places());
    let mut session = db.session().unwrap();
    let mut keys = Vec::new();
    for country in ["b", "a", "ab", "", "a\0", "ä", "a\u{10FFFF}"] {
        for city in ["y", "x", ""] {
            for number in [3, -1, i32::MAX, i32::MIN] {
                let row = [1i64.into(), country.into(), city.into(), number.into()];
                session.insert(&table, &row).unwrap();
                keys.push((country.to_owned(), city.to_owned(), i64::from(number)));
            }
        }
    }
    keys.sort();
    (db, session, table, keys)
}

#[test]
fn a_scan_gives_keys_in_order() {
    let (_db, mut session, table, keys) = filled();
    let rows = rows_of(&mut session, &table, &ScanOptions::default());
    assert_eq!(rows.iter().map(key).collect::<Vec<_>>(), keys);
}

#[test]
fn a_bound_of_fewer_columns_stands_for_all_keys_that_begin_with_it() {
    let (_db, mut session, table, keys) = filled();
    type KeyBound = Bound<Vec<Value<'static>>>;
    let cases: [(KeyBound, KeyBound); 4] = [
        (Bound::Included(vec!["a".into()]), Bound::Included(vec!["a".into()])),
        (Bound::Excluded(vec!["a".into()]), Bound::Excluded(vec!["b".into()])),
        (Bound::Included(vec!["a".into(), "x".into()]), Bound::Included(vec!["ab".into()])),
        (
            Bound::Excluded(vec!["a".into(), "x".into(), 3i32.into()]),
            Bound::Included(vec!["a".into(), "y".into(), 3i32.into()]),
        ),
    ];
    for (from, to) in cases {
        let inside = |key: &&(String, String, i64)| {
            let parts = |bound: &[Value<'_>]| -> std::cmp::Ordering {
                let own: [Value<'_>; 3] =
                    [key.0.as_str().into(), key.1.as_str().into(), key.2.into()];
                let pairs = own.iter().zip(bound);
                pairs
                    .map(|(own, bound)| own.total_cmp(bound))
                    .find(|o| o.is_ne())
                    .unwrap_or(std::cmp::Ordering::Equal)
            };
            let after = match &from {
                Bound::Unbounded => true,
                Bound::Included(bound) => parts(bound).is_ge(),
                Bound::Excluded(bound) => parts(bound).is_gt(),
            };
            let before = match &to {
                Bound::Unbounded => true,
                Bound::Included(bound) => parts(bound).is_le(),
                Bound::Excluded(bound) => parts(bound).is_lt(),
            };
            after && before
        };
        let expected: Vec<_> = keys.iter().filter(inside).cloned().collect();
        assert!(!expected.is_empty());
        let mut options =
            ScanOptions { from: from.clone(), to: to.clone(), ..ScanOptions::default() };
        let rows = rows_of(&mut session, &table, &options);
        assert_eq!(rows.iter().map(key).collect::<Vec<_>>(), expected, "{options:?}");
        options.direction = Direction::Backward;
        let rows = rows_of(&mut session, &table, &options);
        assert!(rows.iter().map(key).eq(expected.iter().rev().cloned()), "{options:?}");
    }
}

#[test]
fn a_row_is_found_by_its_whole_key() {
    let (_db, mut session, table, keys) = filled();
    for (country, city, number) in &keys {
        let number = i32::try_from(*number).unwrap();
        let key = [country.as_str().into(), city.as_str().into(), number.into()];
        assert_eq!(session.get(&table, &key).unwrap().unwrap()[0], 1i64.into());
    }
    let absent = ["a".into(), "xx".into(), 3i32.into()];
    assert_eq!(session.get(&table, &absent).unwrap(), None);
}
