//! Bottlenecks made on purpose, each by a run of its own in a small size, and the verdict on it.

#![allow(clippy::unwrap_used)]

mod common;

use onrush_lab::study::{CellOutcome, Size, Study};

/// One cell with these settings over small ones.
fn cell(settings: &str) -> CellOutcome {
    let text = format!(
        "name = \"planted\"\ntitle = \"Planted\"\ntargets = [\"onrush\"]\n[settings]\n\
         prefault_leaf_memory = false\n{settings}\n[chart]\nx = \"target\"\n"
    );
    let study = Study::read(&text, "planted.toml", Size::Quick).unwrap();
    common::run(&study, &[]).cells.remove(0)
}

fn waited_s(cell: &CellOutcome, name: &str) -> f64 {
    let waits = &cell.repeats[0].waits;
    waits.iter().find(|wait| wait.name == name).map_or(0.0, |wait| wait.seconds)
}

fn assert_verdict(cell: &CellOutcome, cause: &str) {
    let told = cell.verdict.as_deref().unwrap();
    assert!(told.starts_with(cause), "{told}\n{:#?}", cell.repeats[0].waits);
}

#[test]
fn one_durable_session_waits_for_its_syncs() {
    let cell = cell("sessions = 1\nrows = 200\ncache_bytes = \"16MiB\"");
    assert_verdict(&cell, "Bound by the time of a durable write");
    assert!(cell.verdict.unwrap().contains("more sessions, whose commits share a sync"));
}

#[test]
fn tasks_wait_for_the_log_as_their_sessions_do() {
    let cell = cell("sessions = 64\ndriver = \"tasks\"\nrows = 20000\ncache_bytes = \"16MiB\"");
    assert_verdict(&cell, "Bound by the time of a durable write");
    // Each of the 64 sessions waits nearly all the time.
    let all = 64.0 * cell.repeats[0].elapsed_s;
    let waited = waited_s(&cell, "WRITELOG");
    assert!((0.5 * all..1.02 * all).contains(&waited), "{waited} of {all}");
}

#[test]
fn a_front_that_nobody_drains_is_bound_by_the_drain() {
    let cell = cell(
        "sessions = 2\nrows = 2000\ndurability = \"delayed\"\ncache_bytes = \"64MiB\"\nfront = true\n\
         key = \"uuid-v4\"\ndrain_interval_ms = 5000",
    );
    assert_verdict(&cell, "Bound by the drain");
}

#[test]
fn a_table_much_larger_than_its_memory_is_bound_by_leaves_and_memory() {
    let cell = cell(
        "sessions = 4\nrows = 120000\ndurability = \"delayed\"\nkey = \"uuid-v4\"\n\
         cache_bytes = \"4MiB\"",
    );
    let counters = &cell.repeats[0].counters;
    assert!(counters.iter().any(|one| one.name == "EVICTIONS" && one.value > 0.0));
    assert_verdict(&cell, "Bound by memory for leaves");
}
