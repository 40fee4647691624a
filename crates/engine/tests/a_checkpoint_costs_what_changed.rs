//! What a checkpoint writes follows what has changed since the one before, not what there is.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, delayed_session, note, notes};

#[test]
fn one_changed_row_in_a_large_table_is_one_image() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = delayed_session(&db);
    let text = "x".repeat(1000);
    for id in 0..3000 {
        session.insert(&table, &note(id, &text)).unwrap();
    }
    db.checkpoint().unwrap();
    assert!(db.statistics().leaves > 100, "the table is large");
    assert_eq!(db.checkpoint().unwrap().images, 0, "nothing has changed");

    let changed = [("note", "changed".into())];
    assert!(session.update(&table, &[1500i64.into()], &changed).unwrap());
    let one = db.checkpoint().unwrap();
    assert_eq!((one.images, one.segments), (1, 1), "{one:?}");
}
