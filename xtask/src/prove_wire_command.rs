//! `cargo xtask prove-wire`: the whole server on a disk that loses power, and its clients' own record.
//!
//! What follows the word goes to the program: `cargo xtask prove-wire --help` tells what it takes.

use std::path::Path;

use crate::commands::{Step, run_all};

/// See the module. `--release` in front builds it so.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let is_release = arguments.first().is_some_and(|first| first == "--release");
    let rest = &arguments[usize::from(is_release)..];
    let mut all = vec!["run", "--quiet", "--package", "onrush-prove-wire"];
    if is_release {
        all.push("--release");
    }
    all.push("--");
    all.extend(rest.iter().map(String::as_str));
    match run_all(&[Step::cargo(root, "prove-wire", &all)]) {
        0 => Ok(()),
        _ => Err("prove-wire: something is not as it must be".to_owned()),
    }
}
