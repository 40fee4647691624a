//! Strict identity: who commits later has the larger key.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, delayed_session, generated};
use onrush::{KeyStrategy, Lsn, Value};

const STRICT: KeyStrategy = KeyStrategy::Identity { start: 1, strict: true };

#[test]
fn keys_ascend_as_the_positions_of_their_commits_do() {
    let (db, table) = Fixture::in_memory().create_with(generated(STRICT));
    let insert = || {
        let mut session = delayed_session(&db);
        let insert = |_| {
            let key = session.insert_returning_key(&table, &[]).unwrap();
            (session.last_commit_lsn().unwrap(), key[0].as_i64().unwrap())
        };
        (0..300).map(insert).collect::<Vec<(Lsn, i64)>>()
    };
    let mut commits: Vec<(Lsn, i64)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(insert)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    commits.sort_unstable();
    let keys: Vec<i64> = commits.iter().map(|(_, key)| *key).collect();
    assert!(keys.is_sorted(), "a later commit has a smaller key");
    assert_eq!(keys, (1..=2400).collect::<Vec<_>>(), "without gaps as long as nothing fails");
}

#[test]
fn a_key_given_by_hand_does_not_disturb_the_others() {
    let (db, table) = Fixture::in_memory().create_with(generated(STRICT));
    let mut session = db.session().unwrap();
    session.insert(&table, &[3i64.into(), "by hand".into()]).unwrap();
    let mut key = || session.insert_returning_key(&table, &[]);
    assert_eq!(key().unwrap(), [1i64.into()]);
    assert_eq!(key().unwrap(), [2i64.into()]);
    let error = common::refused(key(), &["id = 3"]);
    assert!(matches!(error, onrush::Error::DuplicateKey { .. }));
    assert_eq!(key().unwrap(), [4i64.into()]);
    assert_eq!(session.get(&table, &[3i64.into()]).unwrap().unwrap()[1], Value::from("by hand"));
}
