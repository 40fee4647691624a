//! With `checkpoint_seconds` a checkpoint is taken some time after a change, however little has changed.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::faulty_disk::FaultyDisk;
use common::{Fixture, all_rows, note, noted, notes};

#[test]
fn a_single_row_gets_into_the_data_file() {
    let disk = FaultyDisk::default();
    let mut fixture = Fixture::on(Arc::new(disk.clone()));
    fixture.options.checkpoint_seconds = 1;
    let (db, table) = fixture.create_with(notes());
    disk.hold_syncs_of("data-00");
    let mut session = db.session().unwrap();
    session.insert(&table, &note(1, "only")).unwrap();
    // Nobody asked for a checkpoint, and yet one comes to where it syncs the data file.
    disk.wait_for_held_sync();
    disk.release_syncs();
    assert_eq!(all_rows(&mut session, &table), [noted(1, "only")]);
}
