//! Every embedded target takes the classic rows, gives them back, and says what it cannot do.

#![allow(clippy::unwrap_used)]

use onrush_lab::study::{Setting, Settings};
#[cfg(feature = "rocksdb")]
use onrush_lab::target::record::{LOG_BYTES, LOG_SYNCS};
use onrush_lab::target::{self, LoadOrder, Target};
use onrush_measure::{Quiet, Step};

/// Targets that need nothing but this process.
const EMBEDDED: &[&str] = match cfg!(feature = "rocksdb") {
    true => &["onrush", "sqlite", "lmdb", "redb", "fjall", "rocksdb"],
    false => &["onrush", "sqlite", "lmdb", "redb", "fjall"],
};

fn small() -> Settings {
    let sizes = [(Setting::CacheBytes, 32 << 20), (Setting::LogCapacityBytes, 256 << 20)];
    let settings = Settings::default().with(Setting::Sessions, 4);
    sizes.into_iter().fold(settings, |settings, (setting, bytes)| settings.with(setting, bytes))
}

/// Preloads, loads and verifies; returns the rows found.
fn run(target: &dyn Target, settings: &Settings, rows: u64) -> u64 {
    let name = target.name();
    assert_eq!(target.impossible(settings), None, "{name}");
    let folder = tempfile::tempdir().unwrap();
    let mut instance = target.prepare(settings, folder.path()).unwrap();
    let preload = LoadOrder { rows: 500, step: Step::Preload };
    assert_eq!(instance.load(preload, &Quiet).unwrap().rows, 500, "{name}");
    let figures = instance.load(LoadOrder { rows, step: Step::Load }, &Quiet).unwrap();
    let rows_per_commit = settings.number(Setting::RowsPerCommit);
    assert_eq!(figures.rows, rows, "{name}");
    assert!(figures.commits >= rows / rows_per_commit, "{name}");
    assert!(figures.commits <= rows / rows_per_commit + 4, "{name}");
    instance.settle().unwrap();
    let verdict = instance.verify(&Quiet).unwrap().unwrap();
    assert!(verdict.passed && verdict.faults.is_empty(), "{name}: {:?}", verdict.faults);
    instance.clean_up().unwrap();
    verdict.rows_found
}

#[test]
fn with_every_kind_of_key_one_row_a_commit_not_synced() {
    for &name in EMBEDDED {
        let target = target::find(name).unwrap();
        for key in ["session-offset", "uuid-v4", "identity", "bit-reversed"] {
            let settings = small().with(Setting::Durability, "delayed").with(Setting::Key, key);
            assert_eq!(run(&*target, &settings, 2_001), 2_501, "{name} {key}");
        }
    }
}

#[test]
fn with_keys_of_the_client_in_every_spread() {
    for &name in EMBEDDED {
        let target = target::find(name).unwrap();
        for (key, spread) in [
            ("session-offset", "even"),
            ("identity", "even"),
            ("uuid-v4", "zipfian"),
            ("uuid-v4", "hot"),
            ("identity", "scattered"),
        ] {
            let settings = small()
                .with(Setting::Durability, "delayed")
                .with(Setting::KeySource, "client")
                .with(Setting::Key, key)
                .with(Setting::KeySpread, spread);
            assert_eq!(run(&*target, &settings, 2_001), 2_501, "{name} {key} {spread}");
        }
    }
}

#[test]
fn with_point_reads_and_updates_between_inserts() {
    let settings = small()
        .with(Setting::Durability, "delayed")
        .with(Setting::KeySource, "client")
        .with(Setting::Key, "uuid-v4")
        .with(Setting::ReadsPer100Rows, 80)
        .with(Setting::UpdatesPer100Rows, 20);
    for &name in EMBEDDED {
        let target = target::find(name).unwrap();
        match name {
            "sqlite" => assert!(target.impossible(&settings).unwrap().contains("single rows")),
            _ => assert_eq!(run(&*target, &settings, 2_001), 2_501, "{name}"),
        }
    }
}

#[test]
fn with_indexes_of_random_numbers_each_with_an_entry_a_row() {
    for &name in EMBEDDED {
        let target = target::find(name).unwrap();
        for (key, indexes) in [("session-offset", 3), ("uuid-v4", 1)] {
            let settings = small()
                .with(Setting::Durability, "delayed")
                .with(Setting::KeySource, "client")
                .with(Setting::Key, key)
                .with(Setting::Columns, "random")
                .with(Setting::Indexes, indexes);
            assert_eq!(run(&*target, &settings, 2_001), 2_501, "{name} {key} {indexes}");
        }
    }
}

#[test]
fn over_many_tables() {
    let target = target::find("onrush").unwrap();
    let settings = small().with(Setting::Durability, "delayed").with(Setting::Tables, 30);
    for driver in ["threads", "tasks"] {
        let settings = settings.clone().with(Setting::Driver, driver);
        assert_eq!(run(&*target, &settings, 2_001), 2_501, "{driver}");
    }
}

#[test]
fn keys_and_mixes_that_cannot_be_are_told_with_their_cure() {
    let target = target::find("onrush").unwrap();
    let reason = |settings: Settings| target.impossible(&settings).unwrap();
    let uuids = small().with(Setting::Key, "uuid-v4");
    assert!(reason(uuids.clone().with(Setting::KeySpread, "hot")).contains("key_source"));
    let random = small().with(Setting::Columns, "random");
    assert!(reason(random.with(Setting::Indexes, 1)).contains("key_source"));
    let client = small().with(Setting::KeySource, "client");
    assert!(reason(client.clone().with(Setting::Indexes, 1)).contains("columns"));
    assert!(reason(client.clone().with(Setting::KeySpread, "hot")).contains("uuid-v4"));
    assert!(reason(client.clone().with(Setting::RowsPerCommit, 10)).contains("one row"));
    let mixed = client.with(Setting::ReadsPer100Rows, 10);
    assert!(reason(mixed.clone().with(Setting::Tables, 2)).contains("one table"));
    assert!(reason(mixed.with(Setting::Driver, "tasks")).contains("threads"));
}

#[test]
fn durable_and_several_rows_a_commit() {
    for &name in EMBEDDED {
        let target = target::find(name).unwrap();
        assert_eq!(run(&*target, &small(), 101), 601, "{name}");
        let settings = small().with(Setting::RowsPerCommit, 10);
        assert_eq!(run(&*target, &settings, 403), 903, "{name}");
    }
}

/// Closes, checks twice, opens and compares.
fn check(name: &str, settings: &Settings) -> target::Checked {
    let target = target::find(name).unwrap();
    assert_eq!(target.impossible(settings), None, "{name}");
    let folder = tempfile::tempdir().unwrap();
    let mut instance = target.prepare(settings, folder.path()).unwrap();
    let preload = LoadOrder { rows: 2_500, step: Step::Preload };
    instance.load(preload, &Quiet).unwrap();
    instance.check(&Quiet).unwrap();
    let checked = instance.check(&Quiet).unwrap();
    let verdict = instance.verify(&Quiet).unwrap().unwrap();
    assert!(verdict.passed, "{name}: {:?}", verdict.faults);
    assert_eq!((checked.rows, verdict.rows_found), (2_500, 2_500), "{name}");
    assert!(checked.bytes > 2_500 * 143, "{name}: {checked:?}");
    checked
}

#[test]
fn those_with_a_check_of_their_own_run_it_on_the_closed_rows() {
    let settings = small().with(Setting::Operation, "check");
    for threads in [1, 3] {
        for switch in [Setting::CheckStreamPerFile, Setting::CheckOneBatch] {
            for reads in ["memory", "device"] {
                let settings = settings
                    .clone()
                    .with(Setting::CheckThreads, threads)
                    .with(switch, true)
                    .with(Setting::CheckReads, reads);
                check("onrush", &settings);
            }
        }
    }
    check("sqlite", &settings);
    let physical = settings.with(Setting::CheckDepth, "physical");
    check("onrush", &physical);
    check("redb", &physical);
}

#[test]
fn a_check_that_a_baseline_does_not_have_is_told_with_its_reason() {
    let check = small().with(Setting::Operation, "check");
    let reason =
        |name: &str, settings: &Settings| target::find(name).unwrap().impossible(settings).unwrap();
    assert!(reason("lmdb", &check).contains("no check"));
    let threads = check.clone().with(Setting::CheckThreads, 2);
    assert!(reason("sqlite", &threads).contains("one thread"));
    assert!(reason("redb", &check).contains("pages and their checksums only"));
    let device = check.with(Setting::CheckReads, "device");
    assert!(reason("sqlite", &device).contains("caches"));
}

#[test]
fn those_with_statistics_count_what_was_inserted() {
    let settings = small().with(Setting::Durability, "delayed");
    for (name, counter) in [
        ("sqlite", "CACHE_HITS"),
        ("lmdb", "TRANSACTIONS"),
        ("redb", "STORED_BYTES"),
        ("fjall", "MEMTABLE_BYTES"),
    ] {
        let target = target::find(name).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut instance = target.prepare(&settings, folder.path()).unwrap();
        let before = instance.statistics().unwrap();
        instance.load(LoadOrder { rows: 1_000, step: Step::Load }, &Quiet).unwrap();
        let counted = instance.statistics().unwrap().since(&before);
        let value = counted.counter(counter).unwrap();
        assert!(value >= 1_000.0, "{name}: {counter} is {value}");
        let sampled = instance.sampler().and_then(|mut sampler| sampler());
        assert_eq!(sampled.is_some(), name != "redb", "{name}");
    }
}

#[cfg(feature = "rocksdb")]
#[test]
fn rocksdb_tells_what_its_writes_waited_for() {
    let settings = small();
    let folder = tempfile::tempdir().unwrap();
    let mut instance = target::find("rocksdb").unwrap().prepare(&settings, folder.path()).unwrap();
    instance.load(LoadOrder { rows: 1_000, step: Step::Load }, &Quiet).unwrap();
    let counted = instance.statistics().unwrap();
    let log = counted.waits.iter().find(|wait| wait.name == "write_wal_time").unwrap();
    assert!(log.is_sampled && log.count > 0 && log.seconds > 0.0, "{log:?}");
    assert!(counted.counter(LOG_SYNCS).unwrap() > 0.0, "{counted:?}");
    assert!(counted.counter(LOG_BYTES).unwrap() >= 1_000.0 * 151.0, "{counted:?}");
}

#[test]
fn each_shows_its_version_and_what_it_was_configured_with() {
    for &name in EMBEDDED {
        let shown = target::find(name).unwrap().shown(&small()).unwrap();
        assert!(shown.version.contains('.'), "{name}: {}", shown.version);
        assert!(shown.settings.len() >= 2, "{name}");
    }
}

#[test]
fn what_a_target_cannot_do_is_known_before_it_is_tried() {
    let tasks = small().with(Setting::Driver, "tasks");
    let check = small().with(Setting::Operation, "check");
    let server = small().with(Setting::LoopIn, "server");
    for &name in EMBEDDED {
        let target = target::find(name).unwrap();
        assert_eq!(target.impossible(&tasks).is_some(), name != "onrush", "{name}");
        let has_full_check = matches!(name, "onrush" | "sqlite");
        assert_eq!(target.impossible(&check).is_none(), has_full_check, "{name}");
        assert!(target.impossible(&server).unwrap().contains("no server"), "{name}");
    }
    let null = target::find("null").unwrap();
    assert!(null.impossible(&small()).unwrap().contains("no disk"));
}

#[test]
fn a_target_that_does_not_exist_or_is_not_built_in_is_told_with_its_cure() {
    let message = target::find("sqllite").err().unwrap();
    assert!(message.contains("did you mean \"sqlite\"?"), "{message}");
    if let Err(message) = target::find("rocksdb") {
        assert!(message.contains("--features rocksdb"), "{message}");
    }
}

#[test]
fn the_load_generator_alone_inserts_nothing_and_has_nothing_to_compare() {
    let null = target::find("null").unwrap();
    let settings = small().with(Setting::Durability, "delayed");
    let folder = tempfile::tempdir().unwrap();
    let mut instance = null.prepare(&settings, folder.path()).unwrap();
    let order = LoadOrder { rows: 10_000, step: Step::Load };
    assert_eq!(instance.load(order, &Quiet).unwrap().commits, 10_000);
    assert_eq!(instance.verify(&Quiet).unwrap(), None);
}
