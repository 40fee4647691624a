//! While a checkpoint lags, inserts slow down before the log is full, in a wait of that name.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::faulty_disk::FaultyDisk;
use common::{Fixture, all_rows, delayed_session, note, notes};
use onrush::{ColumnDefinition, DataType, Database, TableDefinition};
use onrush_waits::Wait;

fn lag_waits(db: &Database) -> u64 {
    db.statistics().totals.wait(Wait::CheckpointLag).count
}

#[test]
fn a_checkpoint_whose_data_writes_are_slow_slows_inserts_down() {
    let disk = FaultyDisk::default();
    let mut fixture = Fixture::on(Arc::new(disk.clone()));
    fixture.options.log_capacity_bytes = 16 << 20;
    let (db, table) = fixture.create_with(notes());
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let ticks = TableDefinition::builder("ticks").column(id).primary_key(["id"]).unlogged();
    let ticks = db.create_table(ticks.build().unwrap()).unwrap();
    let mut session = delayed_session(&db);

    // No checkpoint ends now, so the log fills: to above three quarters, but not to the end.
    disk.hold_syncs_of("data-00");
    let text = "x".repeat(1000);
    let mut rows = 0;
    loop {
        let (in_use, capacity) = db.statistics().log_space_bytes;
        if in_use > capacity / 16 * 13 {
            break;
        }
        session.insert(&table, &note(rows, &text)).unwrap();
        rows += 1;
    }
    disk.wait_for_held_sync();

    // Rows that are not logged take next to nothing of the log, and find it as full as it is.
    let mut ids = 0i64..;
    let mut is_full = false;
    while lag_waits(&db) == 0 && !is_full {
        for id in ids.by_ref().take(64) {
            session.insert(&ticks, &[id.into()]).unwrap();
        }
        let (in_use, capacity) = db.statistics().log_space_bytes;
        is_full = in_use > capacity / 32 * 29;
    }
    disk.release_syncs();
    assert!(!is_full, "{ids:?}: nobody has been slowed down");

    db.checkpoint().unwrap();
    assert_eq!(all_rows(&mut session, &table).len(), rows as usize);
}
