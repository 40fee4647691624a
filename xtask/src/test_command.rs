//! `cargo xtask test`: every test of the workspace in one command.
//!
//! 1. All tests and examples in documentation, as `cargo test --workspace` runs them.
//! 2. The models of latches and commit groups, which need another build (`--cfg loom`).
//! 3. The tests that plant faults on purpose, which need the features `planted-faults`, and those of
//!    the simulator's FUSE disk, which need `lost-cache`.
//! 4. With `ONRUSH_REQUIRE_SERVERS` set, the baselines that are servers, which must be installed.

use std::path::{Path, PathBuf};

use crate::commands::{Step, run_all};

/// Faults planted on purpose, and the simulator's FUSE disk.
const PLANTED_FEATURES: &str = "onrush-sim/planted-faults,onrush-sim/lost-cache,\
    onrush-prove-wire/planted-faults,onrush-lake/planted-faults";
/// The tests that do more, or anything at all, with these features, by the crates that have them.
const PLANTED_TESTS: [(&str, &str); 14] = [
    ("lake", "planted_faults_are_noticed"),
    ("prove-wire", "planted_faults_are_found"),
    ("sim", "a_panic_inside_stops_the_engine"),
    ("sim", "a_session_sees_its_own_commits"),
    ("sim", "indexes_built_beside_writers"),
    ("sim", "indexes_that_do_not_follow"),
    ("sim", "locked_rows_are_left_alone"),
    ("sim", "long_values_that_are_not_whole"),
    ("sim", "planted_faults"),
    ("sim", "real_processes"),
    ("sim", "references_meet_removals"),
    ("sim", "savepoints_over_stocks"),
    ("sim", "serializable_reads_are_looked_at"),
    ("sim", "snapshots_given_up"),
];

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
    // One build for both: the whole workspace, so that the query engine is not built again with other features. The
    // other tests have run without the features, and would do the same again.
    let planted = ["test", "--workspace", "--features", PLANTED_FEATURES, "--no-fail-fast"];
    let with_features = PLANTED_TESTS.iter().flat_map(|(_, name)| ["--test", name]);
    let arguments: Vec<&str> = planted.into_iter().chain(with_features).collect();
    steps.push(Step::cargo(root, "planted faults", &arguments));
    if std::env::var_os("ONRUSH_REQUIRE_SERVERS").is_some() {
        let arguments = ["test", "--package", "onrush-lab", "--features", "servers"];
        steps.push(Step::cargo(root, "servers", &arguments));
    }
    steps
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

    #[test]
    fn whatever_looks_at_the_features_is_tested_with_them() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut looking = Vec::new();
        for package in ["lake", "prove-wire", "sim"] {
            let tests = std::fs::read_dir(root.join("crates").join(package).join("tests")).unwrap();
            for path in tests.map(|file| file.unwrap().path()).filter(|path| path.is_file()) {
                if std::fs::read_to_string(&path).unwrap().contains("feature = \"") {
                    looking
                        .push((package, path.file_stem().unwrap().to_string_lossy().into_owned()));
                }
            }
        }
        looking.sort();
        let named = looking.iter().map(|(package, name)| (*package, &**name));
        assert!(named.eq(PLANTED_TESTS), "{looking:?}");
    }
}
