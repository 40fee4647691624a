//! While a checkpoint lags, inserts slow down before the log is full, or longer than recovery may redo, in a
//! wait of that name.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::faulty_disk::FaultyDisk;
use common::{Fixture, all_rows, delayed_session, note, notes};
use onrush::{ColumnDefinition, DataType, Database, Options, TableDefinition};
use onrush_waits::Wait;

fn lag_waits(db: &Database) -> u64 {
    db.statistics().totals.wait(Wait::CheckpointLag).count
}

#[test]
fn a_log_that_is_nearly_full_slows_inserts_down() {
    inserts_slow_down(16 << 20, |options| options.log_capacity_bytes = 16 << 20);
}

#[test]
fn a_log_that_takes_nearly_too_long_to_redo_slows_inserts_down() {
    // 32 MiB a second, until a redo has been measured.
    inserts_slow_down(32 << 20, |options| {
        options.log_capacity_bytes = 256 << 20;
        options.recovery_seconds = 1;
    });
}

/// With a checkpoint that does not end, sessions pause before the log is as long as `limit_bytes`.
fn inserts_slow_down(limit_bytes: u64, set: impl FnOnce(&mut Options)) {
    let disk = FaultyDisk::default();
    let mut fixture = Fixture::on(Arc::new(disk.clone()));
    set(&mut fixture.options);
    let (db, table) = fixture.create_with(notes());
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let ticks = TableDefinition::builder("ticks").column(id).primary_key(["id"]).unlogged();
    let ticks = db.create_table(ticks.build().unwrap()).unwrap();
    let mut session = delayed_session(&db);

    // No checkpoint ends now, so the log grows: to above three quarters of the limit, but not up to it.
    disk.hold_syncs_of("data-00");
    let text = "x".repeat(1000);
    let mut rows = 0;
    loop {
        let (in_use, _) = db.statistics().log_space_bytes;
        if in_use > limit_bytes / 16 * 13 {
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
        let (in_use, _) = db.statistics().log_space_bytes;
        is_full = in_use > limit_bytes / 32 * 29;
    }
    disk.release_syncs();
    assert!(!is_full, "{ids:?}: nobody has been slowed down");

    db.checkpoint().unwrap();
    assert_eq!(all_rows(&mut session, &table).len(), rows as usize);
}
