//! `cargo xtask test`: every test of the workspace in one command.
//!
//! 1. All tests and examples in documentation, as `cargo test --workspace` runs them.
//! 2. The models of latches and commit groups, which need another build (`--cfg loom`).
//! 3. The tests that plant faults on purpose, which need the feature `planted-faults`, and those of
//!    the simulator's FUSE disk, which need `lost-cache`.
//! 4. With `ONRUSH_REQUIRE_SERVERS` set, the baselines that are servers, which must be installed.

use std::path::{Path, PathBuf};

use crate::commands::{Step, run_all};

/// See the module.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    match run_all(&steps(root)) {
        0 => Ok(()),
        failed => Err(format!("test: {failed} steps failed")),
    }
}

fn steps(root: &Path) -> Vec<Step> {
    let mut steps = vec![Step::cargo(root, "tests", &["test", "--workspace", "--no-fail-fast"])];
    let target = target_folder(root).join("loom");
    let target = target.to_string_lossy();
    let model = |name: &str, package: &str, rest: &[&str]| {
        let mut arguments =
            vec!["test", "--package", package, "--release", "--target-dir", &*target];
        arguments.extend_from_slice(rest);
        // The profile of the product spends minutes on what a model does not need.
        Step::cargo(root, name, &arguments)
            .with("RUSTFLAGS", "--cfg loom")
            .with("CARGO_PROFILE_RELEASE_LTO", "off")
            .with("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
    };
    steps.push(model("models of latches and admission", "onrush-latch", &["--test", "loom_*"]));
    steps.push(model("models of the log", "onrush-log", &["--lib", "loom"]));
    if has_planted_faults(&root.join("crates/sim/Cargo.toml")) {
        let features = "planted-faults,lost-cache";
        let arguments =
            ["test", "--package", "onrush-sim", "--features", features, "--no-fail-fast"];
        steps.push(Step::cargo(root, "planted faults", &arguments));
    }
    if has_planted_faults(&root.join("crates/prove-wire/Cargo.toml")) {
        // The whole workspace, so that the query engine is not built again with other features.
        let test = ["test", "--workspace", "--features", "onrush-prove-wire/planted-faults"];
        let arguments = [&test[..], &["--test", "planted_faults_are_found"]].concat();
        steps.push(Step::cargo(root, "planted faults under the server", &arguments));
    }
    if std::env::var_os("ONRUSH_REQUIRE_SERVERS").is_some() {
        let arguments = ["test", "--package", "onrush-lab", "--features", "servers"];
        steps.push(Step::cargo(root, "servers", &arguments));
    }
    steps
}

fn has_planted_faults(manifest: &Path) -> bool {
    std::fs::read_to_string(manifest).is_ok_and(|text| text.contains("\nplanted-faults ="))
}

/// Where builds go, so that other build settings get a folder of their own.
fn target_folder(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ordinary_tests_come_first_and_the_models_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let names: Vec<String> = steps(root).into_iter().map(|step| step.name).collect();
        assert_eq!(names[0], "tests");
        assert!(names.iter().filter(|name| name.starts_with("models")).count() == 2, "{names:?}");
    }
}
