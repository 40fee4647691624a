//! The shipped study of the check in a small size: every option of Onrush and each baseline in this
//! build, bytes a second beside rows a second, rows compared afterwards, and the report.

#![allow(clippy::unwrap_used)]

mod common;

use onrush_lab::page;
use onrush_lab::study::{Size, Study, StudyResult, shipped, table};

/// The study as it is shipped, with few rows and few threads.
fn run() -> StudyResult {
    let text = shipped::source("check")
        .unwrap()
        .replace("\"500k\"", "3000")
        .replace("\"256MiB\"", "\"32MiB\"")
        .replace("check_threads = [1, 2, 4, 8, 16, 32]", "check_threads = [1, 2]\nsessions = 4");
    let study = Study::read(&text, "check", Size::Quick).unwrap();
    common::run(&study, &["onrush", "sqlite", "redb"])
}

#[test]
fn every_case_says_rows_and_bytes_a_second_and_the_page_shows_them() {
    let result = run();
    assert_eq!(result.cases.len(), 9 * 2 + 2);
    for case in &result.cases {
        assert_eq!((&case.skipped, &case.failed), (&None, &None), "{case:?}");
        let run = &case.repeats[0];
        assert_eq!((run.rows, run.commits), (3000, 0), "{}", case.target);
        assert!(run.gb_per_s.unwrap() > 0.0 && run.rows_per_s > 0.0);
        let verification = run.verification.as_ref().unwrap();
        assert!(verification.passed && verification.rows_found == 3000, "{verification:?}");
        assert!(case.verdict.as_ref().unwrap().contains("GB for each second of a processor"));
    }
    assert!(result.device_read_mb_per_s.unwrap() > 0.0);
    let text = table::text(&result);
    assert!(text.contains("GB/s") && !text.contains("c/sync"), "{text}");
    assert!(text.contains("full: 0.50 GB/s, at best"), "{text}");
    let page = page::html(&result);
    for words in ["Onrush checks", "SQLite integrity_check", "physical only, stream and batch"] {
        assert!(page.contains(words), "{words} is not on the page");
    }
    assert!(!page.contains("commits per sync"));
}
