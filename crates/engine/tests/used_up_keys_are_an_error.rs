//! At the end of its range a key strategy gives an error, never a wrap; nothing else is affected.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, all_rows, delayed_session, generated, generated_of_type, ids, refused};
use onrush::{DataType, Error, KeyStrategy, TypeError};

#[test]
fn identity_ends_at_the_largest_value_of_its_type() {
    let ranges = [
        (DataType::Int16, i64::from(i16::MAX)),
        (DataType::Int32, i64::from(i32::MAX)),
        (DataType::Int64, i64::MAX),
    ];
    for (data_type, largest) in ranges {
        for strict in [false, true] {
            let strategy = KeyStrategy::Identity { start: largest - 99, strict };
            let fixture = Fixture::in_memory();
            let (db, table) = fixture.create_with(generated_of_type(strategy, data_type));
            let mut session = delayed_session(&db);
            for _ in 0..100 {
                session.insert(&table, &[]).unwrap();
            }
            for _ in 0..3 {
                let error = refused(session.insert(&table, &[]), &["log.id", "exhausted", "type"]);
                assert!(matches!(error, Error::Type(TypeError::KeysExhausted { .. })));
            }
            let error = db.session().unwrap().insert(&table, &[]);
            refused(error, &["exhausted"]);
            let rows = all_rows(&mut session, &table);
            assert_eq!(ids(&rows), (largest - 99..=largest).collect::<Vec<_>>());

            // A key given by hand still goes in; and nothing starts again after a reopen.
            session.insert(&table, &[1i16.into(), "by hand".into()]).unwrap();
            drop((session, db));
            let db = fixture.open();
            let table = db.table("log").unwrap();
            refused(db.session().unwrap().insert(&table, &[]), &["exhausted"]);
        }
    }
}

/// The counter behind them has 64 bits, and so many numbers these strategies can use.
#[test]
fn the_end_of_the_counter_is_the_end_of_the_keys() {
    let from_the_least = KeyStrategy::Identity { start: i64::MIN, strict: false };
    let strict = KeyStrategy::Identity { start: i64::MIN, strict: true };
    for strategy in [KeyStrategy::SequentialGuid, from_the_least, strict] {
        let fixture = Fixture::in_memory();
        let (db, table) = fixture.create_with(generated(strategy));
        let mut session = delayed_session(&db);
        assert!(session.skip_numbers(&table, "id", u64::MAX - 100).unwrap());
        for _ in 0..100 {
            session.insert(&table, &[]).unwrap();
        }
        for _ in 0..3 {
            let error = refused(session.insert(&table, &[]), &["log.id", "exhausted", "table"]);
            assert!(matches!(error, Error::Type(TypeError::KeysExhausted { .. })), "{error:?}");
        }
        drop(session);
        db.checkpoint().unwrap();
        db.close().unwrap();
        let db = fixture.open();
        let table = db.table("log").unwrap();
        refused(db.session().unwrap().insert(&table, &[]), &["exhausted"]);
        assert_eq!(all_rows(&mut db.session().unwrap(), &table).len(), 100, "{strategy:?}");
    }
}
