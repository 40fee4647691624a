//! `cargo xtask drivers`: the tests of real clients, which are installed from their registries.

use std::path::Path;

use crate::commands::{Step, run_all};
use crate::test_command::FEATURES;

/// Runs all of them, one after the other, so that their output can be told apart.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    // The build of the other tests.
    let test = ["test", "--workspace", "--features", FEATURES, "--test", "real_clients_are_served"];
    let arguments = [&test[..], &["--", "--ignored", "--test-threads=1"]].concat();
    match run_all(&[Step::cargo(root, "drivers", &arguments)]) {
        0 => Ok(()),
        _ => Err("drivers: a client is not served as it should be".to_owned()),
    }
}
