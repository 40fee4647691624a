//! Short sessions with session-offset keys go on in the range of one that ended, so that ranges are
//! not used up; a reopened database leases new ones.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;

use common::{Fixture, generated};
use onrush::{Database, KeyStrategy, Table};

const RANGE_KEYS: i64 = 10_000_000_000;

fn insert(db: &Database, table: &Table) -> i64 {
    let mut session = db.session().unwrap();
    let key = session.insert_returning_key(table, &[]).unwrap();
    key[0].as_i64().unwrap()
}

#[test]
fn sessions_one_after_the_other_share_a_range() {
    let fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(generated(KeyStrategy::SessionOffset));
    let keys: Vec<i64> = (0..100).map(|_| insert(&db, &table)).collect();
    assert_eq!(keys, (keys[0]..keys[0] + 100).collect::<Vec<_>>());
    drop(db);

    let db = fixture.open();
    let later = insert(&db, &db.table("log").unwrap());
    assert_ne!(later / RANGE_KEYS, keys[0] / RANGE_KEYS, "the range's next key was not durable");
}

#[test]
fn sessions_at_the_same_time_have_ranges_of_their_own() {
    let (db, table) = Fixture::in_memory().create_with(generated(KeyStrategy::SessionOffset));
    for _ in 0..3 {
        let mut sessions: Vec<_> = (0..20).map(|_| db.session().unwrap()).collect();
        let mut ranges = BTreeSet::new();
        for session in &mut sessions {
            let key = session.insert_returning_key(&table, &[]).unwrap();
            ranges.insert(key[0].as_i64().unwrap() / RANGE_KEYS);
        }
        assert_eq!(ranges.len(), 20);
        assert!(ranges.iter().all(|range| *range < 20), "ranges are leased again: {ranges:?}");
    }
}
