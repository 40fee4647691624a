//! The two lowest rungs of the shipped ladder, in a small size: with the handling of ascending keys
//! switched off all sessions insert into the last leaf, and with it each opens leaves of its own.

#![allow(clippy::unwrap_used)]

mod common;

use onrush_lab::study::{CaseOutcome, Size, shipped, table};

fn counted(case: &CaseOutcome, name: &str) -> f64 {
    let counters = &case.repeats[0].counters;
    counters.iter().find(|counter| counter.name == name).map_or(0.0, |counter| counter.value)
}

#[test]
fn sessions_share_the_last_leaf_or_open_leaves_of_their_own() {
    let mut study = shipped::study("ladder", Size::Quick).unwrap();
    for small in [
        "rows_per_session=100",
        "preload_rows=2k",
        "cache_bytes=64MiB",
        "log_capacity_bytes=256MiB",
    ] {
        study.set_everywhere(small).unwrap();
    }
    study.parts.truncate(2);
    let result = common::run(&study, &[]);
    let [shared, blocks] = &result.cases[..] else { panic!("{} cases", result.cases.len()) };
    assert_eq!((shared.repeats[0].rows, blocks.repeats[0].rows), (2400, 2400));
    assert!(counted(shared, "SPLITS_BLOCK_GRANT") < 1.0);
    assert!(counted(shared, "SPLITS_RIGHT_EDGE") > 0.0);
    assert!(counted(blocks, "SPLITS_BLOCK_GRANT") >= 24.0, "each session opens one at least");
    let told = table::text(&result);
    assert!(told.contains("last page: Ascending keys") && told.contains("[PAGELATCH_EX"), "{told}");
}
