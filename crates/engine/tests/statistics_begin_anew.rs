//! `Database::reset_statistics`: what is counted begins at nothing again, and only that.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, all_rows, note, notes};
use onrush::Database;
use onrush_waits::{Counter, Wait};

/// Rows inserted, and how often somebody waited for the log.
fn counted(db: &Database) -> (u64, u64) {
    let totals = db.statistics().totals;
    (totals.counter(Counter::RowsInserted), totals.wait(Wait::WriteLog).count)
}

#[test]
fn only_what_comes_after_is_counted() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    for id in 0..10 {
        session.insert(&table, &note(id, "before")).unwrap();
    }
    assert_eq!(counted(&db).0, 10);
    let (leaves, space) = (db.statistics().leaves, db.statistics().log_space_bytes);

    db.reset_statistics();
    assert_eq!(counted(&db), (0, 0));
    assert_eq!(db.statistics().leaves, leaves, "how things are is not forgotten");
    assert_eq!(db.statistics().log_space_bytes, space);

    for id in 10..13 {
        session.insert(&table, &note(id, "after")).unwrap();
    }
    assert_eq!(counted(&db).0, 3);
    assert_eq!(all_rows(&mut session, &table).len(), 13);
}
