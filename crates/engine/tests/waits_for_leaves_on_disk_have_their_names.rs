//! Whoever waits for a leaf that is on disk only counts it under the name that fits: to read it, or to
//! change it.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, all_rows, delayed_session, note, notes};
use onrush::Database;
use onrush_waits::Wait;

const ROWS: i64 = 400;

fn count(db: &Database, wait: Wait) -> u64 {
    db.statistics().totals.wait(wait).count
}

#[test]
fn reading_and_changing_are_told_apart() {
    let (db, table) = Fixture::in_memory().with_little_memory().create_with(notes());
    let mut session = delayed_session(&db);
    // Two rows fill a leaf: three times what there is memory for.
    let text = "x".repeat(7000);
    for id in 0..ROWS {
        session.insert(&table, &note(2 * id, &text)).unwrap();
    }
    let (to_change, to_read) = (count(&db, Wait::PageIoLatchEx), count(&db, Wait::PageIoLatchSh));
    assert_eq!(all_rows(&mut session, &table).len(), ROWS as usize);
    for id in (0..ROWS).step_by(50) {
        assert!(session.get(&table, &[(2 * id).into()]).unwrap().is_some());
    }
    assert!(count(&db, Wait::PageIoLatchSh) > to_read);
    assert_eq!(count(&db, Wait::PageIoLatchEx), to_change, "nothing was changed");

    let to_read = count(&db, Wait::PageIoLatchSh);
    // Into leaves that were not read just now.
    for id in (25..ROWS).step_by(50) {
        session.insert(&table, &note(2 * id + 1, "short")).unwrap();
    }
    assert!(count(&db, Wait::PageIoLatchEx) > to_change);
    assert_eq!(count(&db, Wait::PageIoLatchSh), to_read, "nothing was read");
}
