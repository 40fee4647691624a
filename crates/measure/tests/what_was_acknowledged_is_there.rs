//! Every load ends with the proof that the acknowledged rows are there, whichever way it was run.

#![allow(clippy::unwrap_used)]

use onrush::{Durability, KeyStrategy, Options};
use onrush_measure::{CaseResult, CaseSettings, Driver, Leave, Placement, Quiet, run_case};

fn small(folder: &std::path::Path) -> CaseSettings {
    CaseSettings {
        rows: Some(2_003),
        sessions: 4,
        placement: Placement {
            folder: Some(folder.join("db")),
            data_files: 1,
            ..Placement::default()
        },
        engine: Options { leaf_memory_bytes: 16 << 20, ..Options::small() },
        ..CaseSettings::default()
    }
}

fn run(change: impl FnOnce(&mut CaseSettings)) -> CaseResult {
    let outer = tempfile::tempdir().unwrap();
    let mut settings = small(outer.path());
    change(&mut settings);
    let result = run_case(&settings, &Quiet).unwrap();
    let verdict = result.verification.as_ref().unwrap();
    assert!(verdict.passed, "{settings:?}: {:?}", verdict.faults);
    assert_eq!(result.rows, settings.rows.unwrap());
    assert_eq!(verdict.rows_found, settings.rows.unwrap() + settings.preload_rows);
    assert!(!outer.path().join("db").exists(), "the folder is removed");
    result
}

#[test]
fn with_every_key_strategy() {
    for key in KeyStrategy::ALL {
        run(|settings| settings.key = key);
    }
}

#[test]
fn with_threads_and_tasks_durable_and_delayed() {
    for driver in [Driver::Threads, Driver::Tasks] {
        for durability in [Durability::Durable, Durability::Delayed] {
            for rows_per_commit in [1, 10] {
                let result = run(|settings| {
                    settings.driver = driver;
                    settings.durability = durability;
                    settings.rows_per_commit = rows_per_commit;
                });
                assert_eq!(result.share_of_bound.is_some(), durability == Durability::Durable);
                assert!(result.commits <= 2_003 / rows_per_commit + 4);
            }
        }
    }
}

#[test]
fn with_more_sessions_than_rows() {
    run(|settings| {
        settings.sessions = 64;
        settings.rows = Some(10);
    });
}

#[test]
fn after_a_preload_and_without_closing() {
    run(|settings| {
        settings.preload_rows = 1_000;
        settings.leave = Leave::Drop;
    });
}

#[test]
fn a_kept_database_is_named_and_left() {
    let outer = tempfile::tempdir().unwrap();
    let mut settings = small(outer.path());
    settings.placement.keep = true;
    let result = run_case(&settings, &Quiet).unwrap();
    assert_eq!(result.kept_folder.as_deref(), outer.path().join("db").to_str());
    assert!(outer.path().join("db").is_dir());
}

#[test]
fn the_numbers_have_their_plain_names_in_json() {
    let result = run(|_| {});
    let json = serde_json::to_value(&result).unwrap();
    for name in [
        "rows_per_s",
        "elapsed_s",
        "cpu_percent",
        "log_mb_per_s",
        "log_bytes_per_row",
        "rows_per_commit",
        "commits_per_sync",
        "share_of_bound",
        "sync_time_us",
        "commit_latency_us",
    ] {
        assert!(!json[name].is_null(), "{name}");
    }
    for percentile in ["p50", "p99", "p999"] {
        assert!(json["commit_latency_us"][percentile].is_number(), "{percentile}");
    }
}

#[test]
fn a_failed_comparison_cannot_be_overlooked() {
    let mut result = run(|_| {});
    assert!(result.passed() && onrush_measure::report::failure(&result).is_none());
    let verdict = result.verification.as_mut().unwrap();
    verdict.passed = false;
    verdict.faults.push("3 acknowledged rows are missing".into());
    assert!(!result.passed());
    let failure = onrush_measure::report::failure(&result).unwrap();
    assert!(failure.contains("VERIFICATION FAILED") && failure.contains("3 acknowledged rows"));
    assert!(onrush_measure::report::table(&result).contains("NO, SEE BELOW"));
}
