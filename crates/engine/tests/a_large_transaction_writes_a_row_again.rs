//! A large transaction writes a row again, whose version that others see, intent and new version are more than a leaf
//! holds.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, note, notes};

#[test]
fn a_row_that_takes_half_a_leaf_is_written_again_and_again() {
    let mut fixture = Fixture::new();
    // Each change goes to its leaf at once.
    fixture.options.large_transaction_bytes = 1;
    let (db, table) = fixture.create_with(notes());
    let (mut writer, mut other) = (db.session().unwrap(), db.session().unwrap());
    let text = |letter: &str| letter.repeat(7_900);
    let stands = |session: &mut onrush::Session| {
        session.get(&table, &[1i64.into()]).unwrap().unwrap()[1].as_str().unwrap().to_owned()
    };
    writer.insert(&table, &note(1, &text("a"))).unwrap();
    let mut transaction = writer.begin().unwrap();
    for letter in ["b", "c", "d"] {
        assert!(
            transaction.update(&table, &[1i64.into()], &[("note", text(letter).into())]).unwrap()
        );
        assert_eq!(stands(&mut other), text("a"), "nobody else sees it");
    }
    transaction.commit().unwrap();
    assert_eq!(stands(&mut other), text("d"));
    let mut transaction = writer.begin().unwrap();
    for letter in ["e", "f"] {
        assert!(
            transaction.update(&table, &[1i64.into()], &[("note", text(letter).into())]).unwrap()
        );
    }
    transaction.rollback();
    assert_eq!(stands(&mut other), text("d"));
}
