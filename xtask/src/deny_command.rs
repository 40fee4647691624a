//! `cargo xtask deny`: licences, sources and advisories of all dependencies, by cargo-deny, which is
//! installed into the target folder if this machine has none.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::commands::{Step, run_all};
use crate::tool::Tool;

const VERSION: &str = "0.20.2";

/// Runs the checks of `deny.toml`. Where cargo-deny cannot be installed, or the database of advisories not be
/// fetched, a note says what was left out; `ONRUSH_REQUIRE_DENY=1` makes that a failure.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let is_required = std::env::var("ONRUSH_REQUIRE_DENY").is_ok_and(|text| text == "1");
    let tool = Tool { name: "cargo-deny", version: VERSION, flags: &[] };
    let Some(path) = tool.path(root)? else {
        let told = "deny: cargo-deny could not be installed; dependencies were not looked at";
        println!("{told}");
        return if is_required { Err(told.to_owned()) } else { Ok(()) };
    };
    let step = |name, arguments: &[&str]| Step::cargo(root, name, arguments).with("PATH", &path);
    let checks = ["deny", "--all-features", "check", "bans", "licenses", "sources"];
    let mut steps = vec![step("dependencies", &checks)];
    let fetch = Command::new("cargo")
        .args(["deny", "fetch", "db"])
        .env("PATH", &path)
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if is_required || fetch.is_ok_and(|status| status.success()) {
        steps.push(step("advisories", &["deny", "--all-features", "check", "advisories"]));
    } else {
        println!("note: the database of advisories cannot be fetched; they were not looked at");
    }
    match run_all(&steps) {
        0 => Ok(()),
        _ => Err("deny: a dependency is not as deny.toml wants it".to_owned()),
    }
}
