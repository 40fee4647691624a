//! A few of the proofs on the real disk; all of them:
//! `cargo run -p onrush-sim --release --bin prove -- kill | calls | full-disk`.

use std::process::Command;

/// Runs `prove`, which says itself what went wrong, or that it was skipped and why.
fn prove(arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_prove")).args(arguments).output().unwrap();
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
