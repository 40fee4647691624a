//! `cargo xtask miri` and `cargo xtask sanitize`: tests under tools that need a nightly compiler.
//!
//! They are no part of the tests on every change: they take long, and nightly is not what is released.
//! What is needed once: `rustup toolchain install nightly --component miri --component rust-src`.

use std::path::Path;

use crate::commands::{Step, run_all};

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Codecs and node code under Miri, which sees undefined behaviour: package and filters of its tests.
/// What makes files or starts many threads is left out.
const UNDER_MIRI: [(&str, &[&str]); 4] = [
    ("onrush-types", &["--lib"]),
    ("onrush-filter", &["--lib"]),
    ("onrush-log", &["--lib", "--", "block::", "frame::", "units::", "ring::", "prefix::"]),
    ("onrush", &["--lib", "--", "node::", "memory::", "logging::", "units::"]),
];

/// Tests with many threads, for the sanitizers: package and what to run of it.
const UNDER_SANITIZERS: [(&str, &[&str]); 3] = [
    ("onrush-latch", &[]),
    ("onrush-log", &[]),
    (
        "onrush",
        &[
            "--test=rows_survive_a_crowd",
            "--test=generated_keys_are_unique",
            "--test=snapshots_never_see_half_a_transaction",
            "--test=an_open_database_is_checked",
        ],
    ),
];

/// Runs all of [`UNDER_MIRI`].
pub(crate) fn miri(root: &Path) -> Result<(), String> {
    let step = |(package, filters): &(&str, &[&str])| {
        let arguments = [&["miri", "test", "--package", package], *filters].concat();
        Step::nightly_cargo(root, &format!("{package} under Miri"), &arguments)
            .with("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-permissive-provenance")
            .with("PROPTEST_CASES", "8")
    };
    finish(UNDER_MIRI.iter().map(step).collect())
}

/// Runs all of [`UNDER_SANITIZERS`] under the thread or the address sanitizer.
pub(crate) fn sanitize(root: &Path, sanitizer: &str) -> Result<(), String> {
    let folder = format!("target/{sanitizer}-sanitizer");
    let step = |(package, filters): &(&str, &[&str])| {
        let mut arguments = vec!["test", "--package", package, "--target", TARGET];
        arguments.extend(["--target-dir", &folder]);
        // The standard library has to be built for it, too, or its locks are taken for races.
        arguments.push("-Zbuild-std");
        arguments.extend(*filters);
        Step::nightly_cargo(root, &format!("{package}, {sanitizer} sanitizer"), &arguments)
            .with("RUSTFLAGS", &format!("-Zsanitizer={sanitizer}"))
            .with("RUSTDOCFLAGS", &format!("-Zsanitizer={sanitizer}"))
    };
    finish(UNDER_SANITIZERS.iter().map(step).collect())
}

fn finish(steps: Vec<Step>) -> Result<(), String> {
    match run_all(&steps) {
        0 => Ok(()),
        failed => Err(format!(
            "{failed} failed; without a nightly toolchain: \
             rustup toolchain install nightly --component miri --component rust-src"
        )),
    }
}
