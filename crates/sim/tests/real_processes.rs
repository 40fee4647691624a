//! A few of the proofs on the real disk; all of them:
//! `cargo run -p onrush-sim --release --bin prove -- kill | calls | full-disk | growth`, and with
//! `--features lost-cache` also `lost-cache`.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_prove")).args(arguments).output().unwrap()
}

/// Runs `prove`, which says itself what went wrong, or that it was skipped and why.
fn prove(arguments: &[&str]) {
    let output = run(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    println!("{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_killed_process_loses_nothing_that_was_durable() {
    prove(&["kill", "--rounds", "20"]);
}

#[test]
fn a_system_call_that_kills_or_fails_loses_nothing_that_was_durable() {
    prove(&["calls", "--until", "9", "--step", "4"]);
}

#[test]
fn a_full_disk_loses_nothing() {
    prove(&["full-disk", "--sizes", "8"]);
}

#[test]
fn a_database_larger_than_its_memory_is_sound_and_whole() {
    prove(&["growth", "--mib", "24", "--leaf-memory-mib", "4"]);
}

#[test]
#[cfg(feature = "lost-cache")]
fn a_disk_that_loses_what_was_not_synced_loses_nothing_that_was_durable() {
    prove(&["lost-cache", "--rounds", "12"]);
}

/// Else the test above would show nothing.
#[test]
#[cfg(all(feature = "lost-cache", feature = "planted-faults"))]
fn a_disk_that_loses_what_was_not_synced_tells_a_log_without_syncs() {
    let output = run(&["lost-cache", "--rounds", "12", "--fault", "LogNotSynced"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let was_noticed = String::from_utf8_lossy(&output.stderr).contains("round ");
    assert!(said.contains("skipped") || (was_noticed && !output.status.success()), "{said}");
}
