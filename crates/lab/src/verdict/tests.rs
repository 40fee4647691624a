//! Each bound is planted into an outcome, and the verdict must name it.

use onrush_measure::result::Percentiles;

use super::*;
use crate::study::outcome::{DeviceUse, Repeat};
use crate::study::{Setting, Settings};
use crate::target::record::{CounterRecord, PhaseRecord, WaitRecord};

pub(super) const AROUND: Surroundings =
    Surroundings { cpus: 8, device_write_mb_per_s: Some(1000.0), device_read_mb_per_s: None };

/// A load of 24 durable sessions for 10 seconds that waited for nothing and used half a processor.
pub(super) fn planted() -> CaseOutcome {
    let repeat = Repeat {
        rows: 1_000_000,
        commits: 1_000_000,
        elapsed_s: 10.0,
        rows_per_s: 100_000.0,
        commits_per_s: 100_000.0,
        cpu_percent: 6.0,
        cpu_s: 4.8,
        commits_per_sync: Some(12.0),
        share_of_bound: Some(0.1),
        commit_latency_us: Percentiles::default(),
        ..Repeat::default()
    };
    let mut case = CaseOutcome {
        target: "onrush".into(),
        settings: Settings::default(),
        repeats: vec![repeat],
        ..CaseOutcome::default()
    };
    case.conclude();
    case
}

pub(super) fn delayed(mut case: CaseOutcome) -> CaseOutcome {
    case.settings.set(Setting::Durability, "delayed".into());
    let repeat = &mut case.repeats[0];
    (repeat.commits_per_sync, repeat.share_of_bound) = (None, None);
    case.not_synchronous = false;
    case
}

/// Of the 240 seconds of all sessions.
fn waits(mut case: CaseOutcome, waits: &[(&str, f64)]) -> CaseOutcome {
    case.repeats[0].waits = waits
        .iter()
        .map(|(name, seconds)| WaitRecord {
            group: "wait".into(),
            name: (*name).into(),
            count: 1000,
            seconds: *seconds,
            ..WaitRecord::default()
        })
        .collect();
    case
}

fn verdict(case: &CaseOutcome) -> Verdict {
    of(case, AROUND).unwrap()
}

#[test]
fn commits_that_poll_are_bound_by_the_sync_time_though_the_processors_are_busy() {
    let mut case = waits(planted(), &[("WRITELOG", 230.0)]);
    case.repeats[0].cpu_percent = 90.0;
    assert_eq!(verdict(&case).cause, Cause::Processor);
    let group = "spin".into();
    let looks = WaitRecord {
        group,
        name: onrush_waits::Spin::CommitGroup.name().into(),
        count: 9,
        ..WaitRecord::default()
    };
    case.repeats[0].waits.push(looks);
    assert_eq!(verdict(&case).cause, Cause::SyncTime);
}

#[test]
fn a_session_with_a_processor_of_its_own_is_bound_by_its_sync_however_busy_the_log_writer_is() {
    let mut case = waits(planted(), &[("WRITELOG", 9.9)]);
    case.settings.set(Setting::Sessions, 1.into());
    case.repeats[0].cpu_percent = 12.0; // of eight: as much as one session could use
    assert_eq!(verdict(&case).cause, Cause::SyncTime);
}

#[test]
fn sessions_sent_to_one_leaf_are_told_so_where_the_processors_are_the_bound() {
    let mut case = waits(delayed(planted()), &[("ADMISSION", 150.0)]);
    case.repeats[0].cpu_percent = 95.0;
    case.settings.set(Setting::SequentialKeys, "shared-edge".into());
    let leaf = WaitRecord {
        group: "latch".into(),
        name: onrush_waits::LatchClass::Leaf.name().into(),
        count: 250_000,
        ..WaitRecord::default()
    };
    case.repeats[0].waits.push(leaf);
    let told = verdict(&case);
    assert_eq!(told.cause, Cause::Processor);
    assert!(
        told.text().contains("25.0 % of the rows met another at their leaf"),
        "{}",
        told.text()
    );
    assert!(told.change.contains("sequential_keys = \"blocks\""), "{}", told.change);
}

#[test]
fn one_durable_session_is_bound_by_the_sync_time_and_told_to_bring_more_sessions() {
    let mut case = waits(planted(), &[("WRITELOG", 9.1), ("LOG_COMPLETION", 100.0)]);
    case.settings.set(Setting::Sessions, 1.into());
    case.repeats[0].commits_per_sync = Some(1.0);
    case.repeats[0].share_of_bound = Some(0.95);
    let verdict = verdict(&case);
    assert_eq!(verdict.cause, Cause::SyncTime);
    let text = verdict.text();
    assert!(text.contains("WRITELOG 91 % of the session's time"), "{text}");
    assert!(text.contains("95.0 % of the bound N/F"), "{text}");
    assert!(text.contains("more sessions, whose commits share a sync"), "{text}");
}

#[test]
fn sessions_of_a_delayed_load_that_wait_once_for_its_end_are_not_bound_by_that() {
    let case = waits(delayed(planted()), &[("WRITELOG", 60.0)]);
    let ended = verdict(&case);
    assert_eq!(ended.cause, Cause::Unknown);
    assert!(!ended.text().contains("WRITELOG"), "{}", ended.text());
    let latched = waits(case, &[("WRITELOG", 60.0), ("PAGELATCH_EX", 30.0)]);
    assert_eq!(verdict(&latched).cause, Cause::LeafLatch);
}

#[test]
fn delayed_durability_is_not_proposed_to_who_has_it() {
    let baseline = |mut case: CaseOutcome| {
        case.target = "mariadb".into();
        verdict(&waits(case, &[("innodb/innodb_log_file", 90.0)]))
    };
    let (durable, delayed) = (baseline(planted()), baseline(delayed(planted())));
    assert_eq!((&durable.cause, &delayed.cause), (&Cause::SyncTime, &Cause::SyncTime));
    assert!(durable.change.contains("delayed durability"), "{}", durable.change);
    assert!(!delayed.change.contains("delayed durability"), "{}", delayed.change);
}

#[test]
fn a_small_log_ring_is_named() {
    let case = waits(delayed(planted()), &[("LOGBUFFER", 150.0), ("ADMISSION", 40.0)]);
    let verdict = verdict(&case);
    assert_eq!(verdict.cause, Cause::LogBuffer);
    assert!(verdict.text().contains("LOGBUFFER 62 %"), "{}", verdict.text());
}

#[test]
fn a_shared_edge_is_named_with_the_setting_that_ends_it() {
    let mut case = waits(delayed(planted()), &[("PAGELATCH_EX", 120.0), ("ADMISSION", 90.0)]);
    case.settings.set(Setting::SequentialKeys, "shared-edge".into());
    assert_eq!(verdict(&case).cause, Cause::LeafLatch);
    assert!(verdict(&case).change.contains("sequential_keys = \"blocks\""));
    case.settings.set(Setting::SequentialKeys, "blocks".into());
    case.settings.set(Setting::Key, "identity".into());
    assert!(verdict(&case).change.contains("session-offset"));
    case.settings.set(Setting::Key, "session-offset".into());
    assert!(!verdict(&case).change.contains("session-offset"), "it has that key already");
}

#[test]
fn waits_of_the_same_meaning_count_together() {
    let parts = [("PAGELATCH_EX", 40.0), ("PAGELATCH_SH", 40.0), ("DELAYED_WINDOW", 60.0)];
    assert_eq!(verdict(&waits(delayed(planted()), &parts)).cause, Cause::LeafLatch);
}

#[test]
fn too_little_memory_is_told_from_cold_leaves() {
    let reads = [("PAGEIOLATCH_EX", 100.0), ("FRAME_FREE", 50.0)];
    let mut case = waits(delayed(planted()), &reads);
    assert_eq!(verdict(&case).cause, Cause::LeafReads);
    let evictions = CounterRecord { name: "EVICTIONS".into(), value: 9.0, ..Default::default() };
    case.repeats[0].counters.push(evictions);
    assert_eq!(verdict(&case).cause, Cause::Memory);
    case.repeats[0].waits[0].name = "LATCH_EX".into();
    assert_eq!(verdict(&case).cause, Cause::Memory);
    let frames = waits(delayed(planted()), &[("FRAME_FREE", 100.0)]);
    assert_eq!(verdict(&frames).cause, Cause::Memory);
    assert!(verdict(&frames).change.contains("cache_bytes"));
}

#[test]
fn random_keys_past_memory_are_told_of_stocks() {
    let mut case = waits(delayed(planted()), &[("PAGEIOLATCH_EX", 100.0)]);
    case.settings.set(Setting::PastMemory, "off".into());
    assert!(!verdict(&case).change.contains("past_memory"), "its keys are in order");
    case.settings.set(Setting::Key, "uuid-v4".into());
    assert!(verdict(&case).change.contains("past_memory"));
    case.settings.set(Setting::PastMemory, "auto".into());
    assert!(!verdict(&case).change.contains("past_memory"), "it has them already");
}

#[test]
fn a_larger_cache_is_no_advice_for_a_table_that_twice_the_memory_would_not_hold() {
    let mut case = waits(delayed(planted()), &[("PAGEIOLATCH_EX", 100.0)]);
    let table_bytes = case.repeats[0].rows * onrush_measure::classic_table::CLASSIC_ROW_BYTES;
    case.settings.set(Setting::CacheBytes, (table_bytes / 2).into());
    assert!(verdict(&case).change.contains("cache_bytes"));
    case.settings.set(Setting::CacheBytes, (table_bytes / 2 - 1).into());
    assert!(!verdict(&case).change.contains("cache_bytes"));
    case.settings.set(Setting::Key, "uuid-v4".into());
    case.settings.set(Setting::PastMemory, "off".into());
    assert!(!verdict(&case).change.contains("cache_bytes"));
}

#[test]
fn reads_of_stocks_are_the_bound_unless_those_who_were_woken_wait_for_a_processor() {
    let mut case = waits(delayed(planted()), &[("STOCK_READ", 130.0)]);
    assert_eq!(verdict(&case).cause, Cause::StockReads);
    assert!(!verdict(&case).change.contains("cache_bytes"));
    case.repeats[0].cpu_percent = 95.0;
    assert_eq!(verdict(&case).cause, Cause::Processor);
    case.repeats[0].device = Some(DeviceUse { read_mb_per_s: 1900.0, ..DeviceUse::default() });
    let around = Surroundings { device_read_mb_per_s: Some(2000.0), ..AROUND };
    assert_eq!(of(&case, around).unwrap().cause, Cause::StockReads);
}

#[test]
fn a_full_front_is_bound_by_what_empties_it() {
    let verdict = verdict(&waits(delayed(planted()), &[("FRONT_FULL", 130.0)]));
    assert_eq!(verdict.cause, Cause::Flushes);
    assert!(verdict.text().contains("flushes and compactions"), "{}", verdict.text());
}

#[test]
fn a_log_that_checkpoints_do_not_free_is_named() {
    let parts = [("LOGSPACE", 40.0), ("CHECKPOINT_LAG", 60.0), ("ADMISSION", 30.0)];
    let verdict = verdict(&waits(delayed(planted()), &parts));
    assert_eq!(verdict.cause, Cause::LogSpace);
    assert!(verdict.change.contains("log_capacity_bytes"));
}

#[test]
fn a_narrow_window_of_delayed_commits_is_named() {
    let verdict = verdict(&waits(delayed(planted()), &[("DELAYED_WINDOW", 200.0)]));
    assert_eq!(verdict.cause, Cause::DelayedWindow);
    assert!(verdict.change.contains("delayed_window_ms"));
}

#[test]
fn busy_processors_are_named_with_the_phase_that_takes_most() {
    let mut case = waits(delayed(planted()), &[("ADMISSION", 200.0)]);
    case.repeats[0].cpu_percent = 97.0;
    case.repeats[0].phases = vec![
        PhaseRecord { name: "SEEK".into(), seconds: 30.0, ..PhaseRecord::default() },
        PhaseRecord { name: "PLACE".into(), seconds: 10.0, ..PhaseRecord::default() },
        PhaseRecord { name: "IDLE".into(), seconds: 90.0, is_idle: true, ..Default::default() },
    ];
    let verdict = verdict(&case);
    assert_eq!(verdict.cause, Cause::Processor);
    assert!(verdict.text().contains("75 %, in the phase SEEK"), "{}", verdict.text());
    assert!(verdict.change.contains("more rows per statement"));
}

#[test]
fn processors_that_are_not_busy_are_not_blamed_for_admission() {
    let case = waits(delayed(planted()), &[("ADMISSION", 200.0)]);
    assert_eq!(verdict(&case).cause, Cause::Places);
    let queued = [("ADMISSION", 150.0), ("CPU_QUEUE", 50.0)];
    assert_eq!(verdict(&waits(case, &queued)).cause, Cause::Processor);
}

#[test]
fn durable_commits_on_busy_processors_are_bound_by_them_until_the_bound_is_near() {
    let mut case = waits(planted(), &[("WRITELOG", 200.0)]);
    case.repeats[0].cpu_percent = 95.0;
    assert_eq!(verdict(&case).cause, Cause::Processor);
    case.repeats[0].share_of_bound = Some(0.8);
    assert_eq!(verdict(&case).cause, Cause::SyncTime);
}

#[test]
fn fewer_sessions_than_processors_are_told_so() {
    let mut case = delayed(planted());
    case.settings.set(Setting::Sessions, 2.into());
    case.repeats[0].cpu_percent = 24.0;
    assert_eq!(verdict(&case).cause, Cause::FewSessions);
}

#[test]
fn a_baseline_that_commits_one_transaction_a_sync_has_one_writer() {
    let mut case = planted();
    case.target = "lmdb".into();
    case.repeats[0].commits_per_sync = Some(1.0);
    assert_eq!(verdict(&case).cause, Cause::OneWriter);
    let mut case = delayed(planted());
    case.target = "lmdb".into();
    case.repeats[0].cpu_percent = 12.0;
    assert_eq!(verdict(&case).cause, Cause::OneProcessor);
}

#[test]
fn a_device_that_is_full_is_named_with_its_share() {
    let mut case = waits(delayed(planted()), &[("IMAGE_WRITE", 100.0)]);
    case.repeats[0].device =
        Some(DeviceUse { write_mb_per_s: 900.0, read_mb_per_s: 1.0, ..DeviceUse::default() });
    let verdict = verdict(&case);
    assert_eq!(verdict.cause, Cause::Device);
    assert!(verdict.text().contains("90 % of what it can"), "{}", verdict.text());
}

#[test]
fn commits_that_did_not_wait_are_told_before_anything_else() {
    let mut case = waits(planted(), &[("WRITELOG", 200.0)]);
    case.repeats[0].commits_per_sync = Some(300.0);
    case.conclude();
    let verdict = verdict(&case);
    assert_eq!(verdict.cause, Cause::NotSynchronous);
    assert!(verdict.text().contains("300 commits for each sync, but only 24 sessions"));
}

#[test]
fn generated_keys_conflicts_and_structures_have_their_own_causes() {
    for (wait, cause) in [
        ("KEY_LEASE", Cause::KeyLease),
        ("TRANSACTION_CONFLICT", Cause::Conflict),
        ("LATCH_EX", Cause::StructureLatch),
        ("SOMETHING_NEW", Cause::Other("SOMETHING_NEW".into())),
    ] {
        let verdict = verdict(&waits(delayed(planted()), &[(wait, 100.0)]));
        assert_eq!(verdict.cause, cause);
    }
}

#[test]
fn the_load_generator_is_never_mistaken_for_a_target() {
    let mut case = delayed(planted());
    case.target = "null".into();
    let told = verdict(&case).text();
    assert!(told.contains("10,000 ns a row; 4,800 ns of a processor's time"), "{told}");
}

#[test]
fn every_wait_of_the_engine_has_a_meaning() {
    let load = meaning::Load { is_onrush: true, is_durable: true, is_busy: false };
    for wait in onrush_waits::Wait::ALL {
        if wait.class() == onrush_waits::WaitClass::Idle {
            continue;
        }
        let record = WaitRecord { name: wait.name().into(), ..WaitRecord::default() };
        let cause = Cause::of_wait(&record, load);
        assert!(!matches!(cause, Some(Cause::Other(_))), "{} means nothing", wait.name());
    }
}

#[test]
fn tasks_that_wait_for_their_commits_are_bound_by_the_sync_time() {
    let mut case = waits(planted(), &[("WRITELOG", 220.0)]);
    case.settings.set(Setting::Driver, "tasks".into());
    case.repeats[0].cpu_percent = 99.0;
    case.repeats[0].share_of_bound = Some(0.48);
    let verdict = verdict(&case);
    assert_eq!(verdict.cause, Cause::SyncTime);
    assert!(verdict.text().contains("WRITELOG 92 %"), "{}", verdict.text());
    assert!(!verdict.change.contains("as tasks"), "they are: {}", verdict.change);
}

#[test]
fn onrush_is_never_said_to_have_one_writer() {
    for case in [planted(), delayed(planted())] {
        for target in ["onrush", "onrush-server"] {
            let mut case = case.clone();
            case.target = target.into();
            case.repeats[0].commits_per_sync = case.repeats[0].commits_per_sync.map(|_| 1.0);
            let cause = verdict(&case).cause;
            assert!(!matches!(cause, Cause::OneWriter | Cause::OneProcessor), "{cause:?}");
        }
    }
}

fn with_front(moved: f64) -> CaseOutcome {
    let mut case = waits(delayed(planted()), &[("ADMISSION", 60.0)]);
    case.settings.set(Setting::Front, true.into());
    let counter =
        |name: &str, value| CounterRecord { name: name.into(), value, ..Default::default() };
    case.repeats[0].counters =
        vec![counter("ROWS_MOVED", moved), counter("DRAIN_BEHIND_MAX_MS", 1400.0)];
    case
}

#[test]
fn a_front_that_fills_faster_than_it_is_drained_is_named() {
    let verdict = verdict(&with_front(600_000.0));
    assert_eq!(verdict.cause, Cause::Drain);
    let text = verdict.text();
    assert!(text.contains("60.0 % of the rows were moved"), "{text}");
    assert!(text.contains("at most 1,400 ms after its insert"), "{text}");
}

#[test]
fn a_drain_that_keeps_up_is_not_the_bound() {
    let verdict = verdict(&with_front(990_000.0));
    assert_eq!(verdict.cause, Cause::Places);
    assert!(verdict.text().contains("99.0 % of the rows were moved"), "{}", verdict.text());
}

#[test]
fn sessions_that_keep_the_pace_they_were_given_are_not_held_back() {
    let mut case = waits(delayed(planted()), &[("ADMISSION", 60.0)]);
    case.settings.set(Setting::RowsPerSecondMax, 100_000.into());
    assert_eq!(verdict(&case).cause, Cause::Pace);
    case.settings.set(Setting::RowsPerSecondMax, 200_000.into());
    assert_eq!(verdict(&case).cause, Cause::Places);
}
