//! `cargo xtask test`: every test of the workspace in one command.
//!
//! 1. All tests and examples in documentation, as `cargo test --workspace` runs them, with faults that can be planted
//!    and the simulator's FUSE disk: one build for all.
//! 2. The models of latches and commit groups, which need another build (`--cfg loom`).
//! 3. With `ONRUSH_REQUIRE_SERVERS` set, the baselines that are servers, which must be installed.

use std::path::{Path, PathBuf};

use crate::commands::{Step, run_all};

/// Faults planted on purpose, and the simulator's FUSE disk. Nothing is planted but by the tests of them, each a
/// process of its own.
pub(crate) const FEATURES: &str = "onrush-sim/planted-faults,onrush-sim/lost-cache,onrush-prove-wire/planted-faults,\
    onrush-lake/planted-faults";

/// See the module.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    match run_all(&steps(root)) {
        0 => Ok(()),
        failed => Err(format!("test: {failed} steps failed")),
    }
}

fn steps(root: &Path) -> Vec<Step> {
    let tests = ["test", "--workspace", "--features", FEATURES, "--no-fail-fast"];
    let mut steps = vec![Step::cargo(root, "tests", &tests)];
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
    fn every_feature_that_tests_look_at_is_on() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut looking = 0;
        for package in ["lake", "prove-wire", "sim"] {
            let tests = std::fs::read_dir(root.join("crates").join(package).join("tests")).unwrap();
            for path in tests.map(|file| file.unwrap().path()).filter(|path| path.is_file()) {
                let text = std::fs::read_to_string(&path).unwrap();
                for named in text.split("feature = \"").skip(1) {
                    let feature = named.split('"').next().unwrap();
                    let named = format!("onrush-{package}/{feature}");
                    assert!(FEATURES.split(',').any(|on| on == named), "{named}");
                    looking += 1;
                }
            }
        }
        assert!(looking > 10, "{looking}");
    }
}
