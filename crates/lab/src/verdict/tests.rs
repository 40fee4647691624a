//! Each bound is planted into an outcome, and the verdict must name it.

use onrush_measure::result::Percentiles;

use super::*;
use crate::study::outcome::{DeviceUse, Repeat};
use crate::study::{Setting, Settings};
use crate::target::record::{CounterRecord, PhaseRecord, WaitRecord};

pub(super) const AROUND: Surroundings =
    Surroundings { cpus: 8, device_write_mb_per_s: Some(1000.0), device_read_mb_per_s: None };

/// A load of 24 durable sessions for 10 seconds that waited for nothing and used half a processor.
pub(super) fn planted() -> CellOutcome {
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
    let mut cell = CellOutcome {
        target: "onrush".into(),
        settings: Settings::default(),
        repeats: vec![repeat],
        ..CellOutcome::default()
    };
    cell.conclude();
    cell
}

pub(super) fn delayed(mut cell: CellOutcome) -> CellOutcome {
    cell.settings.set(Setting::Durability, "delayed".into());
    let repeat = &mut cell.repeats[0];
    (repeat.commits_per_sync, repeat.share_of_bound) = (None, None);
    cell.not_synchronous = false;
    cell
}

/// Of the 240 seconds of all sessions.
fn waits(mut cell: CellOutcome, waits: &[(&str, f64)]) -> CellOutcome {
    cell.repeats[0].waits = waits
        .iter()
        .map(|(name, seconds)| WaitRecord {
            group: "wait".into(),
            name: (*name).into(),
            count: 1000,
            seconds: *seconds,
            ..WaitRecord::default()
        })
        .collect();
    cell
}

fn verdict(cell: &CellOutcome) -> Verdict {
    of(cell, AROUND).unwrap()
}

#[test]
fn commits_that_poll_are_bound_by_the_sync_time_though_the_processors_are_busy() {
    let mut cell = waits(planted(), &[("WRITELOG", 230.0)]);
    cell.repeats[0].cpu_percent = 90.0;
    assert_eq!(verdict(&cell).cause, Cause::Processor);
    let group = "spin".into();
    let looks = WaitRecord {
        group,
        name: onrush_waits::Spin::CommitGroup.name().into(),
        count: 9,
        ..WaitRecord::default()
    };
    cell.repeats[0].waits.push(looks);
    assert_eq!(verdict(&cell).cause, Cause::SyncTime);
}

#[test]
fn a_session_with_a_processor_of_its_own_is_bound_by_its_sync_however_busy_the_log_writer_is() {
    let mut cell = waits(planted(), &[("WRITELOG", 9.9)]);
    cell.settings.set(Setting::Sessions, 1.into());
    cell.repeats[0].cpu_percent = 12.0; // of eight: as much as one session could use
    assert_eq!(verdict(&cell).cause, Cause::SyncTime);
}

#[test]
fn sessions_sent_to_one_leaf_are_told_so_where_the_processors_are_the_bound() {
    let mut cell = waits(delayed(planted()), &[("ADMISSION", 150.0)]);
    cell.repeats[0].cpu_percent = 95.0;
    cell.settings.set(Setting::SequentialKeys, "shared-edge".into());
    let leaf = WaitRecord {
        group: "latch".into(),
        name: onrush_waits::LatchClass::Leaf.name().into(),
        count: 250_000,
        ..WaitRecord::default()
    };
    cell.repeats[0].waits.push(leaf);
    let told = verdict(&cell);
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
    let mut cell = waits(planted(), &[("WRITELOG", 9.1), ("LOG_COMPLETION", 100.0)]);
    cell.settings.set(Setting::Sessions, 1.into());
    cell.repeats[0].commits_per_sync = Some(1.0);
    cell.repeats[0].share_of_bound = Some(0.95);
    let verdict = verdict(&cell);
    assert_eq!(verdict.cause, Cause::SyncTime);
    let text = verdict.text();
    assert!(text.contains("WRITELOG 91 % of the session's time"), "{text}");
    assert!(text.contains("95.0 % of the bound N/F"), "{text}");
    assert!(text.contains("more sessions, whose commits share a sync"), "{text}");
}

#[test]
fn sessions_of_a_delayed_load_that_wait_once_for_its_end_are_not_bound_by_that() {
    let cell = waits(delayed(planted()), &[("WRITELOG", 60.0)]);
    let ended = verdict(&cell);
    assert_eq!(ended.cause, Cause::Unknown);
    assert!(!ended.text().contains("WRITELOG"), "{}", ended.text());
    let latched = waits(cell, &[("WRITELOG", 60.0), ("PAGELATCH_EX", 30.0)]);
    assert_eq!(verdict(&latched).cause, Cause::LeafLatch);
}

#[test]
fn delayed_durability_is_not_proposed_to_who_has_it() {
    let rival = |mut cell: CellOutcome| {
        cell.target = "mariadb".into();
        verdict(&waits(cell, &[("innodb/innodb_log_file", 90.0)]))
    };
    let (durable, delayed) = (rival(planted()), rival(delayed(planted())));
    assert_eq!((&durable.cause, &delayed.cause), (&Cause::SyncTime, &Cause::SyncTime));
    assert!(durable.change.contains("delayed durability"), "{}", durable.change);
    assert!(!delayed.change.contains("delayed durability"), "{}", delayed.change);
}

#[test]
fn a_small_log_ring_is_named() {
    let cell = waits(delayed(planted()), &[("LOGBUFFER", 150.0), ("ADMISSION", 40.0)]);
    let verdict = verdict(&cell);
    assert_eq!(verdict.cause, Cause::LogBuffer);
    assert!(verdict.text().contains("LOGBUFFER 62 %"), "{}", verdict.text());
}

#[test]
fn a_shared_edge_is_named_with_the_setting_that_ends_it() {
    let mut cell = waits(delayed(planted()), &[("PAGELATCH_EX", 120.0), ("ADMISSION", 90.0)]);
    cell.settings.set(Setting::SequentialKeys, "shared-edge".into());
    assert_eq!(verdict(&cell).cause, Cause::LeafLatch);
    assert!(verdict(&cell).change.contains("sequential_keys = \"blocks\""));
    cell.settings.set(Setting::SequentialKeys, "blocks".into());
    cell.settings.set(Setting::Key, "identity".into());
    assert!(verdict(&cell).change.contains("session-offset"));
    cell.settings.set(Setting::Key, "session-offset".into());
    assert!(!verdict(&cell).change.contains("session-offset"), "it has that key already");
}

#[test]
fn waits_of_the_same_meaning_count_together() {
    let parts = [("PAGELATCH_EX", 40.0), ("PAGELATCH_SH", 40.0), ("DELAYED_WINDOW", 60.0)];
    assert_eq!(verdict(&waits(delayed(planted()), &parts)).cause, Cause::LeafLatch);
}

#[test]
fn too_little_memory_is_told_from_cold_leaves() {
    let reads = [("PAGEIOLATCH_EX", 100.0), ("FRAME_FREE", 50.0)];
    let mut cell = waits(delayed(planted()), &reads);
    assert_eq!(verdict(&cell).cause, Cause::LeafReads);
    let evictions = CounterRecord { name: "EVICTIONS".into(), value: 9.0, ..Default::default() };
    cell.repeats[0].counters.push(evictions);
    assert_eq!(verdict(&cell).cause, Cause::Memory);
    cell.repeats[0].waits[0].name = "LATCH_EX".into();
    assert_eq!(verdict(&cell).cause, Cause::Memory);
    let frames = waits(delayed(planted()), &[("FRAME_FREE", 100.0)]);
    assert_eq!(verdict(&frames).cause, Cause::Memory);
    assert!(verdict(&frames).change.contains("cache_bytes"));
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
    let mut cell = waits(delayed(planted()), &[("ADMISSION", 200.0)]);
    cell.repeats[0].cpu_percent = 97.0;
    cell.repeats[0].phases = vec![
        PhaseRecord { name: "SEEK".into(), seconds: 30.0, ..PhaseRecord::default() },
        PhaseRecord { name: "PLACE".into(), seconds: 10.0, ..PhaseRecord::default() },
        PhaseRecord { name: "IDLE".into(), seconds: 90.0, is_idle: true, ..Default::default() },
    ];
    let verdict = verdict(&cell);
    assert_eq!(verdict.cause, Cause::Processor);
    assert!(verdict.text().contains("75 %, in the phase SEEK"), "{}", verdict.text());
    assert!(verdict.change.contains("more rows per statement"));
}

#[test]
fn processors_that_are_not_busy_are_not_blamed_for_admission() {
    let cell = waits(delayed(planted()), &[("ADMISSION", 200.0)]);
    assert_eq!(verdict(&cell).cause, Cause::Places);
    let queued = [("ADMISSION", 150.0), ("CPU_QUEUE", 50.0)];
    assert_eq!(verdict(&waits(cell, &queued)).cause, Cause::Processor);
}

#[test]
fn durable_commits_on_busy_processors_are_bound_by_them_until_the_bound_is_near() {
    let mut cell = waits(planted(), &[("WRITELOG", 200.0)]);
    cell.repeats[0].cpu_percent = 95.0;
    assert_eq!(verdict(&cell).cause, Cause::Processor);
    cell.repeats[0].share_of_bound = Some(0.8);
    assert_eq!(verdict(&cell).cause, Cause::SyncTime);
}

#[test]
fn fewer_sessions_than_processors_are_told_so() {
    let mut cell = delayed(planted());
    cell.settings.set(Setting::Sessions, 2.into());
    cell.repeats[0].cpu_percent = 24.0;
    assert_eq!(verdict(&cell).cause, Cause::FewSessions);
}

#[test]
fn a_rival_that_commits_one_transaction_a_sync_has_one_writer() {
    let mut cell = planted();
    cell.target = "lmdb".into();
    cell.repeats[0].commits_per_sync = Some(1.0);
    assert_eq!(verdict(&cell).cause, Cause::OneWriter);
    let mut cell = delayed(planted());
    cell.target = "lmdb".into();
    cell.repeats[0].cpu_percent = 12.0;
    assert_eq!(verdict(&cell).cause, Cause::OneProcessor);
}

#[test]
fn a_device_that_is_full_is_named_with_its_share() {
    let mut cell = waits(delayed(planted()), &[("IMAGE_WRITE", 100.0)]);
    cell.repeats[0].device =
        Some(DeviceUse { write_mb_per_s: 900.0, read_mb_per_s: 1.0, ..DeviceUse::default() });
    let verdict = verdict(&cell);
    assert_eq!(verdict.cause, Cause::Device);
    assert!(verdict.text().contains("90 % of what it can"), "{}", verdict.text());
}

#[test]
fn commits_that_did_not_wait_are_told_before_anything_else() {
    let mut cell = waits(planted(), &[("WRITELOG", 200.0)]);
    cell.repeats[0].commits_per_sync = Some(300.0);
    cell.conclude();
    let verdict = verdict(&cell);
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
    let mut cell = delayed(planted());
    cell.target = "null".into();
    let told = verdict(&cell).text();
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
    let mut cell = waits(planted(), &[("WRITELOG", 220.0)]);
    cell.settings.set(Setting::Driver, "tasks".into());
    cell.repeats[0].cpu_percent = 99.0;
    cell.repeats[0].share_of_bound = Some(0.48);
    let verdict = verdict(&cell);
    assert_eq!(verdict.cause, Cause::SyncTime);
    assert!(verdict.text().contains("WRITELOG 92 %"), "{}", verdict.text());
    assert!(!verdict.change.contains("as tasks"), "they are: {}", verdict.change);
}

#[test]
fn onrush_is_never_said_to_have_one_writer() {
    for cell in [planted(), delayed(planted())] {
        for target in ["onrush", "onrush-server"] {
            let mut cell = cell.clone();
            cell.target = target.into();
            cell.repeats[0].commits_per_sync = cell.repeats[0].commits_per_sync.map(|_| 1.0);
            let cause = verdict(&cell).cause;
            assert!(!matches!(cause, Cause::OneWriter | Cause::OneProcessor), "{cause:?}");
        }
    }
}

fn with_front(moved: f64) -> CellOutcome {
    let mut cell = waits(delayed(planted()), &[("ADMISSION", 60.0)]);
    cell.settings.set(Setting::Front, true.into());
    let counter =
        |name: &str, value| CounterRecord { name: name.into(), value, ..Default::default() };
    cell.repeats[0].counters =
        vec![counter("ROWS_MOVED", moved), counter("DRAIN_BEHIND_MAX_MS", 1400.0)];
    cell
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
    let mut cell = waits(delayed(planted()), &[("ADMISSION", 60.0)]);
    cell.settings.set(Setting::RowsPerSecondMax, 100_000.into());
    assert_eq!(verdict(&cell).cause, Cause::Pace);
    cell.settings.set(Setting::RowsPerSecondMax, 200_000.into());
    assert_eq!(verdict(&cell).cause, Cause::Places);
}
