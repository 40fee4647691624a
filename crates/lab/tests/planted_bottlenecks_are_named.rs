//! Bottlenecks made on purpose, each by a run of its own in a small size, and the verdict on it.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::{Mutex, PoisonError};

use onrush_lab::study::{CaseOutcome, Size, Study};
use onrush_lab::target::record::WaitRecord;

/// One at a time: two of them would take the processors from each other, and each would be their bound.
static ALONE: Mutex<()> = Mutex::new(());

/// One case with these settings over small ones.
fn case(settings: &str) -> CaseOutcome {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let text = format!(
        "name = \"planted\"\ntitle = \"Planted\"\ntargets = [\"onrush\"]\n[settings]\n\
         prefault_leaf_memory = false\n{settings}\n[chart]\nx = \"target\"\n"
    );
    let study = Study::read(&text, "planted.toml", Size::Quick).unwrap();
    common::run(&study, &[]).cases.remove(0)
}

fn waited_s(case: &CaseOutcome, name: &str) -> f64 {
    let waits = &case.repeats[0].waits;
    waits.iter().find(|wait| wait.name == name).map_or(0.0, |wait| wait.seconds)
}

fn assert_verdict(case: &CaseOutcome, cause: &str) {
    let told = case.verdict.as_deref().unwrap();
    assert!(told.starts_with(cause), "{told}\n{:#?}", case.repeats[0].waits);
}

fn assert_one_of(case: &CaseOutcome, causes: &[&str]) {
    let told = case.verdict.as_deref().unwrap();
    assert!(
        causes.iter().any(|cause| told.starts_with(cause)),
        "{told}\n{:#?}",
        case.repeats[0].waits
    );
}

#[test]
fn one_durable_session_waits_for_its_syncs() {
    let case = case("sessions = 1\nrows = 200\ncache_bytes = \"16MiB\"");
    assert_verdict(&case, "Bound by the time of a durable write");
    assert!(case.verdict.unwrap().contains("more sessions, whose commits share a sync"));
}

#[test]
fn tasks_wait_for_the_log_as_their_sessions_do() {
    let case = case("sessions = 64\ndriver = \"tasks\"\nrows = 20000\ncache_bytes = \"16MiB\"");
    assert_verdict(&case, "Bound by the time of a durable write");
    // Each of the 64 sessions waits nearly all the time.
    let all = 64.0 * case.repeats[0].elapsed_s;
    let waited = waited_s(&case, "WRITELOG");
    assert!((0.5 * all..1.02 * all).contains(&waited), "{waited} of {all}");
}

#[test]
fn a_front_that_nobody_drains_is_bound_by_the_drain() {
    let case = case(
        "sessions = 2\nrows = 2000\ndurability = \"delayed\"\ncache_bytes = \"64MiB\"\nfront = true\n\
         key = \"uuid-v4\"\ndrain_interval_ms = 5000",
    );
    assert_verdict(&case, "Bound by the drain");
}

#[test]
fn a_table_much_larger_than_its_memory_is_bound_by_leaves_and_memory() {
    let case = case(
        "sessions = 4\nrows = 120000\ndurability = \"delayed\"\nkey = \"uuid-v4\"\n\
         cache_bytes = \"4MiB\"\npast_memory = \"off\"",
    );
    let counters = &case.repeats[0].counters;
    assert!(counters.iter().any(|one| one.name == "EVICTIONS" && one.value > 0.0));
    assert_verdict(&case, "Bound by memory for leaves");
}

#[test]
fn a_table_in_stocks_is_told_no_larger_cache() {
    let case = case(
        "sessions = 4\nrows = 120000\ndurability = \"delayed\"\nkey = \"uuid-v4\"\n\
         cache_bytes = \"4MiB\"",
    );
    let counters = &case.repeats[0].counters;
    assert!(counters.iter().any(|one| one.name == "RANGE_FLUSHES" && one.value > 0.0));
    let told = case.verdict.unwrap();
    assert!(!told.contains("cache_bytes"), "{told}");
}

#[test]
fn a_narrow_window_of_delayed_commits_is_the_bound() {
    let case = case(
        "sessions = 4\nrows = 50000\ndurability = \"delayed\"\ndelayed_window_bytes = 4096\n\
         cache_bytes = \"64MiB\"",
    );
    assert_verdict(&case, "Bound by the window of delayed commits");
    assert!(waited_s(&case, "DELAYED_WINDOW") > 0.0);
}

#[test]
fn leaves_that_must_be_read_again_are_bound_by_memory_and_the_reads_are_the_evidence() {
    let case = case(
        "sessions = 4\npreload_rows = 40000\nrows = 4000\ndurability = \"delayed\"\n\
         key = \"uuid-v4\"\ncache_bytes = \"2MiB\"\npast_memory = \"off\"",
    );
    assert_verdict(&case, "Bound by memory for leaves");
    assert!(waited_s(&case, "PAGEIOLATCH_EX") > 0.0);
    assert!(case.verdict.unwrap().contains("PAGEIOLATCH_EX"));
}

/// However many processors there are: few meet, and spin, or many, and wait for the latch.
#[test]
fn sessions_that_meet_on_the_last_leaf_are_told_to_take_leaves_of_their_own() {
    let case = case(
        "sessions = 24\nrows = 500000\ndurability = \"delayed\"\nkey = \"identity\"\n\
         sequential_keys = \"shared-edge\"\ncache_bytes = \"256MiB\"",
    );
    let told = case.verdict.as_deref().unwrap();
    assert!(told.contains("Try `sequential_keys = \"blocks\"`"), "{told}");
    assert!(told.contains("% of the rows met another at their leaf"), "{told}");
    let is_leaf = |wait: &&WaitRecord| wait.group == "latch" && wait.name == "LEAF";
    let leaf = case.repeats[0].waits.iter().find(is_leaf).unwrap();
    assert!(leaf.count > 1000, "{leaf:#?}");
}

/// Sessions that wait for nothing, neither for the disk nor for the window. The case, and the share of
/// the processors that they had of those that they could use: other programs may have taken them, and
/// then the case is run again, a few times.
fn busy_case(sessions: u32) -> (CaseOutcome, f64) {
    let settings = format!(
        "sessions = {sessions}\nrows = 1000000\ndurability = \"delayed\"\ncache_bytes = \"512MiB\"\n\
         log_capacity_bytes = \"1GiB\"\ndelayed_window_bytes = \"1GiB\"\ndelayed_window_ms = 60000"
    );
    let processors = std::thread::available_parallelism().unwrap().get() as f64;
    let run = || {
        let case = case(&settings);
        let used = case.repeats[0].cpu_s / case.repeats[0].elapsed_s;
        let queued = waited_s(&case, "CPU_QUEUE") / case.repeats[0].elapsed_s / f64::from(sessions);
        let share = used / processors.min(f64::from(sessions)) - queued;
        (case, share)
    };
    let first = run();
    (0..2).fold(first, |best, _| if best.1 > 0.9 { best } else { run() })
}

#[test]
fn one_session_that_waits_for_nothing_is_bound_by_being_alone() {
    let (case, share) = busy_case(1);
    let is_lone_processor = std::thread::available_parallelism().unwrap().get() == 1;
    match share > 0.9 && !is_lone_processor {
        true => assert_verdict(&case, "Bound by the number of sessions"),
        // Others had the processor, and it is told that it was the bound, if anything was.
        false => assert_one_of(
            &case,
            &["Bound by the processors", "No single bound", "Bound by the number"],
        ),
    }
}

#[test]
fn many_sessions_that_wait_for_nothing_are_bound_by_the_processors() {
    let (case, share) = busy_case(64);
    match share > 0.6 {
        true => assert_verdict(&case, "Bound by the processors"),
        // Others had them: whoever held a place did not run.
        false => assert_one_of(&case, &["Bound by the processors", "Bound by places inside"]),
    }
}
