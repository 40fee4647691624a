//! What baselines said of themselves in recorded runs, and the verdict on it. Seconds are those of 24
//! sessions, scaled to runs of ten seconds; names are as the targets gave them.

use super::tests::{AROUND, delayed, planted};
use super::*;
use crate::study::outcome::CaseOutcome;
use crate::target::record::WaitRecord;

/// A case of a baseline with waits of one group each: group, name, seconds.
fn said(target: &str, mut case: CaseOutcome, cpu: f64, all: &[(&str, &str, f64)]) -> Verdict {
    case.target = target.into();
    case.repeats[0].cpu_percent = cpu;
    let wait = |(group, name, seconds): &(&str, &str, f64)| WaitRecord {
        group: (*group).into(),
        name: (*name).into(),
        count: 1000,
        seconds: *seconds,
        is_sampled: true,
        ..WaitRecord::default()
    };
    case.repeats[0].waits = all.iter().map(wait).collect();
    of(&case, AROUND).unwrap()
}

const POSTGRESQL: &[(&str, &str, f64)] = &[
    ("LWLock", "WALWrite", 174.0),
    ("CPU", "running", 12.4),
    ("LWLock", "BufferContent", 10.6),
    ("IO", "WALSync", 8.0),
    ("LWLock", "WALInsert", 6.4),
];

#[test]
fn postgresql_that_waits_for_its_log_is_bound_by_the_sync_time() {
    let verdict = said("postgresql", planted(), 70.0, POSTGRESQL);
    assert_eq!(verdict.cause, Cause::SyncTime);
    assert!(verdict.text().contains("WALWrite 72 %"), "{}", verdict.text());
    // Newer versions write the same name in another way.
    let newer = [("LWLock", "WALWrite", 174.0)];
    let older = [("LWLock", "WalWrite", 174.0)];
    for names in [newer, older] {
        assert_eq!(said("postgresql", planted(), 70.0, &names).cause, Cause::SyncTime);
    }
}

#[test]
fn postgresql_without_syncs_is_bound_by_pages_locks_or_processors() {
    let of = |waits: &[(&str, &str, f64)]| said("postgresql", delayed(planted()), 60.0, waits);
    let pages = of(&[("LWLock", "BufferContent", 85.0), ("CPU", "running", 25.0)]);
    assert_eq!(pages.cause, Cause::LeafLatch);
    assert!(pages.change.contains("rows per statement"), "its key is spread: {}", pages.change);
    assert_eq!(of(&[("CPU", "running", 90.0)]).cause, Cause::Processor);
    assert_eq!(of(&[("Lock", "extend", 90.0)]).cause, Cause::StructureLatch);
    assert_eq!(of(&[("LWLock", "XactGroupUpdate", 90.0)]).cause, Cause::StructureLatch);
    assert_eq!(of(&[("Lock", "transactionid", 90.0)]).cause, Cause::Conflict);
}

const MARIADB: &[(&str, &str, f64)] = &[
    ("processlist", "Updating status", 172.0),
    ("processlist", "Commit", 22.0),
    ("processlist", "Update", 7.1),
    ("wait/io/file", "innodb/innodb_data_file", 2.3),
    ("wait/io/file", "innodb/innodb_log_file", 9.0),
];

#[test]
fn mariadb_in_the_stages_of_a_commit_is_bound_by_the_sync_time_or_the_processors() {
    let durable = said("mariadb", planted(), 77.8, MARIADB);
    assert_eq!(durable.cause, Cause::SyncTime);
    assert!(durable.text().contains("Updating status 72 %"), "{}", durable.text());
    assert_eq!(said("mariadb", planted(), 95.9, MARIADB).cause, Cause::Processor);
    assert_eq!(said("mariadb", delayed(planted()), 91.9, MARIADB).cause, Cause::Processor);
}

#[test]
fn mariadbs_log_file_and_data_files_are_told_apart() {
    let of = |name| said("mariadb", planted(), 30.0, &[("wait/io/file", name, 90.0)]).cause;
    assert_eq!(of("innodb/innodb_log_file"), Cause::SyncTime);
    assert_eq!(of("innodb/innodb_data_file"), Cause::Device);
    let mutex = [("wait/synch/mutex", "innodb/trx_sys_mutex", 90.0)];
    assert_eq!(said("mariadb", planted(), 30.0, &mutex).cause, Cause::StructureLatch);
}

#[test]
fn rocksdb_waits_for_the_leader_of_its_writes() {
    let waits = [
        ("perf", "write_pre_and_post_process_time", 190.0),
        ("perf", "write_wal_time", 9.0),
        ("perf", "db_mutex_lock_nanos", 1.0),
    ];
    assert_eq!(said("rocksdb", planted(), 20.0, &waits).cause, Cause::SyncTime);
    assert_eq!(said("rocksdb", delayed(planted()), 60.0, &waits).cause, Cause::OneWriter);
    let stalled = [("perf", "write_delay_time", 120.0)];
    assert_eq!(said("rocksdb", delayed(planted()), 60.0, &stalled).cause, Cause::Device);
}

#[test]
fn sql_server_has_the_names_that_onrush_took_over() {
    let of = |name| said("sqlserver", planted(), 30.0, &[("wait", name, 90.0)]).cause;
    assert_eq!(of("WRITELOG"), Cause::SyncTime);
    assert_eq!(of("PAGELATCH_EX"), Cause::LeafLatch);
    assert_eq!(of("PAGEIOLATCH_EX"), Cause::LeafReads);
    assert_eq!(of("SOS_SCHEDULER_YIELD"), Cause::Processor);
}

#[test]
fn embedded_stores_that_tell_no_waits_are_judged_by_their_syncs() {
    for target in ["sqlite", "lmdb", "redb"] {
        let mut case = planted();
        case.repeats[0].commits_per_sync = Some(1.0);
        assert_eq!(said(target, case, 8.0, &[]).cause, Cause::OneWriter, "{target}");
    }
    let mut shared = planted();
    shared.repeats[0].share_of_bound = Some(0.7);
    assert_eq!(said("fjall", shared, 8.0, &[]).cause, Cause::SyncTime);
}
