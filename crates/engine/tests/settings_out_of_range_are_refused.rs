//! A setting out of its range is named with what is allowed, before anything is created.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, refused};
use onrush::{Error, LargePages, Options};

#[test]
fn every_setting_has_its_range() {
    type Change = fn(&mut Options);
    let cases: [(&str, Change); 13] = [
        ("data_folders", |o| o.data_folders = vec!["data".into(); 17]),
        ("log_block_bytes_max", |o| o.log_block_bytes_max = 511),
        ("log_block_bytes_max", |o| o.log_block_bytes_max = (1 << 20) + 1),
        ("log_ring_bytes", |o| o.log_ring_bytes = 100_000),
        ("log_ring_bytes", |o| o.log_ring_bytes = 0),
        ("log_segment_bytes", |o| o.log_segment_bytes = 100_000),
        ("log_capacity_bytes", |o| o.log_capacity_bytes = (1 << 20) - 1),
        ("delayed_window_ms", |o| o.delayed_window_ms = 0),
        ("delayed_window_bytes", |o| o.delayed_window_bytes = 0),
        ("processors", |o| o.processors = Some(0)),
        ("leaf_memory_bytes", |o| o.leaf_memory_bytes = 1 << 19),
        ("checkpoint_log_bytes", |o| o.checkpoint_log_bytes = 0),
        ("key_reserve", |o| o.key_reserve = 0),
    ];
    for (setting, change) in cases {
        let mut fixture = Fixture::new();
        change(&mut fixture.options);
        let error = refused(fixture.try_create(), &[setting]);
        assert!(matches!(error, Error::BadOption { .. }), "{setting}: {error:?}");
        assert!(!fixture.path().exists(), "{setting}: something was created");
        refused(fixture.try_open(), &[setting]);
    }
}

#[test]
fn a_processor_that_there_is_not() {
    let mut fixture = Fixture::new();
    fixture.options.log_writer_cpu = Some(100_000);
    let error = refused(fixture.try_create(), &["log_writer_cpu", "100000", "this process has"]);
    assert!(matches!(error, Error::BadOption { setting: "log_writer_cpu", .. }), "{error:?}");
    assert!(!fixture.path().exists(), "something was created");
    fixture.options.log_writer_cpu = None;
    fixture.create().close().unwrap();
    fixture.options.log_writer_cpu = Some(100_000);
    refused(fixture.try_open(), &["log_writer_cpu"]);
}

/// Machines with reserved large pages open the database; on all others this is an error before
/// anything is there, and not the end of the process at the first row.
#[test]
fn large_pages_that_are_required_are_there_or_opening_says_so() {
    let mut fixture = Fixture::new();
    fixture.options.large_pages = LargePages::Require;
    match fixture.try_create() {
        Ok(db) => {
            let table = db.create_table(common::notes()).unwrap();
            db.session().unwrap().insert(&table, &common::note(1, "x")).unwrap();
        }
        Err(error) => {
            let error = refused::<()>(Err(error), &["large_pages", "reserve", "nr_hugepages"]);
            assert!(matches!(error, Error::BadOption { setting: "large_pages", .. }), "{error:?}");
            assert!(!fixture.path().exists(), "something was created");
        }
    }
}

#[test]
fn extreme_settings_do_not_panic() {
    let cases: [fn(&mut Options); 11] = [
        |o| o.log_segment_bytes = u64::MAX / 4096 * 4096,
        |o| o.log_ring_bytes = 1 << 62,
        |o| o.log_capacity_bytes = u64::MAX,
        |o| o.leaf_memory_bytes = usize::MAX,
        |o| o.checkpoint_log_bytes = u64::MAX,
        |o| o.checkpoint_seconds = u64::MAX,
        |o| o.delayed_window_ms = u64::MAX,
        |o| o.delayed_window_bytes = u64::MAX,
        |o| o.cpus_kept_free = usize::MAX,
        |o| o.processors = Some(usize::MAX),
        |o| o.key_reserve = u64::MAX,
    ];
    for (number, change) in cases.into_iter().enumerate() {
        let mut fixture = Fixture::in_memory();
        change(&mut fixture.options);
        match fixture.try_create() {
            Ok(db) => {
                let table = db.create_table(common::notes()).unwrap();
                let mut session = common::delayed_session(&db);
                session.insert(&table, &common::note(1, "x")).unwrap();
                db.close().unwrap();
            }
            Err(Error::BadOption { .. }) => {}
            Err(error) => panic!("case {number}: {error}"),
        }
    }
}

#[test]
fn all_settings_but_the_folders_may_change_between_openings() {
    let mut fixture = Fixture::in_memory();
    let (db, table) = fixture.create_with(common::notes());
    let mut session = db.session().unwrap();
    for id in 0..500 {
        session.insert(&table, &common::note(id, "x")).unwrap();
    }
    drop((session, db));
    let changes: [fn(&mut Options); 5] = [
        |o| o.log_block_bytes_max = 512,
        |o| o.log_ring_bytes = 64 << 10,
        |o| o.log_segment_bytes = 128 << 10,
        |o| o.elide_defaults = false,
        |o| o.leaf_memory_bytes = 64 * 16 * 1024,
    ];
    for (round, change) in (0..).zip(changes) {
        change(&mut fixture.options);
        let db = fixture.open();
        let table = db.table("notes").unwrap();
        let mut session = db.session().unwrap();
        assert_eq!(common::all_rows(&mut session, &table).len(), 500 + round);
        session.insert(&table, &common::note(1000 + round as i64, "x")).unwrap();
    }
}
